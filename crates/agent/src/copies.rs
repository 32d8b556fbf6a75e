//! One end of a copy of files, or of a comparison: opens its flows, and hands them to the mover.

mod named;
mod place;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landspeed_mover::{
    Caller, CopyProgress, Flows, IgnoreRules, Opening, RelativeName, Removal, Source, SourceRoot, Target,
};
use landspeed_observer::ProcessorLosses;
use landspeed_record::units::Nanos;
use landspeed_record::{
    COPY_PATIENCE_TIMES, CopyArm, CopyCheck, CopyDiffering, CopyEndTimes, CopyKeeping, CopyProven, PathBytes,
    Role,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{CancelFlag, Transport};
use landspeed_workload::ClientPlan;
use parking_lot::Mutex;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use self::named::NamedEntries;
use self::place::Mounts;
use crate::ports::DataPorts;
use crate::session::{
    CopyFlows, CopyRoot, CopyRules, FolderPlace, FoundPath, PathKind, RelayEntry, RelayExit, Reply,
};

/// The largest number of flows of a copy.
const MOST_FLOWS: u32 = 64;
/// The longest turn of a copy with one setting.
const LONGEST_TURN: Nanos = Nanos::secs(60);

/// The copy or the comparison in which this agent takes part, or has taken part last.
#[derive(Default)]
pub(crate) struct Copies(Mutex<CurrentCopy>, NamedEntries);

#[derive(Default, Clone)]
struct CurrentCopy {
    progress: Arc<CopyProgress>,
    /// What this host's processors lost since it began; `None` before the first one.
    losses: Option<Arc<ProcessorLosses>>,
}

impl Copies {
    /// Returns the counts of the copy so far, of which only its source counts entries, and the times of this end.
    pub(crate) fn state(&self) -> Reply {
        let CurrentCopy { progress, losses } = self.0.lock().clone();
        let host = losses.map(|losses| losses.so_far()).unwrap_or_default();
        let times = CopyEndTimes { host, ..progress.times() };
        let (not_as_asked, ciphers) = (progress.not_as_asked(), progress.ciphers());
        Reply::CopyState { counts: progress.counts(), times: Box::new(times), not_as_asked, ciphers }
    }

    /// Returns entries that the comparison found to differ, and that no earlier call has returned.
    pub(crate) fn listed(&self) -> Vec<CopyDiffering> {
        let progress = self.progress();
        progress.listed()
    }

    /// Returns files of which the copy is proven, and that no earlier call has returned.
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

    /// Uses a setting, and counts what the target takes: after the first of these times, for the second one.
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

    fn progress(&self) -> Arc<CopyProgress> {
        Arc::clone(&self.0.lock().progress)
    }

    /// Adds names of those that alone the next copy or comparison takes.
    pub(crate) fn name(&self, names: Vec<PathBytes>, is_first: bool) -> Result<Reply, String> {
        self.1.add(names, is_first).map(|()| Reply::Done {})
    }

    /// Returns the source of a copy or a comparison.
    pub(crate) fn source(
        &self,
        roots: Vec<CopyRoot>,
        keeping: CopyKeeping,
        asked: &CopyRules,
    ) -> Result<Source, String> {
        let roots = roots.into_iter().map(source_root).collect::<Result<_, _>>()?;
        let only = asked.only_named.then(|| self.1.take());
        Ok(Source { roots, keeping, rules: landspeed_mover::CopyRules { only, ..rules(asked)? } })
    }

    /// Returns the counts of a copy or a comparison that begins now.
    fn begin(&self) -> Arc<CopyProgress> {
        let progress = Arc::new(CopyProgress::default());
        let losses = Some(Arc::new(ProcessorLosses::begin()));
        *self.0.lock() = CurrentCopy { progress: Arc::clone(&progress), losses };
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
        let progress = self.begin();
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
        let progress = self.begin();
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
        let progress = self.begin();
        progress.begin_with(flows.count);
        let (flows, _way) = flows_of(ports, flows)?;
        landspeed_mover::receive(flows, target, &progress, cancel).map_err(|e| e.to_string())?;
        Ok(Reply::Done {})
    }

    /// Shows a source what the target has, until it has no more questions.
    pub(crate) fn show(
        &self,
        ports: &DataPorts,
        flows: &CopyFlows,
        target: &Target,
        check: CopyCheck,
        cancel: &CancelFlag,
    ) -> Result<Reply, String> {
        let progress = self.begin();
        let (flows, _way) = flows_of(ports, flows)?;
        landspeed_mover::show(flows, target, check, &progress, cancel).map_err(|e| e.to_string())?;
        Ok(Reply::Done {})
    }
}

/// Removes the incomplete files that copies have left in a folder, or only lists them.
pub(crate) fn clean(folder: PathBytes, only_list: bool) -> Result<Reply, String> {
    let left = landspeed_mover::clean(&path(folder), only_list).map_err(|e| e.to_string())?;
    Ok(Reply::CopyLeft { left: Box::new(left) })
}

pub(crate) fn target(
    folder: PathBytes,
    names: &[PathBytes],
    is_synced: bool,
    keeping: CopyKeeping,
    asked: &CopyRules,
) -> Result<Target, String> {
    let names = names.iter().map(name).collect::<Result<_, _>>()?;
    Ok(Target { folder: path(folder), names, is_synced, keeping, rules: rules(asked)? })
}

/// Returns an error about the first of these lines that is no gitignore rule.
///
/// # Errors
/// Returns an error if one is none, in words.
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
    })
}

/// Returns what is at each of these paths.
pub(crate) fn look(paths: &[PathBytes]) -> Vec<FoundPath> {
    let mounts = Mounts::read();
    let look_at = |bytes: &PathBytes| {
        let path = path(bytes.clone());
        let resolved_hex = PathBytes(resolved(&path).into_os_string().into_vec());
        let kind = kind(&path);
        // A command may name thousands of files, and nothing lies in a file.
        let place = if kind == PathKind::File { FolderPlace::default() } else { mounts.place(&path) };
        FoundPath { kind, resolved_hex, place }
    };
    paths.iter().map(look_at).collect()
}

fn kind(path: &Path) -> PathKind {
    // With a slash at the end, both follow a link.
    match (path.symlink_metadata(), path.metadata()) {
        (Ok(own), _) if own.is_dir() && may_read(path) => PathKind::Folder,
        (Ok(own), _) if own.is_dir() => PathKind::Barred,
        (Ok(_), Ok(beyond)) if beyond.is_dir() => PathKind::LinkToFolder,
        (Err(error), _) => match error.kind() {
            // What has a slash at its end and is no folder.
            ErrorKind::NotADirectory if path.components().as_path().exists() => PathKind::File,
            ErrorKind::NotFound | ErrorKind::NotADirectory => PathKind::Missing,
            ErrorKind::PermissionDenied => PathKind::Barred,
            _ => PathKind::File,
        },
        _ => PathKind::File,
    }
}

fn may_read(folder: &Path) -> bool {
    let wanted = Access::READ_OK | Access::EXEC_OK;
    accessat(CWD, folder, wanted, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

/// Returns a path without symbolic links, "." and "..". Its last component need not exist.
fn resolved(path: &Path) -> PathBuf {
    let above = || {
        let (above, leaf) = (path.parent()?, path.file_name()?);
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        Some(above.canonicalize().ok()?.join(leaf))
    };
    path.canonicalize().ok().or_else(above).unwrap_or_else(|| path.to_owned())
}

fn path(bytes: PathBytes) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.0))
}

fn source_root(root: CopyRoot) -> Result<SourceRoot, String> {
    let target = name(&root.name_hex)?;
    let path = path(root.path_hex);
    let is_named = !path.as_os_str().as_bytes().is_empty();
    is_named.then_some(SourceRoot { path, target }).ok_or_else(|| "a path is empty".to_owned())
}

fn name(bytes: &PathBytes) -> Result<RelativeName, String> {
    let why = "a name at the target leads out of its folder or is too long";
    RelativeName::parse(&bytes.0).ok_or_else(|| why.to_owned())
}

/// This end of the way on which the controller relays flows, open as long as this is kept. Both are `None` where it does not.
type RelayedWay = (Option<RelayEntry>, Option<RelayExit>);

/// Returns how this end gets the flows, and its end of the way where they are relayed.
fn flows_of(ports: &DataPorts, asked: &CopyFlows) -> Result<(Flows, RelayedWay), String> {
    let most = asked.most.unwrap_or_default().max(asked.count);
    check_number(asked.count)?;
    check_number(most)?;
    transport_of(asked)?.can_run(&asked.settings)?;
    let (opening, way) = match asked.role {
        Role::Client => connect(ports, asked),
        Role::Server => accept(ports, asked),
    }
    .map_err(|error| error.to_string())?;
    // Both ends get the same patience.
    let patience = asked.patience_ns.into();
    let give_up_after = asked.patience_ns.times(COPY_PATIENCE_TIMES).into();
    Ok((Flows { count: most, opening, patience, give_up_after }, way))
}

fn check_number(flows: u32) -> Result<(), String> {
    let is_fine = (1..=MOST_FLOWS).contains(&flows);
    is_fine.then_some(()).ok_or_else(|| format!("a copy has 1 to {MOST_FLOWS} flows"))
}

type OpeningResult = Result<(Opening, RelayedWay), Box<dyn std::error::Error>>;

fn connect(ports: &DataPorts, asked: &CopyFlows) -> OpeningResult {
    let (transport, listening) = server_of(asked)?;
    let entry = if asked.is_relayed { Some(ports.relay.enter()?) } else { None };
    let server = entry.as_ref().map_or(listening, |entry| entry.address);
    let (settings, key) = (asked.settings.clone(), *asked.key.as_bytes());
    let caller = Caller { transport, server, settings, key };
    Ok((Opening::Connect(caller), (entry, None)))
}

fn accept(ports: &DataPorts, asked: &CopyFlows) -> OpeningResult {
    let listener = ports.get(asked.at.port())?.listen(&asked.settings)?;
    let exit = if asked.is_relayed { Some(ports.relay.exit_at(server_of(asked)?.1)) } else { None };
    Ok((Opening::Accept(listener), (None, exit)))
}

type ServerResult = Result<(&'static dyn Transport, SocketAddr), Box<dyn std::error::Error>>;

/// Returns the transport of the flows. One that does not encrypt carries no copy.
fn transport_of(asked: &CopyFlows) -> Result<&'static dyn Transport, String> {
    let name = TRANSPORT.of(&asked.settings);
    let transport = landspeed_transport::find(name).filter(|transport| transport.encrypts().is_some());
    transport.ok_or_else(|| format!("there is no transport {name} that encrypts"))
}

/// Returns the transport of the flows, and the address at which the server listens for them.
fn server_of(asked: &CopyFlows) -> ServerResult {
    let transport = transport_of(asked)?;
    let plan = ClientPlan { server: asked.at, source_port: 0, key: *asked.key.as_bytes() };
    Ok((transport, plan.towards(transport)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::session::SessionKey;

    #[test]
    fn a_path_is_looked_at_as_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "f").unwrap();
        symlink(folder.path(), at("link")).unwrap();
        symlink("/nowhere", at("broken")).unwrap();
        for (name, expected) in [
            ("", PathKind::Folder),
            ("file", PathKind::File),
            ("file/", PathKind::File),
            ("link", PathKind::LinkToFolder),
            ("link/", PathKind::Folder),
            ("broken", PathKind::File),
            ("none", PathKind::Missing),
            ("file/none", PathKind::Missing),
        ] {
            let path = PathBytes(at(name).into_os_string().into_vec());
            assert_eq!(look(&[path])[0].kind, expected, "{name}");
        }
    }

    #[test]
    fn a_path_is_resolved_as_far_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let all = folder.path().canonicalize().unwrap();
        std::fs::create_dir(all.join("a")).unwrap();
        symlink("a", all.join("link")).unwrap();
        for (given, expected) in [
            ("a", "a"),
            ("a/", "a"),
            ("link", "a"),
            ("a/../link/.", "a"),
            ("link/new", "a/new"),
            ("none/new", "none/new"),
        ] {
            assert_eq!(resolved(&all.join(given)), all.join(expected), "{given}");
        }
    }

    #[test]
    fn a_target_takes_no_name_that_leads_out_of_its_folder() {
        let of = |name: &str| {
            let (names, keeping) = ([PathBytes(name.into())], CopyKeeping::default());
            target(PathBytes(b"t".to_vec()), &names, true, keeping, &CopyRules::default())
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
    fn no_flow_of_a_copy_can_be_read_on_the_way() {
        for (name, encrypts) in
            [("tls", true), ("quic", true), ("tcp", false), ("udp", false), ("none", false)]
        {
            let settings = [(TRANSPORT.name.to_owned(), name.to_owned())].into();
            let asked = CopyFlows {
                role: Role::Client,
                at: ([127, 0, 0, 1], 9).into(),
                is_relayed: false,
                key: SessionKey::random(),
                settings,
                count: 1,
                most: None,
                patience_ns: Nanos::secs(1),
            };
            assert_eq!(transport_of(&asked).is_ok(), encrypts, "{name}");
        }
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
