//! `landspeed lab faults`: creates known causes of slow paths on purpose.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use landspeed_lab::faults::{FAULTS, Fault, FaultLab, FaultScenario};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::labs;
use crate::output::{self, FORMAT, as_usage, out, usage};
use crate::stop::StopRequest;

/// The output of `landspeed lab faults --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct FaultList {
    /// Version of this document: 1.
    format: u32,
    /// The faults.
    faults: Vec<FaultEntry>,
}

/// A fault.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct FaultEntry {
    /// The name that `lab faults` takes.
    name: String,
    /// What the fault does.
    about: String,
    /// The cause that `explain` should report.
    cause: landspeed_record::Cause,
}

pub(crate) fn list(form: &ListArgs) -> Result<ExitCode> {
    let entry = |fault: &Fault| FaultEntry {
        name: fault.name.to_owned(),
        about: fault.about.to_owned(),
        cause: fault.cause,
    };
    let document = FaultList { format: FORMAT, faults: FAULTS.iter().map(entry).collect() };
    let row = |fault: &FaultEntry| vec![fault.name.clone(), fault.about.clone()];
    let rows: Vec<Vec<String>> = document.faults.iter().map(row).collect();
    output::list(&["fault", "what it does"], &rows, &document, form)?;
    let first = document.faults.first().map(|fault| format!("landspeed lab faults {}", fault.name));
    first.map_or(Ok(()), |command| output::next(form.json, &command))?;
    Ok(ExitCode::SUCCESS)
}

/// Creates the faults, prints the hosts and the address of the flow, and holds the faults until Ctrl-C.
pub(crate) fn hold(names: &[String], strength: f64) -> Result<ExitCode> {
    let faults =
        names.iter().map(|name| parse(name, strength)).collect::<Result<Vec<_>>>().map_err(as_usage)?;
    let scenario = FaultScenario::with(&faults).map_err(usage)?;
    let stop = StopRequest::on_signals()?;
    stop.in_order("");
    let own = std::env::current_exe().context("cannot find landspeed itself")?;
    let stage = FaultLab::set(&scenario, &[own.display().to_string(), "play".to_owned()])?;
    labs::sweep();
    let [a, b] = stage.names();
    out(&format!(
        "{}: {a} sends to {b}\nin another terminal:  landspeed explain {a} {b} --flow {}\nCtrl-C ends it",
        faults.iter().map(|(name, strength)| format!("{name} at {strength}")).collect::<Vec<_>>().join(", "),
        stage.at()
    ))?;
    stop.wait();
    drop(stage);
    Ok(ExitCode::SUCCESS)
}

/// The strengths that a fault can have.
const RANGE: &str = "a number from 0 (a nuisance) to 1 (a disaster)";

/// Parses "FAULT" or "FAULT=STRENGTH". A fault without a strength has the strength `usual`.
fn parse(word: &str, usual: f64) -> Result<(&str, f64)> {
    let (name, strength) = match word.split_once('=') {
        Some((name, strength)) => (
            name,
            strength
                .parse::<f64>()
                .ok()
                .with_context(|| format!("'{word}' has no strength: expected {RANGE}"))?,
        ),
        None => (word, usual),
    };
    if !(0.0..=1.0).contains(&strength) {
        bail!("strength {strength}: expected {RANGE}");
    }
    Ok((name, strength))
}

/// Runs a part of a scenario, in a process that landspeed starts.
pub(crate) fn play() -> Result<ExitCode> {
    landspeed_lab::faults::play()?;
    Ok(ExitCode::SUCCESS)
}
