//! The offloads that are off at an end although its device has them.

use landspeed_record::CostClass;

use super::VerdictView;
use super::end::EndView;
use super::host::settings;

/// The sender's checksum offloads by their ethtool names: one of them is enough.
const TRANSMIT: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];

/// An offload that is off and can be turned on.
pub(crate) struct MissingOffload {
    pub(crate) knob: &'static str,
    pub(crate) host: String,
}

/// Returns the offloads that are off: the sender's segmentation offload, and the receiver's receive offload if
/// packets reach it one by one. A receiver whose device delivers whole large packets has nothing to join.
pub(crate) fn offloads_missing(view: &VerdictView<'_>) -> Vec<MissingOffload> {
    let mut missing = Vec::new();
    let mut add = |end: &EndView<'_>, knob| missing.push(MissingOffload { knob, host: end.name() });
    if let Some(end) = &view.sender {
        if are_off(end, &["tx-tcp-segmentation"]) {
            add(end, "tso");
        }
        // Where the device cuts TCP's large packets, generic segmentation has nothing left to do.
        let cut = settings(end.host).is_some_and(|s| s.features.get("tx-tcp-segmentation") == Some(&true));
        if are_off(end, &["tx-generic-segmentation"]) && !cut {
            add(end, "gso");
        }
    }
    if let Some(end) = view.receiver.as_ref().filter(|end| are_off(end, &["rx-gro"]) && one_by_one(end)) {
        add(end, "gro");
    }
    missing
}

/// Returns true if all of these features that can be changed are off, and there is at least one.
fn are_off(end: &EndView<'_>, names: &[&str]) -> bool {
    let Some(settings) = settings(end.host) else { return false };
    let turnable = names.iter().filter(|name| !settings.fixed.iter().any(|fixed| fixed == **name));
    let mut known = turnable.filter_map(|name| settings.features.get(*name)).peekable();
    known.peek().is_some() && known.all(|on| !on)
}

/// Returns true if packets of full size reach the host one by one: smaller ones could not be joined.
fn one_by_one(end: &EndView<'_>) -> bool {
    let mtu = settings(end.host).map_or(0, |s| s.mtu_bytes.0) as f64;
    let links = end.host.links().iter().filter(|link| link.rx_packets > 0);
    let largest = links.map(|link| link.rx_bytes.0 as f64 / link.rx_packets as f64).fold(0.0, f64::max);
    (0.8 * mtu..=1.1 * mtu).contains(&largest) && mtu > 0.0
}

/// Returns the end whose checksums are computed in software although its device could compute them, and the knob that
/// changes that.
pub(crate) fn summing<'v, 'a>(view: &'v VerdictView<'a>) -> Option<(&'v EndView<'a>, &'static str)> {
    let sends = view.sender.as_ref().filter(|end| are_off(end, &TRANSMIT)).map(|end| (end, "tx-checksum"));
    // A receiver's checksums matter only if the profile shows that they cost something: virtual links skip them.
    let receives =
        || view.receiver.as_ref().filter(|end| are_off(end, &["rx-checksum"]) && summed(end) > 0.02);
    sends.or_else(|| receives().map(|end| (end, "rx-checksum")))
}

/// Returns the share of the sampled time that a host computes checksums.
pub(crate) fn summed(end: &EndView<'_>) -> f64 {
    end.cost_share(CostClass::Checksum).unwrap_or(0.0)
}
