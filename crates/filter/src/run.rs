//! The way in: one host's part of a query of one of the two applications.

use std::net::IpAddr;
use std::time::Duration;

use crate::host::{Outcome, run_job};
use crate::plan::Job;
use crate::{Application, Error, Iso, Placement, Token, Vm};

/// Where Iso-Surface's filters run on three hosts, unless the caller says otherwise.
pub const ISO_PLACEMENT: &str = include_str!("../placements/iso.toml");

/// The same for Virtual Microscope.
pub const VM_PLACEMENT: &str = include_str!("../placements/vm.toml");

/// Which application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A surface in a field, from another side in each unit. Size and chunk are samples and cells along an
    /// axis; the paper's 64 MiB are 256.
    Iso,
    /// A window of a slide in each unit. Size and chunk are pixels along an edge; the paper's 16 MiB are 4096.
    Vm(Update),
}

/// What one unit of Virtual Microscope shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// The whole slide.
    Complete,
    /// A window of a quarter of the slide's edge, elsewhere in each unit.
    Partial,
}

/// One host's part of a query. All hosts have the same, but for `host`, `token`'s source and `verify`.
#[derive(Debug, Clone)]
pub struct Args {
    /// Which application.
    pub query: Query,
    /// This host's number, from 0.
    pub host: usize,
    /// Address of each host.
    pub hosts: Vec<IpAddr>,
    /// Host n listens at this port + n.
    pub port: u16,
    /// TOML; the application's own default where there is none.
    pub placement: Option<String>,
    /// Copies of the filter that works most (extract, decompress), instead of the placement's.
    pub copies: Option<usize>,
    /// Size of the data along an axis.
    pub size: u32,
    /// Size of a buffer's part of them along an axis.
    pub chunk: u32,
    /// From which the data are made.
    pub seed: u64,
    /// How many units of work.
    pub units: u32,
    /// How many of them may be in the pipeline at a time; 1 waits for each answer before the next question.
    pub ahead: u32,
    /// The secret that all hosts share.
    pub token: Token,
    /// Whether the first host computes each picture again, without filters, and compares.
    pub verify: bool,
    /// How long hosts wait for each other at the start.
    pub join: Duration,
    /// How long the query may take.
    pub limit: Duration,
}

/// Runs this host's part to the end of the query. Hosts other than the first serve until then.
///
/// # Errors
/// A mistake in the arguments; or whatever ended the query early, on every host, naming the host that is to blame.
pub fn run(args: &Args) -> Result<Outcome, Error> {
    match args.query {
        Query::Iso => {
            let iso = Iso::new(args.size, args.chunk, args.seed)?;
            run_application(args, &iso, ISO_PLACEMENT)
        }
        Query::Vm(update) => {
            let vm = Vm::new(args.size, args.chunk, args.seed, update)?;
            run_application(args, &vm, VM_PLACEMENT)
        }
    }
}

fn run_application(args: &Args, application: &dyn Application, placement: &str) -> Result<Outcome, Error> {
    let text = args.placement.as_deref().unwrap_or(placement);
    let job = Job {
        host: args.host,
        hosts: args.hosts.clone(),
        port: args.port,
        token: args.token.clone(),
        placement: Placement::read(text, application.stages(), args.hosts.len(), args.copies)?,
        units: args.units,
        ahead: args.ahead,
        parameters: format!("{:?}", (args.query, args.size, args.chunk, args.seed)),
        join: args.join,
        limit: args.limit,
    };
    run_job(application, &job, args.verify)
}
