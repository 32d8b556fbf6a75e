//! Restoring the settings in a journal.
//!
//! Knobs are restored first, beginning with the newest, and then the other settings that the run's writes changed. A
//! setting is restored only if it is still as the run left it. Otherwise it counts as another program's, and is kept
//! and reported. A setting that differs from the start although no write of the run changed it is kept and reported
//! too. Each write of a restore has a bracket like any other, so its side effects are known and are restored in the
//! next round.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::entry::TurnedKnob;
use super::identity::DeviceIdentity;
use super::ledger::JournalLedger;
use super::location::DeviceLocation;
use super::report::RestoreReport;
use super::side_effects;
use crate::{FactorScope, Knob, SideEffect};

/// The largest number of passes. A setting may not be restorable while an older change is still in place. The next pass
/// then restores it.
const PASSES: usize = 3;
/// Restores everything. If `claim` is true, changes that may come from a write that was cut short long ago count as
/// this run's, whatever program made them.
pub(super) fn restore(ledger: &mut JournalLedger, claim: bool) -> RestoreReport {
    let mut report = RestoreReport { unsure: ledger.close_left_open(claim), ..RestoreReport::default() };
    for _ in 0..PASSES {
        report.failures = ledger.refused.clone();
        for turned in ledger.history.turned.clone().iter().rev() {
            // A panic in the code of one knob must not keep the others from being restored.
            let one = catch_unwind(AssertUnwindSafe(|| put_back_knob(ledger, turned, &mut report)));
            one.unwrap_or_else(|_| report.failures.push(format!("{}: a bug", turned.intent.knob)));
        }
        for (device, subject) in devices(ledger) {
            let rest = || side_effects::put_back(ledger, device, subject.as_ref(), &mut report);
            let one = catch_unwind(AssertUnwindSafe(rest));
            one.unwrap_or_else(|_| report.failures.push("settings that a knob disturbs: a bug".into()));
        }
        if report.failures.len() == ledger.refused.len() {
            break;
        }
    }
    report
}

/// Returns the knobs and the settings that they disturbed, with their current and their original values, one line
/// each. Changes nothing.
pub(super) fn inventory(ledger: &JournalLedger) -> Vec<String> {
    let knob = |turned: &TurnedKnob| {
        let (subject, now) = match knob_of(ledger, turned) {
            Err(why) => (turned.intent.knob.clone(), why),
            Ok(knob) => {
                let now = match ledger.location_of(turned, knob) {
                    Ok(Some(location)) => ledger.host.read(knob, &location).map_err(|e| e.to_string()),
                    Ok(None) => Err("gone with its device".into()),
                    Err(why) => Err(why),
                };
                (subject(turned, knob), now.unwrap_or_else(|why| why))
            }
        };
        format!("  {subject} is {now}, was {}", turned.intent.before)
    };
    let rest = devices(ledger).into_iter();
    let rest = rest.flat_map(|(number, device)| side_effects::inventory(ledger, number, device.as_ref()));
    let refused = ledger.refused.iter().map(|line| format!("  {line}"));
    ledger.history.turned.iter().map(knob).chain(rest).chain(refused).collect()
}

/// Returns the knobs that still have the value from this run's last write and not the original one, one line each.
pub(super) fn still_ours(ledger: &JournalLedger) -> Vec<String> {
    let line = |turned: &TurnedKnob| {
        let knob = knob_of(ledger, turned).ok()?;
        let now = ledger.host.read(knob, &ledger.location_of(turned, knob).ok()??).ok()?;
        let before = &turned.intent.before;
        let is_still = !knob.factor.domain.same(&now, before) && is_ours(ledger, turned, knob, &now);
        is_still
            .then(|| format!("{} is {now}, as that run left it; it had been {before}", subject(turned, knob)))
    };
    ledger.history.turned.iter().filter_map(line).collect()
}

/// Returns the devices whose knobs were written, by index; 0 for knobs without a device.
fn devices(ledger: &JournalLedger) -> BTreeMap<u32, Option<DeviceIdentity>> {
    ledger.history.turned.iter().map(|t| (t.device(), t.intent.device.clone())).collect()
}

/// Returns the knob of `turned`, or the reason why it cannot be restored here: its name is unknown, or it belongs to
/// the whole host and this is not the host's first network namespace.
fn knob_of(ledger: &JournalLedger, turned: &TurnedKnob) -> Result<&'static Knob, String> {
    let name = &turned.intent.knob;
    let knob = (ledger.lookup)(name).ok_or_else(|| format!("{name} is no knob"))?;
    if knob.factor.scope == FactorScope::Host && !ledger.host.is_initial_netns() {
        return Err(format!("{name} belongs to the whole host: undo from its first network namespace"));
    }
    Ok(knob)
}

fn put_back_knob(ledger: &mut JournalLedger, turned: &TurnedKnob, report: &mut RestoreReport) {
    let knob = match knob_of(ledger, turned) {
        Ok(found) => found,
        Err(why) => return report.failures.push(why),
    };
    let subject = subject(turned, knob);
    if let Some(ended) = ledger.host.ended_netns()
        && knob.factor.scope != FactorScope::Device
    {
        return report.note(format!("network namespace {ended} is gone: its settings went with it"));
    }
    let location = match ledger.location_of(turned, knob) {
        Ok(Some(location)) => location,
        Ok(None) => return report.note(format!("{subject}: the device is gone, its settings went with it")),
        Err(why) => return report.failures.push(format!("{subject}: {why}")),
    };
    let (before, domain) = (&turned.intent.before, &knob.factor.domain);
    let now = match ledger.host.read(knob, &location) {
        Ok(now) => now,
        Err(e) => return report.failures.push(format!("{subject} was {before}, cannot be read: {e}")),
    };
    if domain.same(&now, before) {
        return;
    }
    if !is_ours(ledger, turned, knob, &now) {
        let line = format!("{subject}: another program set it to {now} since, left alone (was {before})");
        return report.foreign(line);
    }
    let reach = |kind: &&SideEffect| side_effects::is_reachable(kind, &location);
    let kinds: Vec<SideEffect> = knob.factor.disturbs.iter().filter(reach).copied().collect();
    let wrote = ledger.bracketed(turned.intent.seq, turned, &kinds, &location, |host| {
        host.write(knob, &location, before).and_then(|()| host.read(knob, &location))
    });
    match wrote {
        Ok(after) if domain.same(&after, before) => {
            report.note(format!("{subject}: {now} -> {before}"));
        }
        Ok(after) => match lacks(ledger, knob, &location) {
            // The request is restored. The kernel makes the feature active as soon as the features that it needs are
            // on.
            Some(need) => {
                report.note(format!("{subject}: asked for {before} again, and {after} without {need}"))
            }
            None => {
                report.failures.push(format!("{subject} was {before}, reads {after} after being put back"));
            }
        },
        Err(e) => report.failures.push(format!("{subject} was {before}, is {now}: {e}")),
    }
}

/// Returns the first requirement of a knob that is not met at present, such as "gro=on".
fn lacks(ledger: &JournalLedger, knob: &Knob, location: &DeviceLocation) -> Option<String> {
    let is_missing = |(name, value): &&(&str, &str)| {
        let read = (ledger.lookup)(name).and_then(|need| ledger.host.read(need, location).ok());
        read.is_some_and(|read| read != *value)
    };
    knob.factor.needs.iter().find(is_missing).map(|(name, value)| format!("{name}={value}"))
}

fn subject(turned: &TurnedKnob, knob: &Knob) -> String {
    match (&turned.intent.device, knob.factor.scope) {
        (Some(device), FactorScope::Device) => format!("{} of {}", knob.factor.name, device.name),
        _ => knob.factor.name.to_owned(),
    }
}

/// Returns true if `now`, a knob's current value, is the value after this run's last write. If the value after the last
/// write is unknown, every value that the run ever wrote counts.
fn is_ours(ledger: &JournalLedger, turned: &TurnedKnob, knob: &Knob, now: &str) -> bool {
    let same = |ours: &String| knob.factor.domain.same(ours, now);
    match ledger.net.values.get(&turned.intent.seq) {
        Some(left) => same(left),
        None => turned.written.iter().any(same),
    }
}
