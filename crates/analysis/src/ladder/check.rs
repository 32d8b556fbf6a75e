//! The final check, on fresh trials only: whether each kept step is still worth something, and what the final setting
//! is worth as a whole.
//!
//! Each kept step is left out once (see `left_out`). Of the steps whose interval lies below the least effect, the one
//! with the lowest worth is dropped, and the rest is measured again. Between these blocks the final setting is compared
//! with the start (and with a setting that the user gave), for as long as there is time. If a step's effect when it was
//! tried differs from its effect when it is left out, the step and the step that it interacts with are measured as a
//! 2x2 design.

use landspeed_record::Cell;
use landspeed_record::units::Nanos;
use landspeed_stats::GuardVerdict;

use super::action::{LadderFindings, LadderProgress};
use super::block::{BlockResult, LadderBlock};
use super::comparison::CellComparison;
use super::guards;
use super::kept::KeptSetting;
use super::left_out::{IN_THE_END, LeftOutTests};
use super::rules::LadderRules;
use super::run_state::RunState;

mod conclude;
mod square;

/// The number of blocks of the final setting against the start that are measured even if the budget runs out.
const LEAST_BLOCKS: u32 = 4;
/// The largest number of blocks of the final setting against the start. More blocks are measured while left-out blocks
/// are still due.
const MOST_BLOCKS: u32 = 24;
/// The number of counted blocks of the comparison that completes a 2x2.
const SQUARE_BLOCKS: u32 = 8;
/// The share of the check's time over which the blocks that may still drop a step are spread.
const DROP_PART: f64 = 0.6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckRole {
    /// The final setting over the start.
    Final,
    /// The final setting over the one that the user gave (`LadderRules::against`).
    Against,
    /// The setting with the first step but not the second, over the setting with neither. It completes a 2x2.
    Square(usize, usize),
}

#[derive(Debug)]
struct CheckSlot {
    role: CheckRole,
    comparison: CellComparison,
    /// The number of counted blocks at which the comparison ends; 0 after it failed.
    cap: u32,
}

impl CheckSlot {
    /// Returns true if the comparison takes another block: until `cap` blocks count, or until about 1.5 times `cap`
    /// were measured, discarded ones included.
    fn open(&self, cap: u32) -> bool {
        self.comparison.series.counted() < cap && self.comparison.series.attempts() < cap + cap / 2 + 1
    }

    fn is_final(&self) -> bool {
        matches!(self.role, CheckRole::Final | CheckRole::Against)
    }
}

#[derive(Debug)]
pub(crate) struct FinalCheck {
    current: KeptSetting,
    left_out: LeftOutTests,
    slots: Vec<CheckSlot>,
    /// The time at which the check of the current setting began.
    since: Option<Nanos>,
    /// The number of times that the final comparisons began.
    finals: u32,
}

impl FinalCheck {
    pub(crate) fn new(current: KeptSetting, left_out: LeftOutTests) -> Self {
        FinalCheck { current, left_out, slots: Vec::new(), since: None, finals: 0 }
    }

    pub(crate) fn advance(&mut self, run: &mut RunState) -> LadderProgress {
        if self.since.is_none() {
            self.begin(run);
        }
        if self.drop_what_is_useless(run) || self.drop_what_breaks_a_guard(run) {
            self.begin(run);
            return LadderProgress::Said;
        }
        square::propose(self, run);
        match self.next(run) {
            Some(pair) => LadderProgress::Measure(pair),
            None => LadderProgress::Over,
        }
    }

    pub(crate) fn observe(&mut self, block: &BlockResult, run: &mut RunState) {
        if self.left_out.observe(block, run) {
            return;
        }
        if let Some(slot) = self.slots.iter_mut().find(|s| s.comparison.label == block.step) {
            slot.comparison.observe(block, run);
        }
    }

    /// Ends the comparison `step`, which cannot be measured, with a note.
    pub(crate) fn failed(&mut self, step: &str, why: &str, run: &mut RunState) {
        run.note(format!("the comparison '{step}' of the final check failed and is left out: {why}"));
        if self.left_out.failed(step) {
            return;
        }
        if let Some(slot) = self.slots.iter_mut().find(|s| s.comparison.label == step) {
            slot.cap = 0;
            if slot.role == CheckRole::Final {
                run.say_void(&format!("the final setting could not be compared with the start: {why}"));
            }
        }
    }

    pub(crate) fn finish(self, run: &mut RunState) -> LadderFindings {
        conclude::conclude(self, run)
    }

    /// Begins the comparisons of the current setting.
    fn begin(&mut self, run: &RunState) {
        self.since = Some(run.clock.used);
        self.slots.clear();
        self.finals += 1;
        let start = self.current.start.clone();
        if let Some(cell) = &run.rules.against {
            let cell = start.with(cell);
            let what = "final against given: final setting over the one given";
            self.add_final(CheckRole::Against, "against", what, cell);
        }
        let what = "final against start: final setting over the start";
        self.add_final(CheckRole::Final, "final", what, start);
    }

    /// Adds a comparison of the final setting with `other`. From the second check on, the label has a number, so that
    /// no two blocks of a record share a name.
    fn add_final(&mut self, role: CheckRole, label: &str, what: &str, other: Cell) {
        let label = if self.finals > 1 { format!("{label} {}", self.finals) } else { label.to_owned() };
        let (last, toggle) = (self.current.cell(&[]), self.current.toggle());
        let comparison = CellComparison::new(label, what.to_owned(), other, last, toggle);
        self.slots.push(CheckSlot { role, comparison, cap: MOST_BLOCKS });
    }

    /// Returns the next block; `None` if the check is complete. If the budget is nearly used up, only blocks that the
    /// final comparisons must have are returned. Otherwise a left-out block that is due comes first, and then a block
    /// of the comparison with the fewest blocks.
    fn next(&mut self, run: &mut RunState) -> Option<Box<LadderBlock>> {
        let block = run.blocks(1, self.current.toggle());
        let left = run.clock.left_before(Nanos(0));
        let missing: u32 = self.slots.iter().map(CheckSlot::missing).sum();
        if left < Nanos(block.0 * u64::from(missing + 1)) {
            return self
                .slots
                .iter_mut()
                .find(|slot| slot.missing() > 0)
                .map(|slot| slot.comparison.pair(run));
        }
        if let Some(pair) = self.due(run) {
            return Some(pair);
        }
        let waits = self.left_out.waits(&self.current, &run.rules);
        let turn = |slot: &&mut CheckSlot| slot.comparison.series.attempts();
        let open =
            |slot: &&mut CheckSlot| slot.cap > 0 && (slot.open(slot.cap) || (waits && slot.is_final()));
        self.slots.iter_mut().filter(open).min_by_key(turn).map(|slot| slot.comparison.pair(run))
    }

    /// Returns the left-out block that is due. Blocks that may still drop a step come first.
    fn due(&mut self, run: &mut RunState) -> Option<Box<LadderBlock>> {
        let end = run.clock.end();
        let since = self.since.unwrap_or_default();
        let soon = since + Nanos((end.saturating_sub(since).0 as f64 * DROP_PART) as u64);
        let pair = self.left_out.due_in_the_end(&self.current, since, soon, run);
        pair.or_else(|| self.left_out.due(&self.current, end, run))
    }

    /// Drops the step that is worth least in the current setting, if its interval lies below the least effect.
    fn drop_what_is_useless(&mut self, run: &mut RunState) -> bool {
        let least = 1.0 + run.rules.least_effect;
        let judged = self.current.steps().into_iter().filter_map(|i| {
            let here = self.left_out.here(i, &self.current)?;
            let enough = here.series.counted() >= LEAST_BLOCKS;
            Some((i, self.left_out.worth(i, &self.current, run).filter(|_| enough)?))
        });
        let worst = judged.filter(|(_, e)| e.high < least).min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
        let Some((at, estimate)) = worst else { return false };
        conclude::keep_left_out(self, at, estimate, run);
        self.drop_step(at, format!("worth {} with the rest", super::words::interval(estimate)), run);
        true
    }

    fn drop_step(&mut self, at: usize, why: String, run: &mut RunState) {
        let kept = &mut self.current.kept[at];
        let why = format!("dropped in the end: {why}");
        run.note(format!("{}: {why}", kept.id));
        kept.dropped = Some(why);
        let again = run.blocks(self.left_out.owed(&self.current), Nanos(0));
        if run.clock.left_before(Nanos(0)) < again {
            run.note("no time to measure the other steps' worth again in full after the drop".into());
        }
    }

    /// Tests the guards of the final setting against the start, on fresh trials. If a guard is broken, drops the step
    /// that worsens its figure most, and returns true. If no single step worsens it, no step is dropped, and no note
    /// says so.
    fn drop_what_breaks_a_guard(&mut self, run: &mut RunState) -> bool {
        let Some(slot) = self.slots.iter().find(|s| s.role == CheckRole::Final) else { return false };
        let series = &slot.comparison.series;
        if series.counted() < IN_THE_END {
            return false;
        }
        let goal = run.rules.goal;
        let gain = series.estimate(goal).map_or(0.0, |estimate| goal.oriented(estimate).low.ln());
        let broken = goal.guards().into_iter().find_map(|metric| {
            let (verdict, said) = guards::judge(series, metric, gain, run);
            (verdict == GuardVerdict::Broken).then_some((metric, said))
        });
        let Some((metric, said)) = broken else { return false };
        let cost = |i: usize| Some((i, self.left_out.here(i, &self.current)?.mean_better(metric, &run.toll)));
        let costs = self.current.steps().into_iter().filter_map(cost);
        let Some((at, _)) = costs.filter(|(_, c)| *c < 0.0).min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return false;
        };
        self.drop_step(at, format!("against the start {said}"), run);
        true
    }
}

impl CheckSlot {
    /// Returns the number of blocks that the comparison still needs, whatever time is left.
    fn missing(&self) -> u32 {
        let needs = self.cap > 0 && self.is_final() && self.open(LEAST_BLOCKS);
        if needs { LEAST_BLOCKS - self.comparison.series.counted() } else { 0 }
    }
}

/// Returns the number of blocks that the final check needs, including `owed` blocks that confirm kept steps.
pub(crate) fn blocks_needed(owed: u32, rules: &LadderRules) -> u32 {
    let against = if rules.against.is_some() { 2 } else { 1 };
    owed + against * 2 * LEAST_BLOCKS
}
