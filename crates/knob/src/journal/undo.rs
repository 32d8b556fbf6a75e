//! Undo: restoring settings that neither agent nor guardian could restore, or giving them up.

use std::path::{Path, PathBuf};

use super::bring_back::bring_back;
use super::entry::{Intent, TurnedKnob};
use super::file::JournalFile;
use super::folder::{JournalFolder, state_dir};
use super::host::KernelHost;
use super::identity::NamespaceIdentity;
use super::ledger::JournalLedger;
use super::lock::NamespaceLock;
use super::name::{cookie_of, draft_for, draft_of, name_of};
use super::origin::{JournalOrigin, origin};
use super::read::JournalContents;
use super::report::RestoreReport;
use super::restore::{inventory, restore, still_ours};
use super::{JournalError, KnobLookup, namespaces, second_copy};

/// The result of `landspeed undo`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoReport {
    /// The restored and the kept settings, one line each, for people.
    pub lines: Vec<String>,
    /// True if nothing remains to be undone.
    pub clean: bool,
    /// True if a setting was kept on purpose, because another program changed it.
    pub left: bool,
    /// True if a journal is kept because not everything in it could be restored.
    is_stuck: bool,
}

/// The options of `landspeed undo`.
#[derive(Debug, Clone)]
pub struct Undo {
    /// True to work on the journals of all network namespaces that can be found, and not only of the current one.
    pub all: bool,
    /// True to restore also the changes that may come either from a write that was cut short long ago or from another
    /// program.
    pub unsure: bool,
    /// True if the virtual devices of an ended network namespace are known to have ended with it, as in a lab. If
    /// false, a similar device in another namespace may be the changed device, moved there before the end.
    pub devices_ended: bool,
    /// Folder of landspeed's state, which contains the journals' folder.
    pub state_dir: PathBuf,
    /// The function that finds a knob by its name.
    pub lookup: KnobLookup,
}

impl Default for Undo {
    fn default() -> Self {
        Undo {
            all: true,
            unsure: false,
            devices_ended: false,
            state_dir: state_dir(),
            lookup: super::default_lookup,
        }
    }
}

/// Undoes the changes in the journals of the network namespaces with these cookies, which belong to a lab. The journal
/// of a namespace that has ended is removed.
pub fn undo_namespaces(cookies: &[u64]) -> Result<UndoReport, JournalError> {
    let (undo, here) = (Undo { devices_ended: true, ..Undo::default() }, NamespaceIdentity::find_out()?);
    let mut report = UndoReport { clean: true, ..UndoReport::default() };
    for cookie in cookies {
        let mut work =
            |file: JournalFile, name: &str, report: &mut UndoReport| undo.undo(file, name, &here, report);
        let name = name_of(*cookie);
        undo.discard_draft(&draft_of(&name));
        undo.one(&name, &mut work, &mut report);
    }
    Ok(report)
}

/// Returns true if a journal exists for the network namespace with this cookie. Not everything in it is restored then.
/// Returns `None` if this cannot be determined: `boot_id` is not the boot of this host, or the journals are not
/// readable.
pub fn has_journal(boot_id: &str, netns_cookie: u64) -> Option<bool> {
    let here = NamespaceIdentity::find_out().ok()?;
    if here.boot_id != boot_id {
        return None;
    }
    Some(names(&state_dir()).ok()?.contains(&name_of(netns_cookie)))
}

/// Returns the names of all files in the journals' folder, and of the journals that have only a second copy.
fn names(state: &Path) -> Result<Vec<String>, JournalError> {
    let mut names = match JournalFolder::open(state)? {
        Some(folder) => folder.names()?,
        None => Vec::new(),
    };
    names.extend(second_copy::names(state)?);
    names.sort();
    names.dedup();
    Ok(names)
}

/// A locked journal; `None` if there is no such journal.
type Locked = Result<Option<JournalFile>, JournalError>;

/// The work on one journal, under its lock.
type JournalAction<'a> = dyn FnMut(JournalFile, &str, &mut UndoReport) -> Result<(), JournalError> + 'a;

impl Undo {
    /// Restores the settings in the journals. A journal of another boot is only reported, because its settings ended
    /// with that boot. It is removed unless a setting still has the value that the run left. A damaged journal is kept.
    ///
    /// # Errors
    /// Returns an error if the journals' folder cannot be trusted or read.
    pub fn run(&self) -> Result<UndoReport, JournalError> {
        let here = NamespaceIdentity::find_out()?;
        let mut report = self.each(&here, &mut |file, name, report| self.undo(file, name, &here, report))?;
        if report.is_stuck {
            report.lines.push(
                "`landspeed undo --forget` is the last resort: it shows what it gives up, and removes the journal"
                    .into(),
            );
        }
        Ok(report)
    }

    /// Gives up the settings in the journals. Calls `agree` with the current and the original value of each setting of
    /// a journal, one line each, and removes the journal if `agree` returns true. Changes no setting.
    pub fn forget(&self, mut agree: impl FnMut(&[String]) -> bool) -> Result<UndoReport, JournalError> {
        let here = NamespaceIdentity::find_out()?;
        self.each(&here, &mut |file, name, report| {
            let lines = self.given_up(&file, name, &here)?;
            if !agree(&lines) {
                report.problem(format!("{} is kept", file.path().display()));
                return Ok(());
            }
            file.remove()?;
            report.lines.push(format!("{} is removed", file.path().display()));
            Ok(())
        })
    }

    /// Lists what [`Undo::run`] would restore. Changes nothing, even if only the second copy of a journal remains.
    pub fn preview(&self) -> Result<UndoReport, JournalError> {
        let here = NamespaceIdentity::find_out()?;
        let mut report = UndoReport { clean: true, ..UndoReport::default() };
        let is_chosen = |name: &String| self.all || *name == name_of(here.netns_cookie);
        for name in names(&self.state_dir)?.iter().filter(|name| cookie_of(name).is_some() && is_chosen(name))
        {
            let mut show = |file: JournalFile, name: &str, report: &mut UndoReport| {
                report.lines.extend(self.given_up(&file, name, &here)?);
                report.clean = false;
                Ok(())
            };
            let known = report.lines.len();
            self.work_on(name, self.lock(name), &mut show, &mut report);
            if report.lines.len() == known {
                report.problem(format!("{name}: only its second copy remained; undo restores from it"));
            }
        }
        if report.lines.is_empty() {
            report.lines.push("nothing to undo".into());
        }
        Ok(report)
    }

    fn each(
        &self,
        here: &NamespaceIdentity,
        work: &mut JournalAction<'_>,
    ) -> Result<UndoReport, JournalError> {
        let mut report = UndoReport { clean: true, ..UndoReport::default() };
        let own = name_of(here.netns_cookie);
        let mut others = 0;
        for name in names(&self.state_dir)? {
            match cookie_of(&name) {
                None if draft_for(&name).is_some() => self.discard_draft(&name),
                None => report.problem(format!(
                    "{} is no journal: inspect and remove it",
                    self.state_dir.join("journal").join(&name).display()
                )),
                Some(_) if name == own || self.all => self.one(&name, work, &mut report),
                Some(_) => others += 1,
            }
        }
        if others > 0 {
            report.lines.push(format!(
                "{others} journal(s) of other network namespaces: run `landspeed undo` without --here"
            ));
        }
        if report.lines.is_empty() {
            report.lines.push("nothing to undo".into());
        }
        Ok(report)
    }

    /// Removes a draft whose writer died before it renamed it. A draft that is being written is locked, and kept.
    fn discard_draft(&self, name: &str) {
        if let Ok(Some(folder)) = JournalFolder::open(&self.state_dir)
            && let Ok(Some(draft)) = JournalFile::try_lock(folder, name)
        {
            let _ = draft.discard();
        }
    }

    /// Calls `work` for a journal. If the second copy of another run's journal with the same name remains after that,
    /// calls `work` for that journal too.
    fn one(&self, name: &str, work: &mut JournalAction<'_>, report: &mut UndoReport) {
        let (locked, _) = self.lock_whole(name, report);
        let is_free = locked.is_ok();
        self.work_on(name, locked, work, report);
        if is_free && let (locked, true) = self.lock_whole(name, report) {
            self.work_on(name, locked, work, report);
        }
    }

    /// Locks a journal. If the second copy has lines that the journal lacks, replaces the journal by the copy and locks
    /// the new file. Returns true in that case.
    fn lock_whole(&self, name: &str, report: &mut UndoReport) -> (Locked, bool) {
        let locked = self.lock(name);
        let Ok(first) = &locked else { return (locked, false) };
        match bring_back(&self.state_dir, name, first.as_ref(), self.lookup) {
            Ok(false) => (locked, false),
            Ok(true) => {
                let line = "another program removed or changed it, and its second copy has taken its place";
                report.lines.push(format!("journal {name}: {line}"));
                (self.lock(name), true)
            }
            Err(e) => {
                report.problem(format!("{name}: {e}"));
                (locked, false)
            }
        }
    }

    fn lock(&self, name: &str) -> Locked {
        let folder = JournalFolder::open(&self.state_dir)?;
        folder.map_or(Ok(None), |folder| JournalFile::lock(folder, name))
    }

    fn work_on(&self, name: &str, locked: Locked, work: &mut JournalAction<'_>, report: &mut UndoReport) {
        let done = match locked {
            Ok(Some(file)) => work(file, name, report),
            Ok(None) => Ok(()),
            Err(e) => Err(e),
        };
        match done {
            Ok(()) => {}
            Err(JournalError::InProgress { pid, .. }) => {
                report.problem(format!("{name}: a run is in progress (pid {pid}); nothing was touched"));
            }
            Err(other) => report.problem(format!("{name}: {other}")),
        }
    }

    fn undo(
        &self,
        file: JournalFile,
        name: &str,
        here: &NamespaceIdentity,
        report: &mut UndoReport,
    ) -> Result<(), JournalError> {
        let unsure = self.unsure;
        let done = self.on_host(&file, name, here, move |ledger| {
            let _alone = ledger.host.ended_netns().is_none().then(NamespaceLock::take).transpose()?;
            Ok(restore(ledger, unsure))
        })?;
        report.lines.extend(done.notes.iter().cloned());
        report.left |= done.foreign;
        if done.is_done() {
            return file.remove();
        }
        report.is_stuck = true;
        for line in &done.failures {
            report.problem(format!("NOT PUT BACK: {line}"));
        }
        for line in &done.unsure {
            report.problem(format!("NOT PUT BACK, because another program may have changed it: {line}"));
        }
        if !done.unsure.is_empty() {
            let line = "a write was cut short, so what it changed is not known for sure: `landspeed undo --unsure` restores these";
            report.problem(line.into());
        }
        report.problem(format!(
            "{} is kept: run `landspeed undo` again, or put these back by hand and run `landspeed undo --forget`",
            file.path().display()
        ));
        Ok(())
    }

    /// Returns the journal's path and the changes in the journal with their current and original values, one line each.
    /// Without the journal, these changes can no longer be undone.
    fn given_up(
        &self,
        file: &JournalFile,
        name: &str,
        here: &NamespaceIdentity,
    ) -> Result<Vec<String>, JournalError> {
        let report = self.on_host(file, name, here, |ledger| {
            Ok(RestoreReport { notes: inventory(ledger), ..RestoreReport::default() })
        })?;
        let failures = report.failures.into_iter().map(|line| format!("  {line}"));
        let mut lines = vec![format!("{}:", file.path().display())];
        lines.extend(report.notes.into_iter().chain(failures));
        if lines.len() == 1 {
            lines.push("  nothing was turned under it".into());
        }
        Ok(lines)
    }

    /// Runs `work` in the network namespace that a journal belongs to, or on the devices that outlived that namespace.
    /// Does not run it if everything is already restored, or if the journal is unreadable or of another boot.
    fn on_host(
        &self,
        file: &JournalFile,
        name: &str,
        here: &NamespaceIdentity,
        work: impl FnOnce(&mut JournalLedger) -> Result<RestoreReport, JournalError> + Send,
    ) -> Result<RestoreReport, JournalError> {
        let (contents, again, lookup) = (file.read(self.lookup)?, file.again()?, self.lookup);
        let refused = |failures| Ok(RestoreReport { failures, ..RestoreReport::default() });
        match origin(&contents, name, here) {
            JournalOrigin::Done => Ok(RestoreReport::default()),
            JournalOrigin::HeaderLost => Ok(RestoreReport {
                notes: knob_lines(&contents),
                failures: contents.complaints(),
                ..RestoreReport::default()
            }),
            JournalOrigin::AnotherBoot => Ok(of_another_boot(again, lookup, contents, here)),
            JournalOrigin::Unreadable(why) => refused(vec![why]),
            JournalOrigin::Here => {
                work(&mut JournalLedger::resume(again, lookup, contents, KernelHost::default())?)
            }
            JournalOrigin::Elsewhere(cookie) => {
                let ended = KernelHost::after_end_of(cookie, self.devices_ended);
                Ok(in_namespace(cookie, ended, move |host| {
                    work(&mut JournalLedger::resume(again, lookup, contents, host)?)
                }))
            }
        }
    }
}

impl UndoReport {
    fn problem(&mut self, line: String) {
        self.lines.push(line);
        self.clean = false;
    }
}

/// Reports the settings in a journal of another boot, and writes nothing, because settings end with their boot. If a
/// setting still has the value that the run left, the boot may be the same one under another id, as in a container or
/// on a machine that was suspended and resumed elsewhere.
fn of_another_boot(
    file: JournalFile,
    lookup: KnobLookup,
    contents: JournalContents,
    here: &NamespaceIdentity,
) -> RestoreReport {
    let cookie = contents.header.as_ref().map(|header| header.netns_cookie);
    let (lines, complaints) = (knob_lines(&contents), contents.complaints());
    let compared = move || {
        let ledger = JournalLedger::on(file, lookup, Box::new(KernelHost::default()), contents);
        still_ours(&ledger)
    };
    let failures = match cookie {
        Some(cookie) if cookie != here.netns_cookie => namespaces::find(cookie)
            .and_then(|namespace| namespaces::inside_with_sysfs(&namespace, compared).ok())
            .unwrap_or_default(),
        _ => compared(),
    };
    let head = match failures.is_empty() {
        true => "a journal of an earlier boot: its settings went with that boot, nothing was written",
        false => "a journal of another boot, by the boot id: nothing was written",
    };
    let notes = [head.to_owned()].into_iter().chain(lines).collect();
    RestoreReport {
        notes,
        failures: failures.into_iter().chain(complaints).collect(),
        ..RestoreReport::default()
    }
}

/// Returns one line about each knob in a journal.
fn knob_lines(contents: &JournalContents) -> Vec<String> {
    let line = |turned: &TurnedKnob| {
        let Intent { knob, device, before, .. } = &turned.intent;
        let device = device.as_ref().map_or("no device", |d| &d.name);
        format!("  {knob} ({device}) had been {before} and was set to {}", turned.written.join(", "))
    };
    contents.history.turned.iter().map(line).collect()
}

/// Runs `work` in another network namespace or, if that namespace has ended, on the devices that have outlived it.
fn in_namespace(
    cookie: u64,
    ended: KernelHost,
    work: impl FnOnce(KernelHost) -> Result<RestoreReport, JournalError> + Send,
) -> RestoreReport {
    let failed = |line: String| RestoreReport { failures: vec![line], ..RestoreReport::default() };
    let done = match namespaces::find(cookie) {
        None => Ok(work(ended)),
        Some(namespace) => namespaces::inside_with_sysfs(&namespace, || work(KernelHost::default())),
    };
    match done {
        Ok(Ok(report)) => report,
        Ok(Err(e)) => failed(e.to_string()),
        Err(e) => failed(format!("network namespace {cookie} cannot be entered: {e}")),
    }
}
