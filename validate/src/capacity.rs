//! `make capacity`: checks that `landspeed measure capacity` finds the rate of a known link. It prints the table of
//! docs/results/capacity.md, and fails if an answer is neither close to the rate nor marked as limited by a host.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use landspeed_record::units::BitRate;
use landspeed_record::{FigureValue, HOST_LIMITED, LIMITED_BY, MeasureReport};

use crate::landspeed::{document, landspeed};
use crate::table::{self, BrokenPromises};

/// Rates of the links, in bits of IP packets per second.
const RATES: [(&str, f64); 5] =
    [("50M", 50e6), ("200M", 200e6), ("500M", 500e6), ("1G", 1e9), ("2.5G", 2.5e9)];
/// Largest relative error of an answer that counts as close.
const NEAR: f64 = 0.02;
/// The time limit of an answer, in seconds.
const SECONDS: f64 = 90.0;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each rate
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    table::head("rate of the link | found | of it | limited by | trials | took | the link itself | promise");
    let mut broken = BrokenPromises::default();
    for _ in 0..options.runs {
        for (name, rate) in RATES {
            let answer = ask(&landspeed, name)?;
            let promise = broken.check(answer.is_kept(rate));
            table::row(&[
                &name,
                &answer.rate.map_or_else(|| "–".to_owned(), |found| found.to_string()),
                &answer.rate.map_or_else(String::new, |found| table::percent(found.0 / rate)),
                &answer.limited,
                &answer.trials,
                &format!("{:.1} s", answer.seconds),
                &if answer.is_fit { "as told" } else { "not as told" },
                &promise,
            ]);
        }
    }
    broken.sum_up()
}

struct CapacityAnswer {
    /// `None` if a host was the limit.
    rate: Option<BitRate>,
    limited: String,
    trials: u64,
    seconds: f64,
    /// True if the emulator kept its parameters.
    is_fit: bool,
}

fn ask(landspeed: &Path, rate: &str) -> Result<CapacityAnswer> {
    let begun = Instant::now();
    let lab = format!("lab:wan:rate={rate},rtt=10ms,queue=10ms");
    let report: MeasureReport =
        document(Command::new(landspeed).args(["measure", "capacity", "--json", &lab]))?;
    let figures = report.figures.iter().flat_map(|part| &part.figures);
    let figure =
        |name: &str| figures.clone().find(|figure| figure.name == name).map(|figure| figure.amount.clone());
    let (Some(FigureValue::Text(limited)), Some(FigureValue::Count(trials))) =
        (figure(LIMITED_BY), figure("trials"))
    else {
        bail!("there is no limit, or no number of trials");
    };
    let rate = match figure("in IP packets") {
        Some(FigureValue::RateBps(rate)) => Some(rate),
        _ => None,
    };
    let is_fit = report.wan.is_some_and(|wan| wan.unfit.is_empty());
    Ok(CapacityAnswer { rate, limited, trials, seconds: begun.elapsed().as_secs_f64(), is_fit })
}

impl CapacityAnswer {
    fn is_kept(&self, truth: f64) -> bool {
        let is_near = self.rate.is_some_and(|rate| (rate.0 / truth - 1.0).abs() <= NEAR);
        let is_named = self.limited.starts_with(HOST_LIMITED) || !self.is_fit;
        (is_near || is_named) && self.seconds < SECONDS
    }
}
