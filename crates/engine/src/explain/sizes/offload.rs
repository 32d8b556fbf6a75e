//! Compares checksums in software with checksums by the device, in interleaved trials (jin-yoo-2007 sections 3.2 and
//! 3.3).

use std::collections::BTreeMap;

use landspeed_analysis::fit::{OffloadBlock, OffloadStudy};
use landspeed_record::units::Bytes;

use super::StopCheck;
use super::plan::{MessageKind, may_turn};
use super::study::SizesStudy;
use crate::Error;

const WRITE: Bytes = Bytes::kib(32);
/// Offloads that are off in both arms. A device that segments or gathers must compute checksums too, so the kernel
/// turns these offloads off together with the checksum (netdev_fix_features).
const WITHOUT: [&str; 2] = ["tso", "scatter-gather"];

/// Measures blocks of four trials, with and without checksum offload, alternately in the orders ABBA and BAAB.
pub(super) fn measure(study: &mut SizesStudy<'_>, stop: StopCheck<'_>) -> Result<OffloadStudy, Error> {
    let mtu = study.plan.mtus.iter().copied().max().unwrap_or_default();
    let sent =
        format!("TCP in writes of {WRITE} at MTU {} without segmentation offload and scatter-gather", mtu.0);
    let mut found = OffloadStudy { sent, size: WRITE, ..OffloadStudy::default() };
    if let Err(why) = may_turn(&study.group.first(), study.options, &["tx-checksum", WITHOUT[0], WITHOUT[1]])
    {
        found.why_not = Some(why);
        return Ok(found);
    }
    for block in 0..study.options.effort.blocks {
        match one_block(study, mtu, block % 2 == 0, stop)? {
            Some(block) => found.blocks.push(block),
            None if stop() => break,
            None => {}
        }
    }
    Ok(found)
}

/// Runs the four trials of a block. Returns `None` if the user requests a stop, or if a host refused a trial.
fn one_block(
    study: &mut SizesStudy<'_>,
    mtu: Bytes,
    offloaded_first: bool,
    stop: StopCheck<'_>,
) -> Result<Option<OffloadBlock>, Error> {
    let mut block = OffloadBlock::default();
    for position in 0..4 {
        if stop() {
            return Ok(None);
        }
        let offloaded = (position == 0 || position == 3) == offloaded_first;
        let checksum = if offloaded { "on" } else { "off" };
        let [cutting, gathering] = WITHOUT.map(|knob| (knob, "off"));
        study.set(&[("mtu", &mtu.0.to_string()), cutting, gathering, ("tx-checksum", checksum)])?;
        let Some(layers) = trial(study, mtu)? else { return Ok(None) };
        add(if offloaded { &mut block.offloaded } else { &mut block.summed }, layers);
    }
    Ok(Some(block))
}

/// Runs one trial. Returns the cost of each layer and class, in nanoseconds per write; `None` if a host refused the
/// trial.
fn trial(study: &mut SizesStudy<'_>, mtu: Bytes) -> Result<Option<BTreeMap<String, f64>>, Error> {
    let tcp =
        study.plan.sweeps.iter().find(|sweep| sweep.kind == MessageKind::Tcp && sweep.of.mtu == mtu).cloned();
    let tcp = tcp.expect("every MTU of the plan has a sweep over TCP");
    let Some(seen) = study.send(&tcp, WRITE, true)? else { return Ok(None) };
    let ends = study.ends(&seen);
    let costs = [ends.message_cost(WRITE, 0), ends.class_cost(WRITE, 0)];
    Ok(Some(costs.into_iter().flatten().flat_map(|cost| cost.layers).collect()))
}

/// Adds half of a trial's costs to an arm, because each arm of a block has two trials.
fn add(arm: &mut BTreeMap<String, f64>, trial: BTreeMap<String, f64>) {
    for (layer, ns) in trial {
        *arm.entry(layer).or_default() += ns / 2.0;
    }
}
