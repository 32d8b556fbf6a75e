//! `landspeed cc`: lists, loads and unloads congestion controls.

pub(crate) mod recovery;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use landspeed_congestion::{self as congestion, CONTROLS, Control, LoadState, LoadedControl};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::output::{self, FORMAT, out, usage};
use crate::stop::StopRequest;

/// Load congestion controls into the kernel, unload them, and simulate what a loss costs them
#[derive(Debug, Args)]
#[command(after_help = "Example: sudo landspeed cc load scalable")]
pub(crate) struct CcArgs {
    #[command(subcommand)]
    pub(crate) action: CcAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CcAction {
    /// List congestion controls with their TCP_CONGESTION names, and which this host has
    List(ListArgs),
    /// Load congestion controls into the running kernel, for any program, until Ctrl-C; needs root
    #[command(after_help = "Example: sudo landspeed cc load scalable --keep")]
    Load {
        /// Names from `landspeed cc list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Pin them in /sys/fs/bpf and return; they stay until `landspeed cc unload` or the next boot
        #[arg(long)]
        keep: bool,
    },
    /// Unload what `load --keep` loaded; connections that use it keep it until they close
    #[command(after_help = "Example: sudo landspeed cc unload scalable")]
    Unload {
        /// Names from `landspeed cc list`
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
    /// Simulate how long each congestion control takes to recover from one loss on a long path
    Recovery(recovery::RecoveryArgs),
}

/// The output of `landspeed cc list --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ControlList {
    /// Version of this document: 1.
    format: u32,
    /// The congestion controls: landspeed's table, then others that this kernel has.
    controls: Vec<ControlEntry>,
    /// Why no control can be loaded here; null if they can.
    cannot_load_because: Option<String>,
}

/// A congestion control.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ControlEntry {
    /// Its name in landspeed; null for one that landspeed does not know.
    name: Option<String>,
    /// Its name in the literature; null for one that landspeed does not know.
    title: Option<String>,
    /// Its name for TCP_CONGESTION.
    kernel_name: String,
    /// Its present state.
    state: ControlState,
    /// What it does; null for one that landspeed does not know.
    about: Option<String>,
}

/// The state of a congestion control.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ControlState {
    /// Not in this kernel.
    Absent,
    /// Part of this kernel.
    Kernel,
    /// Loaded by landspeed, until the loading process ends.
    Loaded,
    /// Loaded by `cc load --keep`.
    Kept,
    /// Loaded by another program.
    Foreign,
}

pub(crate) fn run(args: &CcArgs) -> Result<ExitCode> {
    match &args.action {
        CcAction::List(form) => list(form)?,
        CcAction::Load { names, keep: false } => hold(names)?,
        CcAction::Load { names, keep: true } => keep(load(names)?)?,
        CcAction::Unload { names } => unload(names)?,
        CcAction::Recovery(args) => recovery::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(form: &ListArgs) -> Result<()> {
    let cannot_load_because = congestion::can_load().err();
    let controls = CONTROLS.iter().map(|row| entry(row)).chain(others()).collect();
    let document = ControlList { format: FORMAT, controls, cannot_load_because };
    let heads = ["control", "name", "TCP_CONGESTION", "here", "what it does"];
    let rows: Vec<Vec<String>> = document.controls.iter().map(row).collect();
    output::list(&heads, &rows, &document, form)?;
    output::next(form.json, "landspeed compare -p cubic,bbr")?;
    if let (Some(reason), false) = (&document.cannot_load_because, form.json) {
        eprintln!("none can be loaded here: {reason}");
    }
    Ok(())
}

fn entry(row: &Control) -> ControlEntry {
    ControlEntry {
        name: Some(row.name.to_owned()),
        title: Some(row.title.to_owned()),
        kernel_name: row.kernel_name.to_owned(),
        state: match congestion::state(row) {
            LoadState::Absent => ControlState::Absent,
            LoadState::Available if row.is_kernels() => ControlState::Kernel,
            LoadState::Available => ControlState::Loaded,
            LoadState::Kept(_) => ControlState::Kept,
        },
        about: Some(row.about.to_owned()),
    }
}

fn others() -> impl Iterator<Item = ControlEntry> {
    let names = congestion::available().into_iter();
    let others = names.filter(|name| CONTROLS.iter().all(|row| row.kernel_name != name));
    others.map(|kernel_name| ControlEntry {
        name: None,
        title: None,
        kernel_name,
        state: ControlState::Foreign,
        about: None,
    })
}

fn row(entry: &ControlEntry) -> Vec<String> {
    let state = match entry.state {
        ControlState::Absent => "-",
        ControlState::Kernel => "the kernel's",
        ControlState::Loaded => "loaded",
        ControlState::Kept => "kept",
        ControlState::Foreign => "loaded by others",
    };
    let words = |words: &Option<String>| words.clone().unwrap_or_default();
    vec![
        words(&entry.title),
        words(&entry.name),
        entry.kernel_name.clone(),
        state.to_owned(),
        words(&entry.about),
    ]
}

/// Loads the controls and waits for Ctrl-C. However this process ends, the controls are unloaded.
fn hold(names: &[String]) -> Result<()> {
    let stop = StopRequest::on_signals()?;
    stop.in_order("");
    let loaded = load(names)?;
    for control in &loaded {
        let name = control.row().kernel_name;
        out(&format!(
            "{name} is loaded: any program may choose it by TCP_CONGESTION until this ends (Ctrl-C)"
        ))?;
    }
    stop.wait();
    Ok(())
}

fn load(names: &[String]) -> Result<Vec<LoadedControl>> {
    names.iter().map(|name| congestion::load(name).map_err(wrong_name)).collect()
}

fn keep(controls: Vec<LoadedControl>) -> Result<()> {
    let mut kept: Vec<&Control> = Vec::new();
    for control in controls {
        let row = control.row();
        match control.keep() {
            Ok(path) => out(&format!("{} is loaded and stays: {}", row.kernel_name, path.display()))?,
            Err(error) => {
                // If one control cannot be loaded, none stays loaded.
                for row in kept {
                    congestion::unload(row.name)?;
                }
                return Err(error.into());
            }
        }
        kept.push(row);
    }
    Ok(())
}

fn unload(names: &[String]) -> Result<()> {
    for name in names {
        let row = congestion::unload(name).map_err(wrong_name)?;
        out(&format!("{} is gone for new connections", row.kernel_name))?;
    }
    Ok(())
}

/// Converts an error: an unknown name is a usage error, any other error a failure of this host.
fn wrong_name(error: congestion::Error) -> anyhow::Error {
    if matches!(error, congestion::Error::Unknown { .. }) { usage(error) } else { error.into() }
}
