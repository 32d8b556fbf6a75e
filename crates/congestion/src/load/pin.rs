//! Files in the BPF file system, which keep controls loaded after the command that loaded them has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use libbpf_rs::Link;
use rustix::fs::statfs;

use crate::Error;
use crate::control::Control;

const BPF_FS: &str = "/sys/fs/bpf";
const FOLDER: &str = "/sys/fs/bpf/landspeed-cc";

/// `BPF_FS_MAGIC` of linux/magic.h.
const MAGIC: u64 = 0xcafe_4a11;

fn place(row: &Control) -> PathBuf {
    Path::new(FOLDER).join(row.kernel_name)
}

pub(super) fn path(row: &Control) -> Option<PathBuf> {
    Some(place(row)).filter(|path| path.exists())
}

pub(super) fn keep(row: &Control, link: &mut Link) -> Result<PathBuf, Error> {
    mounted()?;
    fs::create_dir_all(FOLDER).map_err(|error| Error::io("make", FOLDER, error))?;
    let path = place(row);
    link.pin(&path).map_err(|error| Error::io("pin a control at", &path, io::Error::other(error)))?;
    Ok(path)
}

/// Removes the file that keeps a control loaded. `holder` says what else holds the control if there is none.
pub(super) fn remove(row: &'static Control, holder: impl FnOnce() -> String) -> Result<(), Error> {
    let path = place(row);
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NotKept { name: row.kernel_name, holder: holder() });
        }
        removed => removed.map_err(|error| Error::io("remove", &path, error))?,
    }
    // Fails if the folder still has files of other controls, which is fine.
    let _ = fs::remove_dir(FOLDER);
    Ok(())
}

fn mounted() -> Result<(), Error> {
    let there = statfs(BPF_FS).map_err(|error| Error::io("look at", BPF_FS, error.into()))?;
    if there.f_type as u64 == MAGIC {
        return Ok(());
    }
    let remedy =
        io::Error::other("no BPF file system is mounted there; `mount -t bpf bpf /sys/fs/bpf` mounts one");
    Err(Error::io("keep a control in", BPF_FS, remedy))
}
