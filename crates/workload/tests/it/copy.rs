//! Copies over loopback, and what is left of them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{EndpointOutcome, FigureValue, Headline, TrialSpec, Workload};
use landspeed_workload::{CancelFlag, Error, named};
use parking_lot::Mutex;

use crate::common::{V4, both, both_until, outcomes, set, spec};

/// One trial at a time, because the folders of all trials of a process have the same place.
static ONE: Mutex<()> = Mutex::new(());
/// Far more than the promised second, because the machine may be busy.
const SOON: Duration = Duration::from_secs(60);

fn copy(parameters: &[(&str, &str)]) -> TrialSpec {
    let workload = parameters.iter().fold(Workload::new("copy"), |all, (name, value)| all.with(name, value));
    // A copy counts from its start.
    TrialSpec { warm_up_ns: Nanos(0), ..spec(workload) }
}

/// Returns the folders that this process's trials have now.
fn folders() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let bases = ["/dev/shm", "/var/tmp"].map(|above| format!("{above}/landspeed-copy-{user}"));
    let all = bases.iter().flat_map(|base| std::fs::read_dir(base).into_iter().flatten().flatten());
    let own = format!("{}-", std::process::id());
    let is_own =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&own));
    all.map(|entry| entry.path()).filter(is_own).collect()
}

/// Returns what the workload prints of an end, by name.
fn printed(end: &EndpointOutcome, name: &str) -> Option<FigureValue> {
    let copy = named("copy").expect("in the table");
    let figures = Headline::figures(copy.headlines(), end).expect("figures");
    figures.into_iter().find(|figure| figure.name == name).map(|figure| figure.amount)
}

#[test]
fn a_tree_is_copied_and_counted_at_both_ends_and_nothing_is_left() {
    let _one = ONE.lock();
    for (transport, source, target) in [
        ("tcp", "tmpfs", "disk"),
        ("tls", "disk", "tmpfs"),
        ("tcp", "null", "disk"),
        ("tls", "tmpfs", "null"),
        ("tls", "null", "null"),
    ] {
        let places = [("source", source), ("target", target)];
        let mut spec = copy(&[&[("files", "1200"), ("bytes", "3000001")][..], &places].concat());
        set(&mut spec, &[("transport", transport), ("flows", "3")]);
        let (client, server) = outcomes(&spec, V4);
        assert_eq!((client.sent_bytes, client.received_bytes), (Bytes(3_000_001), Bytes(0)));
        assert_eq!((server.sent_bytes, server.received_bytes), (Bytes(0), Bytes(3_000_001)));
        assert_eq!(server.flow_bytes, [server.received_bytes]);
        for end in [&client, &server] {
            assert_eq!(printed(end, "verified"), Some(FigureValue::Count(1_200)));
            let rate = printed(end, "files");
            assert!(matches!(rate, Some(FigureValue::PerSecond(rate)) if rate > 0.0), "{rate:?}");
            assert_eq!(end.not_as_asked, Vec::<String>::new());
        }
        assert_eq!(folders(), Vec::<PathBuf>::new());
    }
}

#[test]
fn files_of_a_size_and_empty_ones_are_copied_too() {
    let _one = ONE.lock();
    for (parameters, bytes) in
        [([("files", "20"), ("file-size", "4096")], 81_920), ([("files", "5"), ("bytes", "2")], 2)]
    {
        let (client, server) = outcomes(&copy(&parameters), V4);
        assert_eq!((client.sent_bytes, server.received_bytes), (Bytes(bytes), Bytes(bytes)));
    }
}

#[test]
fn a_copy_that_is_stopped_leaves_nothing() {
    let _one = ONE.lock();
    // At this rate it would take more than an hour.
    let spec = copy(&[("files", "200"), ("bytes", "4194304"), ("limit-rate", "8000"), ("limit", "3600s")]);
    // An hour of samples would be more than a trial may take.
    let spec = TrialSpec { interval_ns: Nanos(0), ..spec };
    let cancel = CancelFlag::new();
    let (client, server) = std::thread::scope(|scope| {
        let trial = scope.spawn(|| both_until(&spec, V4, &cancel));
        let until = Instant::now() + SOON;
        while folders().len() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let then = folders();
        // Some time into the copy: the tree is small.
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel();
        let since = Instant::now();
        let ends = trial.join().expect("no panic");
        assert_eq!(then.len(), 2, "each end has a folder: {then:?}");
        assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
        ends
    });
    for end in [client, server] {
        assert!(matches!(end, Err(Error::Cancelled | Error::PeerGone { .. })), "{end:?}");
    }
    assert_eq!(folders(), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_that_takes_too_long_fails_at_both_ends_and_leaves_nothing() {
    let _one = ONE.lock();
    let spec = copy(&[("files", "200"), ("bytes", "4194304"), ("limit-rate", "8000"), ("limit", "500ms")]);
    let (client, server) = both(&spec, V4);
    let errors = [client, server].map(|end| end.expect_err("it takes an hour").to_string());
    assert!(errors.iter().any(|why| why.contains("longer than its limit")), "{errors:?}");
    assert_eq!(folders(), Vec::<PathBuf>::new());
}
