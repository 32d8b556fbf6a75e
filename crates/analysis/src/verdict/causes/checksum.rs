//! Checksums that the processor computes.

use landspeed_record::{Cause, CostClass, Finding};

use crate::verdict::judge::{Telling, behind, found};
use crate::verdict::view::{End, Role, View, settings};
use crate::verdict::words::{percent, share};

/// The sender's checksum offloads by their ethtool names: one of them is enough.
const TRANSMIT: [&str; 3] = ["tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"];
/// Gain of checksum offload alone: 44 % (jin-yoo-2007 section 3.2), so that it costs 1 - 1/1.44.
const ALONE: f64 = 0.31;
/// Without it the kernel also turns scatter-gather and segmentation offload off (netdev_fix_features), so
/// packets are small as well.
const WITH_SEGMENTATION: f64 = 0.75;

/// The end whose checksums are computed in software though its device could, with the knob.
pub(super) fn software<'v, 'a>(view: &'v View<'a>) -> Option<(&'v End<'a>, &'static str)> {
    let off = |end: &End<'_>, names: &[&str]| {
        let Some(settings) = settings(end.host) else { return false };
        let turnable = |name: &&&str| !settings.fixed.iter().any(|fixed| fixed == **name);
        let known: Vec<bool> =
            names.iter().filter(turnable).filter_map(|name| settings.features.get(*name)).copied().collect();
        !known.is_empty() && known.iter().all(|on| !on)
    };
    let sends = view.sender.as_ref().filter(|end| off(end, &TRANSMIT)).map(|end| (end, "tx-checksum"));
    // A receiver's own sums matter only where they are seen to cost something: virtual links skip them.
    let receives = || view.receiver.as_ref().filter(|end| off(end, &["rx-checksum"]) && summed(end) > 0.02);
    sends.or_else(|| receives().map(|end| (end, "rx-checksum")))
}

fn summed(end: &End<'_>) -> f64 {
    end.cost_share(CostClass::Checksum).unwrap_or(0.0)
}

pub(super) fn judge(view: &View<'_>) -> Option<Finding> {
    let (end, knob) = software(view)?;
    if !view.cpu.hurried() {
        return None;
    }
    let segmentation = end.role == Role::Sender && !view.is_udp();
    let sums = view.ends().map(summed).fold(0.0, f64::max);
    let cost = if segmentation { WITH_SEGMENTATION } else { sums.max(if sums > 0.0 { 0.0 } else { ALONE }) };
    let weight = share(cost.max(sums) * view.cpu.busiest);
    let summary =
        "the processor computes checksums that the device could, and what depends on that is off".to_owned();
    let finding = found(Cause::SoftwareChecksum, weight, 0.85, summary).at(end.name());
    let finding = finding
        .saw(format!("{knob} of {} is off and can be turned", end.name()))
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw_if((sums > 0.0).then(|| format!("{} of the sampled time goes into sums", percent(sums))))
        .saw_if(
            segmentation
                .then(|| "without it scatter-gather and segmentation offload stay off too".to_owned()),
        )
        .try_knob(knob, "on", "leave the sums to the device");
    let finding = match segmentation {
        true => finding.try_knob("tso", "on", "which then can hand over large packets"),
        false => finding,
    };
    Some(finding.expect(view.won_back(weight)))
}

pub(super) fn next(view: &View<'_>) -> Option<Finding> {
    let (end, knob) = software(view).filter(|(end, _)| end.role == Role::Sender && !view.is_udp())?;
    let allows = super::offloads::one_by_one_rate(view)?;
    let summary = "the processor computes checksums that the device could, and sends packets one by one";
    let finding = behind(Cause::SoftwareChecksum, allows, 0.6, summary.to_owned()).at(end.name());
    Some(
        finding
            .saw(format!("{knob} of {} is off and can be turned", end.name()))
            .saw("without it scatter-gather and segmentation offload stay off too")
            .try_knob(knob, "on", "leave the sums to the device")
            .try_knob("tso", "on", "which then can hand over large packets"),
    )
}
