use std::collections::BTreeMap;

use landspeed_agent::session::RequestHandler;
use landspeed_record::units::Nanos;
use landspeed_record::{KnobChangeReport, RestoreOutcome};

use super::conditions::{changed_since_probe, conditions};
use super::differences::reads_same;
use super::test_hosts::{changing_host, host_of, state};
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

#[test]
fn what_moved_in_a_run_is_a_line_each_and_the_trials_count_the_carrier() {
    let mut host = changing_host("a", 2);
    host.begin().expect("it answers");
    assert_eq!(host.found(), Settings::from([("tso".to_owned(), "on".to_owned())]), "a speed is no knob");
    assert_eq!(
        host.moved(),
        [
            "a: another program changed tso from on to off during the run: the figures are of both",
            "a: link-speed changed from 10 Gb/s to 1 Gb/s during the run: the figures are of both",
        ]
    );
}

#[test]
fn a_value_that_a_probe_does_not_read_has_not_changed() {
    let mtu = |value: Option<&str>| [state("mtu", value)];
    let changes =
        |before: Option<&str>, now: Option<&str>| changed_since_probe(&mtu(before), &mtu(now)).count();
    assert_eq!(changes(None, Some("65536")), 0, "the MTU of loopback");
    assert_eq!(changes(Some("1500"), Some("65536")), 1);
    assert_eq!(changes(None, Some("1500")), 1);
}

#[test]
fn knobs_are_compared_by_their_names() {
    let before = [state("tso", Some("on")), state("ring-rx", Some("256")), state("mtu", Some("1500"))];
    let now = [state("mtu", Some("9000")), state("tso", Some("on"))];
    let changed: Vec<_> = changed_conditions(&before, &now).collect();
    assert_eq!(changed, [(&before[2], &now[0])]);
}

#[test]
fn another_spelling_of_a_value_is_no_difference() {
    let rps = |value: Option<&str>| state("rps", value);
    assert!(reads_same(&rps(Some("0-3")), &rps(Some("0-3;0-3"))));
    assert!(!reads_same(&rps(Some("0-3")), &rps(Some("0-3;0"))));
    assert!(!reads_same(&rps(Some("0-3")), &rps(None)));
    assert!(reads_same(&rps(None), &rps(None)));
}
