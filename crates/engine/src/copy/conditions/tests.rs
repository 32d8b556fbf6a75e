use landspeed_agent::session::SessionKey;

use super::*;
use crate::PathOptions;
use crate::addresses::AddressCandidate;
use crate::host::test_hosts::{SILENCE, changing_host, changing_host_with};
use crate::pair::DataPath;

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
fn what_has_changed_at_the_end_of_a_copy_is_a_line_for_each_host() {
    let [a, b] = ["a", "b"].map(|name| changing_host(name, usize::MAX));
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
    let [a, b] = [("a", usize::MAX), ("b", 1)].map(|(name, answers)| changing_host(name, answers));
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

#[test]
fn the_source_s_send_buffer_and_the_target_s_receive_buffer_bound_the_windows_of_flows() {
    let a = changing_host_with(
        "a",
        usize::MAX,
        [("tcp-wmem", "4096 16384 2097152"), ("tcp-rmem", "4096 131072 4194304")],
    );
    let b = changing_host_with(
        "b",
        usize::MAX,
        [("tcp-wmem", "4096 16384 8388608"), ("tcp-rmem", "4096 131072 16777216")],
    );
    let path = path();
    let pair = path.between([&a, &b]);
    let mut hosts = CopyHosts::ask(&pair, Side::B);
    let own = |name: &str, size: &str| Settings::from([(name.to_owned(), size.to_owned())]);
    assert_eq!(hosts.windows(&Settings::new()), [None, None], "no host has answered");
    next_lines(&mut hosts);
    let known = [Some(Bytes::mib(4)), Some(Bytes::mib(2))];
    assert_eq!(hosts.windows(&own("sndbuf", "0")), known);
    assert_eq!(hosts.windows(&own("sndbuf", "65536")), [None, known[1]]);
    assert_eq!(hosts.windows(&own("rcvbuf", "65536")), [known[0], None]);
    hosts.ask_again();
    assert_eq!(hosts.windows(&Settings::new()), known, "by the reading before");
}
