//! Paths that a user names. Where the controller is not the user's own session, they do not lead out of the folders
//! that the agent was started with.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, fstat};
use rustix::io::Errno;

use crate::Error;
use crate::beneath::Root;

/// A path that a user named.
#[derive(Debug, Clone)]
pub struct NamedPath {
    path: PathBuf,
    /// The folder out of which the path must not lead, and the way from there; `None` if it may lead anywhere.
    beneath: Option<(Arc<Root>, PathBuf)>,
}

/// Returns a path that may lead anywhere.
impl From<PathBuf> for NamedPath {
    fn from(path: PathBuf) -> Self {
        NamedPath { path, beneath: None }
    }
}

/// Returns a path that may lead anywhere.
impl From<&Path> for NamedPath {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl NamedPath {
    /// Returns the path as the user named it, for people. The target of the path may change at any time.
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// Returns true if there is a folder out of which the path must not lead.
    pub fn is_confined(&self) -> bool {
        self.beneath.is_some()
    }

    /// Opens what is there. Symbolic links on the way are followed, as far as the path may lead.
    ///
    /// # Errors
    /// Returns an error if the system refuses it: EXDEV if the path leads out of its folder.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        match &self.beneath {
            Some((root, way)) => root.follow(way, flags),
            None => Ok(rustix::fs::openat(CWD, self.path.as_path(), flags | OFlags::CLOEXEC, Mode::empty())?),
        }
    }

    /// Opens the folder that is there, to reach what is below it.
    pub(crate) fn open_root(&self) -> io::Result<Root> {
        Root::new(self.open(OFlags::RDONLY | OFlags::DIRECTORY)?)
    }

    /// Opens the folder as [`NamedPath::open_root`] does. A symbolic link in its place is an error, unless the path ends with a
    /// slash.
    pub(crate) fn open_root_itself(&self) -> io::Result<Root> {
        Root::new(self.open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)?)
    }

    /// Returns true if a folder is there. A symbolic link to one is none, unless the path ends with a slash.
    ///
    /// # Errors
    /// Returns an error if nothing is there or the system refuses it: EXDEV if the path leads out of its folder.
    pub fn is_folder(&self) -> io::Result<bool> {
        is_folder(&self.open(OFlags::PATH | OFlags::NOFOLLOW)?)
    }

    /// Returns true if a folder is there, or a symbolic link that leads to one.
    pub fn leads_to_folder(&self) -> bool {
        self.open(OFlags::PATH).and_then(|there| is_folder(&there)).unwrap_or(false)
    }

    /// Returns an error unless this user has these rights to the folder that is there.
    ///
    /// # Errors
    /// Returns an error if the rights are missing, or if no folder is there.
    pub fn check_folder(&self, wanted: Access) -> io::Result<()> {
        let folder = self.open(OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(accessat(&folder, ".", wanted, AtFlags::EACCESS)?)
    }

    /// Returns the folder above, and the name in it; `None` if the path ends with "..", or names the folder out of which it must
    /// not lead.
    pub fn split(&self) -> Option<(NamedPath, &OsStr)> {
        let leaf = self.beneath.as_ref().map_or(&self.path, |(_, way)| way).file_name()?;
        let beneath = self.beneath.as_ref().map(|(root, way)| (Arc::clone(root), above(way)));
        Some((NamedPath { path: above(&self.path), beneath }, leaf))
    }

    /// Returns the path to what is there without symbolic links, "." and ".."; `None` if nothing is there.
    pub fn real(&self) -> Option<PathBuf> {
        match self.beneath {
            Some(_) => real_path(&self.open(OFlags::PATH).ok()?),
            None => self.path.canonicalize().ok(),
        }
    }

    /// Makes a folder at the path. The folder above it must be there.
    pub(crate) fn make_folder(&self, mode: Mode) -> io::Result<()> {
        let (above, leaf) = self.split().ok_or(Errno::EXIST)?;
        let above = above.open(OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(rustix::fs::mkdirat(&above, leaf, mode)?)
    }
}

fn is_folder(there: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(there)?.st_mode) == FileType::Directory)
}

fn above(path: &Path) -> PathBuf {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new(".")).to_owned()
}

/// Returns the path to a file that is open, as the kernel knows it now.
fn real_path(file: &OwnedFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// A folder that is opened once, and out of which paths do not lead, whatever other programs rename meanwhile.
#[derive(Debug, Clone)]
pub struct Confinement {
    root: Arc<Root>,
    /// The paths by which users may name it: as it was given, and without symbolic links.
    names: [PathBuf; 2],
}

impl Confinement {
    /// Opens the folder.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened, or if the kernel lacks openat2(2).
    pub fn open(folder: &Path) -> Result<Confinement, Error> {
        let failed = |operation| Error::at(folder, operation);
        let root = Root::open(folder).map_err(failed("open it"))?;
        let given = std::path::absolute(folder).map_err(failed("find it"))?;
        let real = folder.canonicalize().map_err(failed("find it"))?;
        Ok(Confinement { root: Arc::new(root), names: [given, real] })
    }

    /// Returns the path of the folder as it was given.
    pub fn as_path(&self) -> &Path {
        &self.names[0]
    }

    /// Returns an absolute path as one that does not lead out of the folder of these by whose name it begins. That only
    /// chooses the folder: where the path leads, the kernel decides when it is opened. Returns `None` if it begins otherwise.
    pub fn path_in(folders: &[&Confinement], path: &Path) -> Option<NamedPath> {
        let names = folders.iter().flat_map(|folder| folder.names.iter().map(move |name| (folder, name)));
        let named = names.filter(|(_, name)| path.starts_with(name));
        let (folder, name) = named.max_by_key(|(_, name)| name.components().count())?;
        let beneath = Some((Arc::clone(&folder.root), way(path, name)?));
        Some(NamedPath { path: path.to_owned(), beneath })
    }
}

/// Returns the way from the folder `name` to a path. It ends with a slash if the path does, because a symbolic link is then
/// followed.
fn way(path: &Path, name: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(name).ok()?;
    let way = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
    let bytes = path.as_os_str().as_bytes();
    let is_beyond = bytes.ends_with(b"/") || bytes.ends_with(b"/.");
    Some(if is_beyond { way.join("") } else { way.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    /// Makes a folder `in` with a file, a folder and links, beside a folder `out` with a file.
    fn tree() -> tempfile::TempDir {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        ["in/folder", "out"].iter().for_each(|name| fs::create_dir_all(at(name)).unwrap());
        ["in/file", "in/folder/deep", "out/secret"].iter().for_each(|name| fs::write(at(name), "x").unwrap());
        for (to, link) in [("folder", "in/link"), ("../out", "in/up"), ("../out/secret", "in/leak")] {
            symlink(to, at(link)).unwrap();
        }
        symlink(at("out"), at("in/absolute")).unwrap();
        symlink("in", at("alias")).unwrap();
        all
    }

    fn confined(folder: &Confinement, path: &Path) -> NamedPath {
        Confinement::path_in(&[folder], path).expect("a path beneath it")
    }

    #[test]
    fn paths_beneath_the_folder_are_reached_also_through_links() {
        let all = tree();
        let inside = Confinement::open(&all.path().join("alias")).unwrap();
        for begin in ["alias", "in"] {
            let inode = |name: &str| {
                let path = all.path().canonicalize().unwrap().join(begin).join(name);
                let opened = confined(&inside, &path).open(OFlags::PATH).unwrap();
                fstat(opened).unwrap().st_ino
            };
            for (name, real) in [
                ("", "in"),
                (".", "in"),
                ("file", "in/file"),
                ("./folder//deep", "in/folder/deep"),
                ("link/deep", "in/folder/deep"),
                ("link/../file", "in/file"),
                ("folder/../folder/", "in/folder"),
            ] {
                assert_eq!(inode(name), all.path().join(real).metadata().unwrap().ino(), "{begin} {name}");
            }
        }
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let all = tree();
        let inside = Confinement::open(&all.path().join("in")).unwrap();
        for out in ["..", "../out/secret", "folder/../../out/secret", "up/secret", "leak", "absolute/secret"]
        {
            let path = confined(&inside, &all.path().join("in").join(out));
            let error = path.open(OFlags::PATH).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EXDEV), "{out}");
            assert!(path.real().is_none() && !path.leads_to_folder(), "{out}");
        }
        let made = ["up/new", "absolute/new", "../new"];
        for new in made.map(|name| confined(&inside, &all.path().join("in").join(name))) {
            assert!(new.make_folder(Mode::RWXU).is_err(), "{new:?}");
        }
        assert_eq!(fs::read_dir(all.path().join("out")).unwrap().count(), 1);
        for other in ["out/secret", "inner", "in2/file", ""] {
            assert!(Confinement::path_in(&[&inside], &all.path().join(other)).is_none(), "{other}");
        }
        assert!(Confinement::path_in(&[&inside], Path::new("file")).is_none());
    }

    /// Names refer to the opened folder, even if another folder has its name now.
    #[test]
    fn a_folder_that_is_swapped_changes_nothing() {
        let all = tree();
        let inside = Confinement::open(&all.path().join("in")).unwrap();
        fs::rename(all.path().join("in"), all.path().join("old")).unwrap();
        symlink("out", all.path().join("in")).unwrap();
        let of = |name: &str| confined(&inside, &all.path().join("in").join(name));
        assert!(of("file").open(OFlags::PATH).is_ok() && of("secret").open(OFlags::PATH).is_err());
        of("new").make_folder(Mode::RWXU).unwrap();
        assert!(all.path().join("old/new").is_dir() && !all.path().join("out/new").exists());
    }

    #[test]
    fn a_path_is_split_and_looked_at_like_any_other() {
        let all = tree();
        let inside = Confinement::open(&all.path().join("in")).unwrap();
        let free = |name: &str| NamedPath::from(all.path().join("in").join(name));
        let of = |name: &str| confined(&inside, free(name).as_path());
        for name in ["file", "folder", "folder/", "link", "link/", "link/.", "folder/deep"] {
            let seen = |path: NamedPath| (path.is_folder().unwrap(), path.leads_to_folder(), path.real());
            let (is_folder, leads, real) = seen(free(name));
            assert_eq!(seen(of(name)), (is_folder, leads, real), "{name}");
        }
        assert!(!of("up").is_folder().unwrap() && of("up/").is_folder().is_err());
        let (above, leaf) = of("link/new/").split().map(|(above, leaf)| (above, leaf.to_owned())).unwrap();
        assert!(above.leads_to_folder() && leaf == "new");
        assert!(of("").split().is_none() && of("folder/..").split().is_none());
        assert!(of("folder").check_folder(Access::READ_OK).is_ok());
        assert!(of("file").check_folder(Access::READ_OK).is_err());
    }

    #[test]
    fn a_root_is_opened_through_a_link_but_not_in_the_place_of_one() {
        let all = tree();
        let inside = Confinement::open(&all.path().join("in")).unwrap();
        let free = |name: &str| NamedPath::from(all.path().join("in").join(name));
        let of = |name: &str| confined(&inside, free(name).as_path());
        for path in [free("link"), of("link")] {
            assert!(path.open_root().is_ok() && path.open_root_itself().is_err(), "{path:?}");
        }
        for path in [free("link/"), of("link/"), free("up/")] {
            assert!(path.open_root_itself().is_ok(), "{path:?}");
        }
        assert!(of("up").open_root().is_err() && of("up/").open_root_itself().is_err());
    }

    #[test]
    fn the_longest_name_chooses_the_folder() {
        let all = tree();
        let [outer, inner] =
            ["in", "in/absolute"].map(|name| Confinement::open(&all.path().join(name)).unwrap());
        let path = all.path().join("in/absolute/secret");
        for folders in [[&outer, &inner], [&inner, &outer]] {
            assert!(Confinement::path_in(&folders, &path).unwrap().open(OFlags::PATH).is_ok());
        }
        assert!(Confinement::open(&all.path().join("none")).is_err());
        assert!(Confinement::open(&all.path().join("in/file")).is_err());
    }
}
