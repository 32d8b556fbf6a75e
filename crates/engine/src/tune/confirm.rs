//! Implements `--confirm-for`: measures blocks of the final cell against the start cell for some time after the ladder.

use std::time::Duration;

use landspeed_analysis::{GainConfirmation, LadderFindings};
use landspeed_record::ConfirmationReport;
use landspeed_record::units::Nanos;

use super::run::TuningRun;
use crate::{BlockOutcome, Error};

/// The longest time between two checks for a stop by the user.
const LOOK: Duration = Duration::from_millis(200);

impl TuningRun<'_> {
    /// Measures the confirming blocks and returns their result; `None` if there is nothing to confirm. If the user
    /// stops it, the result covers the blocks so far.
    pub(super) fn confirm(&mut self, findings: &LadderFindings) -> Result<Option<ConfirmationReport>, Error> {
        let Some(time) = self.options.confirm_for.filter(|_| !self.sink.stop()) else { return Ok(None) };
        let (start, last) = (&findings.start_cell, &findings.final_cell);
        if start == last {
            self.note("nothing was kept, so there is nothing to confirm".into())?;
            return Ok(None);
        }
        let mut confirm = GainConfirmation::new(start, last, time, self.toggle(findings), &self.rules());
        self.note(format!(
            "{} blocks of final against start over {time}: Ctrl-C ends them early",
            confirm.left()
        ))?;
        let began = self.used();
        while let Some(due) = confirm.due() {
            if !self.reach(began + due) {
                break;
            }
            let (pair, at) = (confirm.pair(), self.used());
            match self.blocks().measure(&pair)? {
                BlockOutcome::Measured(result) => confirm.observe(&result, at),
                BlockOutcome::Stopped => break,
                BlockOutcome::Refused(why) => {
                    self.note(format!("the confirmation ends early: {why}"))?;
                    break;
                }
            }
        }
        Ok(confirm.found())
    }

    /// Returns the sum of the toggle times of all kept steps.
    fn toggle(&self, findings: &LadderFindings) -> Nanos {
        let kept = findings.steps.iter().filter(|step| step.kept);
        let toggle = |knob: &str| self.plan.candidates.iter().find(|c| c.knob == knob).map(|c| c.toggle_ns);
        kept.filter_map(|step| toggle(&step.knob)).sum()
    }

    /// Waits until the run has taken the time `moment`. Returns false if the user requests a stop.
    fn reach(&self, moment: Nanos) -> bool {
        while !self.sink.stop() {
            let left = moment.saturating_sub(self.used());
            if left == Nanos(0) {
                return true;
            }
            std::thread::sleep(Duration::from(left).min(LOOK));
        }
        false
    }
}
