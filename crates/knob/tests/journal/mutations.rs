//! Tests with a real journal that is changed in many ways. Undo on a real host must write only values that the host has
//! had, and must not remove a journal while one of its settings is not restored.
//!
//! `LANDSPEED_HOST_MUTATIONS` is the number of changes (default 16; `make undo` makes 500), `LANDSPEED_UNDO_SEED` the
//! first seed.

use std::fs;
use std::path::Path;

use landspeed_knob::KnobTarget;

use super::host::{TestHost, undo_with};
use super::interleavings::{RandomSource, table};

const TURNS: [(&str, &str); 6] = [
    ("tcp-rmem", "4096 65536 700000"),
    ("mtu", "1400"),
    ("txqueuelen", "300"),
    ("tx-checksum", "off"),
    ("gro", "on"),
    ("tcp-wmem", "4096 65536 800000"),
];

fn values(host: &TestHost) -> Vec<String> {
    let target = KnobTarget { device: "v0".into() };
    let read = |(knob, _): &(&str, &str)| table()(knob).unwrap().setting.read(&target).unwrap();
    host.inside(|| TURNS.iter().map(read).collect())
}

/// Sets the host as the run left it.
fn turn_again(host: &TestHost) {
    let target = KnobTarget { device: "v0".into() };
    host.inside(|| {
        for (knob, value) in TURNS {
            table()(knob).unwrap().setting.write(&target, value).unwrap();
        }
    });
}

fn changed(journal: &[u8], random: &mut RandomSource) -> Vec<u8> {
    let mut bytes = journal.to_vec();
    let mut lines: Vec<&[u8]> = journal.split_inclusive(|b| *b == b'\n').collect();
    let (at, n, other) = (random.below(bytes.len()), random.below(lines.len()), random.below(lines.len()));
    match random.below(7) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => {
            lines.remove(n);
            bytes = lines.concat();
        }
        3 => {
            lines.swap(n, other);
            bytes = lines.concat();
        }
        4 => {
            lines.insert(n, lines[other]);
            bytes = lines.concat();
        }
        5 => {
            let digit = (at..bytes.len()).chain(0..at).find(|at| bytes[*at].is_ascii_digit()).unwrap();
            bytes[digit] = b'0' + random.below(10) as u8;
        }
        _ => {
            let end = bytes.len().min(at + 1 + random.below(600));
            bytes[at..end].fill(0);
        }
    }
    bytes
}

fn put(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}

/// A killed process, or a child that is about to execute another program, holds a lock for a moment longer.
#[test]
fn a_journal_whose_lock_is_held_a_moment_longer_is_restored_from_its_second_copy() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    for (knob, value) in TURNS {
        agent.ask(&format!("turn {knob} {value}")).unwrap();
    }
    agent.kill_with_guardian(&host);
    let path = host.journals().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 20;
    bytes[end] ^= 1;
    put(&path, &bytes);
    let held = fs::File::open(&path).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(held);
    });
    let report = host.inside(|| undo_with(false, &host.state(), table())).unwrap();
    holder.join().unwrap();
    assert!(report.clean, "{report:?}");
    assert!(report.lines[0].contains("its second copy has taken its place"), "{report:?}");
    super::host::assert_same(&host.picture(), &before, &format!("{report:?}"));
}

#[test]
fn a_changed_journal_does_no_harm_to_a_host() {
    let Some(host) = TestHost::try_new() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (seed, count) = (number("LANDSPEED_UNDO_SEED").unwrap_or(1), number("LANDSPEED_HOST_MUTATIONS"));
    let (before, first) = (host.picture(), values(&host));
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    for (knob, value) in TURNS {
        let said = agent.ask(&format!("turn {knob} {value}")).unwrap();
        assert!(said.contains(" -> "), "{knob}: {said}");
    }
    let turned = values(&host);
    agent.kill_with_guardian(&host);
    let path = host.journals().remove(0);
    let journal = fs::read(&path).unwrap();
    let copy = host.copies().remove(0);
    assert!(fs::read(&copy).unwrap() == journal, "the second copy is another");
    let mut random = RandomSource(seed);
    for n in 0..count.unwrap_or(16) {
        let bytes = changed(&journal, &mut random);
        put(&path, &bytes);
        let has_copy = n % 2 == 1;
        let _ = fs::remove_file(&copy);
        if has_copy {
            put(&copy, &journal);
        }
        turn_again(&host);
        let report = host.inside(|| undo_with(false, &host.state(), table())).unwrap();
        let when = format!("seed {seed}, change {n}: {report:?}");
        for ((is, was), ours) in values(&host).iter().zip(&first).zip(&turned) {
            assert!(is == was || is == ours, "{is}, was {was} and {ours}: {when}");
        }
        assert_eq!(report.clean, !path.exists(), "{when}");
        assert!(report.clean || !has_copy, "{when}");
        if !path.exists() {
            super::host::assert_same(&host.picture(), &before, &when);
        }
    }
    put(&path, &journal);
    turn_again(&host);
    let report = host.inside(|| undo_with(false, &host.state(), table())).unwrap();
    assert!(report.clean, "{report:?}");
    super::host::assert_same(&host.picture(), &before, "at the end");
}
