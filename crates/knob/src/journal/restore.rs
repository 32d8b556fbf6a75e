//! Putting back what a journal says, newest first, and comparing.
//!
//! Newest first, each turn with what it disturbed: when an entry is done, everything that its knob can
//! touch is as it was just before that knob's first turn, so only older entries' doings are left. By
//! induction the host is as found when the oldest entry is done.

use std::panic::{AssertUnwindSafe, catch_unwind};

use landspeed_record::Restored;

use super::entry::Turned;
use super::identity::{Device, Found, in_initial_netns};
use super::read::Contents;
use super::{Lookup, value};
use crate::{HostKnob, Knob, Place, Scope, Turn};

/// Settings can refuse to go back while another that is older still stands; a second pass finds it gone.
const PASSES: usize = 3;

/// What came of restoring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Report {
    /// What was done and what was left, one line each.
    pub(super) notes: Vec<String>,
    /// What is not as it was and could be on another try, one line each.
    pub(super) failures: Vec<String>,
    /// Whether values were left because somebody else had changed them.
    pub(super) foreign: bool,
}

impl Report {
    /// Whether nothing is left to do: the journal can go.
    pub(super) fn is_done(&self) -> bool {
        self.failures.is_empty()
    }

    /// As agents and records have it.
    pub(super) fn into_restored(self) -> Restored {
        let restored = self.is_done() && !self.foreign;
        let failures = self.failures.into_iter().map(|line| format!("NOT PUT BACK: {line}"));
        Restored { restored, notes: failures.chain(self.notes).collect() }
    }
}

/// Puts everything back in this thread's network namespace.
pub(super) fn restore(contents: &Contents, lookup: Lookup) -> Report {
    let mut report = Report::default();
    for _ in 0..PASSES {
        report.failures.clear();
        report.failures.extend(contents.refused.iter().cloned());
        for turned in contents.turned.iter().rev() {
            let pending = turned.intent.seq == contents.turning;
            // A bug in one knob must not keep the others from being put back.
            let one = catch_unwind(AssertUnwindSafe(|| restore_one(turned, pending, lookup)));
            report.join(one.unwrap_or_else(|_| Step::failed(format!("{}: a bug", turned.intent.knob))));
        }
        if report.failures.len() == contents.refused.len() {
            break;
        }
    }
    report
}

/// What came of one entry.
#[derive(Default)]
struct Step {
    notes: Vec<String>,
    failures: Vec<String>,
    foreign: bool,
}

impl Step {
    fn failed(line: String) -> Step {
        Step { failures: vec![line], ..Step::default() }
    }

    fn note(line: String) -> Step {
        Step { notes: vec![line], ..Step::default() }
    }
}

impl Report {
    fn join(&mut self, step: Step) {
        for note in step.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.failures.extend(step.failures);
        self.foreign |= step.foreign;
    }
}

fn restore_one(turned: &Turned, pending: bool, lookup: Lookup) -> Step {
    let name = &turned.intent.knob;
    let Some(knob) = lookup(name) else { return Step::failed(format!("{name} is no knob")) };
    let Turn::Host(turn) = knob.turn else { return Step::failed(format!("{name} is no host knob")) };
    if knob.row.scope == Scope::Host && !in_initial_netns() {
        return Step::failed(format!(
            "{name} belongs to the whole host: undo from its first network namespace"
        ));
    }
    let (place, there) = match place_of(turned, knob) {
        Ok(found) => found,
        Err(step) => return step,
    };
    let mut step = put_back(turned, pending, knob, turn, &place);
    let outcome = turned.intent.disturbed.restore(there.then_some(&place.device));
    step.notes.extend(outcome.put_back);
    step.notes.extend(outcome.left);
    step.failures.extend(outcome.still);
    step
}

/// Where the entry's device is now, and whether it is there. One that is gone took its settings along, but
/// what reaches further than the device outlives it.
fn place_of(turned: &Turned, knob: &Knob) -> Result<(Place, bool), Step> {
    let Some(device) = &turned.intent.device else { return Ok((Place { device: String::new() }, false)) };
    let subject = subject(&turned.intent.knob, knob, device);
    match device.find() {
        Ok(Found::At(name)) => Ok((Place { device: name }, true)),
        Ok(Found::Gone) if knob.row.scope != Scope::Device => {
            Ok((Place { device: device.name.clone() }, false))
        }
        Ok(Found::Gone) => {
            Err(Step::note(format!("{subject}: the device is gone, its settings went with it")))
        }
        Err(e) => Err(Step::failed(format!("{subject}: cannot look for the device: {e}"))),
    }
}

fn subject(name: &str, knob: &Knob, device: &Device) -> String {
    match knob.row.scope {
        Scope::Device => format!("{name} of {}", device.name),
        _ => name.to_owned(),
    }
}

fn put_back(turned: &Turned, pending: bool, knob: &Knob, turn: &dyn HostKnob, place: &Place) -> Step {
    let (before, domain) = (&turned.intent.before, &knob.row.domain);
    let name = &turned.intent.knob;
    let subject = turned.intent.device.as_ref().map_or(name.clone(), |d| subject(name, knob, d));
    let now = match turn.read(place) {
        Ok(now) => now,
        Err(e) => return Step::failed(format!("{subject} was {before}, cannot be read: {e}")),
    };
    if value::same(domain, &now, before) {
        return Step::default();
    }
    let ours = turned.written.iter().any(|written| value::same(domain, written, &now));
    if !ours && !pending {
        let line = format!("{subject}: somebody else set it to {now} since, left alone (was {before})");
        return Step { notes: vec![line], foreign: true, ..Step::default() };
    }
    let wrote = turn.write(place, before).and_then(|()| turn.read(place));
    match wrote {
        Ok(after) if value::same(domain, &after, before) => {
            Step::note(format!("{subject}: {now} -> {before}"))
        }
        Ok(after) => Step::failed(format!("{subject} was {before}, reads {after} after being put back")),
        Err(e) => Step::failed(format!("{subject} was {before}, is {now}: {e}")),
    }
}
