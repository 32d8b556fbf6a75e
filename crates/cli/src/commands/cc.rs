//! `landspeed cc`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_congestion::{self as congestion, CONTROLS, Control, Loaded, State};
use landspeed_report::Output;

use crate::args::{CcAction, CcArgs};
use crate::output::out;
use crate::stop::Stop;

pub(crate) fn run(args: &CcArgs) -> Result<ExitCode> {
    match &args.action {
        CcAction::List => list()?,
        CcAction::Load { names, keep: false } => hold(names)?,
        CcAction::Load { names, keep: true } => keep(load(names)?)?,
        CcAction::Unload { names } => unload(names)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list() -> Result<()> {
    let rows: Vec<Vec<String>> = CONTROLS.iter().map(|row| line(row)).chain(others()).collect();
    let heads = ["control", "TCP_CONGESTION", "here", "what it does"];
    out(&landspeed_report::table(&heads, &rows, Output::stdout().width))?;
    if let Err(reason) = congestion::can_load() {
        eprintln!("none can be loaded here: {reason}");
    }
    Ok(())
}

fn line(row: &Control) -> Vec<String> {
    let here = match congestion::state(row) {
        State::Absent => "-".to_owned(),
        State::Available if row.is_kernels() => "the kernel's".to_owned(),
        State::Available => "loaded".to_owned(),
        State::Kept(_) => "kept".to_owned(),
    };
    vec![row.title.to_owned(), row.kernel_name.to_owned(), here, row.about.to_owned()]
}

fn others() -> impl Iterator<Item = Vec<String>> {
    let names = congestion::available().into_iter();
    let others = names.filter(|name| CONTROLS.iter().all(|row| row.kernel_name != name));
    others.map(|name| vec![String::new(), name, "loaded by others".to_owned(), String::new()])
}

/// Until Ctrl-C. Whatever ends this process takes the controls out.
fn hold(names: &[String]) -> Result<()> {
    let stop = Stop::on_signals()?;
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

fn load(names: &[String]) -> Result<Vec<Loaded>> {
    Ok(names.iter().map(|name| congestion::load(name)).collect::<Result<_, _>>()?)
}

fn keep(controls: Vec<Loaded>) -> Result<()> {
    let mut kept: Vec<&Control> = Vec::new();
    for control in controls {
        let row = control.row();
        match control.keep() {
            Ok(path) => out(&format!("{} is loaded and stays: {}", row.kernel_name, path.display()))?,
            Err(error) => {
                // All of them, or none.
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
        let row = congestion::unload(name)?;
        out(&format!("{} is gone for new connections", row.kernel_name))?;
    }
    Ok(())
}
