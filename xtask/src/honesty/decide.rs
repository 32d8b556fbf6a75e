//! Decisions about nothing, on real trials.
//!
//! Each is what `tune` does with a placebo as its only step: the same ladder, the same blocks, the same
//! toggling of a real knob between two equivalent values. Settings alternate from decision to decision, the
//! toggled knob every two decisions.
//!
//! A decision follows from its blocks alone, so one that was cut short goes on from those that are
//! recorded: nothing is measured twice, and no decision can be avoided by stopping in time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, bail};
use landspeed_analysis::{Action, BlockResult, Ladder, Pair, Rules};
use landspeed_experiment::{BlockOutcome, Blocks, Sink};
use landspeed_record::{Answer, Line, StepSummary, WriteError};
use landspeed_units::Nanos;

use super::lab::Bench;
use super::record::{Block, Decision, Entry, Journal, Recorded, Session, Setting};

/// Tests that a run of the usual five minutes splits its error over.
const PLANNED: u32 = 12;

/// The study while it decides.
pub(super) struct Study<'a> {
    bench: &'a mut Bench,
    journal: Journal,
    recorded: Recorded,
    watch: Watch<'a>,
    began: Instant,
}

/// Trials are not kept one by one: a block's four figures are.
struct Watch<'a> {
    stop: &'a AtomicBool,
}

impl Sink for Watch<'_> {
    fn line(&mut self, _: &Line) -> Result<(), WriteError> {
        Ok(())
    }

    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<'a> Study<'a> {
    /// Goes on behind what is `recorded`, until `stop`.
    pub(super) fn new(
        bench: &'a mut Bench,
        journal: Journal,
        recorded: Recorded,
        stop: &'a AtomicBool,
    ) -> Self {
        Study { bench, journal, recorded, watch: Watch { stop }, began: Instant::now() }
    }

    /// Takes decisions until `wanted` are recorded.
    pub(super) fn run(&mut self, wanted: u32) -> Result<()> {
        self.journal.write(&Entry::Session(Box::new(self.session())))?;
        while (self.recorded.decisions.len() as u32) < wanted {
            let Some(decision) = self.decide(self.recorded.decisions.len() as u32)? else { break };
            self.journal.write(&Entry::Decision(Box::new(decision.clone())))?;
            self.recorded.decisions.push(decision);
            self.progress(wanted);
        }
        Ok(())
    }

    fn session(&self) -> Session {
        Session {
            started: jiff::Timestamp::now().to_string(),
            host: self.bench.pair.a.facts.clone(),
            start: self.bench.cell(Setting::Start).clone(),
            tuned: self.bench.cell(Setting::Tuned).clone(),
            rtt_ns: self.bench.pair.path.rtt_ns,
        }
    }

    /// Takes one decision; none where the user stopped.
    fn decide(&mut self, number: u32) -> Result<Option<Decision>> {
        let setting = Setting::BOTH[number as usize % 2];
        let mut ladder = self.ladder(number, setting)?;
        let earlier = self.recorded.blocks.iter().filter(|block| block.decision == number);
        let mut earlier = earlier.cloned().collect::<Vec<_>>().into_iter();
        let mut used = Nanos(0);
        loop {
            match ladder.next(used) {
                Action::Measure(pair) => {
                    let block = match earlier.next() {
                        Some(block) => block,
                        None if self.watch.stop() => return Ok(None),
                        None => self.measure(number, setting, &pair)?,
                    };
                    used += block.took_ns;
                    ladder.observe(BlockResult {
                        step: pair.step,
                        figures: block.figures,
                        candidate_first: block.candidate_first,
                        took: block.took_ns,
                        remarks: Vec::new(),
                    });
                }
                Action::Decided(line) => {
                    let summary = on_trials(line.summary)?;
                    return Ok(Some(Decision { decision: number, setting, summary, took_ns: used }));
                }
                Action::Note(_) | Action::Watch(_) => {}
                Action::Finished(_) => bail!("the ladder ended without a decision"),
            }
        }
    }

    /// The ladder of `tune` with one placebo and nothing else.
    fn ladder(&self, number: u32, setting: Setting) -> Result<Ladder> {
        let cell = self.bench.cell(setting);
        let placebo = self.bench.placebo(number, setting)?;
        let rules = Rules {
            planned: PLANNED,
            block_time: self.bench.timing.block(),
            fine: self.bench.timing.fine,
            seed: u64::from(number),
            placebos: vec![placebo],
            ..Rules::default()
        };
        Ok(Ladder::new(cell.clone(), Vec::new(), rules))
    }

    fn measure(&mut self, decision: u32, setting: Setting, pair: &Pair) -> Result<Block> {
        let (timing, began) = (self.bench.timing, self.began);
        let mut blocks = Blocks { pair: &mut self.bench.pair, timing, began, sink: &mut self.watch };
        let result = match blocks.measure(pair)? {
            BlockOutcome::Measured(result) => result,
            BlockOutcome::Refused(why) => bail!("{}: {why}", pair.what),
        };
        let BlockResult { figures, candidate_first, took, .. } = result;
        let block = Block { decision, setting, block: pair.block, candidate_first, figures, took_ns: took };
        self.journal.write(&Entry::Block(block.clone()))?;
        self.recorded.blocks.push(block.clone());
        Ok(block)
    }

    /// The last decision in one line, with the time left.
    fn progress(&self, wanted: u32) {
        let decisions = &self.recorded.decisions;
        let Some(Decision { setting, summary, .. }) = decisions.last() else { return };
        let took: f64 = decisions.iter().map(|d| d.took_ns.as_secs_f64()).sum();
        let left = took / decisions.len() as f64 * f64::from(wanted - decisions.len() as u32);
        let kept = decisions.iter().filter(|d| d.summary.kept).count();
        eprintln!(
            "{}/{wanted}  {:5}  {:10}  {}; kept so far: {kept}; about {:.0} min left",
            decisions.len(),
            setting.name(),
            summary.knob,
            summary.reason,
            left / 60.0
        );
    }
}

/// A decision that no trial led to is none.
fn on_trials(summary: StepSummary) -> Result<StepSummary> {
    if matches!(summary.answer, Answer::Skipped | Answer::NotTried) {
        bail!("{}: {}", summary.id, summary.reason);
    }
    Ok(summary)
}
