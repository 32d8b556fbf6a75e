//! `make stolen`: checks that `tune` gains about as much beside a program that takes a part of each core in bursts as
//! it does alone. It makes pairs of runs in the lab, whose order alternates.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::TuneSummary;

use crate::landspeed::{document, landspeed};
use crate::table;

/// The least share of the gain alone that must remain beside the neighbour: first for the geometric mean over the
/// pairs, then for each single pair.
const LEAST: [f64; 2] = [0.7, 0.5];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Pairs of runs
    #[arg(long, default_value_t = 5)]
    pairs: u32,
    /// Part of each core that the neighbour takes, in percent
    #[arg(long, default_value_t = 15)]
    percent: u32,
    /// Time of each run
    #[arg(long, default_value = "7m")]
    budget: String,
}

/// A running program that takes a part of each core, in bursts. It ends when this value is dropped.
pub(crate) struct NoisyNeighbour(Child);

impl NoisyNeighbour {
    pub(crate) fn begin(percent: u32) -> Result<NoisyNeighbour> {
        let percent = percent.to_string();
        // Real-time priority, so that it runs before the streams, as a neighbour on another virtual machine does.
        let child = Command::new("stress-ng")
            .args(["--quiet", "--cpu", "0", "--cpu-load", &percent, "--cpu-load-slice", "4"])
            .args(["--sched", "fifo", "--sched-prio", "50", "--timeout", "1h"])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start stress-ng")?;
        Ok(NoisyNeighbour(child))
    }
}

impl Drop for NoisyNeighbour {
    fn drop(&mut self) {
        // SIGTERM makes it end its children, which would survive after SIGKILL.
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Runs `tune` in pairs, once alone and once beside a program that takes processor time, and prints one row for each
/// pair. Returns an error if a run fails, or if the gain in rate beside that program is too small a part of the gain
/// alone.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    table::head(
        "pair | alone: rate | bytes per CPU-second | beside: rate | bytes per CPU-second | left of the rate",
    );
    let mut left = Vec::new();
    for pair in 0..options.pairs {
        // The order alternates, so that drift favours neither.
        let beside_first = pair % 2 == 1;
        let one = tune(&landspeed, options, beside_first)?;
        let other = tune(&landspeed, options, !beside_first)?;
        let (alone, beside) = if beside_first { (other, one) } else { (one, other) };
        let rate = |summary: &TuneSummary| summary.gain.rate.map_or(0.0, |gain| gain.ratio);
        let part = rate(&beside) / rate(&alone);
        let gains = [alone.gain.rate, alone.gain.cost, beside.gain.rate, beside.gain.cost].map(table::ratio);
        table::row(&[&(pair + 1), &gains.join(" | "), &format!("{part:.2}")]);
        left.push(part);
    }
    let mean = (left.iter().map(|part| part.ln()).sum::<f64>() / left.len() as f64).exp();
    let worst = left.iter().copied().fold(f64::INFINITY, f64::min);
    println!("\nGeometric mean of what is left: {mean:.2}; the least: {worst:.2}.");
    ensure!(mean >= LEAST[0] && worst >= LEAST[1], "too little is left beside a neighbour");
    Ok(())
}

fn tune(landspeed: &Path, options: &Options, beside: bool) -> Result<TuneSummary> {
    let _neighbour = beside.then(|| NoisyNeighbour::begin(options.percent)).transpose()?;
    let mut tune = Command::new(landspeed);
    document(tune.args(["tune", "--json", "--budget", &options.budget]).stderr(Stdio::inherit()))
}
