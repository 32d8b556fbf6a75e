//! Destinations of a copy's files, by the rules of cp(1) and rsync(1), as a function of what exists.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use landspeed_agent::session::{CopyRoot, FoundPath, PathKind};
use landspeed_record::PathBytes;

use crate::Pair;

/// The host name that means this machine.
pub const THIS_HOST: &str = "local";

/// Formats a path with its host. A path on this machine has no host.
pub fn shown_place(host: &str, path: &str) -> String {
    if host == THIS_HOST { path.to_owned() } else { format!("{host}:{path}") }
}

/// The paths on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyPaths {
    pub sources: Vec<Vec<u8>>,
    pub target: Vec<u8>,
}

/// The destination of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    pub roots: Vec<CopyRoot>,
    /// The folder that receives the files.
    pub folder: PathBytes,
    /// The path to show for the result: that of the single file or folder, or else the folder.
    pub shown: Vec<u8>,
}

/// The reason why files cannot be copied to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingError {
    /// A source does not exist.
    Missing(Vec<u8>),
    /// The user may not read a source.
    SourceBarred(Vec<u8>),
    /// The user may not read the target.
    TargetBarred(Vec<u8>),
    /// A path with a trailing slash is not a folder.
    NoFolder(Vec<u8>),
    /// Several files, or a folder, cannot replace the file at the target.
    TargetIsFile(Vec<u8>),
    /// Two sources get the same name.
    SameName(Vec<u8>),
    /// The target's folder is this source or lies in it.
    IntoItself(Vec<u8>),
    /// This source lies where extra entries of the target are to be deleted.
    WouldBeDeleted(Vec<u8>),
    /// A mount below this source lies in the target's folder, or the reverse, and extra entries are to be deleted
    /// there.
    MountedBelow(Vec<u8>),
}

impl std::fmt::Display for LandingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        match self {
            LandingError::Missing(path) => {
                write!(f, "{}: there is no such file or folder: check the path", shown(path))
            }
            LandingError::SourceBarred(path) => {
                write!(f, "{}: permission denied: log in as a user who may read it", shown(path))
            }
            LandingError::TargetBarred(path) => {
                write!(f, "{}: permission denied: log in as a user who may read and write there", shown(path))
            }
            LandingError::NoFolder(path) => {
                write!(f, "{}: is not a folder: leave out the slash at its end", shown(path))
            }
            LandingError::TargetIsFile(path) => {
                write!(f, "{}: is a file: name a folder as the target", shown(path))
            }
            LandingError::SameName(name) => {
                write!(f, "two sources have the name {}: copy them into different folders", shown(name))
            }
            LandingError::IntoItself(path) => {
                write!(f, "{}: the target is this folder or lies in it: name another target", shown(path))
            }
            LandingError::WouldBeDeleted(path) => {
                write!(
                    f,
                    "{}: --delete would delete this folder, which lies in the target: name another target",
                    shown(path)
                )
            }
            LandingError::MountedBelow(path) => {
                write!(
                    f,
                    "{}: --delete could delete content of this folder, because a mount leads from it into the target or the reverse: unmount it, or name another target",
                    shown(path)
                )
            }
        }
    }
}

impl std::error::Error for LandingError {}

impl LandingError {
    /// Formats the error with the host of its path: `from` has the sources, `to` the target.
    pub fn at_host(&self, from: &str, to: &str) -> String {
        match self {
            LandingError::SameName(_) => self.to_string(),
            LandingError::TargetIsFile(_) | LandingError::TargetBarred(_) => {
                shown_place(to, &self.to_string())
            }
            LandingError::Missing(_)
            | LandingError::SourceBarred(_)
            | LandingError::NoFolder(_)
            | LandingError::IntoItself(_)
            | LandingError::WouldBeDeleted(_)
            | LandingError::MountedBelow(_) => shown_place(from, &self.to_string()),
        }
    }
}

/// Returns the destination of the files. `found` says what exists at each source, `target` what exists at the target.
///
/// A source gets its own name in the target's folder. A folder with a trailing slash gives only its entries. A single
/// file or link gets the target's name, unless a folder exists there or the target has a trailing slash.
///
/// # Errors
/// Returns an error if a source is missing, or if the target cannot hold the sources.
pub fn landing(paths: &CopyPaths, found: &[FoundPath], target: &FoundPath) -> Result<Landing, LandingError> {
    let kinds = found.iter().map(|found| found.kind);
    let sources: Vec<(&[u8], PathKind)> = paths.sources.iter().map(Vec::as_slice).zip(kinds).collect();
    let target = target.kind;
    for (path, kind) in &sources {
        match kind {
            PathKind::Missing => return Err(LandingError::Missing(path.to_vec())),
            PathKind::Barred => return Err(LandingError::SourceBarred(path.to_vec())),
            PathKind::File | PathKind::LinkToFolder if path.ends_with(b"/") => {
                return Err(LandingError::NoFolder(path.to_vec()));
            }
            _ => {}
        }
    }
    if target == PathKind::Barred {
        return Err(LandingError::TargetBarred(paths.target.clone()));
    }
    let is_folder = matches!(target, PathKind::Folder | PathKind::LinkToFolder);
    match sources.as_slice() {
        [(path, kind)] if *kind != PathKind::Folder && !is_folder && !paths.target.ends_with(b"/") => {
            Ok(as_one(path, &paths.target))
        }
        _ if target == PathKind::File => Err(LandingError::TargetIsFile(paths.target.clone())),
        _ => into_folder(&sources, &paths.target),
    }
}

/// Checks, for one host, that no folder is copied into itself. The copy would find its own output and never end.
///
/// # Errors
/// Returns an error if the target's folder is a source or lies in one, and both ends are known to be one host.
pub fn check_landing(
    pair: &Pair<'_>,
    paths: &CopyPaths,
    found: &[FoundPath],
    target: &FoundPath,
) -> Result<(), LandingError> {
    if pair.is_one_host() { is_outside(paths, found, target) } else { Ok(()) }
}

fn is_outside(paths: &CopyPaths, found: &[FoundPath], target: &FoundPath) -> Result<(), LandingError> {
    fn resolved(found: &FoundPath) -> &Path {
        Path::new(OsStr::from_bytes(&found.resolved_hex.0))
    }
    let is_around = |source: &FoundPath| {
        source.kind == PathKind::Folder && resolved(target).starts_with(resolved(source))
    };
    match paths.sources.iter().zip(found).find(|(_, source)| is_around(source)) {
        Some((path, _)) => Err(LandingError::IntoItself(path.clone())),
        None => Ok(()),
    }
}

/// Checks, for one host, that no source lies where extra entries of the target are deleted.
///
/// # Errors
/// Returns an error if a source does, and both ends are known to be one host.
pub fn check_mirror(
    pair: &Pair<'_>,
    found: &[FoundPath],
    target: &FoundPath,
    landing: &Landing,
) -> Result<(), LandingError> {
    if pair.is_one_host() { is_kept(found, target, landing) } else { Ok(()) }
}

fn is_kept(found: &[FoundPath], target: &FoundPath, landing: &Landing) -> Result<(), LandingError> {
    fn path(bytes: &PathBytes) -> &Path {
        Path::new(OsStr::from_bytes(&bytes.0))
    }
    let lies_in = |(root, source): &(&CopyRoot, &FoundPath)| {
        path(&source.resolved_hex).starts_with(path(&target.resolved_hex).join(path(&root.name_hex)))
    };
    match landing.roots.iter().zip(found).find(lies_in) {
        Some((root, _)) => Err(LandingError::WouldBeDeleted(root.path_hex.0.clone())),
        None => Ok(()),
    }
}

/// Returns the destination of one file that gets the target's name.
fn as_one(path: &[u8], target: &[u8]) -> Landing {
    let (above, leaf) = split(target);
    Landing { roots: vec![root(path, leaf)], folder: PathBytes(above.to_vec()), shown: target.to_vec() }
}

/// Returns the destination of sources that get their own names in the target's folder.
fn into_folder(sources: &[(&[u8], PathKind)], target: &[u8]) -> Result<Landing, LandingError> {
    let folder: &[u8] = if target.is_empty() { b"." } else { target };
    let (mut roots, mut names) = (Vec::new(), BTreeSet::new());
    for (path, _) in sources {
        let name = name(path);
        if !name.is_empty() && !names.insert(name) {
            return Err(LandingError::SameName(name.to_vec()));
        }
        roots.push(root(path, name));
    }
    let only: &[u8] = if let [only] = roots.as_slice() { only.name_hex.0.as_slice() } else { b"" };
    let between: &[u8] = if only.is_empty() || folder.ends_with(b"/") { b"" } else { b"/" };
    let shown = [folder, between, only].concat();
    Ok(Landing { roots, folder: PathBytes(folder.to_vec()), shown })
}

fn root(path: &[u8], name: &[u8]) -> CopyRoot {
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    CopyRoot { path_hex: PathBytes(path.to_vec()), name_hex: PathBytes(name.to_vec()) }
}

/// Returns the name that a source gets in the target's folder: empty for a folder that gives only its entries.
fn name(path: &[u8]) -> &[u8] {
    match split(path).1 {
        b"." | b".." => b"",
        leaf => leaf,
    }
}

/// Splits a path into its folder and its last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b".", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_agent::session::FolderPlace;

    use PathKind::{Barred, File, Folder, LinkToFolder, Missing};

    fn at(resolved: &str, kind: PathKind) -> FoundPath {
        FoundPath { kind, resolved_hex: PathBytes(resolved.into()), place: FolderPlace::default() }
    }

    #[test]
    fn a_folder_does_not_land_in_itself() {
        for (source, kind, target, is_fine) in [
            ("/a", Folder, "/a", false),
            ("/a", Folder, "/a/b/c", false),
            ("/", Folder, "/mnt", false),
            ("/a", Folder, "/ab", true),
            ("/a/b", Folder, "/a", true),
            ("/a/f", File, "/a/f", true),
        ] {
            let paths = CopyPaths { sources: vec![b"given".to_vec()], target: b"t".to_vec() };
            let outside = is_outside(&paths, &[at(source, kind)], &at(target, Missing));
            let expected = if is_fine { Ok(()) } else { Err(LandingError::IntoItself(b"given".to_vec())) };
            assert_eq!(outside, expected, "{source} {target}");
        }
    }

    #[test]
    fn a_source_is_not_where_things_are_deleted() {
        for (source, name, target, is_fine) in [
            ("/a/b", "", "/a", false),
            ("/a/b", "b", "/a", false),
            ("/a/b/c/b", "b", "/a", false),
            ("/a/b/c", "c", "/a", true),
            ("/a", "a", "/b", true),
            ("/ab", "", "/a", true),
        ] {
            let landing = Landing {
                roots: vec![root(b"given", name.as_bytes())],
                folder: PathBytes::default(),
                shown: Vec::new(),
            };
            let kept = is_kept(&[at(source, Folder)], &at(target, Folder), &landing);
            let expected =
                if is_fine { Ok(()) } else { Err(LandingError::WouldBeDeleted(b"given".to_vec())) };
            assert_eq!(kept, expected, "{source} {name} {target}");
        }
    }

    fn lands(sources: &[(&str, PathKind)], target: (&str, PathKind)) -> Result<String, LandingError> {
        let paths = CopyPaths {
            sources: sources.iter().map(|(path, _)| path.as_bytes().to_vec()).collect(),
            target: target.0.as_bytes().to_vec(),
        };
        let found: Vec<FoundPath> = sources.iter().map(|(_, kind)| at("/", *kind)).collect();
        let landing = landing(&paths, &found, &at("/", target.1))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let root = |root: &CopyRoot| format!("{}={}", text(&root.name_hex.0), text(&root.path_hex.0));
        let roots = landing.roots.iter().map(root).collect::<Vec<_>>().join(" ");
        Ok(format!("{} [{roots}] {}", text(&landing.folder.0), text(&landing.shown)))
    }

    #[test]
    fn files_land_as_with_rsync() {
        for (sources, target, expected) in [
            (&[("a/f", File)][..], ("t", Folder), "t [f=a/f] t/f"),
            (&[("a/f", File)], ("t", Missing), ". [t=a/f] t"),
            (&[("a/f", File)], ("x/t", File), "x [t=a/f] x/t"),
            (&[("a/f", File)], ("/t", Missing), "/ [t=a/f] /t"),
            (&[("a/f", File)], ("t/", Missing), "t/ [f=a/f] t/f"),
            (&[("f", File)], ("", Folder), ". [f=f] ./f"),
            (&[("a", Folder)], ("t", Missing), "t [a=a] t/a"),
            (&[("a", Folder)], ("t", Folder), "t [a=a] t/a"),
            (&[("a/", Folder)], ("t", Missing), "t [=a/] t"),
            (&[(".", Folder)], ("t", Folder), "t [=.] t"),
            (&[("l", LinkToFolder)], ("t", LinkToFolder), "t [l=l] t/l"),
            (&[("a/f", File), ("b", Folder)], ("t", Missing), "t [f=a/f b=b] t"),
        ] {
            assert_eq!(lands(sources, target).as_deref(), Ok(expected), "{sources:?} {target:?}");
        }
    }

    #[test]
    fn an_impossible_landing_is_named() {
        let missing = lands(&[("a", Missing)], ("t", Folder)).unwrap_err();
        assert_eq!(missing.to_string(), "a: there is no such file or folder: check the path");
        assert!(missing.at_host("dtn1", "dtn2").starts_with("dtn1:a: "));
        assert!(missing.at_host("local", "dtn2").starts_with("a: "), "as cp says it");
        let barred = [lands(&[("a", Barred)], ("t", Folder)), lands(&[("a", File)], ("t", Barred))];
        let [source, target] = barred.map(|barred| barred.unwrap_err().at_host("dtn1", "dtn2"));
        assert!(
            source.starts_with("dtn1:a: permission denied")
                && target.starts_with("dtn2:t: permission denied")
        );
        assert_eq!(lands(&[("f/", File)], ("t", Folder)), Err(LandingError::NoFolder(b"f/".to_vec())));
        let file = LandingError::TargetIsFile(b"t".to_vec());
        assert_eq!(lands(&[("a", Folder)], ("t", File)), Err(file.clone()));
        assert_eq!(lands(&[("a", File), ("b", File)], ("t", File)), Err(file));
        let twice = lands(&[("x/f", File), ("y/f", File)], ("t", Folder));
        assert_eq!(twice, Err(LandingError::SameName(b"f".to_vec())));
    }
}
