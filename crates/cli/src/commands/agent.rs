//! `landspeed agent` and the guardian that it starts.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use landspeed_agent::Agent;
use landspeed_control::{ServeOptions, listen, serve_stdio};

use crate::args::AgentArgs;

pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode> {
    if let Some(name) = &args.netns {
        landspeed_topology::enter(name)?;
    }
    let agent = Agent::new(args.allow_tune);
    let options = ServeOptions::default();
    let Some(address) = args.listen else {
        serve_stdio(agent, &options)?;
        return Ok(ExitCode::SUCCESS);
    };
    let listening = listen(address, agent, &ServeOptions { expires: args.expires, ..options })?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listening.ticket().reveal())?;
    out.flush()?;
    listening.run().context("agent")?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the guardian; never called by a person.
pub(crate) fn guardian() -> ExitCode {
    landspeed_knob::journal::guardian_main()
}
