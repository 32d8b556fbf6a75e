//! Judges of datagrams that are too large, and of datagrams that find a full receive buffer.

use landspeed_record::units::Bytes;
use landspeed_record::{Cause, Finding, IpProtocol};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::sizing::{ComputedValue, datagram_buffer, whole_datagrams};
use crate::verdict::thresholds::LEAST_WEIGHT;
use crate::verdict::view::{EndView, FlowView, VerdictView, counter, settings};
use crate::verdict::words::{percent, share};

/// Returns the sum of a counter of IPv4 and its counterpart of IPv6, by their kernel names.
fn both(end: &EndView<'_>, v4: &str, v6: &str) -> f64 {
    counter(end.host, v4) as f64 + counter(end.host, v6) as f64
}

pub(super) fn fragmentation(view: &VerdictView<'_>) -> Option<Finding> {
    let made = view.sender.as_ref().map_or(0.0, |end| both(end, "Ip.FragCreates", "Ip6.FragCreates"));
    let sent = view.sender.as_ref().map_or(0.0, |end| both(end, "Udp.OutDatagrams", "Udp6.OutDatagrams"));
    let came = view.receiver.as_ref().map_or(0.0, |end| both(end, "Ip.ReasmReqds", "Ip6.ReasmReqds"));
    let whole = view.receiver.as_ref().map_or(0.0, |end| both(end, "Ip.ReasmOKs", "Ip6.ReasmOKs"));
    let failed = view.receiver.as_ref().map_or(0.0, |end| both(end, "Ip.ReasmFails", "Ip6.ReasmFails"));
    let (fragments, datagrams) = if made > 0.0 { (made, sent.min(made)) } else { (came, whole) };
    let each = if datagrams > 0.0 { fragments / datagrams } else { fragments };
    // A few large answers of a name server are not a cause.
    if fragments < 100.0 || each < 1.5 {
        return None;
    }
    // A datagram in one piece costs about as much as a fragment (jin-yoo-2007 section 3.1).
    let weight = share(1.0 - 1.0 / each).max(share(failed / (whole + failed).max(1.0)));
    let summary = format!("datagrams are cut into {each:.1} fragments each");
    let at = view.ends().next().map_or_else(String::new, EndView::name);
    let mtu = view.ends().find_map(|end| settings(end.host)).map(|s| s.mtu_bytes);
    Some(
        found(Cause::Fragmentation, weight, 0.9, summary)
            .at(at)
            .saw(format!("{fragments:.0} fragments for {datagrams:.0} datagrams"))
            .saw_when(
                failed > 0.0,
                format!("{failed:.0} datagrams could not be put together again (ReasmFails)"),
            )
            .saw_if(mtu.map(|mtu| format!("the link's MTU is {} B", mtu.0)))
            .ask("send datagrams that fit the link: MTU less 28 bytes (IPv4) or 48 (IPv6)")
            .try_computed(
                "mtu",
                mtu.and_then(|mtu| whole_datagrams(mtu, each)),
                "or links that carry them whole",
            )
            .try_knob("tx-udp-segmentation", "on", "or segments that the device cuts (UDP_SEGMENT)")
            .expect(view.won_back(weight)),
    )
}

pub(super) fn udp_receive_buffer(view: &VerdictView<'_>) -> Option<Finding> {
    let end = view.receiver.as_ref()?;
    let udp = end.flows.iter().filter(|flow| flow.watch.key.protocol == IpProtocol::UDP);
    let drops = |flow: &FlowView<'_>| {
        let of = |s: Option<&landspeed_record::SocketState>| s.map_or(0, |s| s.drops);
        of(flow.watch.samples.last()).saturating_sub(of(flow.watch.samples.first())) as f64
    };
    let by_socket: f64 = udp.clone().map(drops).sum();
    let by_counter = both(end, "Udp.RcvbufErrors", "Udp6.RcvbufErrors");
    let lost = by_socket.max(by_counter);
    let came = both(end, "Udp.InDatagrams", "Udp6.InDatagrams");
    let weight = share(lost / (lost + came).max(1.0));
    if lost < 10.0 || weight < LEAST_WEIGHT / 5.0 {
        return None;
    }
    let fullest = udp.map(|flow| {
        flow.mean(|s| s.receive_memory_bytes.0 as f64 / (s.receive_buffer_bytes.0 as f64).max(1.0))
    });
    let fullest = fullest.fold(0.0, f64::max);
    let summary = format!("{} of the datagrams find their socket's receive buffer full", percent(weight));
    // A lost datagram costs more than its own time, because nothing sends it again.
    let finding = found(Cause::UdpReceiveBuffer, weight.max(LEAST_WEIGHT), 0.95, summary)
        .at(end.name())
        .saw(format!("{lost:.0} datagrams dropped for want of room, {came:.0} delivered (RcvbufErrors)"))
        .saw_when(
            fullest > 0.0,
            format!("the socket's buffer was {} full on average", percent(share(fullest))),
        )
        .saw_if(
            end.wanted_cpu()
                .map(|wanted| format!("its reader ran or wanted to for {} of the time", percent(wanted))),
        );
    // A buffer that is full most of the time cannot absorb bursts: its reader does not keep up.
    let room = datagram_buffer(view, end.flows.iter().filter_map(receive_buffer).max().unwrap_or_default());
    let remedied =
        if fullest > 0.5 { roomier(quicker(finding), room) } else { quicker(roomier(finding, room)) };
    Some(remedied.expect(Some(1.0 / (1.0 - weight.min(0.9)))))
}

fn receive_buffer(flow: &FlowView<'_>) -> Option<Bytes> {
    flow.watch.samples.last().map(|sample| sample.receive_buffer_bytes)
}

fn roomier(finding: Finding, room: ComputedValue) -> Finding {
    finding
        .try_computed(
            "rcvbuf",
            Some(room.clone()),
            "a larger SO_RCVBUF carries bursts and pauses of the reader",
        )
        .try_computed("rmem-max", Some(room), "which this bounds")
}

fn quicker(finding: Finding) -> Finding {
    let [joined, batched] = ["gro", "batch"];
    finding
        .try_knob(
            "datagram-receive",
            joined,
            "a reader that keeps up: many datagrams a call, joined (UDP_GRO)",
        )
        .try_knob("datagram-receive", batched, "or many as they came (recvmmsg)")
}
