//! `landspeed agent`, which serves one controller.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Error, Result};
use landspeed_agent::session::{ServeOptions, listen, serve_stdio};
use landspeed_agent::{Agent, RunPermission};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::AgentArgs;

pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode> {
    if args.sent {
        let words = std::env::args_os().skip(1).filter(|word| word != "--sent");
        return Err(landspeed_kernel::daemon::start_over(words)).context("cannot start over");
    }
    // The name that `ps` and `top` show, even if the program was started from a descriptor.
    let _ = rustix::thread::set_name(c"landspeed");
    if let Some(name) = &args.netns {
        landspeed_lab::topology::enter(name)?;
    }
    raise_open_files();
    let may_run = match &args.allow_run {
        // The controller is the user's own session, so it could run anything there without the agent.
        _ if args.stdio => RunPermission::Anything,
        Some(folder) => {
            RunPermission::folder(folder, args.allow_root).map_err(Error::msg).context("--allow-run")?
        }
        None => RunPermission::Nothing,
    };
    let agent = Agent::that_may_run(may_run, args.allow_tune);
    let options = ServeOptions::default();
    let Some(address) = &args.listen else {
        serve_stdio(agent, &options)?;
        return Ok(ExitCode::SUCCESS);
    };
    let address = address.here().context("cannot listen")?;
    let listening = listen(address, agent, &ServeOptions { expires: args.expires, ..options })?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listening.ticket().reveal())?;
    out.flush()?;
    listening.run().context("agent")?;
    Ok(ExitCode::SUCCESS)
}

/// Raises the soft limit of open files (usually 1024) to the hard one, because each flow needs a descriptor. If this
/// fails, opening too many files reports it.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
