//! Judges of segmentation and receive offloads that are off.

use landspeed_record::units::BitRate;
use landspeed_record::{Cause, CostClass, Finding};

use super::softirq::packets_bound;
use crate::verdict::judge::{FindingBuilder, behind, found};
use crate::verdict::view::{EndView, VerdictView, offloads_missing, summing};
use crate::verdict::words::{percent, share};

/// The classes of cost that grow with packets and not with bytes.
const PER_PACKET: [CostClass; 7] = [
    CostClass::Tcp,
    CostClass::Udp,
    CostClass::Ip,
    CostClass::Driver,
    CostClass::Softirq,
    CostClass::Memory,
    CostClass::Lock,
];

/// The share of a full processor that packets cost where there is no profile. It is from the lab's hand measurements:
/// 2.4 to 10 Gb/s per processor second for packets of 1,500 and 9,000 bytes at the same cost per byte.
const UNPROFILED: f64 = 0.6;
/// The share of the packets' cost that offloads save: a network card still cuts large packets, and the receiver joins
/// them.
const SAVED: f64 = 0.85;
/// The cost of a packet of 64 KB, which a virtual link carries whole, divided by that of a packet of one segment (lab,
/// 1,448 and 8,948 bytes, docs/results/remedies.md).
const LARGE_PACKET: f64 = 2.5;
/// The payload of such a packet in bytes (GSO_MAX_SIZE in the kernel's netdevice.h, 65,536 with headers).
const LARGE_PAYLOAD: f64 = 65_000.0;

/// Returns the share of a host's sampled time that it spends on work of these classes; the larger of both hosts.
fn cost_of(view: &VerdictView<'_>, classes: &[CostClass]) -> Option<f64> {
    let of = |end: &EndView<'_>| {
        let known: Vec<f64> = classes.iter().filter_map(|class| end.cost_share(*class)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    view.ends().filter_map(of).max_by(f64::total_cmp)
}

/// Returns the share of the sampled time that goes with packets, and the share that large packets save; `None` without
/// a profile. On a virtual link the threads are also woken less often, unless a paced sender sleeps between bursts of
/// the same length.
pub(super) fn packet_cost(view: &VerdictView<'_>) -> Option<(f64, f64)> {
    let packets = cost_of(view, &PER_PACKET)?;
    if view.slowest_link().is_some() {
        return Some((packets, SAVED * packets));
    }
    let flow = view.sender.as_ref().and_then(|end| end.main());
    let is_paced = flow.is_some_and(|flow| flow.has_path_model());
    let wakes = [&PER_PACKET[..], &[CostClass::Scheduling]].concat();
    let saved = if is_paced { packets } else { cost_of(view, &wakes)? };
    let segment = flow.and_then(|flow| flow.last()).map_or(0.0, |tcp| tcp.send_mss_bytes.0 as f64);
    Some((packets, saved * (1.0 - LARGE_PACKET * segment / LARGE_PAYLOAD).max(0.0)))
}

/// Judges packets that a full processor handles one by one.
pub(super) fn offloads_off(view: &VerdictView<'_>) -> Option<Finding> {
    let missing = offloads_missing(view);
    if missing.is_empty() || !view.cpu.hurried() || view.is_udp() {
        return None;
    }
    let profiled = packet_cost(view);
    let (packets, cost) = (profiled.map(|(packets, _)| packets), profiled.map(|(_, saved)| saved));
    let cost = cost.unwrap_or(SAVED * UNPROFILED);
    // Segmentation offload depends on checksum offload; and where all packets are steered to one core while others
    // idle, spreading them comes first.
    let behind = summing(view).is_some() || packets_bound(view);
    let weight = share(cost * view.cpu.busiest) * if behind { 0.5 } else { 1.0 };
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary =
        format!("{} off: each packet is handled by itself, and a processor is full", names.join(", "));
    let mut finding = found(Cause::OffloadsOff, weight, if packets.is_some() { 0.9 } else { 0.75 }, summary)
        .at(&*missing[0].host)
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw_if(
            packets
                .map(|share| format!("{} of the sampled time goes with packets, not bytes", percent(share))),
        );
    for offload in missing {
        finding = finding
            .saw(format!("{} of {} is off and can be turned", offload.knob, offload.host))
            .try_knob(offload.knob, "on", "handle many packets as one");
    }
    Some(finding.expect(view.won_back(share(cost))))
}

/// Returns the rate at which a core carries packets of the path's size one by one, at their cost in the lab without
/// offloads: 2.4 Gb/s per processor second at 1,500 bytes.
pub(super) fn one_by_one_rate(view: &VerdictView<'_>) -> Option<BitRate> {
    const PACKET_SECONDS: f64 = 4.8e-6;
    let payload = view.sender.as_ref()?.main()?.last()?.send_mss_bytes;
    Some(BitRate(payload.0 as f64 * 8.0 / PACKET_SECONDS))
}

/// Judges offloads that are off where no processor is full.
pub(super) fn offloads_off_next(view: &VerdictView<'_>) -> Option<Finding> {
    // Where the processor computes checksums, segmentation offload depends on that.
    let missing = if summing(view).is_some() { Vec::new() } else { offloads_missing(view) };
    let first = missing.first()?;
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary = format!("{} off: each packet is handled by itself", names.join(", "));
    let finding = behind(Cause::OffloadsOff, one_by_one_rate(view)?, 0.6, summary).at(&*first.host);
    Some(missing.iter().fold(finding, |finding, offload| {
        let off = format!("{} of {} is off and can be turned", offload.knob, offload.host);
        finding.saw(off).try_knob(offload.knob, "on", "handle many packets as one")
    }))
}
