//! `make agree`: the study's middle region (all flows there) on real sockets over the emulated path and in the
//! simulator, by protocol and round trip: the ratio of its aggregates, with its interval.
//!
//! A protocol that needs longer than the region to grow back after a loss shows in it only which part of its saw-tooth
//! fell there: it is named and not judged.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_analysis::compare::RunFigures;
use landspeed_model::recovery_time;
use landspeed_record::{CompareReport, Estimate, Line, Study};
use landspeed_stats::unpaired;
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::built::landspeed;

/// The grid of the paper: Caltech, UFL, CERN.
const ROUND_TRIPS_MS: [u64; 3] = [10, 80, 164];
const LOW: f64 = 0.85;
const HIGH: f64 = 1.18;

/// How the study is run.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Options {
    /// Rate of the path's link.
    #[arg(long, default_value = "100M")]
    rate: String,
    /// Share of the study's times.
    #[arg(long, default_value = "0.1")]
    scale: String,
    /// Runs of each protocol. Two more than are asked for: a run whose link was late does not count.
    #[arg(long, default_value_t = 7)]
    repeats: u32,
    /// Only these, separated by commas.
    #[arg(long)]
    protocols: Option<String>,
    /// Round trips in ms.
    #[arg(long = "rtts", value_delimiter = ',', default_values_t = ROUND_TRIPS_MS)]
    round_trips_ms: Vec<u64>,
}

impl Options {
    fn start(&self, landspeed: &Path, rtt_ms: u64, simulate: bool) -> Result<Child> {
        let path = format!("lab:wan:rate={},rtt={rtt_ms}ms,queue=0.5bdp", self.rate);
        let mut command = Command::new(landspeed);
        command.args([
            "compare",
            &path,
            "--json",
            "--scale",
            &self.scale,
            "--repeats",
            &self.repeats.to_string(),
        ]);
        command.args(["--data-dir".as_ref(), records(landspeed).as_os_str()]);
        if let Some(protocols) = &self.protocols {
            command.args(["--protocols", protocols]);
        }
        if simulate {
            command.arg("--simulate");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().with_context(|| format!("{command:?}"))
    }
}

/// Beside the build that made them.
fn records(landspeed: &Path) -> PathBuf {
    landspeed.with_file_name("agree")
}

/// Runs the kernel's studies side by side, one a round trip, and then the simulator's.
pub(super) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let start = |simulate: bool| -> Result<Vec<Child>> {
        options.round_trips_ms.iter().map(|rtt| options.start(&landspeed, *rtt, simulate)).collect()
    };
    let kernel = start(false)?.into_iter().map(finish).collect::<Result<Vec<_>>>()?;
    let simulator = start(true)?.into_iter().map(finish).collect::<Result<Vec<_>>>()?;
    println!(
        "| RTT | protocol | kernel Mb/s | simulator Mb/s | ratio | interval | |\n|---|---|---|---|---|---|---|"
    );
    let mut apart = Vec::new();
    for ((kernel, simulator), rtt) in kernel.iter().zip(&simulator).zip(&options.round_trips_ms) {
        for (name, real) in &kernel.by_protocol {
            let model = simulator.by_protocol.iter().find(|(other, _)| other == name);
            let row = Row { name, rtt_ms: *rtt, real, model: model.map_or(&[][..], |(_, rates)| rates) };
            if !row.print(&kernel.study) {
                apart.push(format!("{name} at {rtt} ms"));
            }
        }
    }
    std::io::stdout().flush()?;
    ensure!(apart.is_empty(), "kernel and simulator differ: {}", apart.join(", "));
    Ok(())
}

/// The aggregates of the middle region, run by run.
struct Rates {
    study: Study,
    by_protocol: Vec<(String, Vec<f64>)>,
}

fn finish(child: Child) -> Result<Rates> {
    let output = child.wait_with_output()?;
    let report: CompareReport = serde_json::from_slice(&output.stdout).context("compare gave no report")?;
    if let Some(void) = &report.void {
        eprintln!("{}: {void}", report.study.path.topology);
    }
    let record = landspeed_record::read(Path::new(report.record.as_deref().context("no record")?))?;
    let mut by_protocol: Vec<(String, Vec<f64>)> =
        report.study.contests.iter().map(|contest| (contest.name.clone(), Vec::new())).collect();
    for line in &record.lines {
        let Line::Run(run) = line else { continue };
        let rates = by_protocol.iter_mut().find(|(name, _)| *name == run.contest);
        if let Some((_, rates)) = rates.filter(|_| run.invalid.is_empty()) {
            let middle = RunFigures::of(&report.study, run).and_then(|figures| figures.middle_bps());
            rates.extend(middle.map(|rate| rate.0 / 1e6));
        }
    }
    Ok(Rates { study: report.study, by_protocol })
}

struct Row<'a> {
    name: &'a str,
    rtt_ms: u64,
    real: &'a [f64],
    model: &'a [f64],
}

impl Row<'_> {
    /// Whether it is as it should be.
    fn print(&self, study: &Study) -> bool {
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let ratio = unpaired(self.real, self.model, 0.95);
        let exempt = self.epoch(study).filter(|epoch| *epoch > Nanos(study.region_ns.0 * 2));
        let (interval, within) = match &ratio {
            Some(Estimate { ratio, low, high }) => {
                (format!("{ratio:.3} | {low:.3} to {high:.3}"), *low >= LOW && *high <= HIGH)
            }
            None => ("- | too few runs".to_owned(), false),
        };
        let words = match (within, exempt) {
            (true, _) => "agrees".to_owned(),
            (false, Some(epoch)) => format!("not judged: grows back in {epoch}"),
            (false, None) => "**differs**".to_owned(),
        };
        println!(
            "| {} ms | {} | {:.1} | {:.1} | {interval} | {words} |",
            self.rtt_ms,
            self.name,
            mean(self.real),
            mean(self.model)
        );
        within || exempt.is_some()
    }

    /// How long a flow of the middle region grows back for after a loss, where its protocol adds one segment a round
    /// trip: feng-2003's formula with a flow's share of the path.
    fn epoch(&self, study: &Study) -> Option<Nanos> {
        let linear = matches!(self.name, "reno" | "westwood");
        let share = BitRate(study.path.rate_bps.0 / f64::from(study.flows.max(1)));
        linear.then(|| recovery_time(share, study.path.rtt_ns, Bytes(u64::from(study.path.mtu_bytes) - 52)))
    }
}
