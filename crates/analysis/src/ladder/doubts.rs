//! Doubts about a run from its own trials: signs of the kinds of noise under which the probability of a false keep is
//! not bounded (docs/results/decisions.md lists them).

use landspeed_record::Estimate;
use landspeed_stats::ExcessVariance;

use super::comparison::CellComparison;
use super::guards;
use super::words::interval;
use crate::lost::LostTimeEffects;

/// The doubts that a run's trials raise, one sentence each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doubts(Vec<String>);

/// The probability of a chance result below which blocks are reported to vary more than their trials explain.
const CHANCE: f64 = 0.01;
/// The ratio of the blocks' variance to the variance that their trials imply, up to which no doubt is raised, because
/// so small an excess changes little.
const TIMES: f64 = 1.5;

impl Doubts {
    /// Adds the doubts about the kept step of `setting`: its later worth, `worth`, lies below its gain when it was
    /// tried, `added`; or the comparisons that test it, `proofs`, have bad trials.
    pub(crate) fn of_kept(
        &mut self,
        setting: &str,
        added: Estimate,
        worth: Option<Estimate>,
        proofs: &[CellComparison],
        toll: &LostTimeEffects,
    ) {
        if let Some(worth) = worth.filter(|worth| worth.high < added.low) {
            let (added, worth) = (interval(added), interval(worth));
            self.0.push(format!(
                "{setting} added {added} when it was tried and {worth} later: the first gain may have been the machine's, not \
                 the setting's"
            ));
        }
        let mishaps = proofs.iter().find_map(|proof| guards::bad(&proof.series, toll));
        self.0.extend(
            mishaps.map(|why| format!("{setting}: {why}; such mishaps can go unseen where they are rare")),
        );
    }

    /// Returns all doubts, with one more if the blocks vary more than their trials explain.
    pub(crate) fn all(self, excess: ExcessVariance) -> Vec<String> {
        let mut said = self.0;
        if excess.times() > TIMES && excess.chance() < CHANCE {
            said.push(format!(
                "the machine changed {:.1} times more from one block of trials to the next than within a block: a change that \
                 lasts for several blocks can look like a gain",
                excess.times().sqrt()
            ));
        }
        said
    }
}
