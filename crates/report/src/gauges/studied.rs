//! Gauges of grids and of studies.

use landspeed_record::{
    CompareReport, ContestFigures, FigureUnit, GridCell, GridCurves, GridReport, ParallelStreamFigures,
};

use super::{Gauge, Labels, labels};

pub(crate) fn of_grid(report: &GridReport) -> Vec<Gauge> {
    let at = |cell: &GridCell| -> Labels {
        let factors = report.factors.iter().map(|factor| factor.name.clone());
        let values = factors.zip(cell.values.iter().cloned()).collect();
        [values, labels([("workload", &report.workload.name)])].concat()
    };
    let gauge = |curves: &GridCurves| {
        let row = &*curves.figure;
        let (per, unit) = base_unit(row.unit);
        let name = match &curves.program {
            Some(program) => format!("grid_{}", program.figure),
            None => format!("grid_{}", row.name),
        };
        let mean = |cell: &GridCell| (at(cell), cell.mean.map(|mean| mean / per));
        Gauge::new(&name, unit, &format!("{}, mean of a cell.", row.title)).all(curves.cells.iter().map(mean))
    };
    report.figures.iter().map(gauge).collect()
}

/// Returns the divisor that converts a figure to its base unit, and the name of the base unit.
fn base_unit(unit: FigureUnit) -> (f64, &'static str) {
    match unit {
        FigureUnit::BitRate => (8.0, "bytes_per_second"),
        FigureUnit::BytesPerCpuSecond => (1.0, "bytes_per_cpu_second"),
        FigureUnit::Time => (1e9, "seconds"),
        FigureUnit::DatagramRate => (1.0, "datagrams_per_second"),
        FigureUnit::Share => (1.0, "ratio"),
        FigureUnit::Cores => (1.0, "cores"),
        FigureUnit::CoresPerGbps | FigureUnit::Program | FigureUnit::ProgramPerCpuSecond => (1.0, ""),
    }
}

pub(crate) fn of_study(report: &CompareReport) -> Vec<Gauge> {
    let each = |pick: fn(&ContestFigures) -> Option<f64>| {
        let of = move |one: &ContestFigures| (labels([("control", &one.protocol)]), pick(one));
        report.protocols.iter().map(of).collect::<Vec<_>>()
    };
    let together = |one: &ParallelStreamFigures| {
        let rate = Some(one.rate_bps.0 / 8.0).filter(|rate| *rate > 0.0);
        (labels([("streams", one.streams)]), rate)
    };
    let goodput = |one: &ContestFigures| Some(one.mean_bps.0 / 8.0).filter(|rate| *rate > 0.0);
    vec![
        Gauge::new(
            "study_goodput",
            "bytes_per_second",
            "Goodput of all flows of a congestion control together.",
        )
        .all(each(goodput)),
        Gauge::new("study_streams_goodput", "bytes_per_second", "Goodput of parallel streams together.")
            .all(report.streams.iter().map(together)),
        Gauge::new("study_round_trip", "seconds", "Mean round trip of the probe beside the flows.")
            .all(each(|one| one.rtt_mean_s)),
        Gauge::new("study_resent", "ratio", "Retransmitted segments per delivered segment.")
            .all(each(|one| one.resent_share)),
        Gauge::new("study_fairness_min", "ratio", "Lowest Jain's index of the regions with several flows.")
            .all(each(|one| one.fairness_min)),
    ]
}
