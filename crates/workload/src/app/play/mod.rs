//! The process that runs a role: `landspeed play-role`, started by the agent.
//!
//! It makes its own namespaces for processes, mounts, System V objects and the host's name, and starts an *init* in
//! them. The init prepares the role's directory, runs the role's commands and reaps their processes. When the init
//! ends, the kernel kills every process of its namespace (pid_namespaces(7)), and removes the mounts with the last
//! process. So even programs that fork or ignore signals end, and their files are removed. The init ends when its
//! standard input is closed, so that it ends with the agent, however the agent ends.
//!
//! The agent sends the `RoleOrder` after its length (four bytes, big endian), then single bytes:
//! 'g' to run the command after the init has sent `prepared`, 'w' to request the output so far, 's' to end a service.

mod capture;
mod children;
mod directory;
mod init;
mod namespace;
mod user;

use std::io::Write;
use std::process::ExitCode;

pub(crate) use children::PATH;
use landspeed_record::units::Nanos;
use serde::{Deserialize, Serialize};
pub use user::runs_as_root;

use crate::app::{RoleOrder, framed};

/// The longest order that is read, in bytes.
const MOST_ORDER: u32 = 64 << 20;

/// A message of the init on its standard output: one line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "kebab-case")]
pub(crate) enum InitMessage {
    /// The directory is ready and the earlier commands have run; the command waits for 'g'.
    Prepared {},
    /// The service is ready.
    Ready {},
    /// The command ended.
    Ended {
        /// The command's failure, such as "it ended with exit status 1"; empty if the command exited with 0.
        wrong: String,
        /// Running time of the command.
        took_ns: Nanos,
        /// The standard output.
        output: String,
        /// The end of its standard error.
        errors: String,
    },
    /// The last lines of the command's output, which the agent requested.
    Printed {
        /// The end of standard output and of standard error.
        text: String,
    },
    /// The role failed.
    Failed {
        /// The step that failed, and the reason.
        why: String,
    },
}

impl InitMessage {
    /// Prints the message on standard output. An error is ignored, because it means that the agent has ended.
    fn say(&self) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(&line).and_then(|()| out.flush());
        }
    }
}

/// Runs a role to its end, as `landspeed play-role`.
pub fn main() -> ExitCode {
    match begin() {
        Ok(code) => code,
        Err(why) => {
            InitMessage::Failed { why }.say();
            ExitCode::FAILURE
        }
    }
}

fn begin() -> Result<ExitCode, String> {
    close_inherited().map_err(|error| format!("cannot close what was inherited: {error}"))?;
    let order = order().map_err(|error| format!("cannot read the order: {error}"))?;
    namespace::enter()?;
    namespace::in_child(|| init::run(&order))
}

/// Closes all descriptors above standard error: a role must not inherit what the agent, or the shell that started it,
/// had open.
fn close_inherited() -> std::io::Result<()> {
    let names = std::fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<std::io::Result<Vec<_>>>()?;
    let open = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for descriptor in open.filter(|descriptor| *descriptor > 2) {
        // SAFETY: nothing in this process owns a descriptor yet. The folder's descriptor is already closed, and the
        // error for it is ignored.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

fn order() -> std::io::Result<RoleOrder> {
    let order = framed::receive(&mut std::io::stdin().lock(), MOST_ORDER)?;
    serde_json::from_slice(&order).map_err(std::io::Error::other)
}
