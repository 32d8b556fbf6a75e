//! One end of a copy of files, or of a comparison: opens its flows, and hands them to the mover.
//!
//! | module | content |
//! |---|---|
//! | `flows` | how this end gets the flows |
//! | `look` | what exists at the paths that a user names |
//! | `named` | the names of the entries to copy, if only some are copied |
//! | `place` | the location of a folder, independent of mounts |

mod flows;
mod look;
mod named;
mod place;

use std::path::PathBuf;
use std::sync::Arc;

use landspeed_mover::{
    CopyProgress, IgnoreRules, NamedPath, RelativeName, Removal, Source, SourceRoot, Target,
};
use landspeed_observer::{DiskCounters, ProcessorLosses};
use landspeed_record::units::Nanos;
use landspeed_record::{
    CopyArm, CopyCheck, CopyDiffering, CopyEndTimes, CopyKeeping, CopyProven, PathBytes, Settings,
};
use landspeed_transport::CancelFlag;
use parking_lot::Mutex;

use self::flows::{check_number, flows_of, others_of};
use self::named::NamedEntries;
use crate::copy_permission::CopyPermission;
use crate::ports::DataPorts;
use crate::session::{CopyFlows, CopyRoot, CopyRules, PathUse, Reply};

pub(crate) use self::look::look;

/// The longest turn of a copy with one setting, and the longest time for which the copy is slowed at once.
const LONGEST_TURN: Nanos = Nanos::secs(60);

/// The copy or comparison in which this agent takes part, or the last one in which it took part.
#[derive(Default)]
pub(crate) struct Copies(Mutex<CurrentCopy>, NamedEntries);

#[derive(Default, Clone)]
struct CurrentCopy {
    progress: Arc<CopyProgress>,
    /// The flows of the copy; `None` for a comparison.
    flows: Option<CopyFlows>,
    /// Processor time that this host has lost since the copy began; `None` before the first copy.
    losses: Option<Arc<ProcessorLosses>>,
    /// The disks under the copy's files; `None` before the first copy.
    disks: Option<Arc<DiskCounters>>,
}

impl Copies {
    /// Returns the counts of the copy so far and the times of this end. Only the source counts entries.
    pub(crate) fn state(&self) -> Reply {
        let CurrentCopy { progress, losses, disks, .. } = self.0.lock().clone();
        let host = losses.map(|losses| losses.so_far()).unwrap_or_default();
        let disk = disks.and_then(|disks| disks.so_far());
        let times = CopyEndTimes { host, disk, ..progress.times() };
        let (not_as_asked, ciphers) = (progress.not_as_asked(), progress.ciphers());
        let (counts, controls) = (progress.counts(), progress.controls());
        Reply::CopyState { counts, times: Box::new(times), not_as_asked, ciphers, controls }
    }

    /// Returns the differing entries that the comparison has found since the last call.
    pub(crate) fn listed(&self) -> Vec<CopyDiffering> {
        let progress = self.progress();
        progress.listed()
    }

    /// Returns the files whose copies were proven since the last call.
    pub(crate) fn proven(&self) -> Vec<CopyProven> {
        let progress = self.progress();
        progress.proven()
    }

    /// Opens further flows of the copy.
    pub(crate) fn widen(&self, flows: u32) -> Result<Reply, String> {
        check_number(flows)?;
        self.progress().widen(flows);
        Ok(Reply::Done {})
    }

    /// Opens or accepts flows of another transport in addition to the copy's own flows.
    pub(crate) fn add_others(
        &self,
        ports: &DataPorts,
        settings: Settings,
        count: u32,
    ) -> Result<Reply, String> {
        check_number(count)?;
        let CurrentCopy { progress, flows, .. } = self.0.lock().clone();
        let own = flows.ok_or("no copy is running here")?;
        progress.add_others(others_of(ports, &own, settings, count)?)?;
        Ok(Reply::Done {})
    }

    /// Replaces the flows of another transport by flows of the copy's own transport.
    pub(crate) fn leave_others(&self) -> Reply {
        self.progress().leave_others();
        Reply::Done {}
    }

    /// Applies a setting, waits for the time `settle`, and then counts what the target receives in the time `count`.
    pub(crate) fn turn(
        &self,
        arm: &CopyArm,
        [settle, count]: [Nanos; 2],
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        check_number(arm.flows)?;
        if settle + count > LONGEST_TURN {
            return Err(format!("a turn of a copy takes at most {LONGEST_TURN}"));
        }
        let counted = self.progress().turn(arm, settle.into(), count.into(), cancel);
        Ok(Reply::CopyTurned { counted: Box::new(counted) })
    }

    /// Writes pieces of long files past the page cache from now on, or through it again.
    pub(crate) fn write_direct(&self, is_direct: bool) -> Result<Reply, String> {
        self.progress().write_direct(is_direct).map(|()| Reply::Done {})
    }

    /// Makes the work of this end take a tenth longer for a while.
    pub(crate) fn slow(&self, time: Nanos) -> Result<Reply, String> {
        if time > LONGEST_TURN {
            return Err(format!("a copy is slowed for at most {LONGEST_TURN} at a time"));
        }
        self.progress().slow(time.into());
        Ok(Reply::Done {})
    }

    fn progress(&self) -> Arc<CopyProgress> {
        Arc::clone(&self.0.lock().progress)
    }

    /// Adds names of entries. The next copy or comparison takes only these entries.
    pub(crate) fn name(&self, names: Vec<PathBytes>, is_first: bool) -> Result<Reply, String> {
        self.1.add(names, is_first).map(|()| Reply::Done {})
    }

    /// Returns the source of a copy or a comparison.
    pub(crate) fn source(
        &self,
        may: &CopyPermission,
        roots: Vec<CopyRoot>,
        keeping: CopyKeeping,
        asked: &CopyRules,
    ) -> Result<Source, String> {
        let roots = roots.into_iter().map(|root| source_root(may, root)).collect::<Result<_, _>>()?;
        let only = asked.only_named.then(|| self.1.take());
        Ok(Source { roots, keeping, rules: landspeed_mover::CopyRules { only, ..rules(asked)? } })
    }

    /// Returns the counts of a copy or comparison that begins now. Observes the disks under `paths`; a comparison
    /// passes no paths.
    fn begin<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a NamedPath>,
        flows: Option<&CopyFlows>,
    ) -> Arc<CopyProgress> {
        let progress = Arc::new(CopyProgress::default());
        let losses = Some(Arc::new(ProcessorLosses::begin()));
        let places: Vec<PathBuf> = paths.into_iter().filter_map(real_place).collect();
        let disks = Some(Arc::new(DiskCounters::begin(&places)));
        let flows = flows.cloned();
        *self.0.lock() = CurrentCopy { progress: Arc::clone(&progress), flows, losses, disks };
        progress
    }

    /// Sends files and folders until the copy is over.
    pub(crate) fn send(
        &self,
        ports: &DataPorts,
        flows: &CopyFlows,
        source: &Source,
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        let progress = self.begin(source.roots.iter().map(|root| &root.path), Some(flows));
        progress.begin_with(flows.count);
        let (flows, _way) = flows_of(ports, flows)?;
        let outcome = landspeed_mover::send(flows, source, &progress, cancel).map_err(|e| e.to_string())?;
        Ok(Reply::Copied { outcome: Box::new(outcome) })
    }

    /// Compares files and folders with what the target has.
    pub(crate) fn compare(
        &self,
        ports: &DataPorts,
        flows: &CopyFlows,
        source: &Source,
        check: CopyCheck,
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        let progress = self.begin([], None);
        let (flows, _way) = flows_of(ports, flows)?;
        let outcome = landspeed_mover::compare(flows, source, check, &progress, cancel);
        Ok(Reply::Compared { outcome: Box::new(outcome.map_err(|e| e.to_string())?) })
    }

    /// Receives files until the copy is over.
    pub(crate) fn receive(
        &self,
        ports: &DataPorts,
        flows: &CopyFlows,
        target: &Target,
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        let progress = self.begin([&target.folder], Some(flows));
        progress.begin_with(flows.count);
        let (flows, _way) = flows_of(ports, flows)?;
        landspeed_mover::receive(flows, target, &progress, cancel).map_err(|e| e.to_string())?;
        Ok(Reply::Done {})
    }

    /// Answers a source's questions about the target's entries until the source has no more questions.
    pub(crate) fn show(
        &self,
        ports: &DataPorts,
        flows: &CopyFlows,
        target: &Target,
        check: CopyCheck,
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        let progress = self.begin([], None);
        let (flows, _way) = flows_of(ports, flows)?;
        landspeed_mover::show(flows, target, check, &progress, cancel).map_err(|e| e.to_string())?;
        Ok(Reply::Done {})
    }
}

/// Returns the kernel's path to the named entry or, if that is missing, to the folder above it. The path as the user
/// named it could lead out of the folder that this agent may use.
fn real_place(path: &NamedPath) -> Option<PathBuf> {
    path.real().or_else(|| path.split()?.0.real())
}

/// Removes the incomplete files that copies have left in a folder. With `only_list`, only lists them.
pub(crate) fn clean(folder: &NamedPath, only_list: bool) -> Result<Reply, String> {
    let left = landspeed_mover::clean(folder, only_list).map_err(|e| e.to_string())?;
    Ok(Reply::CopyLeft { left: Box::new(left) })
}

pub(crate) fn target(
    folder: NamedPath,
    names: &[PathBytes],
    is_synced: bool,
    keeping: CopyKeeping,
    asked: &CopyRules,
) -> Result<Target, String> {
    let names = names.iter().map(name).collect::<Result<_, _>>()?;
    Ok(Target { folder, names, is_synced, keeping, rules: rules(asked)? })
}

/// Checks that each of these lines is a gitignore rule.
///
/// # Errors
/// Returns an error that names the first line that is not a rule.
pub fn check_ignore_rules(lines: &[PathBytes]) -> Result<(), String> {
    ignore_rules(lines).map(drop)
}

fn ignore_rules(lines: &[PathBytes]) -> Result<IgnoreRules, String> {
    IgnoreRules::parse(lines.iter().map(|line| line.0.as_slice())).map_err(|error| error.to_string())
}

fn rules(asked: &CopyRules) -> Result<landspeed_mover::CopyRules, String> {
    let removal = asked.deletes.then_some(Removal { most: asked.most_deleted });
    Ok(landspeed_mover::CopyRules {
        ignore: ignore_rules(&asked.ignore_hex)?,
        only: None,
        removal,
        lists_digests: asked.lists_digests,
        by_content: asked.by_content,
        limit: asked.limit_bps,
        ignores_room: asked.ignores_room,
        walkers: None,
    })
}

fn source_root(may: &CopyPermission, root: CopyRoot) -> Result<SourceRoot, String> {
    if root.path_hex.0.is_empty() {
        return Err("a path is empty".to_owned());
    }
    Ok(SourceRoot { target: name(&root.name_hex)?, path: may.path(root.path_hex, PathUse::Read)? })
}

fn name(bytes: &PathBytes) -> Result<RelativeName, String> {
    let why = "a name at the target leads out of its folder or is too long";
    RelativeName::parse(&bytes.0).ok_or_else(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_target_takes_no_name_that_leads_out_of_its_folder() {
        let of = |name: &str| {
            let (names, keeping) = ([PathBytes(name.into())], CopyKeeping::default());
            target(Path::new("t").into(), &names, true, keeping, &CopyRules::default())
        };
        assert!(of("../t").is_err() && of("/t").is_err());
        assert_eq!(of("t").unwrap().names, [RelativeName::parse(b"t").unwrap()]);
    }

    #[test]
    fn only_an_end_that_writes_files_writes_past_the_page_cache() {
        let none = Copies::default();
        assert!(none.write_direct(true).unwrap_err().contains("writes no files"));
        assert_eq!(none.write_direct(false), Ok(Reply::Done {}), "as it does anyway");
    }

    #[test]
    fn a_copy_is_not_slowed_for_long() {
        let none = Copies::default();
        assert_eq!(none.slow(LONGEST_TURN), Ok(Reply::Done {}));
        assert!(none.slow(LONGEST_TURN + Nanos(1)).unwrap_err().contains("at a time"));
    }

    #[test]
    fn rules_are_bytes_and_a_bad_one_is_named() {
        let asked =
            |line: &[u8]| CopyRules { ignore_hex: vec![PathBytes(line.to_vec())], ..CopyRules::default() };
        let read = rules(&asked(b"*.\xff")).unwrap();
        assert_eq!((read.ignore, read.removal), (IgnoreRules::parse([b"*.\xff"]).unwrap(), None));
        let why = rules(&asked(b"[a")).unwrap_err();
        assert!(why.contains("\"[a\" is no pattern"), "{why}");
        assert_eq!(check_ignore_rules(&asked(b"[a").ignore_hex), Err(why));
    }
}
