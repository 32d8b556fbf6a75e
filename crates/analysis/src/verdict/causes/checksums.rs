//! Judges of checksums that the processor computes.

use landspeed_record::{Cause, Finding};

use super::offloads::{one_by_one_rate, packet_cost};
use crate::verdict::judge::{FindingBuilder, behind, found};
use crate::verdict::view::{EndRole, VerdictView, summed, summing};
use crate::verdict::words::{percent, share};

/// The cost of missing checksum offload alone: it gains 44 % (jin-yoo-2007 section 3.2), so it costs 1 - 1/1.44.
const CHECKSUM_ALONE: f64 = 0.31;
/// The cost of missing checksum offload at a sender: without it the kernel also turns scatter-gather and segmentation
/// offload off (netdev_fix_features), so packets are small as well.
const WITH_SEGMENTATION: f64 = 0.75;

/// Judges checksums that a full processor computes.
pub(super) fn software_checksum(view: &VerdictView<'_>) -> Option<Finding> {
    let (end, knob) = summing(view)?;
    if !view.cpu.hurried() {
        return None;
    }
    let segmentation = end.role == EndRole::Sender && !view.is_udp();
    let sums = view.ends().map(summed).fold(0.0, f64::max);
    let cost = if segmentation {
        packet_cost(view).map_or(WITH_SEGMENTATION, |(_, saved)| saved + sums)
    } else {
        sums.max(if sums > 0.0 { 0.0 } else { CHECKSUM_ALONE })
    };
    let weight = share(cost.max(sums) * view.cpu.busiest);
    let summary = "the processor computes checksums that the device could, and what depends on that is off";
    let finding = found(Cause::SoftwareChecksum, weight, 0.85, summary)
        .at(end.name())
        .saw(format!("{knob} of {} is off and can be turned", end.name()))
        .saw(format!("{} is taken for {} of the time", view.cpu.at, percent(view.cpu.busiest)))
        .saw_when(sums > 0.0, format!("{} of the sampled time goes into sums", percent(sums)))
        .saw_when(segmentation, "without it scatter-gather and segmentation offload stay off too")
        .try_knob(knob, "on", "leave the sums to the device");
    Some(
        match segmentation {
            true => finding.try_knob("tso", "on", "which then can hand over large packets"),
            false => finding,
        }
        .expect(view.won_back(share(cost.max(sums)))),
    )
}

/// Judges a sender's checksums where no processor is full.
pub(super) fn software_checksum_next(view: &VerdictView<'_>) -> Option<Finding> {
    let (end, knob) = summing(view).filter(|(end, _)| end.role == EndRole::Sender && !view.is_udp())?;
    let allows = one_by_one_rate(view)?;
    let summary = "the processor computes checksums that the device could, and sends packets one by one";
    Some(
        behind(Cause::SoftwareChecksum, allows, 0.6, summary)
            .at(end.name())
            .saw(format!("{knob} of {} is off and can be turned", end.name()))
            .saw("without it scatter-gather and segmentation offload stay off too")
            .try_knob(knob, "on", "leave the sums to the device")
            .try_knob("tso", "on", "which then can hand over large packets"),
    )
}
