//! What a wide-area link is to be: `rate=1G,rtt=20ms,loss=0.01%`.

use std::fmt;

use landspeed_units::{BitRate, Bytes, Nanos};

use super::share::Share;

/// How much may wait in front of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Queue {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Thousandths of rate times round-trip time.
    Bdp(u32),
}

/// A wide-area link, the same in both directions; each direction has its own line, queue and chance.
/// Read from text ([`std::str::FromStr`]); printing gives the text back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WanSpec {
    pub(super) rate_bps: u64,
    pub(super) rtt: Nanos,
    pub(super) queue: Queue,
    pub(super) loss: Share,
    /// In thousandths of a segment, exact to compare.
    pub(super) loss_burst: Option<u32>,
    pub(super) reorder: Share,
    pub(super) reorder_delay: Nanos,
    pub(super) drop_above: Option<Bytes>,
    pub(super) seed: u64,
}

/// Held back for so long where the user does not say: over 80 segments of 1500 bytes at 1 Gb/s.
const REORDER_DELAY: Nanos = Nanos::millis(1);
const SEED: u64 = 1;
/// A queue in units of the bandwidth-delay product is never below one packet of a host with segmentation
/// offload: the kernel hands over so much at once.
const LEAST_BDP_QUEUE: u64 = 65_536;

impl Default for WanSpec {
    /// 1 Gb/s, 20 ms, a queue of one bandwidth-delay product, nothing lost.
    fn default() -> Self {
        WanSpec {
            rate_bps: 1_000_000_000,
            rtt: Nanos::millis(20),
            queue: Queue::Bdp(1000),
            loss: Share::default(),
            loss_burst: None,
            reorder: Share::default(),
            reorder_delay: REORDER_DELAY,
            drop_above: None,
            seed: SEED,
        }
    }
}

impl WanSpec {
    /// Rate of the line in bits of IP packets; Ethernet's own framing is not counted.
    pub fn rate(&self) -> BitRate {
        BitRate(self.rate_bps as f64)
    }

    /// Round-trip time of an idle link.
    pub fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// Most bytes (of IP packets) that may wait in front of the line of one direction, the packet on the
    /// line included.
    pub fn queue(&self) -> Bytes {
        match self.queue {
            Queue::Bytes(bytes) => Bytes(bytes),
            Queue::Bdp(thousandths) => {
                let bits = u128::from(self.rate_bps) * u128::from(self.rtt.0) * u128::from(thousandths);
                let bytes = u64::try_from(bits / 8 / 1_000_000_000_000).unwrap_or(u64::MAX);
                Bytes(bytes.max(LEAST_BDP_QUEUE))
            }
        }
    }

    /// Share of segments that each direction loses.
    pub fn loss(&self) -> Share {
        self.loss
    }

    /// Mean length of a run of losses in segments; `None` where each segment is lost for itself.
    pub fn loss_burst(&self) -> Option<f64> {
        self.loss_burst.map(|thousandths| f64::from(thousandths) / 1000.0)
    }

    /// Share of segments that are held back, so that later ones overtake them.
    pub fn reorder(&self) -> Share {
        self.reorder
    }

    /// How long those are held back.
    pub fn reorder_delay(&self) -> Nanos {
        self.reorder_delay
    }

    /// IP packets above this size vanish without a word.
    pub fn drop_above(&self) -> Option<Bytes> {
        self.drop_above
    }

    /// Seed of all chance.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Time from end to end of one direction.
    pub(super) fn one_way(&self) -> Nanos {
        Nanos(self.rtt.0 / 2)
    }

    pub(super) fn rate_bps(&self) -> u64 {
        self.rate_bps
    }
}

impl fmt::Display for WanSpec {
    /// Rate, round-trip time and queue always, the rest where it is not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate={},rtt={},queue={}", rate(self.rate_bps), time(self.rtt), self.queue)?;
        if !self.loss.is_zero() {
            write!(f, ",loss={}", self.loss)?;
        }
        if let Some(length) = self.loss_burst() {
            write!(f, ",loss-burst={length}")?;
        }
        if !self.reorder.is_zero() {
            write!(f, ",reorder={},reorder-delay={}", self.reorder, time(self.reorder_delay))?;
        }
        if let Some(size) = self.drop_above {
            write!(f, ",drop-above={}", size.0)?;
        }
        if self.seed != SEED {
            write!(f, ",seed={}", self.seed)?;
        }
        Ok(())
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Bytes(bytes) => {
                f.write_str(&whole(*bytes, &[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")], ""))
            }
            Queue::Bdp(thousandths) => write!(f, "{}bdp", f64::from(*thousandths) / 1000.0),
        }
    }
}

fn rate(bps: u64) -> String {
    whole(bps, &[(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")], "")
}

fn time(time: Nanos) -> String {
    whole(time.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
}

/// The value in the largest unit that divides it, so that reading gives it back exactly.
fn whole(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| value > 0 && value.is_multiple_of(*size)) {
        Some((size, name)) => format!("{}{name}", value / size),
        None => format!("{value}{smallest}"),
    }
}
