//! Cost per packet and per byte over sizes, as Jin & Yoo measured it (jin-yoo-2007 sections 3 and 4): short
//! trials of datagrams and of writes of all sizes, in rounds of random order, over the MTU as it is and, in a
//! lab, over a jumbo one; then checksum offload on and off.

mod offload;
mod plan;
mod study;

use landspeed_analysis::fit::{Asked, answers};
use landspeed_record::{ExplainReport, HostLimits, Restored, Settings};
use landspeed_units::{Bytes, Nanos};

use super::Progress;
use crate::{Error, Pair};
use study::Study;

#[derive(Debug, Clone)]
pub struct SizesOptions {
    /// Settings of TCP's flow, and where the threads of all flows run.
    pub flow: Settings,
    /// Whether MTU and offloads may be turned for it: only where nobody else uses the hosts.
    pub may_turn: bool,
    pub seed: u64,
    pub effort: Effort,
}

#[derive(Debug, Clone)]
pub struct Effort {
    /// Sizes of messages, ascending.
    pub sizes: Vec<Bytes>,
    /// The steps that are measured one by one: numbers of packets that a datagram just fills, with one byte
    /// more beside it.
    pub steps: Vec<u64>,
    pub rounds: u32,
    /// Length of a trial's window; longer where the clocks or the path need it.
    pub window: Nanos,
    /// Length of the window in which stacks are sampled, once for each size.
    pub profiled: Nanos,
    /// Blocks of four trials with checksum offload on and off.
    pub blocks: u32,
}

impl Default for Effort {
    /// Two to three minutes.
    fn default() -> Self {
        Effort {
            sizes: (5..=15).map(|power| Bytes(1 << power)).collect(),
            steps: vec![1, 2, 4],
            rounds: 5,
            window: Nanos::millis(120),
            profiled: Nanos::millis(800),
            blocks: 6,
        }
    }
}

/// Who waits for the result: is told what is being done, and may want it to end.
pub struct Attention<'a> {
    /// Told what is being done.
    pub progress: Progress<'a>,
    /// Whether the user asked to stop; looked at between trials.
    pub stop: &'a dyn Fn() -> bool,
}

type Stop<'a> = &'a dyn Fn() -> bool;

/// Sweeps over sizes on `pair` and adds what came to `report`, whose limits answer a part of the questions.
/// What was turned is put back before this returns, by error too.
///
/// # Errors
/// A host was lost or refused too many trials before anything was measured, or could not put everything back;
/// later, what is missing is a line of `unjudged`.
pub fn explain_sizes(
    pair: &mut Pair,
    options: &SizesOptions,
    attention: &mut Attention<'_>,
    report: &mut ExplainReport,
) -> Result<(), Error> {
    let mut study = Study::new(pair, options);
    let result = study.run(attention);
    let (turned, found) = study.finish();
    let restored = if turned { pair.restore() } else { Restored::untouched() };
    if !restored.restored {
        return Err(Error::unrestored("the cost over sizes was measured", &restored));
    }
    // What was measured before something went wrong is worth telling.
    match result {
        Err(error) if found.parts.is_empty() => return Err(error),
        Err(error) => report.unjudged.push(format!("cost over sizes: not all of it was measured: {error}")),
        Ok(()) => {}
    }
    report.per_packet = found.parts;
    report.notes.extend(found.notes);
    let limits = limits(report, pair.a.facts.boot_id == pair.b.facts.boot_id);
    report.answers = answers(&Asked { sweeps: &report.per_packet, limits, offload: &found.offload });
    Ok(())
}

/// Limits by host; those of a machine that is both are told once.
fn limits(report: &ExplainReport, one_machine: bool) -> Vec<(&'static str, &HostLimits)> {
    let names: &[&str] = if one_machine { &["each host"] } else { &["host A", "host B"] };
    let known = names.iter().zip(&report.hosts);
    known.filter_map(|(name, host)| Some((*name, host.limits.as_ref()?))).collect()
}
