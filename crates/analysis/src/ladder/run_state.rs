//! The state that both phases of a ladder share: the rules, the time, the random generator, and what was reported.

use std::collections::VecDeque;

use landspeed_record::StepLine;
use landspeed_record::units::Nanos;
use landspeed_stats::{ExcessVariance, excess};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::action::LadderAction;
use super::block::LadderBlock;
use super::rules::LadderRules;
use crate::block_figures::BlockFigures;
use crate::lost::LostTimeEffects;
use crate::series::BlockSeries;
use crate::steal::StealHistory;

/// The share of processor time lost to other virtual machines above which the loss is reported.
const BUSY: f64 = 0.02;

#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) rules: LadderRules,
    pub(crate) clock: BudgetClock,
    /// The actions that are not yet handed out.
    pub(crate) outbox: VecDeque<LadderAction>,
    /// The decisions, the latest version of each.
    pub(crate) lines: Vec<StepLine>,
    /// The reason why the run's result is not valid.
    pub(crate) void: Option<String>,
    /// The estimate of how much more blocks vary than their trials explain.
    pub(crate) excess: ExcessVariance,
    /// The effect of lost processor time on the figures.
    pub(crate) toll: LostTimeEffects,
    steals: StealHistory,
    /// True once it was reported that other virtual machines take much processor time.
    busy: bool,
    dice: ChaCha8Rng,
}

impl RunState {
    pub(crate) fn new(rules: LadderRules) -> Self {
        let clock = BudgetClock::new(&rules);
        let dice = ChaCha8Rng::seed_from_u64(rules.seed);
        RunState {
            rules,
            clock,
            outbox: VecDeque::new(),
            lines: Vec::new(),
            void: None,
            excess: ExcessVariance::default(),
            toll: LostTimeEffects::default(),
            steals: StealHistory::default(),
            busy: false,
            dice,
        }
    }

    pub(crate) fn note(&mut self, text: String) {
        self.outbox.push_back(LadderAction::Note(text));
    }

    /// Returns the expected time of `blocks` blocks whose toggles take `toggle` each.
    pub(crate) fn blocks(&self, blocks: u32, toggle: Nanos) -> Nanos {
        Nanos(u64::from(blocks) * (self.clock.block + self.rules.toggles(toggle)).0)
    }

    pub(crate) fn took(&mut self, pair: &LadderBlock, took: Nanos) {
        self.clock.learn(took.saturating_sub(self.rules.toggles(pair.toggle)));
    }

    /// Adds a block to the run's statistics of lost processor time. Returns true if the block must be discarded because
    /// the hypervisor took too much.
    pub(crate) fn stolen(&mut self, block: &BlockFigures) -> bool {
        self.toll.learn(block);
        let stolen = self.steals.stands_out(block.steal, self.rules.steal_limit);
        self.say_busy();
        stolen
    }

    /// Notes once in a run that other virtual machines take much processor time, and how much longer steps take because
    /// of it.
    fn say_busy(&mut self) {
        let Some((share, bursts)) = self.steals.usual().filter(|(share, _)| *share > BUSY && !self.busy)
        else {
            return;
        };
        self.busy = true;
        let how = if bursts { " in bursts" } else { "" };
        let times = self.toll.times(self.rules.goal);
        let cost = if times < 1.25 {
            "little more time".to_owned()
        } else {
            format!("about {times:.1} times the time")
        };
        self.note(format!(
            "Neighbours take about {:.0} % of this machine's processor time{how}: steps need {cost} to reach an answer",
            100.0 * share
        ));
    }

    /// Adds the blocks of a comparison to the estimate of how much blocks vary.
    pub(crate) fn learn(&mut self, series: &BlockSeries) {
        let contrasts = series.contrasts(self.rules.goal, &self.toll);
        self.excess = self.excess.and(excess(&contrasts));
    }

    /// Records a decision, or a later version of it.
    pub(crate) fn decide(&mut self, line: StepLine) {
        match self.lines.iter_mut().find(|l| l.summary.id == line.summary.id) {
            Some(old) => *old = line.clone(),
            None => self.lines.push(line.clone()),
        }
        self.outbox.push_back(LadderAction::Decided(Box::new(line)));
    }

    /// Returns true if a verdict and a step of the length `step` fit into the time before `reserve`, the last part of
    /// the budget, which is set aside. The clock then counts the time until its next tick as the verdict's. If the
    /// budget's share for verdicts would be exceeded, notes that and returns false for the rest of the run.
    pub(crate) fn may_watch(&mut self, reserve: Nanos, step: Nanos) -> bool {
        let Some(time) = self.clock.watch else { return false };
        if self.clock.left_before(reserve) < time + step {
            return false;
        }
        let share = Nanos((self.rules.budget.0 as f64 * self.rules.watch_share) as u64);
        if self.clock.watched + time > share {
            let percent = self.rules.watch_share * 100.0;
            self.note(format!(
                "looking at what holds the path back may take {percent:.0} % of the budget, which has no room for \
                 another look: from here on the order is the literature's"
            ));
            self.clock.watch = None;
            return false;
        }
        self.clock.watching = Some(self.clock.used);
        true
    }

    /// Returns the number of steps, without placebos, that measured at least one block.
    pub(crate) fn measured(&self) -> usize {
        let summaries = self.lines.iter().map(|line| &line.summary);
        summaries.filter(|summary| !summary.placebo && summary.blocks > 0).count()
    }

    /// Declares the run's result invalid; the first reason is kept.
    pub(crate) fn say_void(&mut self, why: &str) {
        self.void.get_or_insert_with(|| why.to_owned());
    }
}

/// The random choice of the arm that comes first in each block of a comparison. Each arm is first once in every two
/// blocks, so that a position effect (the first trial of a block is colder) cancels instead of favouring an arm.
#[derive(Debug, Clone, Default)]
pub(crate) struct ArmOrder {
    second: Option<bool>,
}

impl ArmOrder {
    /// Returns true if the candidate comes first in the next block.
    pub(crate) fn next(&mut self, run: &mut RunState) -> bool {
        if let Some(second) = self.second.take() {
            return second;
        }
        let first = run.dice.random::<bool>();
        self.second = Some(!first);
        first
    }
}

/// The time used, and the time that a block takes.
#[derive(Debug)]
pub(crate) struct BudgetClock {
    pub(crate) used: Nanos,
    budget: Nanos,
    block: Nanos,
    seen: u32,
    /// The time that getting a verdict takes, as far as known; `None` if the run gets no verdicts.
    watch: Option<Nanos>,
    /// The time that all verdicts took.
    watched: Nanos,
    /// The time at which the verdict in progress began.
    watching: Option<Nanos>,
}

impl BudgetClock {
    fn new(rules: &LadderRules) -> Self {
        BudgetClock {
            used: Nanos(0),
            budget: rules.budget,
            block: rules.block_time,
            seen: 0,
            watch: rules.watch_time,
            watched: Nanos(0),
            watching: None,
        }
    }

    /// Sets the time that the run has used. The time since a verdict was requested counts as spent on it.
    pub(crate) fn tick(&mut self, used: Nanos) {
        self.used = used;
        if let Some(began) = self.watching.take() {
            let took = used.saturating_sub(began);
            self.watched += took;
            self.watch = Some(took);
        }
    }

    /// Updates the expected time of a block by `bare`, the measured time of a block without its toggles. The expected
    /// time is a running mean over about the last ten blocks.
    fn learn(&mut self, bare: Nanos) {
        self.seen = (self.seen + 1).min(10);
        let block = self.block.0 as f64;
        self.block = Nanos((block + (bare.0 as f64 - block) / f64::from(self.seen)) as u64);
    }

    /// Returns the time left if the last `reserve` of the budget is set aside.
    pub(crate) fn left_before(&self, reserve: Nanos) -> Nanos {
        self.budget.saturating_sub(reserve).saturating_sub(self.used)
    }

    pub(crate) fn end(&self) -> Nanos {
        self.budget
    }

    pub(crate) fn half(&self) -> Nanos {
        Nanos(self.budget.0 / 2)
    }
}
