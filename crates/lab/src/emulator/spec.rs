//! The description of a wide-area link, as a user writes it: `rate=1G,rtt=20ms,loss=0.01%`.

use landspeed_record::units::{BitRate, Bytes, Nanos};

use landspeed_record::units::Share;
use landspeed_record::{CrossTraffic, LineLoss};

/// A bound on the queue in front of the line, including the packet on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum QueueSpec {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets of any size.
    Packets(u32),
    /// The amount that the line carries in this time.
    Time(Nanos),
    /// Thousandths of the bandwidth-delay product (rate times RTT).
    Bdp(u32),
}

/// The probabilities of Elliott's chain for each segment: good to bad, bad to good, loss in the good state, loss in
/// the bad state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LossStates(pub(super) [Share; 4]);

/// The speed of the line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum LineSpeed {
    /// The rate, in bits of IP packets per second.
    Rate(u64),
    /// The path of a file with a delivery trace in Mahimahi's format.
    Trace(String),
}

/// The packets to lose, by number. Only packets with payload are counted, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum DropList {
    /// Ascending numbers.
    Numbers(Vec<u64>),
    File(String),
}

/// The parameters of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DirectionSpec {
    pub(super) speed: LineSpeed,
    pub(super) queue: QueueSpec,
    pub(super) mark_above: Option<QueueSpec>,
    pub(super) jitter: Nanos,
    pub(super) loss: Share,
    /// The mean length of a burst of losses, in thousandths of a segment, so that it can be compared exactly.
    pub(super) loss_burst: Option<u32>,
    pub(super) loss_states: Option<LossStates>,
    pub(super) loss_nth: Option<u64>,
    pub(super) drop_list: DropList,
    pub(super) reorder: Share,
    pub(super) reorder_delay: Nanos,
    pub(super) duplicate: Share,
    pub(super) drop_above: Option<Bytes>,
    /// The mean share of the line's rate that cross traffic brings.
    pub(super) cross: Share,
    /// The mean times for which a source of cross traffic is on and off.
    pub(super) cross_on: Nanos,
    pub(super) cross_off: Nanos,
    /// The part of the cross traffic that short flows bring.
    pub(super) cross_short: Share,
}

/// The parameters of a wide-area link. Each direction has its own line, queue and random generators. The parameters are
/// parsed from text ([`std::str::FromStr`]), and print as the same text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WanSpec {
    /// The directions from A to B and from B to A.
    pub(super) directions: [DirectionSpec; 2],
    pub(super) rtt: Nanos,
    /// The round trip of the flows whose packets from A to B have the codepoint [`SECOND_RTT_DSCP`].
    pub(super) second_rtt: Option<Nanos>,
    pub(super) seed: u64,
    pub(super) pairs: u8,
}

/// The Differentiated Services codepoint of packets that take the second round trip. It is from the pool for experimental and
/// local use (RFC 2474, section 6: xxxx11), so that no program has it by itself.
pub const SECOND_RTT_DSCP: u8 = 0b00_0011;
/// The default time for which segments are held back. At 1 Gb/s, over 80 segments of 1500 bytes pass in this time.
const REORDER_DELAY: Nanos = Nanos::millis(1);
/// The default mean times for which a source of cross traffic is on and off.
const CROSS_TIME: Nanos = Nanos::secs(1);
pub(super) const SEED: u64 = 1;
/// The smallest size in bytes of a queue that is given in `bdp`. It holds one superpacket, because a host with
/// segmentation offload sends that much at a time.
const LEAST_BDP_QUEUE: u64 = 65_536;

impl Default for DirectionSpec {
    /// Returns a direction of 1 Gb/s, with a queue of one bandwidth-delay product and without losses.
    fn default() -> Self {
        DirectionSpec {
            speed: LineSpeed::Rate(1_000_000_000),
            queue: QueueSpec::Bdp(1000),
            mark_above: None,
            jitter: Nanos(0),
            loss: Share::default(),
            loss_burst: None,
            loss_states: None,
            loss_nth: None,
            drop_list: DropList::Numbers(Vec::new()),
            reorder: Share::default(),
            reorder_delay: REORDER_DELAY,
            duplicate: Share::default(),
            drop_above: None,
            cross: Share::default(),
            cross_on: CROSS_TIME,
            cross_off: CROSS_TIME,
            cross_short: Share::default(),
        }
    }
}

impl Default for WanSpec {
    /// Returns a link with an RTT of 20 ms, and [`DirectionSpec::default`] in both directions.
    fn default() -> Self {
        let rtt = Nanos::millis(20);
        WanSpec { directions: Default::default(), rtt, second_rtt: None, seed: SEED, pairs: 1 }
    }
}

impl DirectionSpec {
    /// Returns the defaults for the opposite direction. They are the same parameters without losses by number, which
    /// apply only to the direction of the data.
    pub(super) fn back(&self) -> DirectionSpec {
        DirectionSpec { loss_nth: None, drop_list: DropList::Numbers(Vec::new()), ..self.clone() }
    }
}

impl QueueSpec {
    /// Returns the bound in bytes, for a line of `rate_bps` bits per second; `None` if the bound is in packets.
    pub(super) fn bytes(self, rate_bps: u64, rtt: Nanos) -> Option<u64> {
        match self {
            QueueSpec::Bytes(bytes) => Some(bytes),
            QueueSpec::Packets(_) => None,
            QueueSpec::Time(time) => {
                let bits = u128::from(rate_bps) * u128::from(time.0);
                Some(u64::try_from(bits / 8 / 1_000_000_000).unwrap_or(u64::MAX))
            }
            QueueSpec::Bdp(thousandths) => {
                let bits = u128::from(rate_bps) * u128::from(rtt.0) * u128::from(thousandths);
                Some(u64::try_from(bits / 8 / 1_000_000_000_000).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the bound in bytes, as [`QueueSpec::bytes`] does, but at least [`LEAST_BDP_QUEUE`] for a bound in `bdp`.
    /// Returns `None` if the bound is in packets.
    pub(super) fn room(self, rate_bps: u64, rtt: Nanos) -> Option<u64> {
        let least = if matches!(self, QueueSpec::Bdp(_)) { LEAST_BDP_QUEUE } else { 0 };
        self.bytes(rate_bps, rtt).map(|bytes| bytes.max(least))
    }
}

impl WanSpec {
    /// Returns the rate of the line from A to B in bits of IP packets per second, without Ethernet's framing; `None` if
    /// the line follows a trace.
    pub fn rate(&self) -> Option<BitRate> {
        match self.directions[0].speed {
            LineSpeed::Rate(bps) => Some(BitRate(bps as f64)),
            LineSpeed::Trace(_) => None,
        }
    }

    /// Returns the RTT of the idle link.
    pub fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// Returns the RTT of the flows whose packets from A to B have the codepoint [`SECOND_RTT_DSCP`]; `None` if all have
    /// the same RTT.
    pub fn second_rtt(&self) -> Option<Nanos> {
        self.second_rtt
    }

    /// Returns the time by which the second RTT is longer; zero if there is none.
    pub(super) fn farther(&self) -> Nanos {
        self.second_rtt.map_or(Nanos(0), |second| second.saturating_sub(self.rtt))
    }

    /// Returns the size of the queue from A to B in bytes of IP packets, including the packet on the line; `None` if
    /// the queue counts packets, or if its size depends on the rate and the line follows a trace.
    pub fn queue(&self) -> Option<Bytes> {
        match (self.directions[0].queue, &self.directions[0].speed) {
            (QueueSpec::Bytes(bytes), _) => Some(Bytes(bytes)),
            (queue, LineSpeed::Rate(bps)) => queue.room(*bps, self.rtt).map(Bytes),
            (_, LineSpeed::Trace(_)) => None,
        }
    }

    /// Returns the losses by chance from A to B; `None` if there are none.
    pub fn loss(&self) -> Option<LineLoss> {
        let [there, _] = &self.directions;
        let burst_packets = there.loss_burst.map_or(1.0, |thousandths| f64::from(thousandths) / 1000.0);
        (!there.loss.is_zero()).then(|| LineLoss { share: there.loss.as_f64(), burst_packets })
    }

    /// Returns the cross traffic from A to B; `None` if there is none.
    pub fn cross(&self) -> Option<CrossTraffic> {
        let [there, _] = &self.directions;
        (!there.cross.is_zero()).then(|| CrossTraffic {
            load: there.cross.as_f64(),
            on_ns: there.cross_on,
            off_ns: there.cross_off,
            short: there.cross_short.as_f64(),
        })
    }

    /// Returns the name of a parameter that disturbs the way back: "loss" or "cross"; `None` if neither does.
    pub(crate) fn disturbs_the_way_back(&self) -> Option<&'static str> {
        let [_, back] = &self.directions;
        match (back.loss.is_zero(), back.cross.is_zero()) {
            (false, _) => Some("loss"),
            (true, false) => Some("cross"),
            (true, true) => None,
        }
    }

    /// Returns the same link, but with exactly these losses from A to B. `packets` are the numbers of packets with
    /// payload; the first is 1.
    #[must_use]
    pub fn losing_only(&self, packets: &[u64]) -> WanSpec {
        let mut spec = self.clone();
        let [there, _] = &mut spec.directions;
        *there = DirectionSpec {
            loss: Share::default(),
            loss_burst: None,
            loss_states: None,
            loss_nth: None,
            drop_list: DropList::Numbers(packets.to_vec()),
            ..there.clone()
        };
        spec
    }

    /// Returns the number of host pairs that share the link: 1 to 8.
    pub fn pairs(&self) -> u8 {
        self.pairs
    }

    /// The largest number of pairs of hosts.
    pub(crate) const MAX_PAIRS: u8 = 8;
}
