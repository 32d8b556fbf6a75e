//! Supports cells of a grid whose workload is not the grid's own, such as a program.

use landspeed_record::units::Bytes;
use landspeed_record::{EndpointOutcome, Grid, LatencyHistogram, ProgramFigures, Workload};
use landspeed_workload::program_of;

use crate::Error;

/// Name of the setting that gives a cell another workload than the grid's.
pub(crate) const WORKLOAD: &str = "workload";

/// Names of units of rates, with their values in bit/s.
const RATES: [(&str, f64); 3] = [("b/s", 1.0), ("Mb/s", 1e6), ("Gb/s", 1e9)];
/// Names of units of times, with their values in nanoseconds.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

fn scale(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(known, _)| *known == unit).map(|(_, scale)| *scale)
}

/// Returns an error if the figure of a cell's workload cannot be compared with the figure of the grid's workload.
pub(super) fn check(grid: &Grid, workload: &Workload) -> Result<(), Error> {
    if workload.name == grid.workload.name {
        return Ok(());
    }
    if program_of(&grid.workload).is_some() {
        let why =
            format!("{}: name a workload of landspeed for the file, and programs beside it", workload.name);
        return Err(Error::Other(why));
    }
    match program_of(workload) {
        Some(program) if scale(&RATES, &program.unit).or(scale(&TIMES, &program.unit)).is_none() => {
            Err(Error::Other(format!(
                "{}: {} is in {}, and workloads of landspeed are compared by a rate in b/s or by a time",
                workload.name, program.figure, program.unit
            )))
        }
        _ => Ok(()),
    }
}

/// Converts a program's figure to the terms of landspeed's own workloads. A rate becomes the bytes that it would
/// receive in the window, and a time becomes a latency.
pub(super) fn in_own_terms(end: &mut EndpointOutcome) {
    let Some(figure) = end.get::<ProgramFigures>().deciding().cloned() else { return };
    let value = |units: &[(&str, f64)]| scale(units, &figure.unit).map(|scale| scale * figure.value);
    match (value(&RATES), value(&TIMES)) {
        (Some(bps), _) => end.received_bytes = Bytes((bps / 8.0 * end.window_ns.as_secs_f64()) as u64),
        (_, Some(ns)) => {
            end.latency = vec![LatencyHistogram { size_bytes: Bytes(0), bins: vec![(ns as u64, 1)] }];
        }
        (None, None) => return,
    }
    end.details.remove::<ProgramFigures>();
}

#[cfg(test)]
mod tests {
    use landspeed_analysis::BothEnds;
    use landspeed_record::units::{BitRate, Nanos};
    use landspeed_record::{GridFigure, GridTrial, HostFacts, ProgramFigure};

    use super::*;

    fn trial(unit: &str, value: f64) -> GridTrial {
        let figure = ProgramFigure {
            name: "figure".into(),
            unit: unit.into(),
            value,
            more_is_better: unit.ends_with("b/s"),
        };
        let mut a = EndpointOutcome { window_ns: Nanos::millis(1_500), ..EndpointOutcome::default() }
            .with(ProgramFigures { asked: "figure".into(), all: vec![figure] });
        in_own_terms(&mut a);
        let host = HostFacts::default();
        let ends = BothEnds { seen: [&a, &EndpointOutcome::default()], hosts: [&host; 2] };
        let figures = landspeed_analysis::figures(&[ends], None);
        GridTrial { a, figures, ..GridTrial::default() }
    }

    #[test]
    fn a_programs_rate_is_goodput_and_its_time_is_latency() {
        let rate = trial("Gb/s", 8.0);
        assert_eq!(rate.figures.rate_bps, BitRate(8e9));
        assert_eq!(rate.figure(GridFigure::PROGRAM), None, "one figure, not two");
        assert_eq!(trial("us", 12.5).figure(GridFigure::LATENCY), Some(12_500.0));
        assert_eq!(trial("requests/s", 9.0).figure(GridFigure::PROGRAM), Some(9.0));
    }
}
