//! What both ends of a run answer.

use std::time::{Duration, Instant};

use landspeed_record::{Progress, Side};
use landspeed_session::{Pending, Reply, Request};

use crate::block::refused;
use crate::{Error, Host};

/// How often a run that may be given up looks whether it is.
const LOOK: Duration = Duration::from_millis(100);
/// How long an end may take to notice that the other has failed before it is told to give up, and how long it may take to
/// do so then.
const NOTICE: Duration = Duration::from_secs(1);

/// What goes on beside a run.
pub(crate) struct Follow<'a> {
    /// Whether it is to be given up.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// Takes how far each end has come.
    pub(crate) tell: &'a dyn Fn(Side, Progress),
}

impl<'a> Follow<'a> {
    pub(crate) fn unless(stop: &'a dyn Fn() -> bool) -> Self {
        Follow { stop, tell: &|_, _| {} }
    }
}

type Answer = (Instant, Result<Reply, Error>);

/// Both answers, each within `limit`; `None` where `stop` gave them up. Where one end fails, the other is not waited for
/// with its own patience: it is told to give up, so that the next run finds it free.
pub(crate) fn both(
    hosts: [&Host; 2],
    pending: [Pending; 2],
    limit: Duration,
    follow: &Follow<'_>,
) -> Result<Option<[Reply; 2]>, Error> {
    let end = Instant::now() + limit;
    let mut answers: [Option<Answer>; 2] = [None, None];
    let mut told = false;
    while answers.iter().any(Option::is_none) {
        look(hosts, &pending, &mut answers);
        for (side, pending) in Side::BOTH.into_iter().zip(&pending) {
            std::iter::from_fn(|| pending.progress()).for_each(|so_far| (follow.tell)(side, so_far));
        }
        let failed = answers.iter().flatten().find(|(_, answer)| answer.is_err()).map(|(at, _)| *at + NOTICE);
        let now = Instant::now();
        let tell_at = failed.unwrap_or(end).min(end);
        if now >= tell_at + NOTICE {
            break;
        }
        if now >= tell_at && !told {
            told = true;
            tell(hosts, &answers);
        }
        if failed.is_none() && now < end && (follow.stop)() {
            return Ok(None);
        }
    }
    match answers {
        [Some((_, Ok(a))), Some((_, Ok(b)))] => Ok(Some([a, b])),
        [a, b] => Err(cause([error(hosts[0], a, limit), error(hosts[1], b, limit)])),
    }
}

/// What went wrong at one end, and when.
fn error(host: &Host, answer: Option<Answer>, limit: Duration) -> Option<(Instant, Error)> {
    match answer {
        Some((at, answer)) => Some((at, answer.err()?)),
        None => Some((Instant::now(), host.silent("run", limit))),
    }
}

fn cause(errors: [Option<(Instant, Error)>; 2]) -> Error {
    match errors {
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

/// Takes the answers that are there, and waits a little for the first that is not.
fn look(hosts: [&Host; 2], pending: &[Pending; 2], answers: &mut [Option<Answer>; 2]) {
    let mut wait = LOOK;
    for ((host, pending), answer) in hosts.iter().zip(pending).zip(answers).filter(|(_, a)| a.is_none()) {
        *answer = host.poll(pending, wait);
        wait = Duration::ZERO;
    }
}

/// Has the ends that have not answered give up. What they say to it comes as the run's answer.
fn tell(hosts: [&Host; 2], answers: &[Option<Answer>; 2]) {
    for (host, _) in hosts.iter().zip(answers).filter(|(_, answer)| answer.is_none()) {
        drop(host.start(&Request::Cancel {}));
    }
}

/// Of two errors the cause: a host that was lost explains what the other refuses, one that only says that its peer ended is
/// explained by the peer's, else the first error does.
pub(crate) fn graver(first: Error, second: Error) -> Error {
    let is_of_peer = |error: &Error| landspeed_workload::Error::is_of_peer(&error.to_string());
    if is_of_peer(&first) && !is_of_peer(&second) {
        return second;
    }
    if refused(&first) && !refused(&second) { second } else { first }
}
