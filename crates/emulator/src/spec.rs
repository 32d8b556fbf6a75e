//! What a wide-area link is to be: `rate=1G,rtt=20ms,loss=0.01%`, as it was written.

use landspeed_units::{BitRate, Bytes, Nanos};

use landspeed_units::Share;

/// How much may wait in front of the line, the packet on it included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Queue {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets of whatever size.
    Packets(u32),
    /// What the line carries in this time.
    Time(Nanos),
    /// Thousandths of rate times round-trip time.
    Bdp(u32),
}

/// Probabilities of Elliott's chain for each segment: good to bad, bad to good, loss in the good state,
/// loss in the bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LossStates(pub(super) [Share; 4]);

/// How fast the line is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Speed {
    /// Bits of IP packets a second.
    Rate(u64),
    /// As a file says (Mahimahi's format).
    Trace(String),
}

/// Packets with payload that are lost, by number; the first is 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum DropList {
    /// Ascending.
    Numbers(Vec<u64>),
    File(String),
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub(super) speed: Speed,
    pub(super) queue: Queue,
    pub(super) mark_above: Option<Queue>,
    pub(super) jitter: Nanos,
    pub(super) loss: Share,
    /// In thousandths of a segment, exact to compare.
    pub(super) loss_burst: Option<u32>,
    pub(super) loss_states: Option<LossStates>,
    pub(super) loss_nth: Option<u64>,
    pub(super) drop_list: DropList,
    pub(super) reorder: Share,
    pub(super) reorder_delay: Nanos,
    pub(super) duplicate: Share,
    pub(super) drop_above: Option<Bytes>,
}

/// A wide-area link. Each direction has its own line, queue and chance.
/// Read from text ([`std::str::FromStr`]); printing gives the text back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WanSpec {
    /// From A to B, and back.
    pub(super) ways: [Way; 2],
    pub(super) rtt: Nanos,
    pub(super) seed: u64,
    pub(super) pairs: u8,
}

/// Held back for so long where the user does not say: over 80 segments of 1500 bytes at 1 Gb/s.
const REORDER_DELAY: Nanos = Nanos::millis(1);
pub(super) const SEED: u64 = 1;
/// A queue in units of the bandwidth-delay product is never below one packet of a host with segmentation
/// offload: the kernel hands over so much at once.
const LEAST_BDP_QUEUE: u64 = 65_536;

impl Default for Way {
    /// 1 Gb/s, a queue of one bandwidth-delay product, nothing lost.
    fn default() -> Self {
        Way {
            speed: Speed::Rate(1_000_000_000),
            queue: Queue::Bdp(1000),
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
        }
    }
}

impl Default for WanSpec {
    /// 20 ms, both directions as [`Way::default`] has them.
    fn default() -> Self {
        WanSpec { ways: Default::default(), rtt: Nanos::millis(20), seed: SEED, pairs: 1 }
    }
}

impl Way {
    /// What the way back is where nothing is said of it: the same, but for losses by number, which are
    /// those of the data's direction.
    pub(super) fn back(&self) -> Way {
        Way { loss_nth: None, drop_list: DropList::Numbers(Vec::new()), ..self.clone() }
    }
}

impl Queue {
    /// In bytes of a line of so many bits a second; `None` where packets are counted.
    pub(super) fn bytes(self, rate_bps: u64, rtt: Nanos) -> Option<u64> {
        match self {
            Queue::Bytes(bytes) => Some(bytes),
            Queue::Packets(_) => None,
            Queue::Time(time) => {
                let bits = u128::from(rate_bps) * u128::from(time.0);
                Some(u64::try_from(bits / 8 / 1_000_000_000).unwrap_or(u64::MAX))
            }
            Queue::Bdp(thousandths) => {
                let bits = u128::from(rate_bps) * u128::from(rtt.0) * u128::from(thousandths);
                Some(u64::try_from(bits / 8 / 1_000_000_000_000).unwrap_or(u64::MAX))
            }
        }
    }

    /// As [`Queue::bytes`], for a queue that must take what a host sends at once.
    pub(super) fn room(self, rate_bps: u64, rtt: Nanos) -> Option<u64> {
        let least = if matches!(self, Queue::Bdp(_)) { LEAST_BDP_QUEUE } else { 0 };
        self.bytes(rate_bps, rtt).map(|bytes| bytes.max(least))
    }
}

impl WanSpec {
    /// Rate of the line from A to B in bits of IP packets, Ethernet's own framing not counted; `None` where a trace
    /// says how fast it is.
    pub fn rate(&self) -> Option<BitRate> {
        match self.ways[0].speed {
            Speed::Rate(bps) => Some(BitRate(bps as f64)),
            Speed::Trace(_) => None,
        }
    }

    /// Round-trip time of an idle link.
    pub fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// Most bytes (of IP packets) that may wait in front of the line from A to B, the packet on the line
    /// included; `None` where packets are counted, or where it is a `bdp` of a trace.
    pub fn queue(&self) -> Option<Bytes> {
        match (self.ways[0].queue, &self.ways[0].speed) {
            (Queue::Bytes(bytes), _) => Some(Bytes(bytes)),
            (queue, Speed::Rate(bps)) => queue.room(*bps, self.rtt).map(Bytes),
            (_, Speed::Trace(_)) => None,
        }
    }

    /// The same link, but that from A to B it loses these packets (with payload, the first is 1) and no other.
    #[must_use]
    pub fn losing_only(&self, packets: &[u64]) -> WanSpec {
        let mut spec = self.clone();
        let [there, _] = &mut spec.ways;
        *there = Way {
            loss: Share::default(),
            loss_burst: None,
            loss_states: None,
            loss_nth: None,
            drop_list: DropList::Numbers(packets.to_vec()),
            ..there.clone()
        };
        spec
    }

    /// Pairs of hosts that share the link: 1 to [`WanSpec::MAX_PAIRS`].
    pub fn pairs(&self) -> u8 {
        self.pairs
    }

    /// Most pairs of hosts.
    pub const MAX_PAIRS: u8 = 8;
}
