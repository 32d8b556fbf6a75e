//! `landspeed lab`: holds, lists and removes labs, or makes a path slow on purpose.

pub(crate) mod faults;
pub(crate) mod held;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use landspeed_lab::topology::TOPOLOGIES;
use landspeed_lab::topology::lab::{self, LabInfo};
use serde::Serialize;

use crate::groups::ListArgs;
use crate::labs;
use crate::output::{self, FORMAT, out};

/// Hold, list and remove labs, or make a path slow on purpose
#[derive(Debug, Args)]
#[command(after_help = topologies())]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) action: LabAction,
}

/// Returns the list of all topologies for help.
fn topologies() -> String {
    let lines = TOPOLOGIES.iter().map(|topology| topology.about());
    let lines: String = lines.map(|about| format!("  {}\n      {}\n", about.syntax, about.line)).collect();
    format!(
        "Topologies, as commands take them:\n{lines}docs/reference/topologies.md draws them.\n\nExamples:\n  \
         sudo landspeed lab up mine lab:wan:rate=1G,rtt=20ms   a lab for your own programs\n  \
         sudo landspeed lab enter mine b -- iperf3 -s          run one on its host b\n  \
         sudo landspeed lab down mine                          remove it"
    )
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabAction {
    /// Make a lab and hold it, until `lab down`, for programs of your own
    #[command(
        after_help = "Example: sudo landspeed lab up mine lab:wan:rate=1G,rtt=20ms\n\n`landspeed lab --help` lists the labs."
    )]
    Up {
        /// Name of your choice, and the lab [default: 'lab' and lab:back-to-back]
        #[arg(value_name = "NAME|LAB", num_args = 0..=2)]
        words: Vec<String>,
    },
    /// Run a shell or a command on a host of a lab that is up
    #[command(after_help = "Example: sudo landspeed lab enter mine b -- iperf3 -s")]
    Enter {
        /// The lab, and its host [default: the only lab that is up, and its first host]
        #[arg(value_name = "NAME|HOST", num_args = 0..=2)]
        words: Vec<String>,
        /// Run this in place of a shell
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// List labs, and whether their owner still runs
    List(ListArgs),
    /// Remove a lab by its name or id, or every lab whose owner has died
    ///
    /// In a lab of `lab up`, the programs that still run are ended.
    #[command(
        after_help = "Examples:\n  sudo landspeed lab down mine   this one\n  sudo landspeed lab down        those that a crash left"
    )]
    Down {
        /// Name or id of the lab [default: all labs that a crash left]
        name: Option<String>,
    },
    /// Make a path slow on purpose, to see what `explain` says
    ///
    /// Without a name, it lists the faults.
    #[command(after_help = "Example: sudo landspeed lab faults slow-reader=0.8 send-buffer")]
    Faults {
        /// Faults to combine on one flow, each with its own strength if one is given
        #[arg(value_name = "FAULT[=STRENGTH]")]
        names: Vec<String>,
        /// Strength of the faults that have none of their own: 0 is a nuisance, 1 a disaster
        #[arg(long, default_value_t = 0.5, value_name = "0..1")]
        strength: f64,
        #[command(flatten)]
        form: ListArgs,
    },
}

/// The output of `landspeed lab list --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct LabList {
    /// Version of this document: 1.
    format: u32,
    /// The labs of this machine.
    labs: Vec<LabEntry>,
}

/// A lab.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct LabEntry {
    /// The id that `lab down` takes.
    id: String,
    /// The name of a lab that `lab up` holds; null for a lab that one command made for itself.
    name: Option<String>,
    /// The topology from which the lab was created.
    topology: String,
    /// Id of the process that created it.
    owner_pid: u32,
    /// True if that process is still running; otherwise a crash left the lab behind.
    is_running: bool,
    /// Its network namespaces.
    namespaces: Vec<String>,
    /// Time of creation, in seconds since 1970.
    created_unix_s: u64,
}

pub(crate) fn run(args: &LabArgs) -> Result<ExitCode> {
    match &args.action {
        LabAction::List(form) => list(form),
        LabAction::Up { words } => held::up(words),
        LabAction::Enter { words, command } => held::enter(words, command),
        LabAction::Down { name } => down(name.as_deref()),
        LabAction::Faults { names, form, .. } if names.is_empty() => faults::list(form),
        LabAction::Faults { names, strength, .. } => faults::hold(names, *strength),
    }
}

fn list(form: &ListArgs) -> Result<ExitCode> {
    let document = LabList { format: FORMAT, labs: lab::list()?.into_iter().map(entry).collect() };
    if document.labs.is_empty() && !form.json {
        eprintln!("no labs");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = document.labs.iter().map(row).collect();
    output::list(&["lab", "topology", "owner", "state", "namespaces"], &rows, &document, form)?;
    if document.labs.iter().any(|lab| !lab.is_running) {
        output::next(form.json, "landspeed lab down   # removes those that were left behind")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(lab: LabInfo) -> LabEntry {
    LabEntry {
        id: lab.id.to_string(),
        name: lab.name.as_deref().map(landspeed_report::safe),
        topology: landspeed_report::safe(&lab.label).to_string(),
        owner_pid: lab.owner_pid,
        is_running: lab.alive,
        namespaces: lab.namespaces,
        created_unix_s: lab.created_unix_s,
    }
}

fn row(lab: &LabEntry) -> Vec<String> {
    let state = match (&lab.name, lab.is_running) {
        (_, false) => "left behind".to_owned(),
        (Some(name), true) => format!("up, as {name}"),
        (None, true) => "running".to_owned(),
    };
    let (owner, namespaces) = (lab.owner_pid.to_string(), lab.namespaces.join(" "));
    vec![lab.id.clone(), lab.topology.clone(), owner, state, namespaces]
}

fn down(name: Option<&str>) -> Result<ExitCode> {
    let which = match name {
        Some(name) => lab::LabSelection::Id(lab::find_held(Some(name))?.id),
        None => lab::LabSelection::Stale,
    };
    let gone = labs::down(&which)?;
    if gone.is_empty() {
        eprintln!("no lab was left behind{}", held::still_up()?);
    }
    for lab in gone {
        let ended = match lab.ended.len() {
            0 => String::new(),
            1 => ", 1 process ended".to_owned(),
            count => format!(", {count} processes ended"),
        };
        out(&format!("{}: down{ended}", lab.id))?;
    }
    Ok(ExitCode::SUCCESS)
}
