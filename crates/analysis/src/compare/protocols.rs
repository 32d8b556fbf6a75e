//! The figures of one protocol under the schedule, over repeats: a row of the paper's Tables 1 and 2.

use landspeed_record::units::BitRate;
use landspeed_record::{ContestFigures, RegionFigures};

use super::contests::ContestRuns;
use super::run::RunFigures;
use super::{convergence, repeats};

/// Returns the figures of a protocol over the runs that count.
pub(super) fn figures(entry: &ContestRuns<'_>) -> ContestFigures {
    let mean = |of: fn(&RunFigures) -> Option<f64>| repeats::mean(entry.each(of).into_values());
    let over = |of: fn(&RunFigures) -> Option<f64>| repeats::over(entry.each(of).into_values());
    let (mean_bps, sd_bps) = (mean(|f| Some(f.mean_bps.0)), mean(|f| Some(f.sd_bps.0)));
    let regions = regions(entry);
    let shared = || regions.iter().filter(|r| r.flows > 1).filter_map(|r| r.fairness);
    let times: Vec<_> = entry.runs.iter().flat_map(|run| run.figures.convergence_s.clone()).collect();
    ContestFigures {
        protocol: entry.protocol().to_owned(),
        title: entry.title.to_owned(),
        mean_bps: BitRate(mean_bps.unwrap_or(0.0)),
        sd_bps: BitRate(sd_bps.unwrap_or(0.0)),
        stability: stability(mean_bps, sd_bps),
        fairness_min: shared().reduce(f64::min),
        fairness_max: shared().reduce(f64::max),
        fairness: regions,
        cpu: mean(|f| f.cpu),
        cycles_per_bit: mean(|f| f.cycles_per_bit),
        rtt_mean_s: mean(|f| f.rtt_mean_s),
        rtt_sd_s: mean(|f| f.rtt_sd_s),
        resent_share: mean(|f| f.resent_share),
        convergence_s: convergence::median(&times),
        middle_bps: over(|f| f.middle_bps().map(|rate| rate.0)),
        mean_over_repeats_bps: over(|f| Some(f.mean_bps.0)),
        stability_over_repeats: over(|f| f.stability),
        fairness_over_repeats: over(|f| f.fairness_min),
        rtt_sd_over_repeats_s: over(|f| f.rtt_sd_s),
        runs: entry.runs.len() as u32,
        invalid: entry.invalid,
    }
}

/// Returns the stability `S = s / mean` (cottrell-2005 section IV.A) from the mean and the deviation that are
/// printed, so that a reader can check it.
fn stability(mean: Option<f64>, sd: Option<f64>) -> Option<f64> {
    mean.filter(|mean| *mean > 0.0).zip(sd).map(|(mean, sd)| sd / mean)
}

fn regions(entry: &ContestRuns<'_>) -> Vec<RegionFigures> {
    let all = || entry.runs.iter().flat_map(|run| &run.figures.regions);
    let mut numbers: Vec<(u16, u16)> = all().map(|region| (region.region, region.flows)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
        .into_iter()
        .map(|(number, flows)| {
            let of = |figure: fn(&RegionFigures) -> Option<f64>| {
                repeats::mean(all().filter(|region| region.region == number).filter_map(figure))
            };
            let (mean, sd) = (of(|r| Some(r.mean_bps.0)), of(|r| Some(r.sd_bps.0)));
            RegionFigures {
                region: number,
                flows,
                mean_bps: BitRate(mean.unwrap_or(0.0)),
                sd_bps: BitRate(sd.unwrap_or(0.0)),
                stability: stability(mean, sd),
                fairness: of(|r| r.fairness),
            }
        })
        .collect()
}
