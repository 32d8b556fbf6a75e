//! The final check, on fresh trials only: is each kept step still worth something, and what is the
//! whole worth?
//!
//! First each kept step is left out once. The one whose left-out interval lies lowest, and below the
//! least effect, is dropped and the rest is measured again. Then the final setting is compared with the
//! start (and with a given setting), interleaved with more blocks of the left-out comparisons for as long
//! as there is time. Where a step adds something else than what would be lost without it, the pair with
//! the step that it interacts with is measured as a 2x2.

use landspeed_record::{Candidate, Cell, Estimate};
use landspeed_stats::{Guard, guard};
use landspeed_units::Nanos;

use super::comparison::Comparison;
use super::desk::Desk;
use super::queue::Task;
use super::step::Step;
use super::{BlockResult, Findings, Progress, Rules};
use crate::Goal;
use crate::series::CONFIDENCE;

pub(crate) use conclude::gain;

mod conclude;
mod square;

/// Blocks of each left-out comparison before anything is dropped.
const PRUNE_BLOCKS: u32 = 5;
/// Blocks of final against start before the time may end the run.
const LEAST_BLOCKS: u32 = 4;
/// Blocks of final against start at most, and of each left-out comparison.
const MOST: (u32, u32) = (24, 11);
/// Blocks of one side of a 2x2.
const SQUARE_BLOCKS: u32 = 8;

/// A kept step, as the final check needs it.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) candidate: Candidate,
    pub(crate) toggle: Nanos,
    /// What it added, above one better.
    added: Estimate,
    /// Why it was dropped in the end.
    dropped: Option<String>,
}

impl Kept {
    pub(crate) fn new(step: Step, id: String, goal: Goal) -> Self {
        let betters = step.comparison.series.betters(goal.primary());
        let added = landspeed_stats::estimate(&betters, CONFIDENCE);
        let candidate = step.task.candidate;
        Kept { id, toggle: candidate.toggle_ns, candidate, added, dropped: None }
    }

    /// Whether the effects of the two depend on each other, as far as the knob table says.
    fn interacts(&self, other: &Kept) -> bool {
        Task::new(self.candidate.clone(), false).interacts(&other.candidate)
    }
}

/// What a comparison of the check is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Final over final without this kept step (index).
    Without(usize),
    /// Final over start.
    Final,
    /// Final over the setting given.
    Against,
    /// First step without the second, over neither: the other side of a 2x2.
    Square(usize, usize),
}

/// A comparison, and whether it goes on.
#[derive(Debug)]
struct Slot {
    role: Role,
    comparison: Comparison,
    /// Blocks at most.
    cap: u32,
}

impl Slot {
    /// Whether it wants more blocks. Discards may cost it a few more.
    fn open(&self, cap: u32) -> bool {
        self.comparison.series.counted() < cap && self.comparison.series.attempts() < cap + cap / 2 + 1
    }

    /// Final and against get two blocks for one of the others.
    fn turn(&self) -> u32 {
        let weight = if matches!(self.role, Role::Final | Role::Against) { 1 } else { 2 };
        self.comparison.series.attempts() * weight
    }
}

/// The second phase of a run.
#[derive(Debug)]
pub(crate) struct Check {
    start: Cell,
    kept: Vec<Kept>,
    slots: Vec<Slot>,
    pruning: bool,
    prepared: bool,
    /// How often the second part began.
    finals: u32,
}

impl Check {
    pub(crate) fn new(start: Cell, kept: Vec<Kept>) -> Self {
        Check { start, kept, slots: Vec::new(), pruning: true, prepared: false, finals: 0 }
    }

    /// What comes next.
    pub(crate) fn advance(&mut self, desk: &mut Desk) -> Progress {
        if !self.prepared {
            self.leave_out_again();
        }
        if self.pruning {
            return self.prune(desk);
        }
        if self.drop_what_breaks_a_guard(desk) {
            return Progress::Said;
        }
        square::propose(self, desk);
        self.final_block(desk)
    }

    pub(crate) fn observe(&mut self, block: &BlockResult, desk: &mut Desk) {
        if let Some(slot) = self.slots.iter_mut().find(|s| s.comparison.label == block.step) {
            slot.comparison.observe(block, desk);
        }
    }

    /// The comparison cannot be measured: it is left out.
    pub(crate) fn failed(&mut self, step: &str, why: &str, desk: &mut Desk) {
        desk.note(format!("the comparison '{step}' of the final check failed and is left out: {why}"));
        if let Some(slot) = self.slots.iter_mut().find(|s| s.comparison.label == step) {
            slot.cap = 0;
            if slot.role == Role::Final {
                desk.say_void(&format!("the final setting could not be compared with the start: {why}"));
            }
        }
    }

    /// The run's findings.
    pub(crate) fn finish(self, desk: &mut Desk) -> Findings {
        conclude::conclude(self, desk)
    }

    /// The setting with the kept steps, those at `without` left out.
    fn cell(&self, without: &[usize]) -> Cell {
        let stays = |(i, kept): &(usize, &Kept)| kept.dropped.is_none() && !without.contains(i);
        self.kept
            .iter()
            .enumerate()
            .filter(stays)
            .fold(self.start.clone(), |c, (_, k)| c.with(&k.candidate.change))
    }

    /// Kept steps that are still part of the final setting: not dropped, and not overwritten whole by
    /// a later one.
    fn standing(&self) -> Vec<usize> {
        let all = self.cell(&[]);
        let stands = |&i: &usize| self.kept[i].dropped.is_none() && self.cell(&[i]) != all;
        (0..self.kept.len()).filter(stands).collect()
    }

    /// The time that a comparison's toggles take: those of all steps between the cells.
    fn toggle(&self) -> Nanos {
        self.kept.iter().filter(|k| k.dropped.is_none()).map(|k| k.toggle).sum()
    }

    /// Fresh left-out comparisons for what stands now.
    fn leave_out_again(&mut self) {
        let slots = self.standing().into_iter().map(|i| {
            let kept = &self.kept[i];
            let label = format!("without {}", kept.id);
            let label = if self.prepared { format!("{label}, {} dropped", self.dropped()) } else { label };
            let name = format!("{}={}", kept.candidate.knob, kept.candidate.value);
            let what = format!("final setting over the same without {name}");
            let cells = (self.cell(&[i]), self.cell(&[]));
            let comparison = Comparison::new(label, what, cells, kept.toggle);
            Slot { role: Role::Without(i), comparison, cap: MOST.1 }
        });
        self.slots = slots.collect();
        self.prepared = true;
    }

    /// How many steps were dropped.
    fn dropped(&self) -> usize {
        self.kept.iter().filter(|k| k.dropped.is_some()).count()
    }

    /// The first part: left-out comparisons until each has its blocks, then drop or go on.
    fn prune(&mut self, desk: &mut Desk) -> Progress {
        let needed = LEAST_BLOCKS * 2 * if desk.rules.against.is_some() { 2 } else { 1 };
        let left = desk.clock.left_before(desk.blocks(needed, self.toggle()));
        let next =
            self.slots.iter_mut().filter(|s| s.cap > 0 && s.open(PRUNE_BLOCKS)).min_by_key(|s| s.turn());
        if let Some(slot) = next
            && left >= desk.blocks(1, slot.comparison.toggle)
        {
            return Progress::Measure(slot.comparison.pair(desk));
        }
        match self.useless(desk) {
            Some((at, estimate)) => self.drop_step(at, estimate, left, desk),
            None => self.go_final(desk),
        }
        Progress::Said
    }

    /// The standing step whose left-out interval lies lowest, where it lies below the least effect.
    fn useless(&self, desk: &Desk) -> Option<(usize, Estimate)> {
        let least = 1.0 + desk.rules.least_effect;
        let judged = self.slots.iter().filter_map(|slot| match slot.role {
            Role::Without(i) if slot.comparison.series.counted() >= LEAST_BLOCKS => {
                Some((i, self.left_out(slot, desk)?))
            }
            _ => None,
        });
        judged.filter(|(_, e)| e.high < least).min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio))
    }

    /// A left-out figure: final over final without the step, above one better.
    fn left_out(&self, slot: &Slot, desk: &Desk) -> Option<Estimate> {
        let betters = slot.comparison.series.betters(desk.rules.goal.primary());
        (betters.len() > 1).then(|| landspeed_stats::estimate(&betters, CONFIDENCE))
    }

    /// Drops a step; measures the rest again where there is time.
    fn drop_step(&mut self, at: usize, estimate: Estimate, left: Nanos, desk: &mut Desk) {
        let why = format!("dropped in the end: worth {} with the rest", super::words::interval(estimate));
        desk.note(format!("{}: {why}", self.kept[at].id));
        conclude::keep_left_out(self, at, estimate, desk);
        self.kept[at].dropped = Some(why);
        let standing = self.standing().len() as u32;
        if left >= desk.blocks(standing * PRUNE_BLOCKS, Nanos(0)) {
            self.leave_out_again();
            return;
        }
        desk.note("no time to measure the other steps' worth again after the drop: left out".into());
        self.slots.clear();
        self.go_final(desk);
    }

    /// Begins the second part.
    fn go_final(&mut self, desk: &Desk) {
        self.pruning = false;
        self.finals += 1;
        self.add_final(Role::Final, ("final", "final setting over the start"), self.start.clone());
        if let Some(cell) = &desk.rules.against {
            let cell = self.start.with(cell);
            self.add_final(Role::Against, ("against", "final setting over the one given"), cell);
        }
    }

    /// A comparison of the final setting with `other`. Its name says whether it is the first of its kind,
    /// so that no two blocks of a record share a name.
    fn add_final(&mut self, role: Role, (label, what): (&str, &str), other: Cell) {
        let label = if self.finals > 1 { format!("{label} {}", self.finals) } else { label.to_owned() };
        let comparison = Comparison::new(label, what.to_owned(), (other, self.cell(&[])), self.toggle());
        self.slots.push(Slot { role, comparison, cap: MOST.0 });
    }

    /// Whether final and against have the blocks that they need whatever the time.
    fn has_the_least(&self) -> bool {
        let needs = |s: &&Slot| matches!(s.role, Role::Final | Role::Against) && s.cap > 0;
        !self.slots.iter().filter(needs).any(|s| s.open(LEAST_BLOCKS))
    }

    /// The second part: the comparison whose turn it is.
    fn final_block(&mut self, desk: &mut Desk) -> Progress {
        let enough = self.has_the_least();
        let due = |s: &&mut Slot| {
            s.cap > 0 && s.open(s.cap) && (enough || matches!(s.role, Role::Final | Role::Against))
        };
        let Some(slot) = self.slots.iter_mut().filter(due).min_by_key(|s| s.turn()) else {
            return Progress::Over;
        };
        let time = desk.blocks(1, slot.comparison.toggle);
        if enough && desk.clock.left_before(Nanos(0)) < time {
            return Progress::Over;
        }
        Progress::Measure(slot.comparison.pair(desk))
    }

    /// The guards against the start, on fresh trials: a broken one drops the step that costs most.
    fn drop_what_breaks_a_guard(&mut self, desk: &mut Desk) -> bool {
        let Some(slot) = self.slots.iter().find(|s| s.role == Role::Final) else { return false };
        let series = &slot.comparison.series;
        if series.counted() < PRUNE_BLOCKS {
            return false;
        }
        let broken = desk.rules.goal.guards().into_iter().find_map(|metric| {
            let (verdict, estimate) = guard(&series.contrasts(metric), desk.rules.guard, CONFIDENCE);
            (verdict == Guard::Broken).then_some((metric, estimate))
        });
        let Some((metric, estimate)) = broken else { return false };
        let costs = self.slots.iter().filter_map(|s| match s.role {
            Role::Without(i) => Some((i, s.comparison.mean_better(metric))),
            _ => None,
        });
        let Some((at, _)) = costs.filter(|(_, c)| *c < 0.0).min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return false;
        };
        let said = super::words::interval(estimate);
        let why =
            format!("dropped in the end: {} against the start {said} (above 1 is better)", metric.name());
        desk.note(format!("{}: {why}", self.kept[at].id));
        self.kept[at].dropped = Some(why);
        self.leave_out_again();
        self.pruning = true;
        true
    }
}

/// Blocks that the final check needs for `kept` steps.
pub(crate) fn blocks_needed(kept: usize, rules: &Rules) -> u32 {
    let against = if rules.against.is_some() { 2 } else { 1 };
    kept as u32 * PRUNE_BLOCKS + against * 2 * LEAST_BLOCKS
}
