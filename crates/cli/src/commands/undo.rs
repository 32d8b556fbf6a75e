//! `landspeed undo`: restores what an interrupted run left changed.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use landspeed_knob::journal::{Undo, UndoReport};
use landspeed_lab::topology::lab::LabSelection;
use serde::Serialize;

use crate::exit::{Exit, because};
use crate::labs;
use crate::output::{FORMAT, agree, out};

/// Restore what an interrupted run left changed
#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed undo")]
pub(crate) struct UndoArgs {
    /// Restore this network namespace only, and remove no labs
    #[arg(long)]
    pub(crate) here: bool,
    /// Also restore what a write that was cut short may have changed
    ///
    /// Such a write was cut short over two minutes ago; another program may have changed the setting since.
    #[arg(long, conflicts_with = "forget")]
    pub(crate) unsure: bool,
    /// Restore nothing: show what is given up, then remove the journal
    ///
    /// Use it only when undo fails.
    #[arg(long)]
    pub(crate) forget: bool,
    /// With --forget, do not ask
    #[arg(long, requires = "forget")]
    pub(crate) yes: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// The output of `landspeed undo --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct UndoDocument {
    /// Version of this document: 1.
    format: u32,
    /// True if nothing is left to undo.
    is_clean: bool,
    /// Restored and remaining settings, one line each.
    notes: Vec<String>,
    /// Ids of the labs that were removed.
    removed_labs: Vec<String>,
}

pub(crate) fn run(args: &UndoArgs) -> Result<ExitCode> {
    let labs = if args.here { Ok(Vec::new()) } else { labs::down(&LabSelection::Stale) };
    // Settings are restored even if removing labs failed.
    let undo = Undo { all: !args.here, unsure: args.unsure, ..Undo::default() };
    let report = if args.forget { forget(&undo, args.yes)? } else { undo.run()? };
    let (labs, failure) = labs.map_or_else(|error| (Vec::new(), Some(error)), |labs| (labs, None));
    let document = UndoDocument {
        format: FORMAT,
        is_clean: report.clean,
        notes: report.lines.iter().map(|line| landspeed_report::safe(line).to_string()).collect(),
        removed_labs: labs.iter().map(|lab| lab.id.to_string()).collect(),
    };
    if args.json {
        out(&landspeed_report::json(&document))?;
    } else {
        document.notes.iter().try_for_each(|line| out(line))?;
        for lab in &document.removed_labs {
            out(&format!("lab {lab}: taken down, its owner had died"))?;
        }
    }
    if let Some(error) = failure {
        return Err(error);
    }
    Ok(match (report.clean, report.left) {
        (false, _) => because(Exit::NotRestored, "a setting could not be restored; the lines above name it"),
        (true, true) => {
            because(Exit::Left, "another program changed settings meanwhile, and these were left")
        }
        (true, false) => Exit::Done.into(),
    })
}

/// Shows the contents of each journal, and asks before removing it.
fn forget(undo: &Undo, yes: bool) -> Result<UndoReport> {
    let mut refused = None;
    let report = undo.forget(|lines| {
        let shown = lines.iter().try_for_each(|line| out(&landspeed_report::safe(line)));
        let agreed = shown.and_then(|()| if yes { Ok(()) } else { ask() });
        agreed.inspect_err(|e| refused = Some(e.to_string())).is_ok()
    })?;
    refused.map_or(Ok(report), |why| Err(anyhow!(why)))
}

fn ask() -> Result<()> {
    let is_terminal = std::io::stdin().is_terminal();
    ensure!(is_terminal, "nothing was removed: there is no terminal to agree at, add --yes");
    agree("These stay as they are, and landspeed forgets how they were. Go on? [y/N] ")
}
