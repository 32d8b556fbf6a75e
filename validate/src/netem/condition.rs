//! What is compared: two links with the same settings, and the loads on them.

use std::fmt;

use landspeed_record::units::{BitRate, Nanos};
use serde::{Deserialize, Serialize};

/// The rate of the line, in bits of IP packets per second.
const LINE: BitRate = BitRate(20e6);
/// The time from the end of the line to the other host.
const DELAY: Nanos = Nanos::millis(20);
/// The size of each IP packet in bytes. The line carries one in half a millisecond.
pub(super) const PACKET_BYTES: u32 = 1250;
/// The packets that may wait for the line. With what is under way, netem holds 80 of them: more would fill the sender's
/// buffer, which would then wait.
const QUEUE: u64 = 40;
/// The headers of Ethernet in bytes. netem counts them, and the emulator does not.
const ETHERNET: u32 = 14;
/// The share of packets that the link loses below the line's rate, and the share of those left that it takes out of order.
pub(super) const CHANCE: f64 = 0.01;

/// A link that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LinkKind {
    /// landspeed's own, `lab:wan`.
    Emulator,
    /// The kernel's queueing discipline netem.
    Netem,
}

/// How much is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OfferedLoad {
    /// Less than the line carries, over a link that loses and reorders.
    Below,
    /// More than the line carries, so that the queue is full. Nothing is lost or reordered by chance: netem loses packets
    /// before the line and the emulator after it, so their rates would differ.
    Above,
}

pub(super) const LINKS: [LinkKind; 2] = [LinkKind::Emulator, LinkKind::Netem];
pub(super) const LOADS: [OfferedLoad; 2] = [OfferedLoad::Below, OfferedLoad::Above];

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinkKind::Emulator => "emulator",
            LinkKind::Netem => "netem",
        })
    }
}

impl fmt::Display for OfferedLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferedLoad::Below => "below",
            OfferedLoad::Above => "above",
        })
    }
}

impl OfferedLoad {
    /// Returns the packets that are sent each second.
    pub(super) fn packets_per_second(self) -> f64 {
        let share = match self {
            OfferedLoad::Below => 0.8,
            OfferedLoad::Above => 1.5,
        };
        share * LINE.0 / f64::from(8 * PACKET_BYTES)
    }

    /// Returns the words of the lab whose link is landspeed's own. The seed decides what the link loses.
    pub(super) fn emulator_words(self, seed: u64) -> String {
        let chance = match self {
            OfferedLoad::Below => format!(",loss={CHANCE},reorder={CHANCE},reorder-delay=5ms"),
            OfferedLoad::Above => String::new(),
        };
        let rtt = Nanos(2 * DELAY.0).exact();
        format!("lab:wan:rate={},rtt={rtt},queue={QUEUE}p,seed={seed}{chance}", LINE.0)
    }

    /// Returns the arguments of `tc qdisc add dev DEVICE root`. netem's limit also counts the packets that wait for their
    /// delay, and so is the queue and what the line carries in that time.
    pub(super) fn netem_arguments(self) -> String {
        let under_way = DELAY.as_secs_f64() * LINE.0 / f64::from(8 * PACKET_BYTES);
        let limit = QUEUE + under_way as u64;
        let percent = 100.0 * CHANCE;
        let chance = match self {
            OfferedLoad::Below => format!(" loss random {percent}% reorder {percent}%"),
            OfferedLoad::Above => String::new(),
        };
        format!("netem limit {limit} delay {} rate {}bit -{ETHERNET}{chance}", DELAY.exact(), LINE.0)
    }
}

#[cfg(test)]
mod tests {
    use landspeed_lab::topology;

    use super::*;

    #[test]
    fn both_links_have_the_same_settings() {
        let words = OfferedLoad::Below.emulator_words(7);
        assert_eq!(
            words,
            "lab:wan:rate=20000000,rtt=40ms,queue=40p,seed=7,loss=0.01,reorder=0.01,reorder-delay=5ms"
        );
        let above = OfferedLoad::Above.emulator_words(7);
        for words in [[words], [above]] {
            topology::find(&words).unwrap().check(&words).unwrap();
        }
        assert_eq!(
            OfferedLoad::Below.netem_arguments(),
            "netem limit 80 delay 20ms rate 20000000bit -14 loss random 1% reorder 1%"
        );
        assert_eq!(OfferedLoad::Above.netem_arguments(), "netem limit 80 delay 20ms rate 20000000bit -14");
    }

    #[test]
    fn one_load_leaves_the_line_idle_and_the_other_fills_it() {
        assert_eq!(LOADS.map(OfferedLoad::packets_per_second), [1600.0, 3000.0]);
    }
}
