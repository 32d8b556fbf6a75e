//! The commands that landspeed starts itself, in processes of their own.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use super::exec;
use super::lab::{faults, held};
use crate::labs;

/// A command that is not for people.
#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    /// Holds the journal of an agent that turns knobs; started by the agent
    #[command(hide = true)]
    Guardian,
    /// Takes labs down when the process that made them has died; started by that process
    #[command(hide = true)]
    Keeper,
    /// Holds a lab for a user's own programs; started by `landspeed lab up`
    #[command(hide = true)]
    HoldLab {
        /// Name of the lab
        name: String,
        /// The lab
        words: Vec<String>,
    },
    /// Plays a program of a fault's scenario; started by `landspeed lab faults`
    #[command(hide = true)]
    Play,
    /// Answers for a program once `exec` has gone
    #[command(hide = true)]
    KeepPath {
        /// Which path
        path: String,
    },
    /// Runs a role of an application in namespaces of its own; started by the agent
    #[command(hide = true)]
    PlayRole,
}

pub(crate) fn run(command: &InternalCommand) -> Result<ExitCode> {
    match command {
        InternalCommand::Guardian => Ok(landspeed_knob::journal::guardian_main()),
        InternalCommand::Keeper => labs::keep(),
        InternalCommand::HoldLab { name, words } => held::hold(name, words),
        InternalCommand::Play => faults::play(),
        InternalCommand::KeepPath { path } => exec::keep(path),
        InternalCommand::PlayRole => Ok(landspeed_workload::app::play::main()),
    }
}
