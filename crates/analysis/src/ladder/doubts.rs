//! What a run's own trials say against it: signs of the kinds of noise under which a false keep is not bounded
//! (docs/results/decisions.md lists them).

use landspeed_record::Estimate;
use landspeed_stats::Excess;

use super::comparison::Comparison;
use super::guards;
use super::words::interval;
use crate::lost::Toll;

/// What a run's trials say against it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubts(Vec<String>);

/// The chance that blocks vary by so much more than their trials, where nothing but the trials varies.
const CHANCE: f64 = 0.01;
/// Times the variance that trials imply which a run may have in its blocks: below, it changes little.
const TIMES: f64 = 1.5;

impl Doubts {
    /// A kept step's own trials and those that were to confirm it: `added` and `worth` are what both said.
    pub(crate) fn of_kept(
        &mut self,
        setting: &str,
        (added, worth): (Estimate, Option<Estimate>),
        (proofs, toll): (&[Comparison], &Toll),
    ) {
        if let Some(worth) = worth.filter(|worth| worth.high < added.low) {
            let (added, worth) = (interval(added), interval(worth));
            self.0.push(format!(
                "{setting} added {added} when it was tried and was worth {worth} later: something may have favoured one arm \
                 for as long as the step took"
            ));
        }
        let mishaps = proofs.iter().find_map(|proof| guards::bad(&proof.series, toll));
        self.0.extend(mishaps.map(|why| format!("{setting}: {why}; guards can miss mishaps that are rare")));
    }

    /// All of it, with what blocks say that vary more than their trials explain.
    pub(crate) fn all(self, excess: Excess) -> Vec<String> {
        let mut said = self.0;
        if excess.times() > TIMES && excess.chance() < CHANCE {
            said.push(format!(
                "blocks vary {:.1} times as much as their trials explain: something acts on all trials of one arm in a \
                 block; where that lasts for several blocks, a step may be kept for it",
                excess.times().sqrt()
            ));
        }
        said
    }
}
