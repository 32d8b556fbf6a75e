//! Cost per packet and per byte over sizes, as Jin & Yoo measured it (jin-yoo-2007 sections 3 and 4): short trials of
//! datagrams and of writes of all sizes, in rounds of random order, over the current MTU and, in a lab, over a jumbo
//! one; then checksum offload on and off.

mod offload;
mod plan;
mod study;

use landspeed_analysis::fit::{AnswerInputs, answers};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{ExplainReport, HostLimits, RestoreOutcome, Settings};

use super::ProgressSink;
use crate::{Error, HostGroup};
use study::SizesStudy;

/// How the cost over sizes is measured.
#[derive(Debug, Clone)]
pub struct SizesOptions {
    /// Settings of TCP's flow, and the placement of the threads of all flows.
    pub flow: Settings,
    /// True if MTU and offloads may be turned: only if no one else uses the hosts.
    pub may_turn: bool,
    pub seed: u64,
    pub effort: SizesEffort,
}

/// The number and length of the trials.
#[derive(Debug, Clone)]
pub struct SizesEffort {
    /// Sizes of messages, ascending.
    pub sizes: Vec<Bytes>,
    /// The steps that are measured: numbers of packets that one datagram just fills, with a datagram of one byte more
    /// beside it.
    pub steps: Vec<u64>,
    pub rounds: u32,
    /// Length of a trial's window; longer if the clocks or the path need it.
    pub window: Nanos,
    /// Length of the window in which stacks are sampled, once per size.
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

/// How the user follows the study, and ends it.
pub struct UserListener<'a> {
    /// Receives messages about the progress.
    pub progress: ProgressSink<'a>,
    /// Returns true if the user wants to stop; checked between trials.
    pub stop: &'a dyn Fn() -> bool,
}

type StopCheck<'a> = &'a dyn Fn() -> bool;

/// Sweeps over sizes on the first pair and adds the results to `report`, whose limits answer some of the questions.
/// Restores everything before it returns, even after an error.
///
/// # Errors
/// Returns an error if a host is lost or refuses too many trials before anything is measured, or cannot restore
/// everything. Later, what is missing is a line of `unjudged`.
pub fn explain_sizes(
    group: &mut HostGroup,
    options: &SizesOptions,
    listener: &mut UserListener<'_>,
    report: &mut ExplainReport,
) -> Result<(), Error> {
    let mut study = SizesStudy::new(group, options);
    let result = study.run(listener);
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
    report.answers = answers(&AnswerInputs { sweeps: &report.per_packet, limits, offload: &found.offload });
    Ok(())
}

/// Returns the measured limits of each host, with the name of the host. Two hosts on one machine have one entry,
/// "each host".
fn limits(report: &ExplainReport, one_machine: bool) -> Vec<(&'static str, &HostLimits)> {
    let names: &[&str] = if one_machine { &["each host"] } else { &["host A", "host B"] };
    let known = names.iter().zip(&report.hosts);
    known.filter_map(|(name, host)| Some((*name, host.limits.as_ref()?))).collect()
}
