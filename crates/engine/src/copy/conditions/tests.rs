use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use landspeed_agent::session::{
    Options, Reply, Request, RequestHandler, ServeOptions, Session, SessionKey, serve_socket,
};

use super::*;
use crate::addresses::AddressCandidate;
use crate::pair::DataPath;
use crate::{Host, PathOptions};

/// How long a host takes for an answer that must not arrive in time.
const SILENCE: Duration = Duration::from_secs(60);

/// A host whose only setting and whose link change after the first request for them.
struct ChangingHost {
    /// The number of requests for its conditions that it answers in time.
    answers: usize,
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
        let state = |(knob, value): (&str, &str)| KnobState {
            knob: knob.into(),
            value: Some(value.into()),
            ..KnobState::default()
        };
        let knobs = ["tso", "link-speed", "carrier-changes"];
        Reply::Knobs { states: knobs.into_iter().zip(values).map(state).collect() }
    }

    fn gone(&self, _: &str) {}
}

fn host(name: &str, answers: usize) -> Host {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let handler = ChangingHost { answers, asked: AtomicUsize::new(0) };
    std::thread::spawn(move || serve_socket(theirs, Arc::new(handler), &ServeOptions::default()));
    let session = Session::over_socket(name, ours, &Options::default()).expect("a session");
    Host::probe(session).expect("it answers")
}

fn path() -> DataPath {
    let key = SessionKey::random();
    DataPath::new([0, 1], AddressCandidate::loopback(), key, &PathOptions::default())
}

/// Returns the next lines, at least one for each host.
fn next_lines(hosts: &mut CopyHosts<'_>) -> Vec<Line> {
    let end = Instant::now() + SILENCE;
    let mut lines = Vec::new();
    while lines.len() < 2 {
        assert!(Instant::now() < end, "a host does not answer: {lines:?}");
        lines.extend(hosts.step());
        std::thread::sleep(Duration::from_millis(5));
    }
    lines
}

#[test]
fn a_long_copy_asks_less_and_less_often() {
    let due = |end: Duration| {
        std::iter::successors(Some(AGAIN), |at| Some(due_after(*at))).take_while(|at| *at < end).count()
    };
    let minute = Duration::from_secs(60);
    assert_eq!((due(minute), due(minute * 10)), (1, 19));
    let week = due(minute * (7 * 24 * 60));
    assert!((150..170).contains(&week), "{week}");
    assert!(due(minute * (366 * 24 * 60)) < 300);
}

#[test]
fn changes_at_the_end_of_a_copy_have_a_line_for_each_host() {
    let [a, b] = ["a", "b"].map(|name| host(name, usize::MAX));
    let path = path();
    let pair = path.between([&a, &b]);
    // The source is the second host, which the record has as side A.
    let mut hosts = CopyHosts::ask(&pair, Side::B);
    for line in next_lines(&mut hosts) {
        let Line::Host { facts, .. } = &line else { panic!("{line:?}") };
        assert_eq!(facts.conditions["offloads"]["tso"], "on");
    }
    hosts.begun -= LEAST_COPY;
    hosts.ask_last();
    let lines = [next_lines(&mut hosts), hosts.finish()].concat();
    let mut changes: Vec<(Side, &str, Option<&str>, Option<&str>)> = Vec::new();
    for line in &lines {
        let Line::ConditionChange(change) = line else { panic!("{line:?}") };
        assert!(change.since_ns <= change.until_ns, "{change:?}");
        changes.push((change.side, change.knob.as_str(), change.before.as_deref(), change.after.as_deref()));
    }
    changes.sort_unstable();
    let of = |side| {
        [
            (side, "carrier-changes", Some("3"), Some("5")),
            (side, "link-speed", Some("10 Gb/s"), Some("1 Gb/s")),
            (side, "tso", Some("on"), Some("off")),
        ]
    };
    assert_eq!(changes, [of(Side::A), of(Side::B)].concat());
}

#[test]
fn a_host_that_does_not_answer_again_is_named_and_waited_for_briefly() {
    let [a, b] = [("a", usize::MAX), ("b", 1)].map(|(name, answers)| host(name, answers));
    let path = path();
    let pair = path.between([&a, &b]);
    let mut hosts = CopyHosts::ask(&pair, Side::A);
    next_lines(&mut hosts);
    hosts.begun -= LEAST_COPY;
    hosts.ask_last();
    let waiting = Instant::now();
    let lines = hosts.finish();
    assert!(waiting.elapsed() < SILENCE / 2, "it waits for the answer");
    let Some(Line::Note { text }) = lines.last() else { panic!("{lines:?}") };
    assert!(text.starts_with("b: conditions were not read again: "), "{text}");
}
