//! The program that `make vm` runs at both ends, over TCP and over other paths between its guests.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use super::checks::CHECKS;
use super::costs::EXCHANGES;
use super::end::{AlikeCheck, End};
use super::forking::FORKING;

/// The port of the server.
const PORT: u16 = 5011;
/// What the server prints once it listens.
pub(super) const LISTENS: &str = "listening";

#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// Which end to be
    #[arg(value_enum)]
    end: ProgramEnd,
    /// The address of the server
    address: IpAddr,
    /// Make the server answer one connection in a child, and do nothing else
    #[arg(long)]
    forking: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProgramEnd {
    Server,
    Client,
}

pub(crate) fn run(options: &ProgramOptions) -> Result<()> {
    let at = SocketAddr::new(options.address, PORT);
    let end = match options.end {
        ProgramEnd::Server => End::server(at),
        ProgramEnd::Client => Ok(End::client(at)),
    };
    let end = end.with_context(|| format!("listen on {at}"))?;
    if options.end == ProgramEnd::Server {
        println!("{LISTENS}");
    }
    let done = |check: &AlikeCheck| {
        let half = if options.end == ProgramEnd::Server { check.server } else { check.client };
        half(&end).with_context(|| check.name.to_owned()).map(|()| end.taken())
    };
    let checks = if options.forking { FORKING } else { CHECKS };
    let exchanges: &[AlikeCheck] = if options.forking { &[] } else { EXCHANGES };
    for check in checks {
        for (what, value) in done(check)? {
            println!("saw {} {what} {value}", check.name);
        }
    }
    for exchange in exchanges {
        for (what, value) in done(exchange)? {
            println!("cost {what} {value}");
        }
    }
    Ok(())
}
