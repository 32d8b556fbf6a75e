//! The entry point, which runs one host's part of a query of one of the two applications.

use std::net::IpAddr;
use std::time::Duration;

use landspeed_proof::Secret;

use crate::filter::host::{QueryOutcome, run_job};
use crate::filter::plan::FilterJob;
use crate::filter::{Error, FilterApplication, IsoSurface, Placement, VirtualMicroscope};

/// The default placement of Iso-Surface's filters, for three hosts.
pub const ISO_PLACEMENT: &str = include_str!("../../placements/iso.toml");

/// The default placement of Virtual Microscope's filters.
pub const VM_PLACEMENT: &str = include_str!("../../placements/vm.toml");

/// The application of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// Iso-Surface: a surface in a field, from another direction in each unit. `size` is in samples along an axis and
    /// `chunk` in cells along an axis. The paper's 64 MiB correspond to a size of 256.
    Iso,
    /// Virtual Microscope: a window of a slide in each unit. `size` and `chunk` are in pixels along an edge. The
    /// paper's 16 MiB correspond to a size of 4096.
    Vm(SlideUpdate),
}

/// The part of the slide that one unit of Virtual Microscope shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlideUpdate {
    /// The whole slide.
    Complete,
    /// A window at another place in each unit, with an edge of a quarter of the slide's.
    Partial,
}

/// The parameters of one host's part of a query. All hosts must have equal values, except for `host` and `verify`.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The application.
    pub query: QueryKind,
    /// This host's number, from 0. (The command line counts from 1.)
    pub host: usize,
    /// Addresses of all hosts.
    pub hosts: Vec<IpAddr>,
    /// Host n listens at this port + n.
    pub port: u16,
    /// The placement in TOML; `None` for the application's default.
    pub placement: Option<String>,
    /// Number of copies of the busiest filter (extract or decompress); `None` for the number in the placement.
    pub copies: Option<usize>,
    /// The size of the data along an axis, in samples (Iso-Surface) or pixels (Virtual Microscope).
    pub size: u32,
    /// The size of one buffer's part of the data along an axis, in cells or pixels.
    pub chunk: u32,
    /// The seed from which the data are generated.
    pub seed: u64,
    /// Number of units of work.
    pub units: u32,
    /// The largest number of units in the pipeline at a time. With 1, each picture is finished before the next unit
    /// starts.
    pub ahead: u32,
    /// The secret that all hosts share.
    pub token: Secret,
    /// True if the first host computes each picture again without filters, and compares the two.
    pub verify: bool,
    /// Time limit for the hosts to join.
    pub join: Duration,
    /// Time limit of the query.
    pub limit: Duration,
}

/// Runs this host's part of a query until the query ends.
///
/// # Errors
/// Returns an error for a mistake in the arguments. If the query ends early, every host returns an error that names
/// the host responsible.
pub fn run(args: &QueryOptions) -> Result<QueryOutcome, Error> {
    match args.query {
        QueryKind::Iso => {
            let iso = IsoSurface::new(args.size, args.chunk, args.seed)?;
            run_application(args, &iso, ISO_PLACEMENT)
        }
        QueryKind::Vm(update) => {
            let vm = VirtualMicroscope::new(args.size, args.chunk, args.seed, update)?;
            run_application(args, &vm, VM_PLACEMENT)
        }
    }
}

fn run_application(
    args: &QueryOptions,
    application: &dyn FilterApplication,
    placement: &str,
) -> Result<QueryOutcome, Error> {
    let text = args.placement.as_deref().unwrap_or(placement);
    let job = FilterJob {
        host: args.host,
        hosts: args.hosts.clone(),
        port: args.port,
        token: args.token,
        placement: Placement::read(text, application.stages(), args.hosts.len(), args.copies)?,
        units: args.units,
        ahead: args.ahead,
        parameters: format!("{:?}", (args.query, args.size, args.chunk, args.seed)),
        join: args.join,
        limit: args.limit,
    };
    run_job(application, &job, args.verify)
}
