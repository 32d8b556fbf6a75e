//! `make copy-cost`: what it costs that a copy accounts the time of its stages. Copies by turns with and without it, both ends and
//! the controller on one core.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_engine::cpu_of_children;
use landspeed_record::Estimate;
use landspeed_record::units::Bytes;
use landspeed_stats::estimate;
use serde::Deserialize;

use super::site::Site;
use crate::landspeed::{landspeed, printed};
use crate::stop;
use crate::table::{self, BrokenPromises};

/// The most by which the accounting may raise the processor time of a byte: the upper end of the interval.
const MOST: f64 = 1.02;
/// The variable that switches the accounting off.
const SWITCH: &str = "LANDSPEED_COPY_CLOCKS";
/// The longest time of a copy in seconds.
const LONGEST: &str = "120";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Pairs of copies
    #[arg(long, default_value_t = 30)]
    pairs: u32,
    /// The content, in MiB
    #[arg(long, default_value_t = 1024)]
    mib: u64,
    /// The folder in which all is copied, in memory
    #[arg(long, default_value = "/dev/shm")]
    folder: PathBuf,
}

/// What a copy prints.
#[derive(Deserialize)]
struct CopyDocument {
    stages: CopyStages,
}

/// What each end tells of its stages.
#[derive(Deserialize)]
struct CopyStages {
    source: Vec<serde_json::Value>,
    target: Vec<serde_json::Value>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on_signals()?;
    let landspeed = landspeed()?;
    let site = Site::new(&options.folder, &landspeed)?;
    let bytes = site.fill(options.mib, 0)?;
    let mut seconds: [Vec<f64>; 2] = Default::default();
    for pair in 0..options.pairs {
        ensure!(!stop.load(Ordering::Relaxed), "stopped after {pair} pairs");
        // The order alternates, so that drift favours neither.
        let first = pair % 2 == 0;
        for is_accounted in [first, !first] {
            seconds[usize::from(is_accounted)].push(copy(&site, &landspeed, bytes, is_accounted)?);
        }
    }
    report(&seconds, bytes)
}

/// Copies once into an empty folder. Returns the processor time of all that took part, in seconds.
fn copy(site: &Site, landspeed: &Path, bytes: u64, is_accounted: bool) -> Result<f64> {
    site.empty_target()?;
    site.use_memory(bytes)?;
    let [from, to] = [0, 1].map(|end| format!("netns:{}", site.namespace(end)));
    let mut command = Command::new("timeout");
    command.args([LONGEST, "taskset", "-c", "0"]).arg(landspeed).args(["copy", "--no-record", "--json"]);
    command.args(["--from", &from, "--to", &to]).arg(site.source().join("")).arg(site.target());
    // Both ends are children of the controller, and have its environment.
    match is_accounted {
        true => command.env_remove(SWITCH),
        false => command.env(SWITCH, "off"),
    };
    let before = cpu_of_children()?;
    let output = command.stdin(Stdio::null()).output().context("copy")?;
    let seconds = (cpu_of_children()? - before).as_secs_f64();
    let document: CopyDocument = printed(&output)?;
    let has_stages = [&document.stages.source, &document.stages.target].map(|stages| !stages.is_empty());
    ensure!(has_stages == [is_accounted; 2], "{SWITCH} did not reach both ends: {has_stages:?}");
    Ok(seconds)
}

fn report([without, with]: &[Vec<f64>; 2], bytes: u64) -> Result<()> {
    let mut broken = BrokenPromises::default();
    let ratio = ratio(without, with);
    let per_gib = |seconds: &[f64]| {
        let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        format!("{:.3}", mean * f64::from(1 << 30) / bytes as f64)
    };
    table::head("CPU-s per GiB without it | with it | ratio with the 95 % interval | promise");
    let kept = broken.check(ratio.high <= MOST);
    let promise = format!("at most {MOST}, upper end: {kept}");
    table::row(&[&per_gib(without), &per_gib(with), &table::ratio(Some(ratio)), &promise]);
    println!("\n{}, {} pairs, one core.", Bytes(bytes), with.len());
    broken.sum_up()
}

/// Returns the processor time with the accounting over that without it.
fn ratio(without: &[f64], with: &[f64]) -> Estimate {
    let logs: Vec<f64> = without.iter().zip(with).map(|(without, with)| (with / without).ln()).collect();
    estimate(&logs, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_end_of_the_interval_counts() {
        let gib = 1 << 30;
        let turns = |with: &[f64]| [vec![4.0; with.len()], with.to_vec()];
        assert!(report(&turns(&[4.04; 10]), gib).is_ok());
        assert!(report(&turns(&[4.12; 10]), gib).is_err());
        // One percent on average, and too wide to tell.
        let wide: Vec<f64> = (0..10).map(|turn| if turn % 2 == 0 { 3.6 } else { 4.5 }).collect();
        assert!(report(&turns(&wide), gib).is_err());
    }
}
