//! A program in the place of the target's agent, which becomes the agent once it may.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

/// Keeps a copy from its first bytes while its processes are found.
pub(super) struct Gate(TempDir);

impl Gate {
    pub(super) fn new(landspeed: &Path) -> Result<Gate> {
        // Its name has no capital letters, which are words of commands. Nothing may be run in /dev/shm on some
        // machines.
        let name = format!("landspeed-gate.{}", std::process::id());
        let gate = Gate(tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir()?);
        let (at, landspeed) = (gate.0.path().display(), landspeed.display());
        let script = format!(
            "#!/bin/sh\necho $$ > {at}/new && mv {at}/new {at}/pid || exit 1\ntries=0\n\
             until [ -e {at}/open ]; do\n    tries=$((tries + 1))\n    [ $tries -lt 600 ] || exit 1\n    sleep 0.05\n\
             done\n\
             exec \"{landspeed}\" \"$@\"\n"
        );
        fs::write(gate.program(), script)?;
        fs::set_permissions(gate.program(), fs::Permissions::from_mode(0o755))?;
        Ok(gate)
    }

    /// Returns the program, which is started as the agent.
    pub(super) fn program(&self) -> PathBuf {
        self.0.path().join("agent")
    }

    /// Lets the next agent wait.
    pub(super) fn shut(&self) -> io::Result<()> {
        for name in ["open", "pid"] {
            match fs::remove_file(self.0.path().join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the process that waits, which becomes the agent; `None` if there is none yet.
    pub(super) fn waiting(&self) -> Option<i32> {
        fs::read_to_string(self.0.path().join("pid")).ok()?.trim().parse().ok()
    }

    pub(super) fn open(&self) -> io::Result<()> {
        fs::write(self.0.path().join("open"), "")
    }
}
