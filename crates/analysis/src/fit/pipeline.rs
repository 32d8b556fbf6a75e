//! Stages that work at the same time: the slowest one sets the pace.

use landspeed_units::{BitRate, Bytes, Nanos};

/// A stage of the way of a packet, with the time that it spends on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage<'a> {
    /// "host A", "link".
    pub name: &'a str,
    pub time: Nanos,
}

/// The slowest stage, and the throughput that it allows: `size / max(host, NIC, link)`
/// (jin.f.bottleneck, jin-yoo-2007 section 4). `None` without a stage that takes time.
pub fn bottleneck<'a>(size: Bytes, stages: &[Stage<'a>]) -> Option<(Stage<'a>, BitRate)> {
    let slowest = stages.iter().max_by_key(|stage| stage.time).filter(|stage| stage.time.0 > 0)?;
    Some((*slowest, size.per(slowest.time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stage_sets_the_pace() {
        // Section 3.1: 31 us a fragment at the sender, 9 at the receiver; 32 us for 4 KB at 1.28 Gb/s
        // leave the link no worse than the host.
        let stages = [
            Stage { name: "sender", time: Nanos::micros(31) },
            Stage { name: "receiver", time: Nanos::micros(9) },
            Stage { name: "link", time: Nanos(25_600) },
        ];
        let (stage, rate) = bottleneck(Bytes(4096), &stages).unwrap();
        assert_eq!(stage.name, "sender");
        assert!((rate.0 - 1.057e9).abs() < 1e6, "{rate}");
        assert_eq!(bottleneck(Bytes(1), &[]), None);
        assert_eq!(bottleneck(Bytes(1), &[Stage { name: "idle", time: Nanos(0) }]), None);
    }
}
