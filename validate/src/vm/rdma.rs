//! RDMA devices in software between the guests, and what shows that bytes went through them.

use anyhow::{Context, Result};

use super::guests::Guests;

/// The command line that makes rxe0 on a guest's data link, after its modules are loaded.
pub(super) const MAKE: &str = "rdma link add rxe0 type rxe netdev d0";
pub(super) const REMOVE: &str = "rdma link delete rxe0";

/// What a guest has sent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentCounts {
    /// Packets of rxe0.
    pub(super) packets: u64,
    /// Segments of TCP, over all interfaces.
    pub(super) segments: u64,
}

impl SentCounts {
    /// Reads the counts of both guests.
    pub(super) fn read(guests: &Guests) -> Result<[SentCounts; 2]> {
        let of = |number| -> Result<SentCounts> {
            let counts = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts /proc/net/snmp";
            parsed(&guests.on(number, counts)?)
        };
        Ok([of(1)?, of(2)?])
    }

    /// Returns what was sent since `before`.
    pub(super) fn since(self, before: SentCounts) -> SentCounts {
        SentCounts {
            packets: self.packets.saturating_sub(before.packets),
            segments: self.segments.saturating_sub(before.segments),
        }
    }
}

fn parsed(text: &str) -> Result<SentCounts> {
    let packets = text.lines().next().and_then(|line| line.trim().parse().ok());
    let mut of_tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, values] = [of_tcp.next(), of_tcp.next()].map(|line| line.unwrap_or_default().split(' '));
    let segments = names.zip(values).find(|(name, _)| *name == "OutSegs");
    Ok(SentCounts {
        packets: packets.with_context(|| format!("no count of packets: {text}"))?,
        segments: segments
            .and_then(|(_, value)| value.parse().ok())
            .context("no OutSegs in /proc/net/snmp")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_segments_are_read_together() {
        let text = "142\nIp: Forwarding\nIp: 1\nTcp: RtoMin InSegs OutSegs RetransSegs\nTcp: 200 5 7 0\nUdp: x\nUdp: 3\n";
        let (before, now) = (parsed(text).unwrap(), SentCounts { packets: 150, segments: 7 });
        assert_eq!(before, SentCounts { packets: 142, segments: 7 });
        assert_eq!(now.since(before), SentCounts { packets: 8, segments: 0 });
        assert!(parsed("cat: no such file\n").is_err() && parsed("142\nTcp: InSegs\nTcp: 1\n").is_err());
    }
}
