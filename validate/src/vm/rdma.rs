//! What shows that bytes went through the guests' RDMA devices in software.

use anyhow::{Context, Result, ensure};

use super::guests::Guests;

/// What prints the counts of a guest.
const COUNTS: &str = "cd /sys/class/infiniband/rxe0/ports/1/hw_counters && \
    grep . sent_pkts rdma_sends rdma_recvs duplicate_request && grep ^Tcp: /proc/net/snmp";

/// The payloads that a packet of RDMA may have at most, the largest first, and what rxe takes for headers of the link's
/// MTU (eth_mtu_int_to_enum of rxe_param.h).
const PATH_MTUS: [u64; 5] = [4096, 2048, 1024, 512, 256];
const HEADERS: u64 = 80;

/// What the rxe0 of a guest and its TCP have counted so far, or since an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RdmaCounts {
    /// Packets that it sent: of messages, acknowledgements, and what it sent again.
    pub(super) packets: u64,
    /// Messages that it sent by verbs that send, and not by those that write.
    pub(super) sends: u64,
    /// Messages that took a receive request: all that were sent, and those written that carry a word beside the data.
    pub(super) receives: u64,
    /// Packets that arrived again.
    pub(super) repeats: u64,
    /// Segments of TCP that were sent, over all interfaces.
    pub(super) segments: u64,
}

impl RdmaCounts {
    /// Reads the counts of both guests.
    pub(super) fn read(guests: &Guests) -> Result<[RdmaCounts; 2]> {
        Ok([parsed(&guests.on(1, COUNTS)?)?, parsed(&guests.on(2, COUNTS)?)?])
    }

    /// Reads the counts of both guests, and returns what they counted since `before`.
    pub(super) fn risen(guests: &Guests, before: [RdmaCounts; 2]) -> Result<[RdmaCounts; 2]> {
        let now = RdmaCounts::read(guests)?;
        Ok([now[0].since(before[0]), now[1].since(before[1])])
    }

    /// Returns what was counted since `before`.
    fn since(self, before: RdmaCounts) -> RdmaCounts {
        RdmaCounts {
            packets: self.packets.saturating_sub(before.packets),
            sends: self.sends.saturating_sub(before.sends),
            receives: self.receives.saturating_sub(before.receives),
            repeats: self.repeats.saturating_sub(before.repeats),
            segments: self.segments.saturating_sub(before.segments),
        }
    }
}

/// Whose messages are sent by verbs that send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendUser {
    /// The connection manager's, as datagrams: they are not acknowledged. So it is with rsockets, which write.
    Manager,
    /// The connection's own: they are acknowledged. So it is with SMC, whose control messages are sent.
    Connection,
}

/// The packets of one end, by what they are for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SentPackets {
    /// Packets of messages that write: the program's bytes, and a few of the library's own words.
    pub(super) data: u64,
    /// The rest: acknowledgements, messages of verbs that send, and what was sent again.
    pub(super) others: u64,
}

impl SentPackets {
    /// Parts the packets that `own` sent to `peer`. The last packet of each message asks for an acknowledgement, which
    /// is a packet (init_req_packet in rxe_req.c, acknowledge in rxe_resp.c), and each packet that arrives again gets
    /// one (duplicate_request there). The kernel counts all of them as sent (rxe_xmit_packet in rxe_net.c). What `own`
    /// sent again is what `peer` counts as repeated.
    pub(super) fn new(own: &RdmaCounts, peer: &RdmaCounts, user: SendUser) -> SentPackets {
        let unacknowledged = if user == SendUser::Manager { peer.sends } else { 0 };
        let acknowledgements = own.receives.saturating_sub(unacknowledged) + own.repeats;
        let others = acknowledgements + own.sends + peer.repeats;
        SentPackets { data: own.packets.saturating_sub(others), others }
    }

    /// Returns how many times the packets of the data are as many as `bytes` fill.
    ///
    /// # Errors
    /// Returns an error if they are fewer, or more than a tenth more.
    pub(super) fn share(&self, bytes: u64, path_mtu: u64) -> Result<f64> {
        let full = bytes.div_ceil(path_mtu);
        let SentPackets { data, others } = self;
        ensure!(
            (full..=full + full / 10).contains(data),
            "{data} packets of data, where {bytes} bytes fill {full} of {path_mtu}; {others} other packets"
        );
        Ok(*data as f64 / full as f64)
    }
}

/// Returns the largest payload of a packet of rxe0, by the MTU of a guest's data link.
pub(super) fn path_mtu(guests: &Guests) -> Result<u64> {
    let mtu = guests.on(1, "cat /sys/class/net/d0/mtu")?;
    payload(mtu.trim().parse()?).with_context(|| format!("an MTU of {mtu}"))
}

fn payload(mtu: u64) -> Option<u64> {
    PATH_MTUS.into_iter().find(|payload| payload + HEADERS <= mtu)
}

fn parsed(text: &str) -> Result<RdmaCounts> {
    let of_rxe = |name: &str| -> Result<u64> {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let value = value.and_then(|value| value.trim().parse().ok());
        value.with_context(|| format!("no {name} among {text}"))
    };
    let mut of_tcp = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, values] = [of_tcp.next(), of_tcp.next()].map(|line| line.unwrap_or_default().split(' '));
    let segments = names.zip(values).find(|(name, _)| *name == "OutSegs");
    Ok(RdmaCounts {
        packets: of_rxe("sent_pkts")?,
        sends: of_rxe("rdma_sends")?,
        receives: of_rxe("rdma_recvs")?,
        repeats: of_rxe("duplicate_request")?,
        segments: segments
            .and_then(|(_, value)| value.parse().ok())
            .context("no OutSegs in /proc/net/snmp")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packets: u64, sends: u64, receives: u64, repeats: u64) -> RdmaCounts {
        RdmaCounts { packets, sends, receives, repeats, segments: 0 }
    }

    #[test]
    fn counts_of_rxe_and_tcp_are_read_together() {
        let text = "sent_pkts:142\nrdma_sends:3\nrdma_recvs:20\nduplicate_request:1\n\
            Tcp: RtoMin InSegs OutSegs RetransSegs\nTcp: 200 5 7 0\n";
        let before = parsed(text).unwrap();
        assert_eq!(before, RdmaCounts { segments: 7, ..counts(142, 3, 20, 1) });
        let now = RdmaCounts { segments: 7, ..counts(150, 3, 21, 1) };
        assert_eq!(now.since(before), counts(8, 0, 1, 0));
        assert!(parsed("cat: no such file\n").is_err());
        assert!(parsed(&text.replace("OutSegs", "Out")).is_err());
    }

    #[test]
    fn acknowledgements_and_what_was_sent_again_are_no_data() {
        // 100 packets of data; 12 acknowledgements, of 10 messages and 2 repeated packets; 3 datagrams; 5 packets that
        // were sent again.
        let (own, peer) = (counts(120, 3, 14, 2), counts(90, 4, 43, 5));
        let expected = SentPackets { data: 100, others: 20 };
        assert_eq!(SentPackets::new(&own, &peer, SendUser::Manager), expected);
        // The same, but that the peer's 4 messages of verbs that send were acknowledged too.
        let own = RdmaCounts { packets: 124, ..own };
        let expected = SentPackets { data: 100, others: 24 };
        assert_eq!(SentPackets::new(&own, &peer, SendUser::Connection), expected);
    }

    #[test]
    fn data_fills_its_packets_within_a_tenth() {
        let share = |data| SentPackets { data, others: 0 }.share(16 << 20, 4096);
        assert_eq!(share(4096).unwrap(), 1.0);
        assert!(share(4505).is_ok() && share(4506).is_err() && share(4095).is_err());
    }

    #[test]
    fn the_payload_of_a_packet_follows_from_the_mtu_of_the_link() {
        let payloads = [9000, 1500, 4176, 4175, 300].map(payload);
        assert_eq!(payloads, [4096, 1024, 4096, 2048, 0].map(|payload| (payload > 0).then_some(payload)));
    }
}
