//! Waits for the answers of both ends of a run.

use std::time::{Duration, Instant};

use landspeed_agent::session::{PendingReply, Reply, Request};
use landspeed_record::{Side, TrialProgress};

use crate::block::refused;
use crate::pace::limit_of;
use crate::{Error, Host};

/// The longest time between two calls of [`RunCallbacks::stop`] while a run waits for its answers.
const LOOK: Duration = Duration::from_millis(100);
/// The usual time limit for an end to notice that the other end has failed. Then the end is cancelled, and may take the
/// same time again to answer.
const NOTICE: Duration = Duration::from_secs(1);

/// Callbacks during a run.
pub(crate) struct RunCallbacks<'a> {
    /// Returns true if the run must be given up.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Receives the progress of each end.
    pub(crate) on_progress: &'a dyn Fn(Side, TrialProgress),
}

type TimedAnswer = (Instant, Result<Reply, Error>);

/// Waits for the answers of both ends for up to `limit`. Returns `None` if `callbacks.stop` returned true first. If one
/// end fails, the other is cancelled after [`NOTICE`], or later on slow hosts, so that it is free when the next run
/// starts.
pub(crate) fn both(
    hosts: [&Host; 2],
    pending: [PendingReply; 2],
    limit: Duration,
    callbacks: &RunCallbacks<'_>,
) -> Result<Option<[Reply; 2]>, Error> {
    let (begun, notice) = (Instant::now(), limit_of(hosts, NOTICE));
    let end = begun + limit;
    let mut answers: [Option<TimedAnswer>; 2] = [None, None];
    let mut is_cancelled = false;
    while answers.iter().any(Option::is_none) {
        look(hosts, &pending, &mut answers);
        for (side, pending) in Side::BOTH.into_iter().zip(&pending) {
            std::iter::from_fn(|| pending.progress())
                .for_each(|so_far| (callbacks.on_progress)(side, so_far));
        }
        let failed = answers.iter().flatten().find(|(_, answer)| answer.is_err()).map(|(at, _)| *at + notice);
        let now = Instant::now();
        let tell_at = failed.unwrap_or(end).min(end);
        if now >= tell_at + notice {
            break;
        }
        if now >= tell_at && !is_cancelled {
            is_cancelled = true;
            cancel_missing(hosts, &answers);
        }
        if failed.is_none() && now < end && (callbacks.stop)() {
            return Ok(None);
        }
    }
    match answers {
        [Some((_, Ok(a))), Some((_, Ok(b)))] => Ok(Some([a, b])),
        [a, b] => {
            let waited = begun.elapsed();
            Err(cause([error(hosts[0], a, waited), error(hosts[1], b, waited)], limit))
        }
    }
}

/// Returns the error of one end, with its time; `None` if the end succeeded. A missing answer is an error.
fn error(host: &Host, answer: Option<TimedAnswer>, waited: Duration) -> Option<(Instant, Error)> {
    match answer {
        Some((at, answer)) => Some((at, answer.err()?)),
        None => Some((Instant::now(), host.silent("run", waited))),
    }
}

fn cause(errors: [Option<(Instant, Error)>; 2], limit: Duration) -> Error {
    match errors {
        [Some((_, a)), Some((_, b))]
            if [&a, &b].into_iter().all(|end| cause_rank(end) == CauseRank::GaveUp) =>
        {
            let limit = landspeed_record::units::Nanos::from(limit);
            Error::Other(format!(
                "neither host came to the end of a run within {limit}, and both were asked to stop"
            ))
        }
        [Some((at_a, a)), Some((at_b, b))] => {
            if at_b < at_a {
                graver(b, a)
            } else {
                graver(a, b)
            }
        }
        [Some((_, error)), None] | [None, Some((_, error))] => error,
        [None, None] => Error::Other("a run failed, and neither host says why".into()),
    }
}

/// Takes the answers that have arrived. Waits up to [`LOOK`] for the first missing one.
fn look(hosts: [&Host; 2], pending: &[PendingReply; 2], answers: &mut [Option<TimedAnswer>; 2]) {
    let mut wait = LOOK;
    for ((host, pending), answer) in hosts.iter().zip(pending).zip(answers).filter(|(_, a)| a.is_none()) {
        *answer = host.poll(pending, wait);
        wait = Duration::ZERO;
    }
}

/// Cancels the ends that have not answered. They then answer the run.
fn cancel_missing(hosts: [&Host; 2], answers: &[Option<TimedAnswer>; 2]) {
    for (host, _) in hosts.iter().zip(answers).filter(|(_, answer)| answer.is_none()) {
        drop(host.start(&Request::Cancel {}));
    }
}

/// Returns the error that names more of the cause, or `first` if they are equal. For example, the loss of one host
/// explains the refusal of the other. If the other message is independent of the cause, it is added.
pub(crate) fn graver(first: Error, second: Error) -> Error {
    let (first, second) =
        if cause_rank(&second) > cause_rank(&first) { (second, first) } else { (first, second) };
    let is_word =
        cause_rank(&second) > CauseRank::Peer && refused(&first) && first.to_string() != second.to_string();
    if is_word { Error::Both { first: Box::new(first), second: second.to_string() } } else { first }
}

/// How much of the cause of a failed run an error names, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CauseRank {
    /// The end was cancelled.
    GaveUp,
    /// The end reports that its peer ended, or did not come in time.
    Peer,
    /// The end reports that no flow with the session's key arrived.
    Waited,
    Said,
    /// The end reports an error of its kernel.
    Errno,
    Lost,
}

/// What an end of a copy says whose flow ended, which is most often because the other end failed.
const FLOW_BROKE: &str = "a data flow broke";

fn cause_rank(error: &Error) -> CauseRank {
    let text = error.to_string();
    let says = |words: &str| text.contains(words);
    if !refused(error) {
        CauseRank::Lost
    } else if text.ends_with("cancelled") {
        CauseRank::GaveUp
    } else if landspeed_workload::Error::is_of_peer(&text) || says(FLOW_BROKE) {
        CauseRank::Peer
    } else if says("no flow with this session's key") {
        CauseRank::Waited
    } else if says("(os error ") {
        CauseRank::Errno
    } else {
        CauseRank::Said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(host: &str, why: &str) -> Error {
        let source = landspeed_agent::session::Error::Refused { why: why.to_owned() };
        Error::Session { host: host.to_owned(), source }
    }

    const NOBODY: &str =
        "no flow with this session's key reached 10.0.0.2:9 in time; 0 without it were turned away";
    const SILENT: &str = "TCP port 9 of 10.0.0.2 does not answer (blocked by a firewall?): open it there";
    const FILES: &str = "cannot accept on 10.0.0.2:9: Too many open files (os error 24); raise the limit";
    const BROKEN: &str = "a data flow broke: Connection reset by peer (os error 104)";
    const TARGET: &str = "/mnt: another copy writes here (process 7 of user 0): wait for its end";
    const PEER: &str = "the peer ended the trial early, while data flowed; its own report says why";

    #[test]
    fn the_end_that_names_more_of_the_cause_comes_first_and_the_other_is_added() {
        for (first, second, shown) in [
            (NOBODY, SILENT, format!("b: {SILENT}; a: {NOBODY}")),
            (SILENT, FILES, format!("b: {FILES}; a: {SILENT}")),
            (FILES, NOBODY, format!("a: {FILES}; b: {NOBODY}")),
            ("cancelled", NOBODY, format!("b: {NOBODY}")),
            (SILENT, "cancelled", format!("a: {SILENT}")),
            (PEER, FILES, format!("b: {FILES}")),
            (PEER, "cancelled", format!("a: {PEER}")),
            (BROKEN, TARGET, format!("b: {TARGET}")),
        ] {
            let error = graver(says("a", first), says("b", second));
            assert_eq!(error.to_string(), shown);
            assert!(refused(&error), "{shown}: the session goes on");
        }
    }

    #[test]
    fn a_host_that_was_lost_explains_the_other() {
        let lost = || Error::Session {
            host: "b".into(),
            source: landspeed_agent::session::Error::Lost { why: "gone".into() },
        };
        let line = graver(says("a", FILES), lost()).to_string();
        assert!(line.starts_with("b: ") && !line.contains("open files"), "{line}");
    }

    #[test]
    fn two_cancelled_ends_are_no_reason() {
        let now = Instant::now();
        let ends = ["a", "b"].map(|host| Some((now, says(host, "cancelled"))));
        let line = cause(ends, Duration::from_secs(12)).to_string();
        assert!(line.contains("within 12") && !line.contains("cancelled"), "{line}");
    }
}
