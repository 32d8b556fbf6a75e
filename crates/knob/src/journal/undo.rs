//! Putting back what neither agent nor guardian lived to put back.

use std::path::Path;

use super::file::{JournalFile, cookie_of, name_of};
use super::folder::{Folder, state_dir};
use super::identity::Here;
use super::lock::NamespaceLock;
use super::read::Contents;
use super::restore::{Report, restore};
use super::{JournalError, Lookup, namespaces};

/// What `landspeed undo` did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoReport {
    /// What was done and what was left, line by line, for people.
    pub lines: Vec<String>,
    /// Whether nothing is left to undo.
    pub clean: bool,
}

/// Puts back what journals say: of this network namespace, and with `all` of every other one that can be
/// found. Journals of another boot are reported and removed: their settings went with that boot.
///
/// # Errors
/// The journals' folder cannot be trusted or read.
pub fn undo(all: bool) -> Result<UndoReport, JournalError> {
    undo_with(all, &state_dir(), super::default_lookup)
}

/// As [`undo`], for another state folder and knob table.
///
/// # Errors
/// As [`undo`].
pub fn undo_with(all: bool, state: &Path, lookup: Lookup) -> Result<UndoReport, JournalError> {
    let mut report = UndoReport { lines: Vec::new(), clean: true };
    let here = Here::find_out()?;
    let own = name_of(here.netns_cookie);
    let names = match Folder::open(state)? {
        Some(folder) => folder.names()?,
        None => Vec::new(),
    };
    let mut others = 0;
    for name in names {
        match cookie_of(&name) {
            None => report.problem(format!(
                "{} is no journal: inspect and remove it",
                state.join("journal").join(&name).display()
            )),
            Some(_) if name == own || all => undo_one(state, &name, &here, lookup, &mut report),
            Some(_) => others += 1,
        }
    }
    if others > 0 {
        report
            .lines
            .push(format!("{others} journal(s) of other network namespaces: run `landspeed undo --all`"));
    }
    if report.lines.is_empty() {
        report.lines.push("nothing to undo".into());
    }
    Ok(report)
}

/// As [`undo`] for the network namespaces with these cookies alone, which may be gone: then their journals
/// go too.
///
/// # Errors
/// As [`undo`].
pub fn undo_namespaces(cookies: &[u64]) -> Result<UndoReport, JournalError> {
    let mut report = UndoReport { lines: Vec::new(), clean: true };
    let here = Here::find_out()?;
    for cookie in cookies {
        undo_one(&state_dir(), &name_of(*cookie), &here, super::default_lookup, &mut report);
    }
    Ok(report)
}

impl UndoReport {
    fn problem(&mut self, line: String) {
        self.lines.push(line);
        self.clean = false;
    }
}

fn undo_one(state: &Path, name: &str, here: &Here, lookup: Lookup, report: &mut UndoReport) {
    let locked = Folder::open(state).and_then(|folder| match folder {
        Some(folder) => JournalFile::lock(folder, name, false),
        None => Ok(None),
    });
    let done = match locked {
        Ok(Some(file)) => undo_locked(&file, name, here, lookup, report),
        Ok(None) => Ok(()),
        Err(e) => Err(e),
    };
    if let Err(e) = done {
        let line = match e {
            JournalError::InProgress { pid, .. } => {
                format!("{name}: a run is in progress (pid {pid}); nothing was touched")
            }
            other => format!("{name}: {other}"),
        };
        report.problem(line);
    }
}

fn undo_locked(
    file: &JournalFile,
    name: &str,
    here: &Here,
    lookup: Lookup,
    report: &mut UndoReport,
) -> Result<(), JournalError> {
    let contents = file.read(lookup)?;
    let done = match &contents.header {
        None if contents.refused.is_empty() => Report::default(),
        None => Report { failures: contents.refused.clone(), ..Report::default() },
        Some(header) if name_of(header.netns_cookie) != name => Report {
            failures: vec!["the journal is of another namespace than its name says".into()],
            ..Report::default()
        },
        Some(header) if header.boot_id != here.boot_id => of_another_boot(&contents),
        Some(header) if header.netns_cookie == here.netns_cookie => {
            let _alone = NamespaceLock::take()?;
            restore(&contents, lookup)
        }
        Some(header) => in_namespace(header.netns_cookie, &contents, lookup),
    };
    report.lines.extend(done.notes.iter().cloned());
    if done.is_done() {
        return file.remove();
    }
    for line in &done.failures {
        report.problem(format!("NOT PUT BACK: {line}"));
    }
    report.problem(format!(
        "{} is kept: run `landspeed undo` again, or put these back by hand and remove it",
        file.path().display()
    ));
    Ok(())
}

/// Settings of an earlier boot went with it; they are told, never written.
fn of_another_boot(contents: &Contents) -> Report {
    let mut notes = vec![
        "a journal of an earlier boot: its settings went with that boot, nothing was written".to_owned(),
    ];
    for turned in &contents.turned {
        let intent = &turned.intent;
        let device = intent.device.as_ref().map_or("no device", |d| &d.name);
        notes.push(format!(
            "  {} ({device}) had been {} and was set to {}",
            intent.knob,
            intent.before,
            turned.written.join(", ")
        ));
    }
    notes.extend(contents.refused.iter().map(|line| format!("  {line}")));
    Report { notes, ..Report::default() }
}

/// Restores in another network namespace, where it still exists.
fn in_namespace(cookie: u64, contents: &Contents, lookup: Lookup) -> Report {
    let Some(namespace) = namespaces::find(cookie) else {
        let line = format!("network namespace {cookie} is gone: its settings went with it");
        return Report { notes: vec![line], ..Report::default() };
    };
    let alone = || NamespaceLock::take().map(|_alone| restore(contents, lookup));
    let failed = |line: String| Report { failures: vec![line], ..Report::default() };
    match namespaces::inside_with_sysfs(&namespace, alone) {
        Ok(done) => done.unwrap_or_else(|e| failed(e.to_string())),
        Err(e) => failed(format!("network namespace {cookie} cannot be entered: {e}")),
    }
}
