//! Measures a grid of one program on this host over each path below its sockets. No other host takes part.

use landspeed_analysis::grid::{GridDesigner, GridVisit};
use landspeed_record::units::Nanos;
use landspeed_record::{
    EndpointOutcome, Grid, GridFactor, GridFigure, GridSetting, GridSettingTarget, GridTrial, HERE, Header,
    HostFacts, Line, ProgramFigure, ProgramFigures, ProgramMetric, Side, Workload,
};

use super::{begin, soft_rdma};
use crate::drive::{RunClock, drive};
use crate::{Error, RecordSink};

/// The times of a run of the program.
#[derive(Debug, Clone, Copy)]
pub struct LocalRunTimes {
    /// Time from the program's start to its end.
    pub took: Nanos,
    /// Processor time of all its processes, and of the processes that carried its connections.
    pub cpu: Nanos,
}

const TIME: &str = "time";

/// Returns the grid of a program over `paths`, of which the first is the reference.
pub fn here(title: &str, paths: &[String], (blocks, seed): (u32, u64)) -> Grid {
    let value = |value: &String| {
        vec![GridSetting { name: "path".into(), place: GridSettingTarget::Workload, value: value.clone() }]
    };
    let path = GridFactor {
        name: "path".into(),
        levels: paths.to_vec(),
        sets: paths.iter().map(value).collect(),
        ..GridFactor::default()
    };
    let program =
        ProgramMetric { workload: HERE.into(), figure: TIME.into(), unit: "s".into(), less_is_better: true };
    Grid {
        workload: Workload::new(HERE),
        program: Some(program),
        factors: vec![path],
        figure: GridFigure::PROGRAM,
        blocks: Some(blocks),
        seed,
        has_placebos: true,
        title: title.to_owned(),
        ..Grid::default()
    }
}

/// Runs the program block by block, and records the trials. `run` runs it once over the path of the given name. A run
/// that fails costs only its own trial.
///
/// # Errors
/// Returns an error if the record cannot be written.
pub fn run_here(
    grid: &Grid,
    (head, facts): (&Header, HostFacts),
    run: &mut dyn FnMut(&str) -> Result<LocalRunTimes, String>,
    sink: &mut dyn RecordSink,
) -> Result<(), Error> {
    begin(grid, head, sink)?;
    soft_rdma::note(grid, &[&facts], sink)?;
    sink.line(&Line::Host { side: Side::A, facts: Box::new(facts) })?;
    let clock = RunClock::after(Nanos(0));
    let end = drive(&mut GridDesigner::new(grid, &[]), clock, sink, |visit, stop| {
        let GridVisit { block, plot, cell, .. } = visit;
        let at_ns = clock.used();
        let ran = run(grid.values_of(cell)[0]);
        let took_ns = clock.used().saturating_sub(at_ns);
        let trial = GridTrial { block, plot, cell, at_ns, took_ns, ..trial_of(ran) };
        // A run that the user has ended is no trial.
        Ok((!stop()).then(|| visit.line(trial)))
    })?;
    Ok(sink.line(&Line::GridEnd(end))?)
}

fn trial_of(ran: Result<LocalRunTimes, String>) -> GridTrial {
    let figure = |name: &str, time: Nanos| ProgramFigure {
        name: name.into(),
        unit: "s".into(),
        value: time.as_secs_f64(),
        more_is_better: false,
    };
    match ran {
        Ok(ran) => {
            let all = vec![figure(TIME, ran.took), figure("processor time", ran.cpu)];
            let a = EndpointOutcome::default().with(ProgramFigures { asked: TIME.into(), all });
            GridTrial { a, ..GridTrial::default() }
        }
        Err(why) => GridTrial { failed: Some(why), ..GridTrial::default() },
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::GridEndReason;

    use super::*;
    use crate::sink::tests::LimitedRecord;

    fn run(most: usize) -> (Vec<String>, LimitedRecord) {
        let grid = here("a program", &["kernel".to_owned(), "local".to_owned()], (3, 1));
        let (mut ran, mut kept) = (Vec::new(), LimitedRecord(Vec::new(), most));
        let mut run = |path: &str| {
            ran.push(path.to_owned());
            let times = LocalRunTimes { took: Nanos::millis(20), cpu: Nanos::millis(30) };
            if path == "local" && ran.len() > 2 { Err("it failed".to_owned()) } else { Ok(times) }
        };
        run_here(&grid, (&Header::default(), HostFacts::default()), &mut run, &mut kept).unwrap();
        (ran, kept)
    }

    #[test]
    fn each_block_runs_every_path_and_a_failed_run_is_no_figure() {
        let (ran, kept) = run(usize::MAX);
        assert_eq!(ran.len(), 9, "each block runs the first path twice");
        assert_eq!(ran.iter().filter(|path| *path == "local").count(), 3);
        let trials: Vec<&GridTrial> = kept
            .0
            .iter()
            .filter_map(|line| if let Line::GridTrial(trial) = line { Some(&**trial) } else { None })
            .collect();
        assert_eq!(trials.len(), 6);
        assert!(trials.iter().filter(|trial| trial.failed.is_some()).count() >= 2);
        assert!(
            trials
                .iter()
                .all(|trial| { trial.failed.is_some() != (trial.figure(GridFigure::PROGRAM) == Some(0.02)) })
        );
        assert!(matches!(kept.0.last(), Some(Line::GridEnd(GridEndReason::Blocks))));
    }

    #[test]
    fn a_run_that_the_user_ends_is_no_trial() {
        let (ran, kept) = run(5);
        assert_eq!(ran.len(), 2, "{ran:?}");
        assert!(matches!(kept.0.last(), Some(Line::GridEnd(GridEndReason::Stopped))));
    }
}
