//! Makes the directory of a role, and limits which of the host's files the role sees.

use std::fs::{self, DirBuilder, File};
use std::io::{BufWriter, Take, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use landspeed_record::units::Bytes;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

use crate::app::fill::{DIR, HELPERS, OWN};
use crate::app::play::user::RoleUser;
use crate::app::{Fixture, FixtureContent, RoleOrder, helpers};

/// Mount point of the file system that holds the role's directory. Every Linux system has this mount point, and no
/// programs are stored there.
const ROOM: &str = "/dev/shm";
/// Capacity of the file system in addition to the role's `disk` and to the copies of landspeed's programs.
const BESIDE: Bytes = Bytes::mib(16);

/// Mounts the role's file systems, hides the host's files that the role must not see, and writes the files of the
/// role's directory.
pub(super) fn furnish(order: &RoleOrder, user: &RoleUser) -> Result<(), String> {
    // Mounts made here are visible to this role only.
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| format!("cannot keep mounts private: {error}"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("proc", "/proc", "proc", flags | MountFlags::NOEXEC, None)
        .map_err(|error| format!("cannot mount /proc for the program: {error}"))?;
    let mut programs = programs(order);
    let copies: u64 = programs.iter().map(|program| program.file.limit()).sum();
    let room = format!("size={},mode=1777", order.disk.0 + BESIDE.0 + copies);
    tmpfs(ROOM, flags, &room)?;
    for hidden in &order.hides {
        let path = Path::new(hidden);
        if path.is_dir() {
            tmpfs(hidden, flags, "size=64m,mode=1777")?;
        } else if path.exists() {
            mount_bind("/dev/null", path).map_err(|error| format!("cannot hide {hidden}: {error}"))?;
        }
    }
    let failed = |what: &str, error: std::io::Error| format!("cannot make {what}: {error}");
    DirBuilder::new().mode(0o700).create(DIR).map_err(|error| failed(DIR, error))?;
    user.own(Path::new(DIR)).map_err(|error| failed(DIR, error))?;
    for program in &mut programs {
        program.bring().map_err(|error| failed(program.path, error))?;
    }
    order.files.iter().try_for_each(|file| write(file, user))
}

/// Ends FUSE file systems below the role's directory. A thread of a program may wait for a FUSE file system that the
/// same program serves, and no signal ends this wait (fuse(4), "Interrupting filesystem operations"). The program and
/// its namespace would then never end.
pub(super) fn abort_fuse() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let below = format!("{DIR}/");
    let is_fuse = |line: &&str| line.split(" - ").nth(1).is_some_and(|rest| rest.starts_with("fuse"));
    for at in mounts.lines().filter(is_fuse).filter_map(|line| line.split(' ').nth(4)) {
        if at.starts_with(&below) {
            // It may already be unmounted.
            let _ = unmount(at, UnmountFlags::FORCE | UnmountFlags::DETACH);
        }
    }
}

fn tmpfs(at: &str, flags: MountFlags, options: &str) -> Result<(), String> {
    let options = std::ffi::CString::new(options).map_err(|error| error.to_string())?;
    mount("tmpfs", at, "tmpfs", flags, Some(options.as_c_str()))
        .map_err(|error| format!("cannot mount a directory of the role's own at {at}: {error}"))
}

/// One of landspeed's programs that a role calls, and its path in the role's namespace.
struct LandspeedProgram {
    path: &'static str,
    file: Take<File>,
}

/// Opens landspeed's programs that the role calls, before mounts and hidden folders cover them.
fn programs(order: &RoleOrder) -> Vec<LandspeedProgram> {
    let at = |path| move |file| LandspeedProgram { path, file };
    let own = order.calls(OWN).then(helpers::own).flatten().map(at(OWN));
    own.into_iter().chain(order.calls(HELPERS).then(helpers::open).flatten().map(at(HELPERS))).collect()
}

impl LandspeedProgram {
    /// Copies the program to its path in the role's namespace, because the program's file may have no path on this
    /// host, and the role's user may not be allowed to read the file.
    fn bring(&mut self) -> std::io::Result<()> {
        std::io::copy(&mut self.file, &mut File::create(self.path)?)?;
        fs::set_permissions(self.path, fs::Permissions::from_mode(0o755))
    }
}

fn write(file: &Fixture, user: &RoleUser) -> Result<(), String> {
    let path = Path::new(DIR).join(&file.path);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", file.path);
    for folder in path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != Path::new(DIR))
        .collect::<Vec<_>>()
        .iter()
        .rev()
    {
        if !folder.exists() {
            fs::create_dir(folder).and_then(|()| user.own(folder)).map_err(failed)?;
        }
    }
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    match &file.content {
        FixtureContent::Text(text) => out.write_all(text.as_bytes()),
        FixtureContent::Seeded { bytes, seed } => seeded(&mut out, *bytes, *seed),
    }
    .and_then(|()| out.flush())
    .and_then(|()| user.own(&path))
    .map_err(failed)
}

/// Writes `bytes` random bytes, which are the same on every host for the same seed.
fn seeded(out: &mut impl Write, bytes: Bytes, seed: u64) -> std::io::Result<()> {
    let mut source = ChaCha8Rng::seed_from_u64(seed);
    let mut piece = vec![0; 1 << 16];
    let mut left = bytes.0;
    while left > 0 {
        let part = &mut piece[..left.min(1 << 16) as usize];
        source.fill_bytes(part);
        out.write_all(part)?;
        left -= part.len() as u64;
    }
    Ok(())
}

impl RoleUser {
    fn own(&self, path: &Path) -> std::io::Result<()> {
        self.other.map_or(Ok(()), |ids| chown(path, Some(ids.uid), Some(ids.gid)))
    }
}
