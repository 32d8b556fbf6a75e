//! Work for each packet that could be done once for many.

use landspeed_record::{Cause, CostClass, Finding};
use landspeed_units::BitRate;

use crate::verdict::judge::{Telling, behind, found};
use crate::verdict::view::{End, View, settings};
use crate::verdict::words::{percent, share};

/// Classes of cost that grow with packets and not with bytes.
const PER_PACKET: [CostClass; 7] = [
    CostClass::Tcp,
    CostClass::Udp,
    CostClass::Ip,
    CostClass::Driver,
    CostClass::Softirq,
    CostClass::Memory,
    CostClass::Lock,
];

/// Share of a full processor that packets cost where no profile tells: the lab's own ladder of hand
/// measurements, 2.4 to 10 Gb/s a processor second for packets of 1,500 and 9,000 bytes at the same cost
/// per byte.
const UNPROFILED: f64 = 0.6;
/// Large packets still cost something.
const SAVED: f64 = 0.85;

pub(super) struct Missing {
    pub(super) knob: &'static str,
    pub(super) host: String,
}

/// The segmentation offload of the sender; receive offload of the receiver, where packets reach it one by
/// one. A device that carries whole large packets to the peer has nothing to join.
pub(super) fn missing(view: &View<'_>) -> Vec<Missing> {
    let off = |end: &End<'_>, feature: &str| {
        let settings = settings(end.host);
        settings
            .is_some_and(|s| s.features.get(feature) == Some(&false) && !s.fixed.iter().any(|f| f == feature))
    };
    let mut missing = Vec::new();
    let mut add = |end: &End<'_>, knob| missing.push(Missing { knob, host: end.name() });
    if let Some(end) = &view.sender {
        if off(end, "tx-tcp-segmentation") {
            add(end, "tso");
        }
        // Where the device cuts TCP's large packets nothing is left for this one.
        let cut = settings(end.host).is_some_and(|s| s.features.get("tx-tcp-segmentation") == Some(&true));
        if off(end, "tx-generic-segmentation") && !cut {
            add(end, "gso");
        }
    }
    if let Some(end) = view.receiver.as_ref().filter(|end| off(end, "rx-gro") && one_by_one(end)) {
        add(end, "gro");
    }
    missing
}

/// Whether packets of full size reach the host one by one: smaller ones could not be joined.
fn one_by_one(end: &End<'_>) -> bool {
    let mtu = settings(end.host).map_or(0, |s| s.mtu_bytes.0) as f64;
    let links = end.host.links().iter().filter(|link| link.rx_packets > 0);
    let largest = links.map(|link| link.rx_bytes.0 as f64 / link.rx_packets as f64).fold(0.0, f64::max);
    (0.8 * mtu..=1.1 * mtu).contains(&largest) && mtu > 0.0
}

/// Share of the host's time that goes with packets.
fn per_packet(view: &View<'_>) -> Option<f64> {
    let of = |end: &End<'_>| {
        let known: Vec<f64> = PER_PACKET.iter().filter_map(|class| end.cost_share(*class)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    view.ends().filter_map(of).max_by(f64::total_cmp)
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let missing = missing(view);
    if missing.is_empty() || !view.cpu.hurried() || view.is_udp() {
        return None;
    }
    let packets = per_packet(view);
    let cost = SAVED * packets.unwrap_or(UNPROFILED);
    // They cannot be on before checksums are left to the device; and where all packets meet on one core by
    // somebody's order while others idle, spreading them comes first.
    let behind = super::checksum::software(view).is_some() || super::softirq::bound(view);
    let weight = share(cost * view.cpu.busiest) * if behind { 0.5 } else { 1.0 };
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary =
        format!("{} off: each packet is handled by itself, and a processor is full", names.join(", "));
    let finding = found(Cause::OffloadsOff, weight, if packets.is_some() { 0.9 } else { 0.75 }, summary);
    let mut finding = finding
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
    Some(finding.expect(view.won_back(weight)))
}

/// What a core carries of packets of the path's size one by one, at what they cost the lab without offloads: 2.4
/// Gb/s a processor second at 1,500 bytes.
pub(super) fn one_by_one_rate(view: &View<'_>) -> Option<BitRate> {
    const PACKET_SECONDS: f64 = 4.8e-6;
    let payload = view.sender.as_ref()?.main()?.last()?.send_mss_bytes;
    Some(BitRate(payload.0 as f64 * 8.0 / PACKET_SECONDS))
}

pub(super) fn next(view: &View<'_>) -> Option<Finding> {
    // Where checksums are the processor's, these depend on that.
    let missing = if super::checksum::software(view).is_some() { Vec::new() } else { missing(view) };
    let first = missing.first()?;
    let names: Vec<&str> = missing.iter().map(|m| m.knob).collect();
    let summary = format!("{} off: each packet is handled by itself", names.join(", "));
    let finding = behind(Cause::OffloadsOff, one_by_one_rate(view)?, 0.6, summary).at(&*first.host);
    Some(missing.iter().fold(finding, |finding, offload| {
        let off = format!("{} of {} is off and can be turned", offload.knob, offload.host);
        finding.saw(off).try_knob(offload.knob, "on", "handle many packets as one")
    }))
}
