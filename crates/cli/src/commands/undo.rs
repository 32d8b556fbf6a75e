//! `landspeed undo`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_knob::journal;
use landspeed_topology::lab::Which;

use crate::args::UndoArgs;
use crate::commands::show::out;
use crate::labs;

/// Runs the command: line by line what was done; failure where something is still not as it was.
pub(crate) fn run(args: &UndoArgs) -> Result<ExitCode> {
    let labs = if args.here { Ok(Vec::new()) } else { labs::down(&Which::Stale) };
    // Settings are put back whatever became of labs.
    let report = journal::undo(!args.here)?;
    for line in &report.lines {
        out(&landspeed_report::safe(line))?;
    }
    for lab in labs? {
        out(&format!("lab {}: taken down, its owner had died", lab.id))?;
    }
    Ok(if report.clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
