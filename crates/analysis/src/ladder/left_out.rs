//! Confirmation of each kept step by fresh blocks that are spread over the rest of the run. They compare the current
//! setting with the same setting without the step.
//!
//! The blocks by which a step was kept followed each other closely: whatever favoured one arm in those seconds favoured
//! it in all of these blocks. So a kept step is confirmed only by blocks that lie far apart, between the blocks of
//! later steps and of the final check. The current setting changes during that time, so each setting has its own
//! comparison. All comparisons together confirm a step; the last one shows what the step is worth in the final setting.

use landspeed_record::Estimate;
use landspeed_record::units::Nanos;
use landspeed_stats::{BlockContrast, CountedAndAllMeans};

use super::block::{BlockResult, LadderBlock};
use super::comparison::CellComparison;
use super::kept::KeptSetting;
use super::rules::LadderRules;
use super::run_state::RunState;
use super::words;
use crate::series::CONFIDENCE;

/// The fewest blocks that confirm a step.
const LEAST: u32 = 8;
/// The largest number of blocks that confirm a step, if the budget allows them.
const MOST: u32 = 11;
/// The share of the budget's blocks that the confirmation of all kept steps may take. Each step gets at least
/// [`LEAST`].
const PART: f64 = 0.2;
/// The number of blocks in the final setting that are needed before a step's worth in that setting is judged.
pub(super) const IN_THE_END: u32 = 5;

#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOutTests {
    proofs: Vec<LeftOutTest>,
}

#[derive(Debug, Clone)]
struct LeftOutTest {
    /// The time at which the step was kept or last measured.
    last: Nanos,
    /// The step's comparisons, one for each setting of the run. The last may be for a setting that has changed since.
    comparisons: Vec<CellComparison>,
    /// True if a comparison failed, after which the step is not measured again.
    failed: bool,
}

/// The state of a step's confirmation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ConfirmationState {
    /// The worth of the step over all settings, where above one is better. Its interval holds for all kept steps
    /// together.
    pub(crate) worth: Option<Estimate>,
    pub(crate) blocks: u32,
    pub(crate) confirmed: bool,
}

impl ConfirmationState {
    /// Describes what the blocks that were spread over the rest of the run show about the step.
    pub(crate) fn in_words(&self) -> String {
        let word = if self.confirmed { "confirmed" } else { "not confirmed" };
        let worth = self.worth.map(|worth| format!(": {}", words::interval(worth))).unwrap_or_default();
        format!("{word} by {} blocks over the rest of the run{worth}", self.blocks)
    }
}

impl LeftOutTests {
    /// Adds a kept step.
    pub(crate) fn keep(&mut self, now: Nanos) {
        self.proofs.push(LeftOutTest { last: now, comparisons: Vec::new(), failed: false });
    }

    /// Returns the next block if one is due by now. The blocks of each step are spread evenly over the time until
    /// `until`.
    pub(crate) fn due(
        &mut self,
        current: &KeptSetting,
        until: Nanos,
        run: &mut RunState,
    ) -> Option<Box<LadderBlock>> {
        let now = run.clock.used;
        let open = current.steps().into_iter().filter_map(|i| Some((self.when(i, until, run)?, i)));
        let (when, step) = open.min()?;
        (when <= now).then(|| self.pair(step, current, run))
    }

    /// Returns the time at which the next block of step `i` is due; `None` if the step gets no more blocks.
    fn when(&self, i: usize, until: Nanos, run: &RunState) -> Option<Nanos> {
        let proof = &self.proofs[i];
        let missing = self.wanted(&run.rules).saturating_sub(proof.blocks());
        if missing == 0 || !proof.open(self.wanted(&run.rules)) {
            return None;
        }
        // The time is split into one part more than there are missing blocks, so that the last block too comes before
        // the end.
        Some(proof.last + Nanos(until.saturating_sub(proof.last).0 / u64::from(missing + 1)))
    }

    /// Returns the next block that judges a step in the current setting, if one is due by now. The blocks of each step
    /// are spread over the time from `since` to `until`.
    pub(crate) fn due_in_the_end(
        &mut self,
        current: &KeptSetting,
        since: Nanos,
        until: Nanos,
        run: &mut RunState,
    ) -> Option<Box<LadderBlock>> {
        let now = run.clock.used;
        let open = current.steps().into_iter().filter_map(|i| {
            let missing = IN_THE_END.saturating_sub(self.here(i, current).map_or(0, |c| c.series.counted()));
            let proof = &self.proofs[i];
            let last = proof.last.max(since);
            let when = last + Nanos(until.saturating_sub(last).0 / u64::from(missing.max(1)));
            (missing > 0 && proof.open(MOST + IN_THE_END)).then_some((when, i))
        });
        let (when, step) = open.min()?;
        (when <= now).then(|| self.pair(step, current, run))
    }

    /// Returns true if any step still needs blocks.
    pub(crate) fn waits(&self, current: &KeptSetting, rules: &LadderRules) -> bool {
        let wanted = self.wanted(rules);
        current.steps().into_iter().any(|i| {
            let proof = &self.proofs[i];
            proof.open(wanted) && proof.blocks() < wanted
        })
    }

    /// Returns the number of blocks that the kept steps still need before the run ends.
    pub(crate) fn owed(&self, current: &KeptSetting) -> u32 {
        let owes = |i: usize| {
            let here = self.here(i, current).map_or(0, |c| c.series.counted());
            LEAST.saturating_sub(self.proofs[i].blocks()).max(IN_THE_END.saturating_sub(here))
        };
        current.steps().into_iter().map(owes).sum()
    }

    /// Returns the number of blocks that each step gets. It is smaller if many steps were kept.
    fn wanted(&self, rules: &LadderRules) -> u32 {
        let all = rules.budget.0 as f64 / rules.block_time.0.max(1) as f64;
        ((PART * all / self.proofs.len().max(1) as f64) as u32).clamp(LEAST, MOST)
    }

    /// Returns the next block of step `i` in the current setting.
    fn pair(&mut self, i: usize, current: &KeptSetting, run: &mut RunState) -> Box<LadderBlock> {
        if self.here(i, current).is_none() {
            let comparison = compare(i, current, self.proofs[i].comparisons.len());
            self.proofs[i].comparisons.push(comparison);
        }
        let proof = &mut self.proofs[i];
        proof.last = run.clock.used;
        let at = proof.comparisons.len() - 1;
        proof.comparisons[at].pair(run)
    }

    pub(crate) fn here(&self, i: usize, current: &KeptSetting) -> Option<&CellComparison> {
        let last = self.proofs.get(i)?.comparisons.last()?;
        (last.incumbent == current.cell(&[i]) && last.candidate == current.cell(&[])).then_some(last)
    }

    pub(crate) fn comparisons(&self) -> impl Iterator<Item = &CellComparison> {
        self.proofs.iter().flat_map(|proof| &proof.comparisons)
    }

    pub(crate) fn of(&self, i: usize) -> &[CellComparison] {
        self.proofs.get(i).map_or(&[], |proof| &proof.comparisons)
    }

    /// Adds a block to its comparison. Returns false if it belongs to no left-out comparison.
    pub(crate) fn observe(&mut self, block: &BlockResult, run: &mut RunState) -> bool {
        let mut all = self.proofs.iter_mut().flat_map(|proof| &mut proof.comparisons);
        let Some(comparison) = all.find(|comparison| comparison.label == block.step) else { return false };
        comparison.observe(block, run);
        true
    }

    /// Records that the comparison named `label` cannot be measured. Returns false if no left-out comparison has that
    /// name.
    pub(crate) fn failed(&mut self, label: &str) -> bool {
        let has = |proof: &&mut LeftOutTest| proof.comparisons.iter().any(|c| c.label == label);
        let Some(proof) = self.proofs.iter_mut().find(has) else { return false };
        proof.failed = true;
        true
    }

    /// Returns the worth of step `i` in the current setting, where above one is better.
    pub(crate) fn worth(&self, i: usize, current: &KeptSetting, run: &RunState) -> Option<Estimate> {
        let blocks = self.here(i, current)?.series.contrasts(run.rules.goal, &run.toll);
        Some(CountedAndAllMeans::of(&blocks)?.estimate(CONFIDENCE))
    }

    /// Returns the confirmation of step `i`. A step is confirmed if at least [`LEAST`] blocks count and its interval
    /// lies above the least effect, both without the discarded blocks and with them.
    pub(crate) fn confirmation(&self, i: usize, run: &RunState) -> ConfirmationState {
        let primary = run.rules.goal;
        let Some(proof) = self.proofs.get(i) else {
            return ConfirmationState { worth: None, blocks: 0, confirmed: false };
        };
        // Bonferroni over the kept steps: the probability that no useless step is confirmed is at least 97.5 %.
        let confidence = 1.0 - (1.0 - CONFIDENCE) / self.proofs.len() as f64;
        let of = |comparison: &CellComparison| comparison.series.contrasts(primary, &run.toll);
        let fresh: Vec<BlockContrast> = proof.comparisons.iter().flat_map(of).collect();
        let worth = CountedAndAllMeans::of(&fresh).map(|both| both.estimate(confidence));
        let blocks = proof.blocks();
        let above = |estimate: Estimate| estimate.low > 1.0 + run.rules.least_effect;
        ConfirmationState { worth, blocks, confirmed: blocks >= LEAST && worth.is_some_and(above) }
    }
}

impl LeftOutTest {
    fn blocks(&self) -> u32 {
        self.comparisons.iter().map(|comparison| comparison.series.counted()).sum()
    }

    /// Returns true if the step may take another block. If blocks were discarded, it may take up to about 1.5 times
    /// `wanted` in all.
    fn open(&self, wanted: u32) -> bool {
        let attempts: u32 = self.comparisons.iter().map(|comparison| comparison.series.attempts()).sum();
        !self.failed && attempts < wanted + wanted / 2 + 1
    }
}

/// Returns the comparison of the current setting with the same setting without step `i`; `earlier` is the number of
/// comparisons that the step had before.
fn compare(i: usize, current: &KeptSetting, earlier: usize) -> CellComparison {
    let kept = &current.kept[i];
    let again = if earlier > 0 { format!(", setting {}", earlier + 1) } else { String::new() };
    let label = format!("without {}{again}", kept.id);
    let (knob, value) = (&kept.candidate.knob, &kept.candidate.value);
    let what = format!("checking {knob}: all kept steps over the same without {knob}={value}");
    CellComparison::new(label, what, current.cell(&[i]), current.cell(&[]), kept.toggle())
}
