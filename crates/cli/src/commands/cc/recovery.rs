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
    /// Reno's recovery time as Table 1 of Feng et al. (2003) prints it; null if the path is not in the table.
    printed_ns: Option<Nanos>,
    /// The claim of the papers' ledger that has `printed_ns`; null if the path is not in the table.
    claim: Option<&'static str>,
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

/// A row of Table 1 of Feng et al. (2003): Reno, on a path of [`PAPERS_RATE`].
struct PrintedRecovery {
    /// Its name in the papers' ledger.
    claim: &'static str,
    rtt: Nanos,
    mtu: u16,
    time: Nanos,
}

const PAPERS_RATE: BitRate = BitRate(1e10);

const fn printed_row(claim: &'static str, rtt_ms: u64, mtu: u16, time_ms: u64) -> PrintedRecovery {
    PrintedRecovery { claim, rtt: Nanos::millis(rtt_ms), mtu, time: Nanos::millis(time_ms) }
}

static PRINTED: [PrintedRecovery; 5] = [
    printed_row("feng.t1.lan", 1, 1500, 428),
    printed_row("feng.t1.gva_chi.1460", 120, 1500, 6_120_000),
    printed_row("feng.t1.gva_chi.8960", 120, 9000, 1_020_000),
    printed_row("feng.t1.gva_svl.1460", 180, 1500, 13_860_000),
    printed_row("feng.t1.gva_svl.8960", 180, 9000, 2_280_000),
];

/// Returns the claims of the papers' ledger that the simulated times are held against.
pub(crate) fn claims() -> impl Iterator<Item = &'static str> {
    PRINTED.iter().map(|row| row.claim)
}

/// Returns the row of the paper's table that is about this path, if there is one.
fn printed(path: FullPath) -> Option<&'static PrintedRecovery> {
    let is_of = |row: &&PrintedRecovery| {
        path.rate_bps == PAPERS_RATE && path.rtt_ns == row.rtt && path.mtu_bytes == row.mtu
    };
    PRINTED.iter().find(is_of)
}

pub(crate) fn run(args: &RecoveryArgs) -> Result<()> {
    let path = FullPath { rate_bps: args.rate, rtt_ns: args.rtt, mtu_bytes: args.mtu };
    let formula_ns = path.formula().context("a packet of this MTU holds no payload")?;
    let (controls, printed) = (named(&args.names)?, printed(path));
    let doing = ActivityLine::new();
    let all = controls.len();
    let simulated = |(n, row): (usize, &&Control)| {
        let what = format!("{} after one loss ({n} of {all})", row.title);
        let on_time = doing.simulating(&what, args.within);
        Ok(RecoveryEntry {
            name: row.name.to_owned(),
            title: row.title.to_owned(),
            recovery_ns: simulated_recovery(row.name, path, args.within, on_time).map_err(usage)?,
        })
    };
    let mut controls = (1..).zip(&controls).map(simulated).collect::<Result<Vec<_>>>()?;
    drop(doing);
    controls.sort_by_key(|entry| entry.recovery_ns.unwrap_or(Nanos(u64::MAX)));
    let document = RecoveryList {
        format: FORMAT,
        rate_bps: args.rate,
        rtt_ns: args.rtt,
        mtu_bytes: args.mtu,
        formula_ns,
        printed_ns: printed.map(|row| row.time),
        claim: printed.map(|row| row.claim),
        within_ns: args.within,
        controls,
    };
    let rows: Vec<Vec<String>> = document.controls.iter().map(|entry| row(entry, args.within)).collect();
    let heads = ["control", "name", "recovery after one loss"];
    output::list(&heads, &rows, &document, &args.form)?;
    if !args.form.json {
        eprintln!("Reno by the formula (half the window, one segment a round trip): {formula_ns}");
        if let Some(row) = printed {
            eprintln!("Reno in Table 1 of Feng et al. (2003): {} ({})", row.time, row.claim);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_table_is_that_of_the_formula_within_its_rounding() {
        for row in &PRINTED {
            let path = FullPath { rate_bps: PAPERS_RATE, rtt_ns: row.rtt, mtu_bytes: row.mtu };
            let formula = path.formula().expect("a packet holds payload");
            assert!((row.time.as_secs_f64() / formula.as_secs_f64() - 1.0).abs() < 0.02, "{}", row.claim);
            assert_eq!(printed(path).expect("a row").claim, row.claim);
        }
        let other = FullPath { rate_bps: BitRate(1e9), rtt_ns: Nanos::millis(1), mtu_bytes: 1500 };
        assert!(printed(other).is_none());
    }
}
