//! `landspeed cc recovery`: the cost of one loss on a long path, by congestion control.

use anyhow::{Context, Result};
use clap::Args;
use landspeed_congestion::{CONTROLS, Control, Error};
use landspeed_record::units::{BitRate, Nanos, parse_duration};
use landspeed_simulator::{FullPath, simulated_recovery};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{self, ActivityLine, FORMAT, usage};

/// A path that one flow fills, and loses one segment on (Feng et al. 2003, Table 1).
#[derive(Debug, Args)]
#[command(after_help = "Example: landspeed cc recovery --rate 10G --rtt 180ms")]
pub(crate) struct RecoveryArgs {
    /// Names from `landspeed cc list` [default: all that can be simulated]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Rate of the path
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: BitRate,
    /// Round-trip time of the path
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) rtt: Nanos,
    /// Largest packet of the path, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..))]
    pub(crate) mtu: u16,
    /// Give up on a control that needs longer than this
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_duration)]
    pub(crate) within: Nanos,
    #[command(flatten)]
    pub(crate) form: ListArgs,
}

/// The output of `landspeed cc recovery --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct RecoveryList {
    /// Version of this document: 1.
    format: u32,
    /// The path's rate.
    rate_bps: BitRate,
    /// The path's round-trip time.
    rtt_ns: Nanos,
    /// Largest packet of the path, in bytes.
    mtu_bytes: u16,
    /// Reno's recovery time by the formula of Feng et al. (2003): half the window, one segment per round trip.
    formula_ns: Nanos,
    /// Longest recovery that was simulated.
    within_ns: Nanos,
    /// The congestion controls, the fastest first.
    controls: Vec<RecoveryEntry>,
}

/// The cost of one loss for a congestion control.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct RecoveryEntry {
    /// Its name in `landspeed cc list`.
    name: String,
    /// Its name in the literature.
    title: String,
    /// Time from the loss to a full window; null if it is longer than `within_ns`.
    recovery_ns: Option<Nanos>,
}

pub(crate) fn run(args: &RecoveryArgs) -> Result<()> {
    let path = FullPath { rate_bps: args.rate, rtt_ns: args.rtt, mtu_bytes: args.mtu };
    let formula_ns = path.formula().context("a packet of this MTU holds no payload")?;
    let controls = named(&args.names)?;
    let doing = ActivityLine::new();
    let simulated = |row: &&Control| {
        doing.begin(&format!("simulating {} after one loss", row.title));
        Ok(RecoveryEntry {
            name: row.name.to_owned(),
            title: row.title.to_owned(),
            recovery_ns: simulated_recovery(row.name, path, args.within).map_err(usage)?,
        })
    };
    let mut controls = controls.iter().map(simulated).collect::<Result<Vec<_>>>()?;
    drop(doing);
    controls.sort_by_key(|entry| entry.recovery_ns.unwrap_or(Nanos(u64::MAX)));
    let document = RecoveryList {
        format: FORMAT,
        rate_bps: args.rate,
        rtt_ns: args.rtt,
        mtu_bytes: args.mtu,
        formula_ns,
        within_ns: args.within,
        controls,
    };
    let rows: Vec<Vec<String>> = document.controls.iter().map(|entry| row(entry, args.within)).collect();
    let heads = ["control", "name", "recovery after one loss"];
    output::list(&heads, &rows, &document, &args.form)?;
    if !args.form.json {
        eprintln!("Reno by the formula (half the window, one segment a round trip): {formula_ns}");
    }
    Ok(())
}

fn named(names: &[String]) -> Result<Vec<&'static Control>> {
    let found = |name: &String| {
        let row = CONTROLS.iter().copied().find(|row| row.name == name);
        row.ok_or_else(|| usage(Error::unknown(name)))
    };
    if names.is_empty() { Ok(CONTROLS.to_vec()) } else { names.iter().map(found).collect() }
}

fn row(entry: &RecoveryEntry, within: Nanos) -> Vec<String> {
    let took = entry.recovery_ns.map_or_else(|| format!("more than {within}"), |took| took.to_string());
    vec![entry.title.clone(), entry.name.clone(), took]
}
