//! Tests of undo on a fake host. Whatever the order of this run's writes and of other programs' writes, and whenever
//! the run dies, the host must end as if only the other programs had run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_kernel::daemon::ProcessIdentity;
use parking_lot::Mutex;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::default_lookup as lookup;
use super::entry::{FORMAT, JournalHeader};
use super::fake_host::{
    DEVICE, FakeHostState, FakeJournalHost, FakeWorld, INDEX, another, knobs, settable, values, wish,
};
use super::file::JournalFile;
use super::folder::JournalFolder;
use super::host::JournalHost;
use super::ledger::JournalLedger;
use super::location::DeviceLocation;
use super::name::name_of;
use super::own_changes::place;
use super::read::JournalContents;
use super::report::RestoreReport;
use super::restore::restore;
use super::snapshot::{SettingValue, same};

#[derive(Debug, Clone)]
pub(super) enum StoryStep {
    Turn(usize, usize),
    /// Another program sets or removes a setting.
    Foreign(usize, u64),
    ForeignKnob(usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoryEnd {
    /// The process that wrote also restores.
    Lives,
    /// The process dies between two writes, and another process reads its journal.
    Dies,
    /// The process dies during a change of a knob, before or after the write.
    DiesTurning { knob: usize, value: usize, has_written: bool },
}

#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) steps: Vec<StoryStep>,
    pub(super) end: StoryEnd,
    /// The restoring process dies too, after this many writes, and another one continues.
    dies_restoring: Option<u32>,
    pub(super) seed: u64,
}

/// Returns stories in which no other program does anything.
pub(super) fn turns_alone() -> impl Strategy<Value = Story> {
    let is_ours = |step: &StoryStep| matches!(step, StoryStep::Turn(..));
    stories()
        .prop_map(move |story| Story { steps: story.steps.into_iter().filter(is_ours).collect(), ..story })
}

fn stories() -> impl Strategy<Value = Story> {
    let (knobs, keys) = (0..knobs().len(), 0..settable().len());
    let step = prop_oneof![
        3 => (knobs.clone(), 0..3usize).prop_map(|(knob, value)| StoryStep::Turn(knob, value)),
        3 => (keys, any::<u64>()).prop_map(|(key, n)| StoryStep::Foreign(key, n)),
        1 => (knobs.clone(), 0..3usize).prop_map(|(knob, value)| StoryStep::ForeignKnob(knob, value)),
    ];
    let turning = (knobs, 0..3usize, any::<bool>())
        .prop_map(|(knob, value, has_written)| StoryEnd::DiesTurning { knob, value, has_written });
    let end = prop_oneof![Just(StoryEnd::Lives), Just(StoryEnd::Dies), turning];
    (prop::collection::vec(step, 1..16), end, prop::option::weighted(0.3, 0..12u32), any::<u64>())
        .prop_map(|(steps, end, dies_restoring, seed)| Story { steps, end, dies_restoring, seed })
}

/// Our host and its journal, and a host on which only the other programs write.
pub(super) struct UndoFixture {
    pub(super) host: FakeJournalHost,
    pub(super) ledger: Option<JournalLedger>,
    pub(super) cookie: u64,
    without_us: FakeHostState,
    /// True if another program has set anything.
    is_touched: bool,
}

impl UndoFixture {
    pub(super) fn new(folder: &Path, seed: u64) -> UndoFixture {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let cookie = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = JournalFolder::open_or_make(folder).unwrap();
        let me = ProcessIdentity { pid: 1, start_ticks: 1 };
        let header = JournalHeader {
            format: FORMAT,
            boot_id: boot_id(),
            netns_cookie: cookie,
            agent: me,
            guardian: me,
        };
        let file = JournalFile::begin(folder, &name_of(cookie), header).unwrap();
        let world = FakeWorld {
            state: FakeHostState::new(),
            now_s: 1000,
            seed,
            dies_after: None,
            at_death: None,
            wrote: Vec::new(),
            put: Vec::new(),
            ever: Vec::new(),
            journal: file.path(),
        };
        let host = FakeJournalHost(Arc::new(Mutex::new(world)));
        let ledger = JournalLedger::on(file, lookup, Box::new(host.clone()), JournalContents::default());
        UndoFixture {
            host,
            ledger: Some(ledger),
            cookie,
            without_us: FakeHostState::new(),
            is_touched: false,
        }
    }

    pub(super) fn ledger(&mut self) -> &mut JournalLedger {
        self.ledger.as_mut().unwrap()
    }

    pub(super) fn turns(&mut self, steps: &[StoryStep]) {
        for step in steps {
            if let StoryStep::Turn(knob, value) = *step
                && self.turn(knob, value, true)
            {
                self.ledger().wrote();
            }
        }
    }

    /// Changes a knob, unless another program has set it.
    pub(super) fn turn(&mut self, knob: usize, value: usize, has_written: bool) -> bool {
        let knob = knobs()[knob];
        let value = &values(knob)[value];
        match self.ledger().intend(knob.factor.name, DEVICE, value) {
            Err(crate::Error::Foreign { .. }) => return false,
            other => drop(other.unwrap()),
        }
        if has_written {
            self.host.write(knob, &DeviceLocation::here(DEVICE), value).unwrap();
        }
        true
    }

    /// Sets a setting as another program does. Skips a write that changes nothing, because it cannot be noticed. Skips
    /// a write of the value that this run left there, because it cannot be distinguished from this run's own (see the
    /// reference).
    fn foreign(&mut self, key: usize, n: u64) {
        let key = &settable()[key];
        let value = another(key, n);
        let ours = self.ledger().net.changes.get(&place(INDEX, key)).cloned();
        let mut with_it = self.host.lock().state.clone();
        with_it.set(key, value.as_ref());
        let now = self.host.lock().state.clone();
        let is_seen = !same(with_it.items.get(key), now.items.get(key));
        let is_as_ours = ours.is_some_and(|ours| same(ours.after.as_ref(), with_it.items.get(key)));
        let is_file =
            !matches!(key, super::snapshot::SettingKey::Address(_) | super::snapshot::SettingKey::Route(_));
        if is_seen && !is_as_ours && !(is_file && (value.is_none() || !now.items.contains_key(key))) {
            self.host.lock().state = with_it;
            self.without_us.set(key, value.as_ref());
            self.is_touched = true;
        }
    }

    fn foreign_knob(&mut self, knob: usize, value: usize) {
        let knob = knobs()[knob];
        let value = &values(knob)[value];
        // Skipped: if another feature keeps this feature off, what another program requests cannot be distinguished
        // from what this run did.
        if wish(knob).is_some() {
            return;
        }
        let now = self.host.lock().state.read(knob);
        // With some values, files of other settings disappear and return with the kernel's values. Only this run writes
        // a knob to or from such a value, because it is unknown what another program would have found there.
        let takes_away =
            ["mtu", "channels"].contains(&knob.factor.name) && [value, &now].contains(&&values(knob)[1]);
        let turned =
            self.ledger().history.turned.iter().find(|turned| turned.intent.knob == knob.factor.name);
        let seq = turned.map(|turned| turned.intent.seq);
        let is_as_ours = seq.is_some_and(|seq| self.ledger().net.values.get(&seq) == Some(value));
        if *value != now && !is_as_ours && !takes_away {
            self.host.lock().state.set_knob(knob, value);
            self.without_us.set_knob(knob, value);
            self.is_touched = true;
        }
    }

    /// Lets another process continue the journal.
    fn next(&mut self) {
        let ledger = self.ledger.take().unwrap();
        let mut file = ledger.file;
        let contents = file.read(lookup).unwrap();
        assert!(contents.complaints().is_empty(), "{:?}", contents.complaints());
        file.resume(&contents).unwrap();
        self.ledger = Some(JournalLedger::on(file, lookup, Box::new(self.host.clone()), contents));
    }

    fn restore(&mut self, dies_after: Option<u32>) -> RestoreReport {
        self.host.lock().dies_after = dies_after;
        let report = restore(self.ledger(), false);
        self.host.lock().dies_after = None;
        let died = self.host.lock().at_death.take();
        let Some((state, journal)) = died else { return report };
        // Undoes what the process did after its death.
        let path = self.host.lock().journal.clone();
        std::fs::write(path, journal).unwrap();
        self.host.lock().state = state;
        self.next();
        restore(self.ledger(), false)
    }
}

fn play(folder: &Path, story: &Story) -> Result<(), TestCaseError> {
    let mut fixture = UndoFixture::new(folder, story.seed);
    for step in &story.steps {
        match *step {
            StoryStep::Turn(knob, value) => {
                if fixture.turn(knob, value, true) {
                    fixture.ledger().wrote();
                }
            }
            StoryStep::Foreign(key, n) => fixture.foreign(key, n),
            StoryStep::ForeignKnob(knob, value) => fixture.foreign_knob(knob, value),
        }
    }
    match story.end {
        StoryEnd::Lives => {}
        StoryEnd::Dies => fixture.next(),
        StoryEnd::DiesTurning { knob, value, has_written } => {
            fixture.turn(knob, value, has_written);
            fixture.next();
        }
    }
    let report = fixture.restore(story.dies_restoring);
    prop_assert!(report.is_done(), "{report:?}");
    let state = fixture.host.lock().state.clone();
    for knob in knobs() {
        let (is, should) = (state.read(knob), fixture.without_us.read(knob));
        prop_assert_eq!(is, should, "{}: {:?}", knob.factor.name, report);
    }
    for key in state.items.keys().chain(fixture.without_us.items.keys()) {
        let (is, should) = (state.items.get(key), fixture.without_us.items.get(key));
        prop_assert!(same(is, should), "{key:?} is {is:?}, without us {should:?}: {report:?}");
    }
    let first = fixture.ledger().firsts_on(INDEX).next().cloned();
    let notes = report.notes.clone();
    let says_as_before = report.into_restored().restored;
    let is_as_before = first.is_none_or(|first| {
        // What another program does to a related device is not reported.
        let is_the_same = |(key, value): (&_, &SettingValue)| {
            matches!(value, SettingValue::Of { .. }) || same(state.items.get(key), Some(value))
        };
        first.items().all(is_the_same)
    });
    prop_assert!(is_as_before || !says_as_before, "it says that all is as before");
    prop_assert!(
        says_as_before || fixture.is_touched,
        "our own write is taken for somebody else's: {notes:?}"
    );
    fixture.ledger().file.remove().unwrap();
    Ok(())
}

pub(super) fn boot_id() -> String {
    "00000000-0000-0000-0000-000000000000".into()
}

pub(super) fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns a folder for journals, in memory if possible. In these tests a journal has to survive a death of the
/// process, not a power cut.
pub(super) fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// `make test` plays the same 1,000 stories each time; `make undo` draws 10,000 others.
#[test]
fn interleavings_end_as_if_we_had_not_been_there() {
    let home = folder();
    let config = ProptestConfig {
        cases: number("LANDSPEED_UNDO_STORIES").unwrap_or(1_000),
        rng_seed: RngSeed::Fixed(number("LANDSPEED_UNDO_SEED").unwrap_or(1).into()),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(story in stories())| play(&home.path().join("s"), &story)?);
}

#[test]
fn the_fake_host_disturbs_the_settings_of_the_table() {
    let all = knobs();
    assert!(all.len() >= 15, "{}", all.len());
    // Each knob changes something else that undo has to restore.
    let home = folder();
    for (knob, row) in all.iter().enumerate() {
        let moved = (0..20).any(|seed| {
            let mut fixture = UndoFixture::new(&home.path().join("s"), seed);
            fixture.turn(knob, 1, true);
            fixture.ledger().wrote();
            let moved = !fixture.ledger().net.changes.is_empty();
            fixture.ledger().file.remove().unwrap();
            moved
        });
        assert!(moved, "{}", row.factor.name);
    }
}

#[test]
fn side_effects_of_an_old_unfinished_write_are_not_guessed() {
    let home = folder();
    let (mtu, _) = knobs().iter().enumerate().find(|(_, knob)| knob.factor.name == "mtu").unwrap();
    let mut fixture = UndoFixture::new(&home.path().join("s"), 1);
    fixture.turn(mtu, 1, true);
    fixture.next();
    fixture.host.lock().now_s += 3600;
    let before = fixture.host.lock().state.clone();
    let report = restore(fixture.ledger(), false);
    assert!(!report.is_done() && !report.unsure.is_empty(), "{report:?}");
    let now = fixture.host.lock().state.clone();
    assert_eq!(now.knobs, FakeHostState::new().knobs, "the knob itself is put back: {report:?}");
    let gone = |state: &FakeHostState| settable().iter().filter(|key| !state.items.contains_key(key)).count();
    assert!(gone(&now) >= 2 && gone(&now) <= gone(&before), "{report:?}");
    // With the option `unsure`, undo attributes the changes to this run.
    fixture.next();
    let report = restore(fixture.ledger(), true);
    assert!(report.is_done(), "{report:?}");
    assert_eq!(fixture.host.lock().state, FakeHostState::new());
}
