//! Finds out what limits the path under the incumbent, by watching one short stream from both ends. This is called a
//! look.

use landspeed_analysis::verdict::{FollowUps, HostView, PathObservations, judge, together};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{Cell, EndpointOutcome, Settings, Trial, Verdict};
use landspeed_workload::has_own_flows;

use super::TunedProgram;
use crate::explain::{fitting, warm_up, watched_program, watched_stream};
use crate::trial::with_outcomes;
use crate::{Error, HostGroup, Pair};

/// Duration of the watched stream. It gives two thousand samples of a processor's time at about 1 kHz, and forty of a
/// flow.
const STREAM: Nanos = Nanos::millis(2_000);
/// The least duration of the stream in RTTs, because windows change once per RTT.
const ROUND_TRIPS: u64 = 50;
/// Additional time for opening flows, attaching the observers, and resolving the sampled symbols.
const AROUND: Nanos = Nanos::millis(400);

/// Returns the length of the stream on a path with this RTT.
fn length(rtt: Nanos) -> Nanos {
    STREAM.max(Nanos(rtt.0.saturating_mul(ROUND_TRIPS)))
}

/// Returns the approximate duration of a look on a path with this RTT.
pub(super) fn time(rtt: Nanos) -> Nanos {
    length(rtt) + warm_up(rtt) + AROUND
}

/// Watches a stream, or `program` if it is given, over all pairs under `cell`, which is already set on the hosts.
/// Returns the raw trial and the verdict.
pub(super) fn look(
    group: &HostGroup,
    cell: &Cell,
    (step, at_ns): (&str, Nanos),
    program: Option<&TunedProgram>,
) -> Result<(Trial, Verdict), Error> {
    let seen = match program {
        None => group.run(&watched_stream(&cell.flow, length(group.rtt()), group.rtt()))?,
        Some(program) => group.run(&watched_program(&cell.flow, &program.workload))?,
    };
    // A program chooses the settings of its flows itself.
    let has_own = program.is_none_or(|program| has_own_flows(&program.workload));
    let own = has_own.then_some(&cell.flow);
    let verdicts = group.pairs().zip(&seen).map(|(pair, seen)| judged(&pair, group.names(&pair), own, seen));
    let verdict = fitting(together(verdicts), program.map(|program| &program.workload), &cell.flow);
    let trial = Trial { step: step.to_owned(), at_ns, cell: cell.clone(), ..Trial::default() };
    Ok((with_outcomes(trial, group, seen, None), verdict))
}

/// Judges a pair. The hosts' settings are left out, because the ladder knows them and tries no value that is already
/// set.
fn judged(pair: &Pair<'_>, names: [&str; 2], own: Option<&Settings>, seen: &[EndpointOutcome; 2]) -> Verdict {
    let goodput = Some(pair.figures(seen).rate_bps).filter(|rate| *rate > BitRate(0.0));
    let rtt = Some(pair.path.rtt_ns);
    let unread = Settings::new();
    let [a, b] = [(names[0], pair.a, &seen[0]), (names[1], pair.b, &seen[1])].map(|(name, host, outcome)| {
        HostView { name, facts: &host.facts, seen: &outcome.observed, limits: None, set: &unread }
    });
    judge(&PathObservations { a, b: Some(b), rtt, goodput, own, follow_ups: FollowUps::default() })
}
