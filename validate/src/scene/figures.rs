//! What a run shows that cottrell-2005 prints, in Tables 1 and 2.

use landspeed_analysis::compare::RunFigures;
use serde::{Deserialize, Serialize};

/// Regions of the study, in which 1, 2, 3, 4, 3, 2 and 1 flows run.
pub(super) const REGIONS: usize = 7;

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SceneFigures {
    pub(super) mean_mbps: f64,
    pub(super) stability: f64,
    pub(super) rtt_sd_ms: f64,
    /// Stability by region.
    pub(super) stabilities: [f64; REGIONS],
    /// Fairness by region; 1 where one flow runs.
    pub(super) fairness: [f64; REGIONS],
    /// The mean of the last region divided by that of the first.
    pub(super) last_over_first: f64,
}

/// The paper's figures of Reno, as its tables print them. It does not print the last one.
pub(super) const PAPERS_RENO: SceneFigures = SceneFigures {
    mean_mbps: 248.0,
    stability: 0.66,
    rtt_sd_ms: 22.0,
    stabilities: [0.70, 0.46, 0.24, 0.49, 0.46, 0.23, 0.40],
    fairness: [1.0, 0.70, 0.60, 0.85, 0.98, 0.99, 1.0],
    last_over_first: f64::NAN,
};

/// The paper's figures of all protocols by our names: mean in Mb/s, stability, least fairness, deviation of the round
/// trip in ms (Table 1).
#[rustfmt::skip]
pub(super) const PAPERS: [(&str, [f64; 4]); 9] = [
    ("reno",      [248.0, 0.66, 0.60, 22.0]),
    ("highspeed", [255.0, 0.73, 0.79, 25.0]),
    ("htcp",      [402.0, 0.28, 0.99, 57.0]),
    ("scalable",  [423.0, 0.27, 0.82, 22.0]),
    ("fast",      [335.0, 0.33, 0.58,  9.0]),
    ("ltcp",      [376.0, 0.36, 0.56, 41.0]),
    ("hstcp_lp",  [228.0, 0.50, 0.64, 33.0]),
    ("bic",       [412.0, 0.28, 0.98, 55.0]),
    ("udt",       [390.0, 0.35, 0.95, 49.0]),
];

/// The number of figures that [`SceneFigures::judged`] returns.
pub(super) const JUDGED: usize = 3 + REGIONS + SHARED.len();
/// The regions in which several flows run.
const SHARED: [usize; 5] = [1, 2, 3, 4, 5];
/// What a table's two digits hide of a fairness, and what keeps its logarithm finite.
const ROUNDED: f64 = 0.01;

/// Returns the names of the figures that [`SceneFigures::judged`] returns.
pub(super) fn judged_names() -> [String; JUDGED] {
    std::array::from_fn(|n| match n {
        0 => "mean".to_owned(),
        1 => "S".to_owned(),
        2 => "deviation of the round trip".to_owned(),
        n if n < 3 + REGIONS => format!("S, region {}", n - 2),
        n => format!("F, region {}", SHARED[n - 3 - REGIONS] + 1),
    })
}

/// Returns -1 for a figure that [`SceneFigures::judged`] turns around, so that less of it is more: fairness; 1 for all others.
pub(super) fn judged_sign(figure: usize) -> f64 {
    if figure < 3 + REGIONS { 1.0 } else { -1.0 }
}

impl SceneFigures {
    /// Returns the figures of a run; `None` if one of them is missing.
    pub(super) fn of(run: &RunFigures) -> Option<SceneFigures> {
        let mut figures = SceneFigures {
            mean_mbps: run.mean_bps.0 / 1e6,
            stability: run.stability?,
            rtt_sd_ms: run.rtt_sd_s? * 1e3,
            stabilities: [0.0; REGIONS],
            fairness: [1.0; REGIONS],
            last_over_first: run.region(7)?.mean_bps.0 / run.region(1)?.mean_bps.0,
        };
        for n in 0..REGIONS {
            let region = run.region(n as u16 + 1)?;
            figures.stabilities[n] = region.stability?;
            figures.fairness[n] = region.fairness.unwrap_or(1.0);
        }
        Some(figures)
    }

    pub(super) fn fairness_min(&self) -> f64 {
        SHARED.iter().map(|n| self.fairness[*n]).fold(1.0, f64::min)
    }

    /// Returns the figures of Table 1, in the order of [`PAPERS`].
    pub(super) fn table(&self) -> [f64; 4] {
        [self.mean_mbps, self.stability, self.fairness_min(), self.rtt_sd_ms]
    }

    /// Returns what settings are judged by, on scales on which runs scatter evenly: logarithms, of fairness that of its
    /// distance from 1.
    pub(super) fn judged(&self) -> [f64; JUDGED] {
        let mut all =
            [self.mean_mbps, self.stability, self.rtt_sd_ms, 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.];
        all[3..3 + REGIONS].copy_from_slice(&self.stabilities);
        for (figure, region) in all[3 + REGIONS..].iter_mut().zip(SHARED) {
            *figure = 1.0 - self.fairness[region] + ROUNDED;
        }
        all.map(|figure| figure.max(1e-6).ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_figures_are_those_of_its_tables() {
        assert_eq!(PAPERS[0].1, PAPERS_RENO.table());
        assert!(PAPERS_RENO.judged().iter().all(|figure| figure.is_finite()));
        assert_eq!(JUDGED, 15);
        let names = judged_names();
        assert_eq!(
            [&names[0], &names[3], &names[9], &names[10], &names[14]],
            ["mean", "S, region 1", "S, region 7", "F, region 2", "F, region 6"]
        );
        let fairer = SceneFigures { fairness: [1.0; REGIONS], ..PAPERS_RENO };
        let [fairer, papers] = [fairer, PAPERS_RENO].map(|figures| judged_sign(10) * figures.judged()[10]);
        assert!(fairer > papers, "{fairer} {papers}");
    }
}
