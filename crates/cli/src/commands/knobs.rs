//! `landspeed knobs`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_knob::{self as knob, Place};
use landspeed_record::{FlowSettings, KnobState};
use landspeed_report::Output;

use crate::args::KnobsArgs;
use crate::commands::show::out;

/// Runs the command.
pub(crate) fn run(args: &KnobsArgs) -> Result<ExitCode> {
    let width = Output::stdout().width;
    let table = match &args.interface {
        None => {
            let rows: Vec<Vec<String>> = knob::all()
                .map(|k| {
                    vec![
                        k.row.name.to_owned(),
                        k.row.scope.to_string(),
                        k.row.domain.to_string(),
                        k.row.about.to_owned(),
                    ]
                })
                .collect();
            landspeed_report::table(&["knob", "scope", "takes", "what it does"], &rows, width)
        }
        Some(device) => {
            let states = knob::probe(&Place { device: device.clone() });
            let rows: Vec<Vec<String>> = states.iter().map(here).chain(flow()).collect();
            landspeed_report::table(&["knob", "now", "why it cannot be turned here"], &rows, width)
        }
    };
    out(&table)?;
    Ok(ExitCode::SUCCESS)
}

fn here(state: &KnobState) -> Vec<String> {
    let value = state.value.clone().unwrap_or_else(|| "-".to_owned());
    vec![state.knob.clone(), value, state.skip.clone().unwrap_or_default()]
}

/// What a flow uses unless told otherwise.
fn flow() -> impl Iterator<Item = Vec<String>> {
    let usual = knob::flow_cell(&FlowSettings::default());
    usual.into_iter().map(|(name, value)| vec![name, value, "a flow's own: --set or tune".to_owned()])
}
