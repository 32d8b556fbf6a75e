//! A look at what holds the path back under the incumbent: one short stream, watched from both ends.

use landspeed_analysis::figures;
use landspeed_analysis::verdict::{HostView, PathObservations, judge};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Cell, EndpointOutcome, Settings, Trial, TrialFigures, Verdict};

use super::TunedProgram;
use crate::explain::{warm_up, watched_program, watched_stream};
use crate::{Error, Pair};

/// Length of the watched stream: two thousand samples of a processor's time at about 1 kHz, forty of a flow.
const STREAM: Nanos = Nanos::millis(2_000);
/// Least length of the stream in RTTs, because windows change once in each.
const ROUND_TRIPS: u64 = 50;
/// Time for opening flows, attaching the observers, and resolving the sampled symbols.
const AROUND: Nanos = Nanos::millis(400);

/// Returns the length of the stream on a path with this RTT.
fn length(rtt: Nanos) -> Nanos {
    STREAM.max(Nanos(rtt.0.saturating_mul(ROUND_TRIPS)))
}

/// Returns about how long a look takes.
pub(super) fn time(rtt: Nanos) -> Nanos {
    length(rtt) + warm_up(rtt) + AROUND
}

/// Watches a stream over `pair` under `cell`, which is already set. Returns the raw trial and the verdict.
pub(super) fn look(
    pair: &Pair,
    cell: &Cell,
    (step, at_ns): (&str, Nanos),
    program: Option<&TunedProgram>,
) -> Result<(Trial, Verdict), Error> {
    let [a, b] = match program {
        None => watched_stream(pair, &cell.flow, length(pair.path.rtt_ns))?,
        Some(program) => watched_program(pair, &cell.flow, &program.workload)?,
    };
    let figures = figures(&a, &b, [&pair.a.facts, &pair.b.facts], None);
    // A program chooses the settings of its flows itself.
    let own = program.is_none().then_some(&cell.flow);
    let verdict = judged(pair, own, [&a, &b], figures);
    let (step, cell) = (step.to_owned(), cell.clone());
    let trial = Trial { step, at_ns, cell, a, b, figures, ..Trial::default() };
    Ok((trial, verdict))
}

/// Judges the trial without the hosts' settings: the ladder, which has set them, tries no value that is already set.
fn judged(
    pair: &Pair,
    own: Option<&Settings>,
    [a, b]: [&EndpointOutcome; 2],
    figures: TrialFigures,
) -> Verdict {
    let goodput = Some(figures.rate_bps).filter(|rate| *rate > BitRate(0.0));
    let rtt = Some(pair.path.rtt_ns);
    let unread = Settings::new();
    let [a, b] = [("A", &pair.a, a), ("B", &pair.b, b)].map(|(name, host, outcome)| HostView {
        name,
        facts: &host.facts,
        seen: &outcome.observed,
        limits: None,
        set: &unread,
    });
    judge(&PathObservations { a, b: Some(b), rtt, goodput, own, probe: None })
}
