//! Tests the controller against hosts that fail: all settings are restored, whichever request fails.

mod commands;
mod host;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_record::{Line, Record, RecordWriter, Side, StepAnswer, StepSummary};
use parking_lot::Mutex;

use commands::{LimitedRecord, OTHERS, TestedCommand};
use host::{FAULTS, FakeHost, HostFault, lock};
use wire::FakeWire;

/// The number of first requests that are each made to fail once. Of the later requests, only some are made to fail.
const EVERY: usize = 16;
/// The approximate number of later requests that are made to fail.
const LATER: usize = 6;
/// Time limit of a command, longer than any of them takes.
const WATCHDOG: Duration = Duration::from_secs(180);
/// Time limit of a command that ends immediately; less than the 30 s for which the controller awaits an answer.
const SOON: Duration = Duration::from_secs(25);
/// Duration of a whole run in seconds, run by run, until one has time for its answers.
const BUDGETS: [u64; 3] = [20, 40, 80];
/// Number of cases that run at the same time. Nearly all of them wait.
const AT_ONCE: usize = 24;

/// An injected failure: the side of the host, the number of the request, and the kind.
type InjectedFault = (Side, usize, HostFault);

struct CommandOutcome {
    hosts: [Arc<FakeHost>; 2],
    wire: Arc<FakeWire>,
    /// The settings that the command reports as not restored, or its error.
    said: Result<Vec<String>, String>,
    record: Result<Record, String>,
}

/// Runs a command, with a stop requested after `most` lines, and waits until its sessions end.
fn see(command: TestedCommand, injected: Option<InjectedFault>, most: usize) -> CommandOutcome {
    let wire = Arc::new(FakeWire::default());
    let start = |name, side| {
        let fault = injected.filter(|(at, ..)| *at == side).map(|(_, number, fault)| (number, fault));
        FakeHost::start(name, side, &wire, fault)
    };
    let ((a, to_a), (b, to_b)) = (start("anna", Side::A), start("bert", Side::B));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("record");
    let writer = RecordWriter::create(&file).expect("a record");
    let (done, said) = channel();
    std::thread::spawn(move || {
        let mut lines = LimitedRecord { writer, written: 0, most };
        done.send(commands::run(command, [to_a, to_b], &mut lines).map_err(|error| error.to_string()))
    });
    let said = said.recv_timeout(WATCHDOG);
    let said = said.unwrap_or_else(|why| panic!("{command:?} with {injected:?} hangs or panics: {why}"));
    let deadline = Instant::now() + WATCHDOG;
    while !(a.is_over() && b.is_over()) {
        assert!(Instant::now() < deadline, "{command:?} with {injected:?}: a session goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    let record = landspeed_record::read(&file).map_err(|error| error.to_string());
    CommandOutcome { hosts: [a, b], wire, said, record }
}

/// Checks that no knob is left changed and that nothing runs after the restore.
fn check(seen: &CommandOutcome, what: &str) {
    for host in &seen.hosts {
        assert_eq!(host.turned(), [], "{what}: left turned on {}", host.name);
    }
    for (host, requests) in seen.wire.requests() {
        let restored = requests.iter().position(|request| *request == "restore").unwrap_or(requests.len());
        let late = requests[restored..].iter().find(|request| ["turn", "run"].contains(request));
        assert_eq!(late, None, "{what}: after restoring, {host} was asked to");
    }
}

fn check_trouble(command: TestedCommand, injected: InjectedFault) {
    let (side, number, fault) = injected;
    let seen = see(command, Some(injected), usize::MAX);
    let host = &seen.hosts[usize::from(side == Side::B)];
    let what = format!("{command:?}, {fault:?} at request {number} of {}: {:?}", host.name, seen.said);
    check(&seen, &what);
    if !host.failed.load(Ordering::Relaxed) {
        assert_eq!(seen.said, Ok(Vec::new()), "{what}");
        return;
    }
    match (&seen.said, fault) {
        (Err(why), HostFault::LeavesSomething) => {
            assert!(
                why.contains("NOT everything was restored") && why.contains("`landspeed undo`"),
                "{what}"
            );
            assert!(why.contains(host.name), "{what}");
        }
        (Ok(left), HostFault::LeavesSomething) => {
            assert!(!left.is_empty() && left.iter().all(|line| line.starts_with(host.name)), "{what}");
        }
        (Err(why), _) => assert!(why.contains(host.name), "{what}"),
        (Ok(left), _) => assert!(left.iter().all(|line| line.starts_with(host.name)), "{what}"),
    }
    if fault == HostFault::EndsSession {
        let other = &seen.hosts[usize::from(side == Side::A)];
        check_ended(&seen.wire, host.name, number, other.name, &what);
    }
}

/// Checks that a host whose peer was lost is not requested to run again. One request may have been sent before the loss
/// was known.
fn check_ended(wire: &FakeWire, host: &str, number: usize, other: &str, what: &str) {
    let log = lock(&wire.log);
    let ended =
        log.iter().enumerate().filter(|(_, (name, _))| *name == host).nth(number).expect("it failed").0;
    let (of_host, of_other): (Vec<_>, Vec<_>) = log[ended + 1..].iter().partition(|(name, _)| *name == host);
    let runs = of_other.iter().filter(|(_, request)| *request == "run").count();
    assert_eq!(of_host, [], "{what}: asked after its session ended");
    assert!(runs <= 1, "{what}: {other} was asked to run {runs} times");
}

/// Returns the numbers of the requests that are made to fail: the first ones, some of the later ones, and the last.
fn numbers(requests: &[&str], fault: HostFault) -> Vec<usize> {
    let here = |number: &usize| fault.befalls(requests[*number]);
    let all: Vec<usize> = (0..requests.len()).filter(here).collect();
    let (first, later) = all.split_at(all.len().min(EVERY));
    match fault {
        // This fault affects every restore, so one case suffices.
        HostFault::LeavesSomething => all.into_iter().take(1).collect(),
        // The controller sees a panic as a refusal, so a few cases suffice.
        HostFault::Panics => first.iter().copied().step_by(5).collect(),
        _ => {
            let later = later.iter().rev().step_by((later.len() / LATER).max(1));
            first.iter().chain(later).copied().collect()
        }
    }
}

fn troubles(command: TestedCommand) -> Vec<InjectedFault> {
    let undisturbed = see(command, None, usize::MAX);
    check(&undisturbed, "undisturbed");
    assert_eq!(undisturbed.said, Ok(Vec::new()));
    let requests = undisturbed.wire.requests();
    let mut found = Vec::new();
    for (side, host) in Side::BOTH.into_iter().zip(&undisturbed.hosts) {
        for fault in FAULTS {
            let numbers = numbers(&requests[host.name], fault);
            found.extend(numbers.into_iter().map(|number| (side, number, fault)));
        }
    }
    found
}

/// Runs all `cases`, many at a time. The test fails if one of them fails.
fn each<T: Copy + Send + Sync>(cases: &[T], check: impl Fn(T) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(*case)));
                    lock(&failed).extend(result.err());
                }
            });
        }
    });
    let failed = lock(&failed);
    assert!(failed.is_empty(), "{} of {} cases fail", failed.len(), cases.len());
}

/// A path for a copy is joined without knobs. Each address that is tried has a data port and a ping-pong, which a copy
/// uses as the measurement.
#[test]
fn a_path_for_a_copy_is_measured_by_its_proof_alone() {
    for is_for_copy in [true, false] {
        let wire = Arc::new(FakeWire::default());
        let start = |name, side| FakeHost::start(name, side, &wire, None).1;
        let sessions = [start("anna", Side::A), start("bert", Side::B)];
        assert!(commands::joined(sessions, is_for_copy).expect("a path") > Nanos(0));
        let asked = wire.requests();
        let count = |request: &str| asked["bert"].iter().filter(|one| **one == request).count();
        let others = usize::from(!is_for_copy);
        assert_eq!((count("knobs"), count("run")), (others, count("listen") + others), "{asked:?}");
        assert_eq!(count("conditions"), 0, "the knobs have them: {asked:?}");
    }
}

/// Checks that everything is restored, whichever request of a command fails.
fn is_put_back(command: TestedCommand) {
    let troubles = troubles(command);
    let began = Instant::now();
    each(&troubles, |injected| check_trouble(command, injected));
    println!("{command:?}: {} cases in {:?}", troubles.len(), began.elapsed());
}

/// The name makes this test begin first, because it takes longest.
#[test]
fn a_broken_tuning_run_restores_everything_whatever_fails() {
    is_put_back(TestedCommand::Tune);
}

#[test]
fn other_commands_restore_everything_whatever_fails() {
    OTHERS.into_iter().for_each(is_put_back);
}

#[test]
fn tune_keeps_what_helps_and_restores_everything() {
    // A busy machine measures fewer blocks in the same budget, and may then not come to an answer.
    let whole = |seconds| {
        let seen = see(TestedCommand::TuneFor(seconds), None, usize::MAX);
        check(&seen, "tune");
        assert_eq!(seen.said, Ok(Vec::new()));
        seen.record.expect("a record that can be read")
    };
    let [short, longer, longest] = BUDGETS;
    let record = [short, longer].into_iter().map(whole).find(is_answered).unwrap_or_else(|| whole(longest));
    assert_eq!(record.header.kind, "tune");
    let kept: BTreeMap<_, _> =
        steps(&record).map(|step| ((step.knob.as_str(), step.value.as_str()), step.kept)).collect();
    assert_eq!(kept, [(("gro", "on"), false), (("mtu", "9000"), true)].into());
    assert!(record.lines.iter().any(|line| matches!(line, Line::Trial(_))));
    let restored = |line: &Line| matches!(line, Line::Restored(restored) if restored.restored);
    assert!(record.lines.iter().any(restored));
}

/// Returns the steps that were measured, without placebos.
fn steps(record: &Record) -> impl Iterator<Item = &StepSummary> {
    record.lines.iter().filter_map(|line| match line {
        Line::Step(step) if step.summary.blocks > 0 && !step.summary.placebo => Some(&step.summary),
        _ => None,
    })
}

/// Returns true if the run had time for an answer about each of the two settings.
fn is_answered(record: &Record) -> bool {
    let open = [StepAnswer::Undecided, StepAnswer::NotTried];
    let answered = steps(record).filter(|step| !open.contains(&step.answer));
    answered.map(|step| step.knob.as_str()).collect::<BTreeSet<_>>().len() == 2
}

/// Before Linux 5.14, no agent may set knobs, and the agents of a dry run may not set them anyway.
#[test]
fn a_dry_run_on_a_kernel_that_cannot_be_tuned_says_so_and_plans_nothing() {
    let why = "no knob can be turned here: it needs Linux 5.14";
    let plan = |netns_cookie: u64, why: &str| {
        let wire = Arc::new(FakeWire::default());
        let ((_anna, to_anna), (_bert, to_bert)) = (
            FakeHost::start("anna", Side::A, &wire, None),
            FakeHost::start_with("bert", Side::B, &wire, None, |facts| {
                (facts.netns_cookie, facts.may_tune) = (netns_cookie, false);
                facts.may_not_tune_because = why.to_owned();
            }),
        );
        commands::planned([to_anna, to_bert]).map(|plan| plan.candidates.len()).map_err(|e| e.to_string())
    };
    assert_eq!(plan(0, why), Err(format!("bert cannot be tuned: {why}")));
    assert!(plan(7, "it was started without --allow-tune").is_ok_and(|candidates| candidates > 0));
}

#[test]
fn notes_on_controls_are_in_the_record_once() {
    let record = see(TestedCommand::Compare, None, usize::MAX).record.expect("a record");
    let is_note =
        |line: &&Line| matches!(line, Line::Note { text } if text.ends_with(": Linux's own control"));
    assert_eq!(record.lines.iter().filter(is_note).count(), 1, "and every run asks for the controls again");
}

#[test]
fn a_renegotiated_link_is_noted_in_the_record() {
    for command in [TestedCommand::Tune, TestedCommand::Compare] {
        let record = see(command, None, usize::MAX).record.expect("a record");
        let texts = record.lines.iter().flat_map(|line| match line {
            Line::Note { text } => vec![text.clone()],
            Line::Summary(summary) => summary.doubts.clone(),
            _ => Vec::new(),
        });
        let mut texts: Vec<String> = texts.filter(|text| text.contains("link-speed")).collect();
        texts.sort_unstable();
        let of = |host: &str| {
            format!(
                "{host}: link-speed changed from 10 Gb/s to 1 Gb/s during the run: the figures are of both"
            )
        };
        assert_eq!(texts, ["anna", "bert"].map(of), "{command:?}");
    }
}

#[test]
fn a_stop_ends_in_order_wherever_it_comes() {
    for command in [TestedCommand::Tune, TestedCommand::Compare, TestedCommand::Sizes] {
        let whole = see(command, None, usize::MAX);
        let lines = whole.record.as_ref().map_or(0, |record| record.lines.len());
        let stops: Vec<usize> = (0..=lines.min(12)).chain((12..lines).step_by(23)).collect();
        each(&stops, |most| {
            let seen = see(command, None, most);
            check(&seen, &format!("{command:?} stopped after {most} lines"));
            assert_eq!(seen.said, Ok(Vec::new()), "{command:?} stopped after {most} lines");
            if command != TestedCommand::Sizes {
                let record = seen.record.expect("a record that can be read");
                let restored = |line: &Line| matches!(line, Line::Restored(restored) if restored.restored);
                assert!(record.lines.iter().any(restored), "{command:?} stopped after {most} lines");
            }
        });
    }
}

/// Returns the number of a host's last request to run.
fn last_run(requests: &[&str]) -> usize {
    requests.iter().rposition(|request| *request == "run").expect("it ran")
}

/// B refuses a run while A waits for B, as real ends do.
#[test]
fn a_failed_end_is_reported_soon_and_by_its_name() {
    let whole = see(TestedCommand::Measure, None, usize::MAX).wire.requests();
    let last_run = last_run(&whole["bert"]);
    let began = Instant::now();
    let seen = see(TestedCommand::Measure, Some((Side::B, last_run, HostFault::Refuses)), usize::MAX);
    assert_eq!(seen.said, Err("bert: made to fail; anna: the other end did not come".to_owned()));
    assert!(began.elapsed() < SOON, "took {:?}", began.elapsed());
    assert_eq!(seen.wire.requests()["anna"].last(), Some(&"cancel"), "it is asked to give up");
}

struct FanOutcome {
    hosts: Vec<Arc<FakeHost>>,
    wire: Arc<FakeWire>,
    /// The pairs whose latency was reported.
    between: Vec<String>,
    /// The pairs without figures, as "NAME: WHY".
    lost: Vec<String>,
}

/// Runs three clients of one hub. `fault` is the number of the second client's request that fails, and the kind of
/// failure, if any.
fn fan(fault: Option<(usize, HostFault)>) -> FanOutcome {
    let wire = Arc::new(FakeWire::default());
    let (hub, to_hub) = FakeHost::start("hub", Side::B, &wire, None);
    let clients = [("ada", None), ("ben", fault), ("cid", None)];
    let clients = clients.map(|(name, fault)| FakeHost::start(name, Side::A, &wire, fault));
    let (mut hosts, sessions): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
    hosts.push(hub);
    let report = commands::fan(sessions, to_hub).expect("two clients work");
    let between = report.latency.into_iter().filter_map(|latency| latency.between).collect();
    let lost = report.lost.iter().map(|lost| format!("{}: {}", lost.name, lost.why)).collect();
    FanOutcome { hosts, wire, between, lost }
}

#[test]
fn a_fan_has_one_session_with_its_hub() {
    let FanOutcome { wire, between, lost, .. } = fan(None);
    assert_eq!(between, ["ada to hub", "ben to hub", "cid to hub"]);
    assert!(lost.is_empty(), "{lost:?}");
    let probes = |host| wire.requests()[host].iter().filter(|request| **request == "probe").count();
    assert_eq!(["hub", "ada", "ben", "cid"].map(probes), [1; 4]);
}

#[test]
fn a_client_that_cannot_report_its_conditions_after_the_run_costs_no_figure() {
    let last = fan(None).wire.requests()["ben"].len() - 1;
    for fault in [HostFault::Refuses, HostFault::NeverAnswers, HostFault::EndsSession] {
        let began = Instant::now();
        let FanOutcome { between, lost, .. } = fan(Some((last, fault)));
        assert_eq!(between, ["ada to hub", "ben to hub", "cid to hub"], "{fault:?}");
        assert!(lost.is_empty(), "{fault:?}: {lost:?}");
        assert!(began.elapsed() < SOON, "{fault:?}: took {:?}", began.elapsed());
    }
}

#[test]
fn one_client_that_fails_is_named_and_the_others_are_reported() {
    let run = last_run(&fan(None).wire.requests()["ben"]);
    for fault in [HostFault::Refuses, HostFault::Panics, HostFault::NeverAnswers, HostFault::EndsSession] {
        let began = Instant::now();
        let FanOutcome { hosts, between, lost, .. } = fan(Some((run, fault)));
        assert_eq!(between, ["ada to hub", "cid to hub"], "{fault:?}");
        assert!(lost.len() == 1 && lost[0].starts_with("ben to hub: ben: "), "{fault:?}: {lost:?}");
        assert!(began.elapsed() < SOON, "{fault:?}: took {:?}", began.elapsed());
        assert!(hosts.iter().all(|host| host.turned().is_empty()));
    }
}
