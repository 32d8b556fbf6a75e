//! The process that runs a role: `landspeed play-role`, started by the agent.
//!
//! It makes namespaces of its own for processes, mounts, System V objects and the host's name, and starts an *init* in
//! them. The init prepares the role's directory, runs the role's commands and reaps what they leave. When the init ends, the
//! kernel kills every process of its namespace (pid_namespaces(7)), and the mounts go with the last of them: a program that
//! forks away or ignores signals stays no longer, and no file of it. The init ends when its standard input does, so that it
//! does not outlive the agent, however the agent ends.
//!
//! The agent sends the [`Order`](crate::Order) with its length before it (four bytes, big endian), then single bytes:
//! 'g' to run the command once the init has said `prepared`, 'w' to hear what it printed, 's' to end a service.

mod capture;
mod children;
mod directory;
mod init;
mod namespace;
mod user;

use std::io::Write;
use std::process::ExitCode;

pub(crate) use children::PATH;
use landspeed_units::Nanos;
use serde::{Deserialize, Serialize};
pub use user::runs_as_root;

use crate::{Order, framed};

/// The longest order that is read.
const MOST_ORDER: u32 = 64 << 20;

/// What the init says on its standard output, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "kebab-case")]
pub(crate) enum Said {
    /// Directory and earlier commands are done; the command waits for its 'g'.
    Prepared {},
    /// A service is ready.
    Ready {},
    /// The command ended.
    Ended {
        /// How it ended: "exit status 1"; empty where it ended with 0.
        wrong: String,
        /// How long it ran.
        took_ns: Nanos,
        /// Its standard output.
        output: String,
        /// The end of its standard error.
        errors: String,
    },
    /// What the command printed last, where the agent asked.
    Printed {
        /// The end of both outputs.
        text: String,
    },
    /// It could not be done.
    Failed {
        /// What, and why.
        why: String,
    },
}

impl Said {
    /// Says it. Where the agent has gone there is nothing left to do.
    fn say(&self) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(&line).and_then(|()| out.flush());
        }
    }
}

/// Runs a role to its end: what `landspeed play-role` does.
pub fn main() -> ExitCode {
    match begin() {
        Ok(code) => code,
        Err(why) => {
            Said::Failed { why }.say();
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

/// Closes all but standard input, output and error: a role has nothing of what the agent, or the shell that started it, had open.
fn close_inherited() -> std::io::Result<()> {
    let names = std::fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<std::io::Result<Vec<_>>>()?;
    let open = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for descriptor in open.filter(|descriptor| *descriptor > 2) {
        // SAFETY: nothing in this process owns a descriptor yet; that of the folder is closed already, which is an error that is ignored.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

fn order() -> std::io::Result<Order> {
    let order = framed::receive(&mut std::io::stdin().lock(), MOST_ORDER)?;
    serde_json::from_slice(&order).map_err(std::io::Error::other)
}
