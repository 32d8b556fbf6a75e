//! The entry point: runs one host's part of a query of one of the two applications.

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
    /// A surface in a field, from another direction in each unit. Size and chunk are samples and cells along an axis;
    /// the paper's 64 MiB correspond to 256.
    Iso,
    /// A window of a slide in each unit. Size and chunk are pixels along an edge; the paper's 16 MiB correspond to
    /// 4096.
    Vm(SlideUpdate),
}

/// The part of the slide that one unit of Virtual Microscope shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlideUpdate {
    /// The whole slide.
    Complete,
    /// A window of a quarter of the slide's edge, at another place in each unit.
    Partial,
}

/// One host's part of a query. All hosts have the same values, except for `host`, the source of `token`, and `verify`.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// The application.
    pub query: QueryKind,
    /// This host's number, from 0; the command line counts from 1.
    pub host: usize,
    /// Addresses of all hosts.
    pub hosts: Vec<IpAddr>,
    /// Host n listens at this port + n.
    pub port: u16,
    /// The placement in TOML; `None` for the application's default.
    pub placement: Option<String>,
    /// Number of copies of the busiest filter (extract or decompress); `None` for the number in the placement.
    pub copies: Option<usize>,
    /// Size of the data along an axis.
    pub size: u32,
    /// Size of one buffer's part of the data along an axis.
    pub chunk: u32,
    /// Seed of the data.
    pub seed: u64,
    /// Number of units of work.
    pub units: u32,
    /// Most units in the pipeline at a time; with 1, each answer is awaited before the next question.
    pub ahead: u32,
    /// The secret that all hosts share.
    pub token: Secret,
    /// True if the first host computes each picture again without filters, and compares.
    pub verify: bool,
    /// Time limit for the hosts to join.
    pub join: Duration,
    /// Time limit of the query.
    pub limit: Duration,
}

/// Runs this host's part until the query ends. Hosts other than the first serve until then.
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
