//! `landspeed knobs`.

use std::process::ExitCode;

use anyhow::Result;
use landspeed_experiment::all_factors;
use landspeed_factor::Factor;
use landspeed_knob::{self as knob, Place};
use landspeed_record::KnobState;
use landspeed_report::Output;
use landspeed_transport::TRANSPORTS;
use landspeed_transport::settings::{TRANSPORT, defaults};

use crate::args::KnobsArgs;
use crate::output::out;

pub(crate) fn run(args: &KnobsArgs) -> Result<ExitCode> {
    let width = Output::stdout().width;
    let table = match &args.interface {
        None => {
            let row = |factor: &'static Factor| {
                let (scope, domain) = (factor.scope.to_string(), factor.domain.to_string());
                vec![factor.name.to_owned(), scope, domain, factor.about.to_owned()]
            };
            let rows: Vec<Vec<String>> = all_factors().all().map(row).collect();
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

fn flow() -> impl Iterator<Item = Vec<String>> {
    let flow = TRANSPORTS.iter().flat_map(|transport| defaults(*transport));
    let usual: std::collections::BTreeMap<_, _> = flow.filter(|(name, _)| *name != TRANSPORT.name).collect();
    usual.into_iter().map(|(name, value)| vec![name, value, "a flow's own: --set or tune".to_owned()])
}
