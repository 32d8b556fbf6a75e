//! Tests with journals that another program, or a disk, has changed. Undo must write only values that the host has had,
//! and must not remove a journal while one of its settings is not restored.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::fake_host::{FakeHostState, knobs, settable, values};
use super::fake_host_tests::{Story, StoryEnd, UndoFixture, boot_id, folder, number, turns_alone};
use super::identity::NamespaceIdentity;
use super::origin::{JournalOrigin, origin};
use super::restore::restore;
use super::snapshot::same;
use super::{default_lookup as lookup, ledger::JournalLedger};

/// A change of a journal's bytes.
#[derive(Debug, Clone, Copy)]
struct Mutation {
    kind: usize,
    /// The place of the change, taken modulo the length of the journal. `with` is the argument of the change.
    at: u64,
    with: u64,
}

type MutateFn = fn(&mut Vec<u8>, usize, u64);

const MUTATIONS: &[(&str, MutateFn)] = &[
    ("a bit is flipped", |bytes, at, with| bytes[at] ^= 1 << (with % 8)),
    ("the end is lost", |bytes, at, _| bytes.truncate(at)),
    ("a line is lost", |bytes, at, _| lines(bytes, at, |lines, n| drop(lines.remove(n)))),
    ("the last lines are lost", |bytes, at, _| lines(bytes, at, |lines, n| lines.truncate(n))),
    ("a digit is changed", |bytes, at, with| {
        let digit = (at..bytes.len()).chain(0..at).find(|at| bytes[*at].is_ascii_digit()).unwrap();
        bytes[digit] = b'0' + (with % 10) as u8;
    }),
    ("two lines change places", |bytes, at, with| {
        lines(bytes, at, |lines, n| {
            let other = with as usize % lines.len();
            lines.swap(n, other);
        });
    }),
    ("a block is zero", |bytes, at, with| {
        let end = bytes.len().min(at + 1 + with as usize % 200);
        bytes[at..end].fill(0);
    }),
    ("a line is there twice", |bytes, at, with| {
        lines(bytes, at, |lines, n| {
            let line = lines[n].clone();
            lines.insert(with as usize % (lines.len() + 1), line);
        });
    }),
    ("some bytes are cut out", |bytes, at, with| {
        let end = bytes.len().min(at + 1 + with as usize % 80);
        bytes.drain(at..end);
    }),
];

fn lines(bytes: &mut Vec<u8>, at: usize, change: impl Fn(&mut Vec<Vec<u8>>, usize)) {
    let mut all: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let n = at % all.len();
    change(&mut all, n);
    *bytes = all.concat();
}

fn mutations() -> impl Strategy<Value = (Story, Vec<Mutation>)> {
    let one = (0..MUTATIONS.len(), any::<u64>(), any::<u64>());
    let one = one.prop_map(|(kind, at, with)| Mutation { kind, at, with });
    (turns_alone(), prop::collection::vec(one, 10))
}

fn play(home: &Path, story: &Story, mutations: &[Mutation]) -> Result<(), TestCaseError> {
    let mut fixture = UndoFixture::new(home, story.seed);
    fixture.turns(&story.steps);
    if let StoryEnd::DiesTurning { knob, value, has_written } = story.end {
        fixture.turn(knob, value, has_written);
    }
    let path = fixture.host.lock().journal.clone();
    let (journal, state) = (fs::read(&path).unwrap(), fixture.host.lock().state.clone());
    for mutation in mutations {
        let (what, mutate) = MUTATIONS[mutation.kind];
        let mut bytes = journal.clone();
        let at = (mutation.at % journal.len() as u64) as usize;
        mutate(&mut bytes, at, mutation.with);
        fs::write(&path, &bytes).unwrap();
        fixture.host.lock().state = state.clone();
        judge(&mut fixture, what)?;
    }
    fs::write(&path, journal).unwrap();
    fixture.ledger().file.remove().unwrap();
    Ok(())
}

/// Undoes the changed journal and checks the result.
fn judge(fixture: &mut UndoFixture, what: &str) -> Result<(), TestCaseError> {
    let ledger = fixture.ledger.take().unwrap();
    let (mut file, name) = (ledger.file.again().unwrap(), ledger.file.name().to_owned());
    let contents = file.read(lookup).unwrap();
    let here = NamespaceIdentity { boot_id: boot_id(), netns_cookie: fixture.cookie };
    let is_done = match origin(&contents, &name, &here) {
        JournalOrigin::Here => {
            file.resume(&contents).unwrap();
            let mut undoing = JournalLedger::on(file, lookup, Box::new(fixture.host.clone()), contents);
            fixture.host.lock().begin_again();
            let report = restore(&mut undoing, false);
            wrote_nothing_new(fixture, what)?;
            report.is_done()
        }
        JournalOrigin::Done => true,
        JournalOrigin::HeaderLost | JournalOrigin::Unreadable(_) => false,
        JournalOrigin::AnotherBoot | JournalOrigin::Elsewhere(_) => {
            return Err(TestCaseError::fail(format!("{what}: the header is believed")));
        }
    };
    fixture.ledger = Some(ledger);
    let state = fixture.host.lock().state.clone();
    prop_assert!(!is_done || is_as_at_first(&state), "{what}: the journal would go, and a setting is left");
    Ok(())
}

fn is_as_at_first(state: &FakeHostState) -> bool {
    let first = FakeHostState::new();
    let items = state.items.keys().chain(first.items.keys());
    knobs().iter().all(|knob| state.read(knob) == first.read(knob))
        && items.into_iter().all(|key| same(state.items.get(key), first.items.get(key)))
}

fn wrote_nothing_new(fixture: &UndoFixture, what: &str) -> Result<(), TestCaseError> {
    let world = fixture.host.lock();
    for (name, value) in &world.wrote {
        let knob = crate::table::find(name).unwrap();
        let before = FakeHostState::new().read(knob);
        let is_known = *value == before || values(knob).contains(value);
        prop_assert!(is_known, "{what}: {name} is set to {value}, which no program ever wrote");
    }
    for (key, value) in &world.put {
        let was = |state: &FakeHostState| same(state.items.get(key), value.as_ref());
        prop_assert!(world.ever.iter().any(was), "{what}: {key:?} is set to {value:?}, which it never was");
    }
    Ok(())
}

/// `make test` changes 2,000 journals, the same each time; `make undo` 20,000 others.
#[test]
fn a_changed_journal_writes_nothing_new_and_does_not_go_while_a_setting_is_left() {
    assert!(!settable().is_empty());
    let home = folder();
    let config = ProptestConfig {
        cases: number("LANDSPEED_UNDO_MUTATIONS").unwrap_or(2_000) / 10,
        rng_seed: RngSeed::Fixed(number("LANDSPEED_UNDO_SEED").unwrap_or(1).into()),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let state = home.path().join("s");
    proptest!(config, |((story, mutations) in mutations())| play(&state, &story, &mutations)?);
}
