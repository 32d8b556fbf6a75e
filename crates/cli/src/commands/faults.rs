//! `landspeed lab faults`: known causes of slow paths, made on purpose.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use landspeed_faults::{FAULTS, Scenario, Stage};
use landspeed_report::Output;

use crate::commands::show::out;
use crate::stop::Stop;

/// Lists them.
pub(crate) fn list() -> Result<ExitCode> {
    let rows: Vec<Vec<String>> =
        FAULTS.iter().map(|fault| vec![fault.name.to_owned(), fault.about.to_owned()]).collect();
    out(&landspeed_report::table(&["fault", "what it does"], &rows, Output::stdout().width))?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the faults up and holds them until Ctrl-C; says where the flow is.
pub(crate) fn hold(names: &[String], strength: f64) -> Result<ExitCode> {
    if !(0.0..=1.0).contains(&strength) {
        bail!("--strength {strength}: expected a number from 0 (a nuisance) to 1 (a disaster)");
    }
    let scenario = Scenario::with(names, strength)?;
    let stop = Stop::on_signals()?;
    let own = std::env::current_exe().context("cannot find landspeed itself")?;
    let stage = Stage::set(&scenario, &[own.display().to_string(), "play".to_owned()])?;
    let [a, b] = stage.names();
    out(&format!(
        "{} at strength {strength}: {a} sends to {b}\nin another terminal:  landspeed explain {a} {b} --flow {}\nCtrl-C ends it",
        names.join(" and "),
        stage.at()
    ))?;
    while !stop.asked() {
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(stage);
    Ok(ExitCode::SUCCESS)
}

/// Plays a part of a scenario; never called by a person.
pub(crate) fn play() -> Result<ExitCode> {
    landspeed_faults::play()?;
    Ok(ExitCode::SUCCESS)
}
