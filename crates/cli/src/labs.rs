//! Creates and removes labs of this machine. The removal of a lab includes the journals about its hosts' settings.

use std::process::ExitCode;

use anyhow::{Result, bail};
use landspeed_knob::journal;
use landspeed_lab::topology::lab::{self, LabSelection, RemovedLab};
use landspeed_lab::topology::{self as topology, HostSet, TopologyPlan};

use crate::failure::{in_one_line, note, warn};

/// Returns true if the words name a lab, whose hosts landspeed creates itself.
pub(crate) fn is_lab(words: &[String]) -> bool {
    plan(words).is_some_and(|plan| plan.is_lab())
}

/// Returns true if the words name a lab whose hosts share the kernel of this machine.
pub(crate) fn shares_kernel(words: &[String]) -> bool {
    plan(words).is_some_and(|plan| plan.shares_kernel())
}

/// Returns true if the words name a lab whose hosts are virtual machines.
pub(crate) fn are_guests(words: &[String]) -> bool {
    plan(words).is_some_and(|plan| plan.has_guests())
}

fn plan(words: &[String]) -> Option<TopologyPlan> {
    topology::find(words).and_then(|topology| topology.plan(words)).ok()
}

/// Opens the hosts that the words name. Opening a lab removes the labs that a crash left behind.
pub(crate) fn open(words: &[String]) -> Result<Box<dyn HostSet>> {
    let topology = topology::find(words)?;
    if let Some(caveat) = topology.caveat()
        && topology.can_run().is_ok()
    {
        note(&format!("the hosts boot, which takes a minute or two; {caveat}"));
    }
    let hosts = topology::open(words)?;
    if hosts.is_lab() {
        sweep();
    }
    Ok(hosts)
}

/// Removes labs whose owner has died. A failure is reported and ignored.
pub(crate) fn sweep() {
    if let Err(error) = down(&LabSelection::Stale) {
        // No later command says it: the lab may be gone, and a setting of it not restored.
        warn(&format!("a lab that was left behind stays: {}", in_one_line(&error)));
    }
}

/// Removes labs, and the journals about the settings of their hosts, which no longer exist.
pub(crate) fn down(which: &LabSelection) -> Result<Vec<RemovedLab>> {
    let gone = lab::down(which)?;
    forget(&gone)?;
    Ok(gone)
}

/// Removes the labs of this process. Afterwards, a thread that creates a lab waits forever, so the process must end.
pub(crate) fn leave() -> Result<()> {
    forget(&lab::leave()?)
}

/// Runs the keeper, which waits until the process that started it has died and then removes labs whose owner has died.
/// If a user started it by hand, prints an error instead.
pub(crate) fn keep() -> Result<ExitCode> {
    if !lab::outlive_owner() {
        eprintln!("landspeed keeper is started by a process that makes a lab, not by hand");
        return Ok(ExitCode::from(2));
    }
    down(&LabSelection::Stale)?;
    Ok(ExitCode::SUCCESS)
}

fn forget(gone: &[RemovedLab]) -> Result<()> {
    let cookies: Vec<u64> = gone.iter().flat_map(|lab| lab.cookies.iter().copied()).collect();
    let report = journal::undo_namespaces(&cookies)?;
    if !report.clean {
        bail!("{}; run `landspeed undo`", report.lines.join("; "));
    }
    Ok(())
}
