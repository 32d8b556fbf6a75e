//! Hosts for tests, behind real sessions in this process.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landspeed_agent::session::{
    Options, Reply, Request, RequestHandler, ServeOptions, Session, serve_socket,
};
use landspeed_record::KnobState;
use landspeed_record::units::Nanos;

use super::Host;

/// How long a host takes for an answer that is not to come in time.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

pub(crate) fn state(knob: &str, value: Option<&str>) -> KnobState {
    KnobState { knob: knob.into(), value: value.map(str::to_owned), ..KnobState::default() }
}

/// Returns a host of this name that answers by `handler`. Its calls take at most a second.
pub(crate) fn host_of(name: &str, handler: impl RequestHandler + 'static) -> Host {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    std::thread::spawn(move || serve_socket(theirs, Arc::new(handler), &ServeOptions::default()));
    let options = Options { call: Nanos::secs(1), ..Options::default() };
    let session = Session::over_socket(name, ours, &options).expect("a session");
    Host::probe(session).expect("it answers")
}

/// Returns a host whose only setting and whose link are others after the first question for them. It answers this number
/// of such questions in time.
pub(crate) fn changing_host(name: &str, answers: usize) -> Host {
    changing_host_with(name, answers, [])
}

/// Returns such a host that has these settings too, which do not change.
pub(crate) fn changing_host_with<const N: usize>(
    name: &str,
    answers: usize,
    others: [(&str, &str); N],
) -> Host {
    let others = others.map(|(knob, value)| state(knob, Some(value))).to_vec();
    host_of(name, ChangingHost { answers, others, asked: AtomicUsize::new(0) })
}

struct ChangingHost {
    answers: usize,
    /// The settings that do not change.
    others: Vec<KnobState>,
    /// The number of questions for its knobs or its conditions.
    asked: AtomicUsize,
}

impl RequestHandler for ChangingHost {
    fn handle(&self, request: Request) -> Reply {
        if matches!(request, Request::Probe {}) {
            return Reply::Facts { facts: Box::default() };
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        if number >= self.answers {
            std::thread::sleep(SILENCE);
        }
        let values = if number == 0 { ["on", "10 Gb/s", "3"] } else { ["off", "1 Gb/s", "5"] };
        let knobs = ["tso", "link-speed", "carrier-changes"];
        let changed = knobs.into_iter().zip(values).map(|(knob, value)| state(knob, Some(value)));
        Reply::Knobs { states: changed.chain(self.others.clone()).collect() }
    }

    fn gone(&self, _: &str) {}
}
