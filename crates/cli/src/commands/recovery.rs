//! `landspeed cc recovery`: the cost of one loss on a long path, by congestion control.

use anyhow::{Context, Result};
use landspeed_congestion::{CONTROLS, Control, Error};
use landspeed_record::units::Nanos;
use landspeed_simulator::{FullPath, simulated_recovery};

use crate::args::RecoveryArgs;
use crate::listing::{FORMAT, RecoveryEntry, RecoveryList};
use crate::output::{self, ActivityLine, usage};

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
