//! `landspeed undo`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_knob::journal;

use crate::args::UndoArgs;
use crate::commands::show::out;

/// Runs the command: line by line what was done; failure where something is still not as it was.
pub(crate) fn run(args: &UndoArgs) -> Result<ExitCode> {
    let report = journal::undo(!args.here)?;
    for line in &report.lines {
        out(&landspeed_report::safe(line))?;
    }
    Ok(if report.clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
