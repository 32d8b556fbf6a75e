//! Fresh proof of each kept step: what stands over the same without it, in blocks that are spread over the rest of the
//! run.
//!
//! The blocks that kept a step were neighbours. Whatever favoured one arm for those seconds favoured it in all of them.
//! So a kept step is confirmed only by blocks that lie far apart, between those of the steps that follow and of the
//! final check. What stands changes meanwhile; each setting has its own comparison. All of them together confirm a step,
//! the last one says what the step is worth in the end.

use landspeed_record::Estimate;
use landspeed_stats::{Contrast, Opinions};
use landspeed_units::Nanos;

use super::comparison::Comparison;
use super::kept::Standing;
use super::run_state::RunState;
use super::{BlockResult, Pair, Rules, words};
use crate::series::CONFIDENCE;

/// Fewest blocks that confirm a step.
const LEAST: u32 = 8;
/// Blocks of a step where the budget allows it.
const MOST: u32 = 11;
/// The part of the budget's blocks that all kept steps may take beyond [`LEAST`].
const PART: f64 = 0.2;
/// Blocks in the setting that stands in the end, before a step's worth there is judged.
pub(super) const IN_THE_END: u32 = 5;

#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut {
    proofs: Vec<Proof>,
}

#[derive(Debug, Clone)]
struct Proof {
    /// When it was kept, or last measured.
    last: Nanos,
    /// One for each setting that stood; the last may be of one that stands no more.
    comparisons: Vec<Comparison>,
    /// Why it is measured no more.
    failed: bool,
}

/// How far a step's confirmation has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Confirmation {
    /// What it is worth over all settings that stood, above one better; valid for all kept steps at once.
    pub(crate) worth: Option<Estimate>,
    pub(crate) blocks: u32,
    pub(crate) confirmed: bool,
}

impl Confirmation {
    /// What the blocks spread over the rest of the run say of a kept step.
    pub(crate) fn in_words(&self) -> String {
        let word = if self.confirmed { "confirmed" } else { "not confirmed" };
        let worth = self.worth.map(|worth| format!(": {}", words::interval(worth))).unwrap_or_default();
        format!("{word} by {} blocks over the rest of the run{worth}", self.blocks)
    }
}

impl LeftOut {
    /// Another step was kept.
    pub(crate) fn keep(&mut self, now: Nanos) {
        self.proofs.push(Proof { last: now, comparisons: Vec::new(), failed: false });
    }

    /// The next block that is due, those of each step evenly over the time until `until`.
    pub(crate) fn due(&mut self, standing: &Standing, until: Nanos, run: &mut RunState) -> Option<Box<Pair>> {
        let now = run.clock.used;
        let open = standing.steps().into_iter().filter_map(|i| Some((self.when(i, until, run)?, i)));
        let (when, step) = open.min()?;
        (when <= now).then(|| self.pair(step, standing, run))
    }

    /// When the next block of step `i` is due; `None` where it has all it needs.
    fn when(&self, i: usize, until: Nanos, run: &RunState) -> Option<Nanos> {
        let proof = &self.proofs[i];
        let missing = self.wanted(&run.rules).saturating_sub(proof.blocks());
        if missing == 0 || !proof.open(self.wanted(&run.rules)) {
            return None;
        }
        // One part more than blocks: the last one comes before the end, too.
        Some(proof.last + Nanos(until.saturating_sub(proof.last).0 / u64::from(missing + 1)))
    }

    /// Like [`LeftOut::due`], for blocks in the setting that stands.
    pub(crate) fn due_in_the_end(
        &mut self,
        standing: &Standing,
        (since, until): (Nanos, Nanos),
        run: &mut RunState,
    ) -> Option<Box<Pair>> {
        let now = run.clock.used;
        let open = standing.steps().into_iter().filter_map(|i| {
            let missing = IN_THE_END.saturating_sub(self.here(i, standing).map_or(0, |c| c.series.counted()));
            let proof = &self.proofs[i];
            let last = proof.last.max(since);
            let when = last + Nanos(until.saturating_sub(last).0 / u64::from(missing.max(1)));
            (missing > 0 && proof.open(MOST + IN_THE_END)).then_some((when, i))
        });
        let (when, step) = open.min()?;
        (when <= now).then(|| self.pair(step, standing, run))
    }

    /// Whether any step still waits for blocks.
    pub(crate) fn waits(&self, standing: &Standing, rules: &Rules) -> bool {
        let wanted = self.wanted(rules);
        standing.steps().into_iter().any(|i| {
            let proof = &self.proofs[i];
            proof.open(wanted) && proof.blocks() < wanted
        })
    }

    /// Blocks that the run has to find time for before it ends.
    pub(crate) fn owed(&self, standing: &Standing) -> u32 {
        let owes = |i: usize| {
            let here = self.here(i, standing).map_or(0, |c| c.series.counted());
            LEAST.saturating_sub(self.proofs[i].blocks()).max(IN_THE_END.saturating_sub(here))
        };
        standing.steps().into_iter().map(owes).sum()
    }

    /// Blocks that each step gets: fewer where many were kept.
    fn wanted(&self, rules: &Rules) -> u32 {
        let all = rules.budget.0 as f64 / rules.block_time.0.max(1) as f64;
        ((PART * all / self.proofs.len().max(1) as f64) as u32).clamp(LEAST, MOST)
    }

    /// The next block of step `i` in the setting that stands.
    fn pair(&mut self, i: usize, standing: &Standing, run: &mut RunState) -> Box<Pair> {
        if self.here(i, standing).is_none() {
            let comparison = compare(i, standing, self.proofs[i].comparisons.len());
            self.proofs[i].comparisons.push(comparison);
        }
        let proof = &mut self.proofs[i];
        proof.last = run.clock.used;
        let at = proof.comparisons.len() - 1;
        proof.comparisons[at].pair(run)
    }

    pub(crate) fn here(&self, i: usize, standing: &Standing) -> Option<&Comparison> {
        let last = self.proofs.get(i)?.comparisons.last()?;
        (last.incumbent == standing.cell(&[i]) && last.candidate == standing.cell(&[])).then_some(last)
    }

    pub(crate) fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.proofs.iter().flat_map(|proof| &proof.comparisons)
    }

    pub(crate) fn of(&self, i: usize) -> &[Comparison] {
        self.proofs.get(i).map_or(&[], |proof| &proof.comparisons)
    }

    /// Takes a block in; says whether it was one of these.
    pub(crate) fn observe(&mut self, block: &BlockResult, run: &mut RunState) -> bool {
        let mut all = self.proofs.iter_mut().flat_map(|proof| &mut proof.comparisons);
        let Some(comparison) = all.find(|comparison| comparison.label == block.step) else { return false };
        comparison.observe(block, run);
        true
    }

    /// A comparison cannot be measured; says whether it was one of these.
    pub(crate) fn failed(&mut self, label: &str) -> bool {
        let has = |proof: &&mut Proof| proof.comparisons.iter().any(|c| c.label == label);
        let Some(proof) = self.proofs.iter_mut().find(has) else { return false };
        proof.failed = true;
        true
    }

    /// What step `i` is worth in the setting that stands, above one better.
    pub(crate) fn worth(&self, i: usize, standing: &Standing, run: &RunState) -> Option<Estimate> {
        let blocks = self.here(i, standing)?.series.contrasts(run.rules.goal.primary(), &run.toll);
        Some(Opinions::of(&blocks)?.estimate(CONFIDENCE))
    }

    /// Whether step `i` is confirmed: by enough blocks, with the discarded ones out and with them put back.
    pub(crate) fn confirmation(&self, i: usize, run: &RunState) -> Confirmation {
        let primary = run.rules.goal.primary();
        let Some(proof) = self.proofs.get(i) else {
            return Confirmation { worth: None, blocks: 0, confirmed: false };
        };
        // Bonferroni over the kept steps: none that is useless is confirmed, with 97.5 %.
        let confidence = 1.0 - (1.0 - CONFIDENCE) / self.proofs.len() as f64;
        let of = |comparison: &Comparison| comparison.series.contrasts(primary, &run.toll);
        let fresh: Vec<Contrast> = proof.comparisons.iter().flat_map(of).collect();
        let worth = Opinions::of(&fresh).map(|both| both.estimate(confidence));
        let blocks = proof.blocks();
        let above = |estimate: Estimate| estimate.low > 1.0 + run.rules.least_effect;
        Confirmation { worth, blocks, confirmed: blocks >= LEAST && worth.is_some_and(above) }
    }
}

impl Proof {
    fn blocks(&self) -> u32 {
        self.comparisons.iter().map(|comparison| comparison.series.counted()).sum()
    }

    /// Whether it may take more blocks. Discards may cost it a few more than `wanted`.
    fn open(&self, wanted: u32) -> bool {
        let attempts: u32 = self.comparisons.iter().map(|comparison| comparison.series.attempts()).sum();
        !self.failed && attempts < wanted + wanted / 2 + 1
    }
}

/// The comparison of what stands with the same without step `i`, after `earlier` ones.
fn compare(i: usize, standing: &Standing, earlier: usize) -> Comparison {
    let kept = &standing.kept[i];
    let again = if earlier > 0 { format!(", setting {}", earlier + 1) } else { String::new() };
    let label = format!("without {}{again}", kept.id);
    let (knob, value) = (&kept.candidate.knob, &kept.candidate.value);
    let what = format!("checking {knob}: all kept steps over the same without {knob}={value}");
    Comparison::new(label, what, (standing.cell(&[i]), standing.cell(&[])), kept.toggle())
}
