//! `make series`: how often the intervals over occasions hold the truth, and how often a number is called reproduced that
//! is not. Series of occasions are simulated, and the product judges them.

use anyhow::Result;
use clap::Args;
use landspeed_analysis::expectation_over;
use landspeed_record::{ExpectationAgreement, ExpectationKind, ExpectationReport, OccasionExpectation};
use landspeed_stats::{Random, ratio_of};

use crate::table::{self, BrokenPromises};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Series in each row
    #[arg(long, default_value_t = 40_000)]
    series: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The published ratio, and the share by which a ratio may be away from it.
const PUBLISHED: f64 = 1.5;
const WITHIN: f64 = 0.2;
/// The standard error of one occasion's log ratio.
const ERROR: f64 = 0.025;
const OCCASIONS: [usize; 3] = [3, 5, 8];
/// Standard deviations of the true log ratio between occasions, in standard errors of one occasion.
const DEVIATIONS: [f64; 3] = [0.0, 1.0, 3.0];
/// The bounds of the coverage of a 95 % interval, and the largest share of false answers.
const COVERAGE: std::ops::RangeInclusive<f64> = 0.94..=0.96;
const FALSE: f64 = 0.03;

/// Where the true ratio is, and its logarithm.
const TRUTHS: [(&str, f64); 3] =
    [("the number", 1.0), ("the edge", 1.0 + WITHIN), ("beyond", 1.0 + 1.5 * WITHIN)];

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut broken = BrokenPromises::default();
    table::head(
        "occasions | between them | truth | mean holds it | another occasion is inside | reproduces | differs | promise",
    );
    for (row, (occasions, deviation, truth)) in rows().enumerate() {
        let mut random = Random::stream(options.seed, row as u64);
        let (name, share) = truth;
        let counts = counted(options.series, &mut random, occasions, deviation, (PUBLISHED * share).ln());
        let [held, another, reproduced, differed] = counts.map(|count| table::share(count, options.series));
        let is_false = share > 1.0 && reproduced > FALSE;
        let holds = COVERAGE.contains(&held) && COVERAGE.contains(&another) && !is_false;
        let [held, another, reproduced, differed] = [held, another, reproduced, differed].map(table::percent);
        let between = format!("{deviation} standard errors");
        let promise = broken.check(holds);
        table::row(&[&occasions, &between, &name, &held, &another, &reproduced, &differed, &promise]);
    }
    broken.sum_up()
}

fn rows() -> impl Iterator<Item = (usize, f64, (&'static str, f64))> {
    let of = |occasions| {
        DEVIATIONS.into_iter().flat_map(move |deviation| TRUTHS.map(|truth| (occasions, deviation, truth)))
    };
    OCCASIONS.into_iter().flat_map(of)
}

/// Simulates series, and returns in how many the mean's interval held the truth, another occasion was inside its
/// interval, the number was called reproduced, and it was called different.
fn counted(series: u32, random: &mut Random, occasions: usize, deviation: f64, truth: f64) -> [u32; 4] {
    let mut counts = [0; 4];
    for _ in 0..series {
        let mut occasion = || truth + ERROR * (deviation * random.normal() + random.normal());
        let logs: Vec<f64> = (0..occasions).map(|_| occasion()).collect();
        let next = occasion();
        let judged = judged(&logs);
        let (mean, another) = (judged.ratio.mean, judged.ratio.another);
        let is_in = |interval: Option<landspeed_record::Estimate>, log: f64| {
            interval.is_some_and(|found| found.low.ln() <= log && log <= found.high.ln())
        };
        let found = [
            is_in(mean, truth),
            is_in(another, next),
            judged.agreement == ExpectationAgreement::Reproduces,
            judged.agreement == ExpectationAgreement::Differs,
        ];
        counts.iter_mut().zip(found).for_each(|(count, found)| *count += u32::from(found));
    }
    counts
}

fn judged(logs: &[f64]) -> OccasionExpectation {
    let report = |log: &f64| ExpectationReport {
        kind: ExpectationKind::Number,
        published: Some(PUBLISHED),
        within: Some(WITHIN),
        ours: Some(ratio_of(*log, log - 2.0 * ERROR, log + 2.0 * ERROR)),
        ..ExpectationReport::default()
    };
    let reports: Vec<ExpectationReport> = logs.iter().map(report).collect();
    expectation_over(&reports.iter().collect::<Vec<_>>(), false)
}
