use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landspeed_agent::session::{Options, RequestHandler, ServeOptions, serve_socket};
use landspeed_record::units::Nanos;
use landspeed_record::{KnobChangeReport, RestoreOutcome};

use super::conditions::conditions;
use super::differences::reads_same;
use super::*;

/// A host whose only knob, ring-rx, takes two seconds to restore.
struct RingHost;

impl RequestHandler for RingHost {
    fn handle(&self, request: Request) -> Reply {
        let (knob, before, after) = ("ring-rx".to_owned(), "256".to_owned(), "512".to_owned());
        match request {
            Request::Probe {} => Reply::Facts { facts: Box::default() },
            Request::Knobs { .. } | Request::Conditions { .. } => {
                let state = KnobState { knob, value: Some(before), ..KnobState::default() };
                Reply::Knobs { states: vec![state] }
            }
            Request::Turn { .. } => {
                let turn = KnobChangeReport { knob, before, after, took_ns: Nanos::millis(1) };
                Reply::Turned { turns: vec![turn] }
            }
            _ => {
                std::thread::sleep(Duration::from_secs(2));
                Reply::Restored { restored: RestoreOutcome::untouched() }
            }
        }
    }

    fn gone(&self, _: &str) {}
}

/// Returns a [`RingHost`] whose calls take at most a second.
fn ring_host() -> Host {
    host_of("slow", RingHost)
}

/// Returns a host of this name that answers by `handler`. Its calls take at most a second.
fn host_of(name: &str, handler: impl RequestHandler + 'static) -> Host {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    std::thread::spawn(move || serve_socket(theirs, Arc::new(handler), &ServeOptions::default()));
    let options = Options { call: Nanos::secs(1), ..Options::default() };
    let session = Session::over_socket(name, ours, &options).expect("a session");
    Host::probe(session).expect("it answers")
}

fn state(knob: &str, value: Option<&str>) -> KnobState {
    KnobState { knob: knob.into(), value: value.map(str::to_owned), ..KnobState::default() }
}

#[test]
fn a_restore_has_the_time_of_the_knobs_that_it_turns_back() {
    let mut host = ring_host();
    host.begin().expect("it answers");
    let changes = host.changes_to(&Settings::from([("ring-rx".to_owned(), "512".to_owned())]));
    let pending = host.turn(&changes).expect("it is sent");
    host.turned(pending, &changes).expect("it is turned");
    let restored = host.restore();
    assert!(restored.restored, "{restored:?}");
}

#[test]
fn conditions_are_the_values_that_decide_figures() {
    let states = [state("tso", Some("on")), state("gro", None), state("dsack", Some("on"))];
    let tso = Settings::from([("tso".to_owned(), "on".to_owned())]);
    assert_eq!(conditions(&states), BTreeMap::from([("offloads".to_owned(), tso)]));
}

#[test]
fn facts_have_the_conditions_that_a_host_reports_without_a_wait() {
    let host = ring_host();
    let pending = host.ask_conditions("eth0").expect("it is sent");
    let answer = host.poll(&pending, Duration::from_secs(10)).expect("it answers").1;
    let states = host.answered_conditions(answer).expect("states");
    // A ring size decides no figure.
    assert!(states.len() == 1 && host.facts_with(&states).conditions.is_empty(), "{states:?}");
    let found = host.facts_with(&[state("tso", Some("on"))]).conditions;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["offloads"]);
    let error = host.answered_conditions(Ok(Reply::Done {})).expect_err("another answer");
    assert!(host.not_read_again(&error).starts_with("slow: conditions were not read again: "), "{error}");
}

#[test]
fn conditions_that_changed_are_those_that_decide_figures() {
    let before = [state("tso", Some("on")), state("ring-rx", Some("256")), state("mtu", Some("1500"))];
    let now = [state("tso", Some("off")), state("ring-rx", Some("512")), state("mtu", Some("1500"))];
    let changed: Vec<_> = changed_conditions(&before, &now).collect();
    assert_eq!(changed, [(&before[0], &now[0])]);
    assert_eq!(changed_conditions(&before, &before).count(), 0);
}

#[test]
fn a_link_that_renegotiated_has_another_speed_and_a_carrier_that_came_and_went() {
    let link = |speed: Option<&str>, carrier: &str| {
        [state("tso", Some("on")), state("link-speed", speed), state("carrier-changes", Some(carrier))]
    };
    let changed = |before: &[KnobState], now: &[KnobState]| {
        changed_conditions(before, now).map(|(before, _)| before.knob.clone()).collect::<Vec<_>>()
    };
    let fast = link(Some("10 Gb/s"), "3");
    assert_eq!(changed(&fast, &link(Some("1 Gb/s"), "5")), ["link-speed", "carrier-changes"]);
    assert_eq!(changed(&fast, &link(None, "4")), ["carrier-changes"], "it has no speed without a carrier");
    assert_eq!(changed(&link(None, "3"), &fast), [""; 0]);
}

/// A host whose link and whose setting change after the first request for its conditions.
struct RenegotiatingHost(AtomicBool);

impl RequestHandler for RenegotiatingHost {
    fn handle(&self, request: Request) -> Reply {
        let values = match request {
            Request::Probe {} => return Reply::Facts { facts: Box::default() },
            Request::Conditions { .. } if self.0.swap(true, Ordering::Relaxed) => ["off", "1 Gb/s", "5"],
            _ => ["on", "10 Gb/s", "3"],
        };
        let knobs = ["tso", "link-speed", "carrier-changes"];
        let states = knobs.into_iter().zip(values).map(|(knob, value)| state(knob, Some(value))).collect();
        Reply::Knobs { states }
    }

    fn gone(&self, _: &str) {}
}

#[test]
fn changed_conditions_have_a_line_each_and_trials_count_the_carrier() {
    let mut host = host_of("a", RenegotiatingHost(AtomicBool::new(false)));
    host.begin().expect("it answers");
    assert_eq!(
        host.moved(),
        [
            "a: another program changed tso from on to off during the run: the figures are of both",
            "a: link-speed changed from 10 Gb/s to 1 Gb/s during the run: the figures are of both",
        ]
    );
}

#[test]
fn another_spelling_of_a_value_is_no_difference() {
    let rps = |value: Option<&str>| state("rps", value);
    assert!(reads_same(&rps(Some("0-3")), &rps(Some("0-3;0-3"))));
    assert!(!reads_same(&rps(Some("0-3")), &rps(Some("0-3;0"))));
    assert!(!reads_same(&rps(Some("0-3")), &rps(None)));
    assert!(reads_same(&rps(None), &rps(None)));
}
