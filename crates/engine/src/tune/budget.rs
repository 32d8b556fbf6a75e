//! Measures the budget: the cost of a datagram in each part of the path, over sizes. It is measured at the start and
//! after each kept step.

use landspeed_analysis::BUDGET;
use landspeed_observer::COST;
use landspeed_record::Cell;
use landspeed_record::units::Nanos;
use landspeed_transport::Delivery;
use landspeed_transport::settings::WRITE_SIZE;
use landspeed_workload::stream;

use super::run::TuningRun;
use crate::block::refused;
use crate::{Error, RunSpec, TuneOptions, WatchOptions};

/// Payload sizes in bytes. Those that the cell's settings cannot send are left out.
const SIZES: [u64; 5] = [128, 512, 1472, 8192, 32_768];
/// Duration of each stream. At about 1 kHz it gives 250 samples of each busy processor.
const STREAM: Nanos = Nanos::millis(250);
/// Additional time for each stream: start-up, opening flows, and resolving the sampled symbols.
const AROUND: Nanos = Nanos::millis(150);

fn measures(options: &TuneOptions) -> bool {
    options.explain && options.transport.about().delivery == Delivery::Datagrams
}

/// Returns the approximate duration of measuring a budget; zero if the run measures none.
pub(super) fn time(options: &TuneOptions) -> Nanos {
    if measures(options) { (STREAM + AROUND).times(SIZES.len() as u64) } else { Nanos(0) }
}

impl TuningRun<'_> {
    /// Measures the budget of `cell`, the incumbent after the step with the ID `after`, which is empty at the start.
    pub(super) fn budget(&mut self, cell: &Cell, after: &str) -> Result<(), Error> {
        if !measures(self.options) || self.sink.stop() {
            return Ok(());
        }
        let step = format!("{BUDGET} {after}").trim_end().to_owned();
        self.trying(&step, "measuring over sizes: what a datagram costs host, driver and link")?;
        self.group.set(cell)?;
        for size in SIZES {
            match self.budget_of(cell, (&step, size)) {
                // Fragments cannot be segments, and in the worst case none of them arrives.
                Err(error) if refused(&error) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn budget_of(&mut self, cell: &Cell, (step, size): (&str, u64)) -> Result<(), Error> {
        let at_ns = self.used();
        let mut cell = cell.clone();
        cell.flow.insert(WRITE_SIZE.name.to_owned(), size.to_string());
        let watching = WatchOptions { observers: vec![COST.name.to_owned()], ..WatchOptions::default() };
        let run = RunSpec::new(stream::spec(STREAM), &cell.flow).after(self.plan.timing.warm_up);
        let seen = self.group.run(&run.watched(watching))?;
        self.keep((step, at_ns), cell, seen)
    }
}
