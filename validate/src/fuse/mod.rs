//! `validate fuse`: a folder as a file system of its own, slow on demand, or without something that others have. Copies are
//! tried on it, because no real file system is slow, or lacks a call, at will.
//!
//! | module | content |
//! |---|---|
//! | `nodes` | the entries that the kernel knows by number |
//! | `names` | which entry a name is of |
//! | `handles` | what is open |
//! | `attributes` | an entry in FUSE's terms |
//! | `pace` | the rate of reads and writes |
//! | `passthrough` | what is done in the folder below |
//! | `calls` | the kernel's calls, and the answers |
//! | `mounted` | such a file system while a study needs it |
//!
//! The kernel keeps nothing of a file between two calls, except the content of one that is open. It is of root, and any user may
//! use it with the rights that its entries give.

mod attributes;
mod calls;
mod handles;
mod mounted;
mod names;
mod nodes;
mod pace;
mod passthrough;
#[cfg(test)]
pub(crate) mod tests;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use rustix::fs::Mode;
use rustix::mount::UnmountFlags;
use rustix::process::{Resource, Rlimit, Signal};

use crate::stop;
use passthrough::Passthrough;

pub(crate) use mounted::{MountedFolder, missing};

/// What is printed once the file system is there.
const READY: &str = "ready";
/// Calls that are answered at a time, each of which may wait for its rate.
const THREADS: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder that is shown
    #[arg(long, value_name = "FOLDER")]
    over: PathBuf,
    /// Where it is shown
    #[arg(long, value_name = "FOLDER")]
    at: PathBuf,
    /// Bytes per second that may be written
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    write_rate: Option<u64>,
    /// Bytes per second that may be read
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    read_rate: Option<u64>,
    /// Have no extended attributes, and so no ACLs
    #[arg(long)]
    no_xattrs: bool,
    /// Do not tell holes from data (SEEK_HOLE, SEEK_DATA)
    #[arg(long)]
    no_holes: bool,
    /// Take names that differ in the case of letters of ASCII for one
    #[arg(long)]
    one_case: bool,
    /// Give all entries the mode 0755, and refuse others, as vfat does
    #[arg(long)]
    one_mode: bool,
    /// Keep no parts of a second in times
    #[arg(long)]
    whole_seconds: bool,
    /// Return ENOSPC after this many bytes were written
    #[arg(long, value_name = "BYTES")]
    room: Option<u64>,
}

/// Shows the folder until a signal ends it, or the study that has started it ends.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    allow_descriptors()?;
    // The kernel has applied that of the caller.
    rustix::process::umask(Mode::empty());
    let session = mount(options)?;
    println!("{READY}");
    while !stop.load(Ordering::Relaxed) && !session.guard.is_finished() {
        thread::sleep(Duration::from_millis(20));
    }
    // Others may still have it in namespaces of their own: it ends with this process.
    let _ = rustix::mount::unmount(&options.at, UnmountFlags::DETACH);
    Ok(())
}

fn mount(options: &Options) -> Result<BackgroundSession> {
    let shown = || format!("show {} at {}", options.over.display(), options.at.display());
    let below = Passthrough::new(options).with_context(shown)?;
    fuser::spawn_mount(below, &options.at, &config()).with_context(shown)
}

/// Set-ID bits and devices can be made and seen, and do nothing: any user gets to them.
fn config() -> Config {
    let mut config = Config::default();
    let name = MountOption::FSName("landspeed-validate".to_owned());
    config.mount_options.extend([name, MountOption::DefaultPermissions]);
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}

/// Allows as many open files as the kernel lets it: each entry that the kernel knows is one.
fn allow_descriptors() -> Result<()> {
    let most = rustix::process::getrlimit(Resource::Nofile).maximum;
    Ok(rustix::process::setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?)
}
