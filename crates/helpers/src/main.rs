//! The program `landspeed-helpers`. In an application's file, `{helpers}` is the path of this program.

mod command;

use std::process::ExitCode;

use clap::Parser;

use crate::command::{filters, gather, sockets, spawn};

/// Helper programs that landspeed's applications run
#[derive(Debug, Parser)]
#[command(name = "landspeed-helpers", version)]
enum HelperCommand {
    /// Runs one host's filters of Iso-Surface or Virtual Microscope
    Filters(filters::FiltersArgs),
    /// Serves and asks through the sockets interface
    Sockets(sockets::SocketsArgs),
    /// Starts ranks of MPI on other hosts: `spawn --listen ADDR:PORT`, or `spawn HOST orted ...`
    Spawn(spawn::SpawnArgs),
    /// Asks Ganglia's daemons for their state
    Gather(gather::GatherArgs),
}

fn main() -> ExitCode {
    let ended = match HelperCommand::parse() {
        HelperCommand::Filters(args) => filters::run(args),
        HelperCommand::Sockets(args) => sockets::run(&args),
        HelperCommand::Spawn(args) => spawn::run(&args),
        HelperCommand::Gather(args) => gather::run(&args),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("landspeed-helpers: {error:#}");
        ExitCode::FAILURE
    })
}
