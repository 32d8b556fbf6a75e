//! Which settings are kept: those among whose runs of Reno the paper's single run is not extreme.
//!
//! The rule was committed before any run. The distance of a run from the runs of a setting is the sum, over the
//! fifteen figures, of the squared distance from their mean in units of the variance that a further run has. For a
//! setting with few runs each variance is the mean of its own and of that of all settings. A run of a setting has a
//! distance from the others too, and 95 % of these distances, over all settings, are below the bound. Figures that
//! move together need no correction so, because the paper's run and the simulated ones are treated alike.

use super::figures::{JUDGED, SceneFigures};

/// The share of a setting's own runs that would be called extreme.
const EXTREME: f64 = 0.05;
/// The share of its first value from which an aggregate counts as recovered, as in the findings of `compare`.
const RETURNED: f64 = 0.9;

/// The runs of one setting.
#[derive(Debug, Clone)]
pub(super) struct SettingRuns {
    pub(super) setting: u32,
    pub(super) runs: Vec<SceneFigures>,
}

/// A setting, judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct JudgedSetting {
    pub(super) setting: u32,
    /// The distance of the paper's run.
    pub(super) distance: f64,
    /// By how much the paper's run exceeds the mean in each figure, in deviations of a further run. `distance` is the sum of
    /// their squares.
    pub(super) deviations: [f64; JUDGED],
    /// The share of the settings' own runs that are at least as far.
    pub(super) share: f64,
    /// True if in at least one run the aggregate does not come back.
    pub(super) stays_low: bool,
}

#[derive(Debug)]
pub(super) struct JudgedSettings {
    pub(super) settings: Vec<JudgedSetting>,
    /// The greatest distance at which the paper's run is not extreme.
    pub(super) bound: f64,
}

impl JudgedSetting {
    pub(super) fn is_kept(&self) -> bool {
        self.share >= EXTREME && self.stays_low
    }
}

impl JudgedSettings {
    /// Returns the settings that are kept, in the order in which they were drawn.
    pub(super) fn kept(&self) -> impl Iterator<Item = u32> {
        self.settings.iter().filter(|judged| judged.is_kept()).map(|judged| judged.setting)
    }
}

/// Judges all settings that have at least three runs by the run `paper`.
pub(super) fn judged(settings: &[SettingRuns], paper: &SceneFigures) -> JudgedSettings {
    let whole: Vec<&SettingRuns> = settings.iter().filter(|setting| setting.runs.len() > 2).collect();
    let values: Vec<Vec<[f64; JUDGED]>> =
        whole.iter().map(|setting| setting.runs.iter().map(SceneFigures::judged).collect()).collect();
    let common = pooled(&values);
    let mut own: Vec<f64> = values.iter().flat_map(|runs| own_distances(runs, &common)).collect();
    own.sort_by(f64::total_cmp);
    let paper = paper.judged();
    let judge = |(setting, runs): (&&SettingRuns, &Vec<[f64; JUDGED]>)| {
        let deviations = deviations(&paper, runs, &common);
        let distance = squared(&deviations);
        let farther = own.len() - own.partition_point(|own| *own < distance);
        JudgedSetting {
            setting: setting.setting,
            distance,
            deviations,
            share: farther as f64 / own.len() as f64,
            stays_low: setting.runs.iter().any(|run| run.last_over_first < RETURNED),
        }
    };
    let bound = own.get((own.len() as f64 * (1.0 - EXTREME)) as usize).copied().unwrap_or(f64::NAN);
    JudgedSettings { settings: whole.iter().zip(&values).map(judge).collect(), bound }
}

/// Returns the distance of each run from the other runs of its setting.
fn own_distances(runs: &[[f64; JUDGED]], common: &[f64; JUDGED]) -> Vec<f64> {
    let without = |n: usize| {
        let mut others = runs.to_vec();
        let one = others.remove(n);
        squared(&deviations(&one, &others, common))
    };
    (0..runs.len()).map(without).collect()
}

/// Returns by how much a run exceeds the mean of `runs` in each figure, in deviations of a further run.
fn deviations(one: &[f64; JUDGED], runs: &[[f64; JUDGED]], common: &[f64; JUDGED]) -> [f64; JUDGED] {
    let (mean, own) = moments(runs);
    let further = 1.0 + 1.0 / runs.len() as f64;
    std::array::from_fn(|n| (one[n] - mean[n]) / ((own[n] + common[n]) / 2.0 * further).sqrt())
}

fn squared(deviations: &[f64; JUDGED]) -> f64 {
    deviations.iter().map(|deviation| deviation.powi(2)).sum()
}

/// Returns the means of figures over runs, and their variances.
fn moments(runs: &[[f64; JUDGED]]) -> ([f64; JUDGED], [f64; JUDGED]) {
    let (mut mean, mut variance) = ([0.0; JUDGED], [0.0; JUDGED]);
    for n in 0..JUDGED {
        mean[n] = runs.iter().map(|run| run[n]).sum::<f64>() / runs.len() as f64;
        let squares = runs.iter().map(|run| (run[n] - mean[n]).powi(2)).sum::<f64>();
        variance[n] = squares / (runs.len() as f64 - 1.0).max(1.0);
    }
    (mean, variance)
}

/// Returns the mean variance of each figure within settings.
fn pooled(values: &[Vec<[f64; JUDGED]>]) -> [f64; JUDGED] {
    let mut common = [0.0; JUDGED];
    for runs in values {
        let (_, variance) = moments(runs);
        for (sum, own) in common.iter_mut().zip(variance) {
            *sum += own / values.len() as f64;
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use landspeed_stats::Random;

    use super::super::figures::PAPERS_RENO;
    use super::*;

    /// Returns a run that scatters by a tenth around the paper's figures times `factor`.
    fn run(factor: f64, random: &mut Random) -> SceneFigures {
        let mut scatter = |figure: f64| figure * factor * (0.1 * random.normal()).exp();
        let paper = PAPERS_RENO;
        SceneFigures {
            mean_mbps: scatter(paper.mean_mbps),
            stability: scatter(paper.stability),
            rtt_sd_ms: scatter(paper.rtt_sd_ms),
            stabilities: paper.stabilities.map(&mut scatter),
            fairness: paper.fairness.map(|fairness| 1.0 - scatter(1.0 - fairness)),
            last_over_first: 0.5,
        }
    }

    fn setting(number: u32, factor: f64, random: &mut Random) -> SettingRuns {
        SettingRuns { setting: number, runs: (0..5).map(|_| run(factor, random)).collect() }
    }

    #[test]
    fn one_in_twenty_runs_is_extreme_to_its_own_setting() {
        let mut random = Random::new(1);
        let kept = |random: &mut Random| {
            let all: Vec<_> = (0..40).map(|n| setting(n, 1.0, random)).collect();
            let further = run(1.0, random);
            judged(&all, &further).settings[0].is_kept()
        };
        let kept = (0..400).filter(|_| kept(&mut random)).count();
        // Five standard deviations of the binomial law, 4.4, around 380.
        assert!((358..=400).contains(&kept), "{kept}");
    }

    #[test]
    fn settings_around_a_run_are_kept_and_others_are_not() {
        let mut random = Random::new(1);
        let factor = |n| if n < 50 { 1.0 } else { 1.5 };
        let all: Vec<_> = (0..100).map(|n| setting(n, factor(n), &mut random)).collect();
        let judged = judged(&all, &PAPERS_RENO);
        // The paper's run is the very middle of the first fifty.
        assert!(judged.kept().eq(0..50), "{:?}", judged.kept().collect::<Vec<_>>());
    }

    #[test]
    fn an_aggregate_that_always_comes_back_is_not_the_papers() {
        let mut random = Random::new(1);
        let mut all: Vec<_> = (0..20).map(|n| setting(n, 1.0, &mut random)).collect();
        for run in &mut all[0].runs {
            run.last_over_first = 1.0;
        }
        assert!(judged(&all, &PAPERS_RENO).kept().eq(1..20));
    }
}
