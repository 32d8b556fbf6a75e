//! Measures the cost per packet and per byte over sizes, as Jin & Yoo did (jin-yoo-2007 sections 3 and 4). Short trials
//! of datagrams and of writes of all sizes run in rounds of random order, over the current MTU and, in a lab, over a
//! jumbo MTU. At the end, trials compare checksum offload on and off.

mod offload;
mod plan;
mod study;

use landspeed_analysis::fit::{AnswerInputs, answers};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{ExplainReport, HostLimits, RestoreOutcome, Settings};

use super::ProgressSink;
use crate::{Error, HostGroup};
use study::SizesStudy;

/// Options of the measurement of the cost over sizes.
#[derive(Debug, Clone)]
pub struct SizesOptions {
    /// Settings of the TCP flow. Their placement of threads applies to all flows.
    pub flow: Settings,
    /// True if the MTU and offloads may be changed, which is allowed only if no one else uses the hosts.
    pub may_turn: bool,
    pub seed: u64,
    pub effort: SizesEffort,
}

/// The number and length of the trials.
#[derive(Debug, Clone)]
pub struct SizesEffort {
    /// Sizes of messages, ascending.
    pub sizes: Vec<Bytes>,
    /// Numbers of packets at which the cost steps up. For each, the largest datagram that fits into that number of
    /// packets is measured, and a datagram of one byte more.
    pub steps: Vec<u64>,
    pub rounds: u32,
    /// Duration of a trial's window. It is longer if the hosts' clocks or the path need it.
    pub window: Nanos,
    /// Duration of the window in which stacks are sampled, once per size; zero for no such trials.
    pub profiled: Nanos,
    /// Number of blocks of four trials with checksum offload on and off.
    pub blocks: u32,
}

impl Default for SizesEffort {
    /// Returns an effort of two to three minutes.
    fn default() -> Self {
        SizesEffort {
            sizes: (5..=15).map(|power| Bytes(1 << power)).collect(),
            steps: vec![1, 2, 4],
            rounds: 5,
            window: Nanos::millis(120),
            profiled: Nanos::millis(800),
            blocks: 6,
        }
    }
}

/// Reports the progress of the study to the user, and lets the user end it.
pub struct UserListener<'a> {
    /// Receives messages about the progress.
    pub progress: ProgressSink<'a>,
    /// Returns true if the user requests a stop. It is called between trials.
    pub stop: &'a dyn Fn() -> bool,
}

type StopCheck<'a> = &'a dyn Fn() -> bool;

/// Measures the cost over sizes on the group's first pair and adds the results to `report`. The answers to some of the
/// questions come from the limits that `report` already contains. Restores all settings before it returns, even after
/// an error.
///
/// # Errors
/// Returns an error if settings cannot be restored, or if a host is lost or refuses too many trials before anything is
/// measured. If a host is lost or refuses too many trials later, a line of `unjudged` reports that results are missing.
pub fn explain_sizes(
    group: &mut HostGroup,
    options: &SizesOptions,
    listener: &mut UserListener<'_>,
    report: &mut ExplainReport,
) -> Result<(), Error> {
    let mut study = SizesStudy::new(group, options);
    let result = run(&mut study, listener);
    let (turned, found) = study.finish();
    let restored = if turned { group.restore() } else { RestoreOutcome::untouched() };
    if !restored.restored {
        return Err(Error::unrestored("the cost over sizes was measured", &restored));
    }
    // The parts that were measured before an error are still worth reporting.
    match result {
        Err(error) if found.parts.is_empty() => return Err(error),
        Err(error) => report.unjudged.push(format!("cost over sizes: not all of it was measured: {error}")),
        Ok(()) => {}
    }
    report.per_packet = found.parts;
    report.notes.extend(found.notes);
    let pair = group.first();
    let limits = limits(report, pair.a.facts.boot_id == pair.b.facts.boot_id);
    let clock_hz = [pair.a.facts.cpu_clock_hz, pair.b.facts.cpu_clock_hz];
    let sweeps = &report.per_packet;
    report.answers = answers(&AnswerInputs { sweeps, limits, clock_hz, offload: &found.offload });
    Ok(())
}

/// Runs the rounds over all sizes, then the trials with checksum offload on and off.
fn run(study: &mut SizesStudy<'_>, listener: &mut UserListener<'_>) -> Result<(), Error> {
    study.rounds(listener)?;
    if !study.stopped && study.options.effort.blocks > 0 {
        (listener.progress)("cost over sizes: checksum offload on and off");
        study.offload = offload::measure(study, listener.stop)?;
    }
    Ok(())
}

/// Returns the measured limits of each host, by the host's name in the text. Two hosts on one machine have one entry,
/// "each host".
fn limits(report: &ExplainReport, one_machine: bool) -> Vec<(&'static str, &HostLimits)> {
    let names: &[&str] = if one_machine { &["each host"] } else { &["host A", "host B"] };
    let known = names.iter().zip(&report.hosts);
    known.filter_map(|(name, host)| Some((*name, host.limits.as_ref()?))).collect()
}
