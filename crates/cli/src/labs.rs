//! Labs of this machine: made, and taken down with what journals of knobs say of their hosts.

use std::process::ExitCode;

use anyhow::{Result, bail};
use landspeed_knob::journal;
use landspeed_topology::lab::{self, Removed, Which};
use landspeed_topology::{self as topology, Hosts};

/// Whether the words name hosts that landspeed makes itself.
pub(crate) fn is_lab(words: &[String]) -> bool {
    let plan = topology::find(words).and_then(|topology| topology.plan(words));
    plan.is_ok_and(|plan| plan.is_lab())
}

/// Opens the hosts that the words name. Where these are a lab, those that a crash left behind go.
pub(crate) fn open(words: &[String]) -> Result<Box<dyn Hosts>> {
    let hosts = topology::open(words)?;
    if hosts.is_lab() {
        sweep();
    }
    Ok(hosts)
}

/// Takes down labs whose owner has died; what cannot be is said, and no reason not to go on.
pub(crate) fn sweep() {
    if let Err(error) = down(&Which::Stale) {
        let line = landspeed_report::safe(&format!("{error:#}"));
        eprintln!("landspeed: a lab that was left behind stays: {line}");
    }
}

/// Takes labs down. The settings of their hosts went with them, and so do journals about these.
pub(crate) fn down(which: &Which) -> Result<Vec<Removed>> {
    let gone = lab::down(which)?;
    forget(&gone)?;
    Ok(gone)
}

/// Takes down the labs of this process, which makes no more.
pub(crate) fn leave() -> Result<()> {
    forget(&lab::leave()?)
}

/// Plays the keeper of the process that started this one; never called by a person.
pub(crate) fn keep() -> Result<ExitCode> {
    if !lab::outlive_owner() {
        eprintln!("landspeed keeper is started by a process that makes a lab, not by hand");
        return Ok(ExitCode::from(2));
    }
    down(&Which::Stale)?;
    Ok(ExitCode::SUCCESS)
}

fn forget(gone: &[Removed]) -> Result<()> {
    let cookies: Vec<u64> = gone.iter().flat_map(|lab| lab.cookies.iter().copied()).collect();
    let report = journal::undo_namespaces(&cookies)?;
    if !report.clean {
        bail!("{}; run `landspeed undo`", report.lines.join("; "));
    }
    Ok(())
}
