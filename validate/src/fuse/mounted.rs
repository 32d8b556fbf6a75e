//! A file system of `validate fuse` while a study needs it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};

use super::READY;

/// The time in which the program ends that shows a folder.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A folder that is shown as a file system, until this is dropped. It is seen by programs that are started meanwhile.
pub(crate) struct MountedFolder {
    program: Child,
    at: PathBuf,
}

/// Returns why no such file system can be made here; `None` if it can.
pub(crate) fn missing() -> Option<&'static str> {
    match () {
        () if !rustix::process::geteuid().is_root() => Some("only root mounts a file system of its own"),
        () if !Path::new("/dev/fuse").exists() => Some("this machine has no /dev/fuse"),
        () => None,
    }
}

impl MountedFolder {
    /// Shows the folder `over` at the empty folder `at`, with options of `validate fuse`.
    pub(crate) fn new(over: &Path, at: &Path, options: &[String]) -> Result<MountedFolder> {
        let mut program = Command::new(std::env::current_exe().context("cannot find this program itself")?);
        program.arg("fuse").arg("--over").arg(over).arg("--at").arg(at).args(options);
        let program = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("validate fuse")?;
        let mut mounted = MountedFolder { program, at: at.to_path_buf() };
        let mut said = String::new();
        let output = mounted.program.stdout.take().context("standard output is a pipe")?;
        BufReader::new(output).read_line(&mut said).context("validate fuse")?;
        ensure!(said.trim() == READY, "validate fuse does not show {} at {}", over.display(), at.display());
        Ok(mounted)
    }
}

impl Drop for MountedFolder {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.program), Signal::TERM);
        let end = Instant::now() + ENDS_WITHIN;
        while matches!(self.program.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = self.program.kill();
                let _ = self.program.wait();
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        // A program that was killed has left it there, dead; one that has ended by itself has not, and this does nothing.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}
