//! `make agree`: the study on real sockets over the emulated path and in the simulator, by protocol and round trip: the
//! ratio of the aggregates of the middle region (all flows there), with its interval, and the figures of `columns`.
//!
//! That these tell one protocol from another is held as well: each protocol's kernel columns are paired with every other
//! one's simulation, and such a pairing must fail.
//!
//! A protocol that needs longer than the region to grow back after a loss shows in it only which part of its saw-tooth
//! fell there: its rate is named and not judged.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_model::{VARIED_SHARE, recovery_time, study_run};
use landspeed_record::{CompareReport, Contest, Engine, Estimate, Line, Study};
use landspeed_stats::unpaired;
use landspeed_units::{BitRate, Bytes, Nanos};

use super::columns::{Column, Pairings, Path as Compared, Run};
use crate::built::landspeed;

/// The grid of the paper: Caltech, UFL, CERN.
const ROUND_TRIPS_MS: [u64; 3] = [10, 80, 164];
const LOW: f64 = 0.85;
const HIGH: f64 = 1.18;
/// Simulated runs of each protocol: they cost seconds.
const SIMULATED: u32 = 12;
/// Share of the protocols that must agree with their own simulation over each path, and of those that must be taken for
/// no other.
const ENOUGH: f64 = 0.8;

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
    /// Kernel studies made before, one a round trip, in place of new ones.
    #[arg(long, value_name = "RECORD", value_delimiter = ',', conflicts_with_all = ["rate", "scale", "repeats", "protocols", "round_trips_ms"])]
    records: Vec<PathBuf>,
    /// Where to write every run's figures, as the test of the comparison has them.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl Options {
    fn start(&self, landspeed: &Path, rtt_ms: u64) -> Result<Child> {
        let path = format!("lab:wan:rate={},rtt={rtt_ms}ms,queue=0.5bdp", self.rate);
        let mut command = Command::new(landspeed);
        command.args(["compare", &path, "--json", "--scale", &self.scale]);
        command.args(["--repeats", &self.repeats.to_string()]);
        command.args(["--data-dir".as_ref(), records(landspeed).as_os_str()]);
        if let Some(protocols) = &self.protocols {
            command.args(["--protocols", protocols]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command.spawn().with_context(|| format!("{command:?}"))
    }

    /// The kernel's studies: those of records, or new ones side by side, one a round trip.
    fn kernels(&self) -> Result<Vec<Measured>> {
        if !self.records.is_empty() {
            return self.records.iter().map(|file| Measured::read(file)).collect();
        }
        let landspeed = landspeed()?;
        let studies: Vec<Child> =
            self.round_trips_ms.iter().map(|rtt| self.start(&landspeed, *rtt)).collect::<Result<_>>()?;
        studies.into_iter().map(Measured::finish).collect()
    }
}

/// Beside the build that made them.
fn records(landspeed: &Path) -> PathBuf {
    landspeed.with_file_name("agree")
}

/// A study on the kernel's sockets.
struct Measured {
    study: Study,
    columns: Vec<Column>,
}

impl Measured {
    fn finish(child: Child) -> Result<Measured> {
        let output = child.wait_with_output()?;
        let report: CompareReport =
            serde_json::from_slice(&output.stdout).context("compare gave no report")?;
        if let Some(void) = &report.void {
            eprintln!("{}: {void}", report.study.path.topology);
        }
        Measured::read(Path::new(report.record.as_deref().context("no record")?))
    }

    fn read(file: &Path) -> Result<Measured> {
        let record = landspeed_record::read(file)?;
        let runs = record.lines.iter().filter_map(|line| match line {
            Line::Run(run) => Some(&**run),
            _ => None,
        });
        let study = record.lines.iter().find_map(|line| match line {
            Line::Study(study) => Some((**study).clone()),
            _ => None,
        });
        let study = study.with_context(|| format!("{} holds no study", file.display()))?;
        let column = |contest: &Contest| Column {
            protocol: contest.name.clone(),
            runs: runs
                .clone()
                .filter(|run| run.contest == contest.name)
                .filter_map(|run| Run::of(&study, run))
                .collect(),
        };
        let columns = study.contests.iter().map(column).collect();
        Ok(Measured { study, columns })
    }

    /// The same study simulated.
    fn simulated(&self) -> Result<Vec<Column>> {
        let varied = Study { engine: Engine::Simulator, varied_share: VARIED_SHARE, ..self.study.clone() };
        let column = |contest: &Contest| -> Result<Column> {
            let runs = (0..SIMULATED)
                .map(|repeat| study_run(&varied, contest, repeat))
                .collect::<Result<Vec<_>, _>>()?;
            let runs = runs.iter().filter_map(|run| Run::of(&varied, run)).collect();
            Ok(Column { protocol: contest.name.clone(), runs })
        };
        self.study.contests.iter().map(column).collect()
    }

    fn beside_simulator(self) -> Result<Compared> {
        let simulator = self.simulated()?;
        Ok(Compared { rtt_ms: self.study.path.rtt_ns.0 / 1_000_000, kernel: self.columns, simulator })
    }
}

/// Holds the kernel's studies against the simulator's.
pub(super) fn run(options: &Options) -> Result<()> {
    let kernels = options.kernels()?;
    let study = kernels.first().context("no round trip")?.study.clone();
    let paths = kernels.into_iter().map(Measured::beside_simulator).collect::<Result<Vec<_>>>()?;
    if let Some(file) = &options.write {
        std::fs::write(file, serde_json::to_string(&paths)? + "\n")
            .with_context(|| file.display().to_string())?;
    }
    let mut apart = rows(&paths, &study);
    apart.extend(wrong_pairings(&paths));
    std::io::stdout().flush()?;
    ensure!(apart.is_empty(), "kernel and simulator: {}", apart.join(", "));
    Ok(())
}

/// Prints a row a protocol and round trip; says which rates differ, and over which paths too many figures do.
fn rows(paths: &[Compared], study: &Study) -> Vec<String> {
    println!(
        "| RTT | protocol | kernel Mb/s | simulator Mb/s | ratio | interval | | S, kernel and simulator | least F | window | its deviation | std of RTT, ms | |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let mut apart = Vec::new();
    for path in paths {
        let mut alike = 0;
        for real in &path.kernel {
            let none = Column { protocol: real.protocol.clone(), runs: Vec::new() };
            let model = path.simulator.iter().find(|model| model.protocol == real.protocol).unwrap_or(&none);
            let [rate, figures] = Row { rtt_ms: path.rtt_ms, real, model }.print(study);
            if !rate {
                apart.push(format!("the rates of {} at {} ms differ", real.protocol, path.rtt_ms));
            }
            alike += usize::from(figures);
        }
        if (alike as f64) < ENOUGH * path.kernel.len() as f64 {
            let all = path.kernel.len();
            apart.push(format!(
                "{alike} of {all} protocols agree with their own simulation at {} ms",
                path.rtt_ms
            ));
        }
    }
    apart
}

/// Prints which protocols' kernel columns are taken for another one's simulation; what is said where these are too many.
fn wrong_pairings(paths: &[Compared]) -> Option<String> {
    let pairings = Pairings::of(paths);
    println!(
        "\n| wrong pairings | agrees with its own simulation | taken for, over every path |\n|---|---|---|"
    );
    for paired in &pairings.protocols {
        let own = if paired.is_itself { "over a path at least" } else { "over none" };
        let others =
            if paired.taken_for.is_empty() { "none".to_owned() } else { paired.taken_for.join(", ") };
        println!("| {} | {own} | {others} |", paired.protocol);
    }
    let (apart, all) = (pairings.told_apart(), pairings.protocols.len());
    let told = format!(
        "wrong pairings: {apart} of {all} protocols told apart; {} of {} pairings pass",
        pairings.passed, pairings.judged
    );
    println!("\n{told}");
    ((apart as f64) < ENOUGH * all as f64).then_some(told)
}

struct Row<'a> {
    rtt_ms: u64,
    real: &'a Column,
    model: &'a Column,
}

impl Row<'_> {
    /// Whether the rates are near enough, and whether the other figures agree.
    fn print(&self, study: &Study) -> [bool; 2] {
        let (rate, rate_is_near) = self.rate(study);
        let differs = self.real.differs(self.model);
        let words = match &differs {
            None => "too few runs".to_owned(),
            Some(none) if none.is_empty() => "agrees".to_owned(),
            Some(figures) => {
                let told =
                    figures.iter().map(|(name, times)| format!("**{name}** by {times:.1} times the bound"));
                told.collect::<Vec<_>>().join(", ")
            }
        };
        let cells = [
            self.both(|run| run.stability, 2),
            self.both(|run| run.fairness, 2),
            self.both(|run| run.window_segments, 0),
            self.both(|run| run.window_sd_segments, 0),
            self.both(|run| run.rtt_sd_s * 1e3, 2),
        ];
        println!(
            "| {} ms | {} | {rate} | {} | {words} |",
            self.rtt_ms,
            self.real.protocol,
            cells.join(" | ")
        );
        [rate_is_near, differs.is_some_and(|figures| figures.is_empty())]
    }

    /// A figure's means in both engines.
    fn both(&self, of: fn(&Run) -> f64, digits: usize) -> String {
        format!("{:.digits$}, {:.digits$}", self.real.mean(of), self.model.mean(of))
    }

    /// The rates' cells, and whether their ratio is near enough.
    fn rate(&self, study: &Study) -> (String, bool) {
        let rates = |column: &Column| column.runs.iter().map(|run| run.middle_mbps).collect::<Vec<f64>>();
        let ratio = unpaired(&rates(self.real), &rates(self.model), 0.95);
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
        let mean = |column: &Column| column.mean(|run| run.middle_mbps);
        let cells = format!("{:.1} | {:.1} | {interval} | {words}", mean(self.real), mean(self.model));
        (cells, within || exempt.is_some())
    }

    /// How long a flow of the middle region grows back for after a loss, where its protocol adds one segment a round
    /// trip: feng-2003's formula with a flow's share of the path.
    fn epoch(&self, study: &Study) -> Option<Nanos> {
        let linear = matches!(self.real.protocol.as_str(), "reno" | "westwood");
        let share = BitRate(study.path.rate_bps.0 / f64::from(study.flows.max(1)));
        let rtt = Nanos::millis(self.rtt_ms);
        linear.then(|| recovery_time(share, rtt, Bytes(u64::from(study.path.mtu_bytes) - 52)))
    }
}
