//! `landspeed undo`: restores what an interrupted run left changed.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, ensure};
use clap::Args;
use landspeed_engine::UndoRequest;
use landspeed_knob::journal::{Undo, UndoReport};
use landspeed_lab::topology::lab::{self, LabSelection};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::because;
use crate::groups::ReachArgs;
use crate::output::{FORMAT, agree, next, out};
use crate::{hosts, labs};

/// Restore what an interrupted run left changed
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
             sudo landspeed undo            this host\n  \
             landspeed undo dtn1 dtn2       other hosts, by ssh\n  \
             landspeed undo dtn2 --dry-run  what it would restore there")]
pub(crate) struct UndoArgs {
    /// Hosts to restore [default: this one]
    ///
    /// A host is [user@]host, 'local', 'netns:NAME' or the line that `landspeed agent --listen --allow-tune` printed.
    /// Labs are removed on this host only.
    #[arg(value_name = "HOST", conflicts_with = "forget")]
    pub(crate) hosts: Vec<String>,
    /// Show what would be restored, and change nothing
    #[arg(long, conflicts_with = "forget")]
    pub(crate) dry_run: bool,
    /// Restore this network namespace only, and remove no labs
    #[arg(long)]
    pub(crate) here: bool,
    /// Also restore what an interrupted write may have changed
    ///
    /// The write was interrupted more than two minutes ago, so another program may have changed the setting since.
    #[arg(long, conflicts_with = "forget")]
    pub(crate) unsure: bool,
    /// Restore nothing: show what is given up, then remove the journal
    ///
    /// Use it only when undo fails.
    #[arg(long)]
    pub(crate) forget: bool,
    /// With --forget, do not ask
    #[arg(short, long, requires = "forget")]
    pub(crate) yes: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
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
    if !args.hosts.is_empty() {
        return there(args);
    }
    if args.dry_run {
        return here_dry(args);
    }
    let labs = if args.here { Ok(Vec::new()) } else { labs::down(&LabSelection::Stale) };
    // Settings are restored even if removing labs failed.
    let undo = Undo { all: !args.here, unsure: args.unsure, ..Undo::default() };
    let report = if args.forget { forget(&undo, args.yes)? } else { undo.run()? };
    let (labs, failure) = labs.map_or_else(|error| (Vec::new(), Some(error)), |labs| (labs, None));
    let removed_labs: Vec<String> = labs.iter().map(|lab| lab.id.to_string()).collect();
    print(&report.lines, report.clean, &removed_labs, args.json)?;
    if let Some(error) = failure {
        return Err(error);
    }
    Ok(exit(report.clean, report.left))
}

fn exit(is_clean: bool, left: bool) -> ExitCode {
    match (is_clean, left) {
        (false, _) => because(Exit::NotRestored, "a setting could not be restored; the lines above name it"),
        (true, true) => {
            because(Exit::Left, "another program changed settings meanwhile, and these were left")
        }
        (true, false) => Exit::Done.into(),
    }
}

fn print(lines: &[String], is_clean: bool, removed_labs: &[String], json: bool) -> Result<()> {
    let document = UndoDocument {
        format: FORMAT,
        is_clean,
        notes: lines.iter().map(|line| landspeed_report::safe(line).to_string()).collect(),
        removed_labs: removed_labs.to_vec(),
    };
    if json {
        return out(&landspeed_report::json(&document));
    }
    document.notes.iter().try_for_each(|line| out(line))?;
    removed_labs.iter().try_for_each(|lab| out(&format!("lab {lab}: taken down, its owner had died")))
}

/// Shows what would be restored on this host, and which labs would be removed.
fn here_dry(args: &UndoArgs) -> Result<ExitCode> {
    let report = Undo { all: !args.here, ..Undo::default() }.preview()?;
    let labs = if args.here { Vec::new() } else { lab::list()? };
    let stale =
        labs.iter().filter(|lab| !lab.alive).map(|lab| format!("lab {}: would be taken down", lab.id));
    let lines: Vec<String> = report.lines.iter().cloned().chain(stale).collect();
    print(&lines, report.clean, &[], args.json)?;
    if report.clean && lines.len() == report.lines.len() {
        return Ok(ExitCode::SUCCESS);
    }
    next(args.json, if args.here { "sudo landspeed undo --here" } else { "sudo landspeed undo" })?;
    Ok(ExitCode::SUCCESS)
}

/// Restores other hosts through their agents. If a host cannot be reached, the other hosts are still restored.
fn there(args: &UndoArgs) -> Result<ExitCode> {
    let reached = hosts::apart(&args.hosts, &args.reach, true)?;
    let (mut lines, mut is_clean, mut left) = (Vec::new(), true, false);
    let mut failure = None;
    for (word, host) in args.hosts.iter().zip(reached) {
        // An agent in a namespace restores only that namespace.
        let here = args.here || word.starts_with("netns:");
        let request = UndoRequest { here, unsure: args.unsure, dry_run: args.dry_run };
        match host.and_then(|host| Ok((host.name.clone(), host.undo(&request)?))) {
            Ok((name, done)) => {
                lines.extend(done.lines.iter().map(|line| format!("{name}: {line}")));
                (is_clean, left) = (is_clean && done.is_clean, left || done.left);
            }
            Err(error) => failure = Some(failure.map_or(error, |first: Error| first)),
        }
    }
    print(&lines, is_clean && failure.is_none(), &[], args.json)?;
    match failure {
        Some(error) => Err(error),
        None if args.dry_run => {
            if !is_clean {
                let hosts: Vec<String> =
                    args.hosts.iter().map(|host| landspeed_report::quoted(host)).collect();
                next(args.json, &format!("landspeed undo {}", hosts.join(" ")))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        None => Ok(exit(is_clean, left)),
    }
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
