//! `landspeed lab`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_report::Output;
use landspeed_topology::lab;

use crate::args::{LabAction, LabArgs};
use crate::commands::faults;
use crate::labs;
use crate::output::out;

pub(crate) fn run(args: &LabArgs) -> Result<ExitCode> {
    match &args.action {
        LabAction::List => list(),
        LabAction::Down { id } => down(id.as_deref()),
        LabAction::Faults { names, .. } if names.is_empty() => faults::list(),
        LabAction::Faults { names, strength } => faults::hold(names, *strength),
    }
}

fn list() -> Result<ExitCode> {
    let labs = lab::list()?;
    if labs.is_empty() {
        eprintln!("no labs");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = labs
        .iter()
        .map(|lab| {
            let state = if lab.alive { "running" } else { "left behind" };
            vec![
                lab.id.to_string(),
                landspeed_report::safe(&lab.label).to_string(),
                lab.owner_pid.to_string(),
                state.to_owned(),
                lab.namespaces.join(" "),
            ]
        })
        .collect();
    out(&landspeed_report::table(
        &["lab", "topology", "owner", "state", "namespaces"],
        &rows,
        Output::stdout().width,
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn down(id: Option<&str>) -> Result<ExitCode> {
    let which = match id {
        Some(id) => lab::Which::Id(id.parse()?),
        None => lab::Which::Stale,
    };
    let gone = labs::down(&which)?;
    if gone.is_empty() {
        eprintln!("no lab was left behind");
    }
    for lab in gone {
        out(&format!("{}: down", lab.id))?;
    }
    Ok(ExitCode::SUCCESS)
}
