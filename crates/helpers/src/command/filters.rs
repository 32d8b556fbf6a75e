//! `landspeed-helpers filters`: runs one host's part of Iso-Surface or of Virtual Microscope.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use data_encoding::BASE64;
use landspeed_helpers::filter::{
    QueryKind, QueryOptions, QueryOutcome, SlideUpdate, png, run as run_filters,
};
use serde::Serialize;

#[derive(Debug, Args)]
pub(crate) struct FiltersArgs {
    /// What runs
    #[arg(value_enum)]
    query: FiltersQuery,
    /// Number of this host, from 1; the first starts the units of work
    #[arg(long)]
    host: usize,
    /// Addresses of all hosts
    #[arg(long, value_delimiter = ',', required = true)]
    addresses: Vec<IpAddr>,
    /// Host n listens at this port + n
    #[arg(long, default_value_t = 17_000)]
    port: u16,
    /// File that assigns filters to hosts [default: one for three hosts]
    #[arg(long, value_name = "FILE")]
    placement: Option<PathBuf>,
    /// Number of copies of the busiest filter
    #[arg(long, default_value_t = 1)]
    copies: usize,
    /// Samples or pixels along an axis
    #[arg(long)]
    size: u32,
    /// The same of a buffer
    #[arg(long)]
    chunk: u32,
    /// Units of work
    #[arg(long, default_value_t = 10)]
    units: u32,
    /// Units in the pipeline at a time
    #[arg(long, default_value_t = 1)]
    ahead: u32,
    /// Compare every picture with the plain computation
    #[arg(long)]
    verify: bool,
    /// Print the last picture too, as PNG in Base64
    #[arg(long)]
    picture: bool,
}

/// An application of filters, and what a unit of work shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FiltersQuery {
    Iso,
    Complete,
    Partial,
}

/// The time limit for the hosts to connect to each other; the next constant is that for all units of work.
const JOIN: Duration = Duration::from_secs(20);
const LIMIT: Duration = Duration::from_secs(600);
/// The seed of the data. It is fixed, so that the data are always the same.
const SEED: u64 = 1;

/// The result of a query, which the first host prints as a line of JSON.
#[derive(Serialize)]
struct FiltersReport {
    units: usize,
    /// The mean time per unit of work, in milliseconds.
    unit_ms: f64,
    /// The data sent between hosts for all units, in megabytes.
    network_mb: f64,
    buffers: u64,
    /// The largest payload in flight, in bytes.
    peak_bytes: u64,
    /// The limit of the payload in flight, in bytes.
    bound_bytes: u64,
    /// The BLAKE3 hash over the hashes of all pictures.
    hash: String,
    /// True if all pictures equal the plain computation; null if they were not compared.
    is_equal: Option<bool>,
    /// The last picture, as PNG in Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<String>,
}

pub(crate) fn run(args: FiltersArgs) -> Result<ExitCode> {
    let placement = args
        .placement
        .as_ref()
        .map(|path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display())));
    let asked = QueryOptions {
        query: match args.query {
            FiltersQuery::Iso => QueryKind::Iso,
            FiltersQuery::Complete => QueryKind::Vm(SlideUpdate::Complete),
            FiltersQuery::Partial => QueryKind::Vm(SlideUpdate::Partial),
        },
        host: args.host.checked_sub(1).context("hosts have numbers from 1")?,
        hosts: args.addresses,
        port: args.port,
        placement: placement.transpose()?,
        copies: Some(args.copies),
        size: args.size,
        chunk: args.chunk,
        seed: SEED,
        units: args.units,
        ahead: args.ahead,
        token: super::secret("filters")?,
        verify: args.verify,
        join: JOIN,
        limit: LIMIT,
    };
    let outcome = run_filters(&asked)?;
    if args.host == 1 {
        let picture = args.picture.then(|| png(&outcome.picture)).transpose()?;
        let report = FiltersReport { picture: picture.map(|file| BASE64.encode(&file)), ..report(&outcome) };
        super::print(&report)?;
        ensure!(outcome.is_equal != Some(false), "a picture differs from the plain computation");
    }
    Ok(ExitCode::SUCCESS)
}

fn report(outcome: &QueryOutcome) -> FiltersReport {
    let units = outcome.seconds.len();
    FiltersReport {
        units,
        unit_ms: outcome.seconds.iter().sum::<f64>() / units.max(1) as f64 * 1e3,
        network_mb: outcome.network.0 as f64 / 1e6,
        buffers: outcome.buffers,
        peak_bytes: outcome.peak.0,
        bound_bytes: outcome.bound.0,
        hash: outcome.hash.clone(),
        is_equal: outcome.is_equal,
        picture: None,
    }
}
