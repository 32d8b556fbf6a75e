//! A look at what holds the path back as it stands: one short stream, watched from both ends.

use landspeed_analysis::figures;
use landspeed_analysis::verdict::{HostView, Scene, judge};
use landspeed_record::{Cell, EndpointOutcome, Figures, Settings, Trial, Verdict};
use landspeed_units::{BitRate, Nanos};

use super::TunedProgram;
use crate::explain::{warm_up, watched_program, watched_stream};
use crate::{Error, Pair};

/// Length of the watched stream: at about 1 kHz two thousand samples of a processor's time, forty of a flow.
const STREAM: Nanos = Nanos::millis(2_000);
/// Round trips that it lasts at least: windows move once in each.
const ROUND_TRIPS: u64 = 50;
/// Opening flows, attaching the observers, naming the symbols that they saw.
const AROUND: Nanos = Nanos::millis(400);

/// Length of the stream on a path of this round trip.
fn length(rtt: Nanos) -> Nanos {
    STREAM.max(Nanos(rtt.0.saturating_mul(ROUND_TRIPS)))
}

/// About how long a look takes.
pub(super) fn time(rtt: Nanos) -> Nanos {
    length(rtt) + warm_up(rtt) + AROUND
}

/// Watches a stream over `pair` as `cell`, which is set already, has it: the trial, raw, and what is judged of it.
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
    let figures = figures(&a, &b, (&pair.a.facts, &pair.b.facts), None);
    // What a program's flows are set to is its own affair.
    let own = program.is_none().then_some(&cell.flow);
    let verdict = judged(pair, own, [&a, &b], figures);
    let (step, cell) = (step.to_owned(), cell.clone());
    let trial = Trial { step, at_ns, cell, a, b, figures, ..Trial::default() };
    Ok((trial, verdict))
}

/// What the ladder has set on the hosts is its own affair: it tries no value that is set.
fn judged(pair: &Pair, own: Option<&Settings>, [a, b]: [&EndpointOutcome; 2], figures: Figures) -> Verdict {
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
    judge(&Scene { a, b: Some(b), rtt, goodput, own, probe: None })
}
