//! `make transports`: measures one flow of each transport over loopback, a lab, and a long path with losses, alone and
//! beside one flow of CUBIC. It prints the tables of docs/results/transports.md.
//!
//! A round measures every transport over every path once, in a newly drawn order; ratios are to CUBIC of the same
//! round. Processor time is that of the threads of both programs, including libudt's own.

mod loopback;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_record::Settings;
use landspeed_stats::estimate;
use landspeed_transport::settings::TRANSPORT;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::bench::{cores, json, libudt_program, number, text, three};
use crate::{applications, built, stop};

const CONFIDENCE: f64 = 0.95;
/// Seconds after which `timeout` ends a program.
const LIMIT: &str = "200";
/// Address and port at which libudt's ends meet over loopback.
const AT: [&str; 2] = ["127.0.0.1", "5404"];

/// The flow that the others are compared with, and that runs beside each of them.
const CUBIC: &[(&str, &str)] = &[("transport", "tcp"), ("socket-congestion", "cubic")];

const CONTESTANTS: [(&str, TransportChoice); 6] = [
    ("TCP, CUBIC", TransportChoice::Flow(CUBIC)),
    ("TCP, BBR", TransportChoice::Flow(&[("transport", "tcp"), ("socket-congestion", "bbr")])),
    ("UDT", TransportChoice::Flow(&[("transport", "udt")])),
    ("UDT, steady", TransportChoice::Flow(&[("transport", "udt"), ("udt-congestion", "daimd-steady")])),
    ("libudt", TransportChoice::Libudt),
    ("QUIC, CUBIC", TransportChoice::Flow(&[("transport", "quic"), ("quic-congestion", "cubic")])),
];

#[derive(Debug, Clone, Copy)]
enum TransportChoice {
    Flow(&'static [(&'static str, &'static str)]),
    Libudt,
}

/// The path of a flow; `lab` is `None` for loopback.
struct TransportPath {
    name: &'static str,
    lab: Option<&'static str>,
    warm_up_s: u32,
    window_s: u32,
}

const PLACES: [TransportPath; 5] = [
    TransportPath { name: "loopback, MTU 65536", lab: None, warm_up_s: 3, window_s: 3 },
    TransportPath { name: "lab:back-to-back", lab: Some("lab:back-to-back"), warm_up_s: 3, window_s: 3 },
    TransportPath { name: "1 Gb/s, 20 ms", lab: Some("lab:wan:rate=1G,rtt=20ms"), warm_up_s: 5, window_s: 8 },
    TransportPath {
        name: "1 Gb/s, 20 ms, 1e-4 lost",
        lab: Some("lab:wan:rate=1G,rtt=20ms,loss=1e-4"),
        warm_up_s: 5,
        window_s: 8,
    },
    TransportPath {
        name: "1 Gb/s, 20 ms, 1e-2 lost",
        lab: Some("lab:wan:rate=1G,rtt=20ms,loss=1e-2"),
        warm_up_s: 5,
        window_s: 8,
    },
];

/// How long a flow runs beside another, in seconds.
const BESIDE_S: u32 = 15;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each transport over each path
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only paths with this in their names
    #[arg(long, default_value = "")]
    only: String,
    /// Seed of the order of runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The result of a flow in its window.
#[derive(Debug, Clone, Copy)]
struct FlowResult {
    seconds: f64,
    bytes: f64,
    /// Processor time per second, of both ends.
    cores: f64,
}

impl FlowResult {
    fn checked(self) -> Result<FlowResult> {
        ensure!(self.bytes > 0.0 && self.cores > 0.0, "the run measured nothing");
        Ok(self)
    }

    fn rate_bps(&self) -> f64 {
        self.bytes * 8.0 / self.seconds
    }

    fn bytes_per_cpu_s(&self) -> f64 {
        self.bytes / self.seconds / self.cores
    }
}

/// All runs of a transport over a path, one per round; `None` for one that failed.
#[derive(Debug, Default)]
struct TransportRuns {
    alone: Vec<Option<FlowResult>>,
    /// The flow's share of what it and a CUBIC flow carried in total.
    shares: Vec<Option<f64>>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    let bench = TransportBench { landspeed: built::landspeed()?, files: LibudtFiles::write()? };
    let mut dice = ChaCha8Rng::seed_from_u64(options.seed);
    let asked = |place: &usize| PLACES[*place].name.contains(options.only.as_str());
    let mut order: Vec<(usize, usize)> = (0..PLACES.len())
        .filter(asked)
        .flat_map(|place| (0..CONTESTANTS.len()).map(move |who| (place, who)))
        .collect();
    ensure!(!order.is_empty(), "--only names no path");
    let mut all: BTreeMap<(usize, usize), TransportRuns> = BTreeMap::new();
    for round in 0..options.rounds {
        order.shuffle(&mut dice);
        for &(place, who) in &order {
            ensure!(!stop.load(Ordering::Relaxed), "stopped in round {}", round + 1);
            let ((name, how), at) = (CONTESTANTS[who], &PLACES[place]);
            eprintln!("round {}: {name} over {}", round + 1, at.name);
            let runs = all.entry((place, who)).or_default();
            runs.alone.push(told(bench.alone(how, at).and_then(FlowResult::checked)));
            if let Some(lab) = at.lab {
                runs.shares.push(told(bench.beside(how, lab)));
            }
        }
    }
    print(options, &all);
    Ok(())
}

/// Returns the result; prints the error of a failed run, which has no figure.
fn told<T>(run: Result<T>) -> Option<T> {
    run.inspect_err(|error| eprintln!("failed: {error:#}")).ok()
}

fn print(options: &Options, all: &BTreeMap<(usize, usize), TransportRuns>) {
    println!(
        "{} rounds, seed {}; medians, least to most; ratios to CUBIC round by round, {:.0} % intervals\n",
        options.rounds,
        options.seed,
        CONFIDENCE * 100.0
    );
    println!(
        "| path | transport | Mb/s | over CUBIC's | MB for a CPU-second | over CUBIC's | share beside CUBIC |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ((place, who), runs) in all {
        let cubic = &all[&(*place, 0)];
        let figures = [FlowResult::rate_bps, FlowResult::bytes_per_cpu_s].map(|figure| {
            let own: Vec<f64> = runs.alone.iter().flatten().map(|run| figure(run) / 1e6).collect();
            let ratios = ratio((runs, cubic), figure).filter(|_| *who > 0).unwrap_or_default();
            format!("{} | {ratios}", spread(&own, 0))
        });
        let share = spread(&runs.shares.iter().flatten().copied().collect::<Vec<_>>(), 2);
        println!(
            "| {} | {} | {} | {} | {share} |",
            PLACES[*place].name, CONTESTANTS[*who].0, figures[0], figures[1]
        );
    }
}

fn ratio((runs, cubic): (&TransportRuns, &TransportRuns), figure: fn(&FlowResult) -> f64) -> Option<String> {
    let rounds = runs.alone.iter().zip(&cubic.alone);
    let pairs = rounds.filter_map(|(run, base)| Some((run.as_ref()?, base.as_ref()?)));
    let logs: Vec<f64> = pairs.map(|(run, base)| (figure(run) / figure(base)).ln()).collect();
    let found = (logs.len() > 1).then(|| estimate(&logs, CONFIDENCE))?;
    Some(format!("{:.2} [{:.2}, {:.2}]", found.ratio, found.low, found.high))
}

/// Returns "940 (931 to 944)".
fn spread(values: &[f64], digits: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return "-".to_owned();
    }
    let [least, middle, most] = [0, sorted.len() / 2, sorted.len() - 1].map(|at| sorted[at]);
    format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
}

struct TransportBench {
    landspeed: PathBuf,
    files: LibudtFiles,
}

impl TransportBench {
    fn alone(&self, how: TransportChoice, place: &TransportPath) -> Result<FlowResult> {
        match (how, place.lab) {
            (TransportChoice::Flow(set), None) => {
                let seconds = |s: u32| Duration::from_secs(s.into());
                loopback::run(&settings(set), seconds(place.warm_up_s), seconds(place.window_s))
            }
            (TransportChoice::Flow(set), Some(lab)) => self.flow(set, (lab, place)),
            (TransportChoice::Libudt, None) => libudt_over_loopback(place),
            (TransportChoice::Libudt, Some(lab)) => {
                self.libudt(&self.files.alone, lab, (place.warm_up_s, place.window_s)).map(|(run, _)| run)
            }
        }
    }

    fn flow(&self, set: &[(&str, &str)], (lab, place): (&str, &TransportPath)) -> Result<FlowResult> {
        let transport = set.iter().find(|(name, _)| *name == TRANSPORT.name).map_or("tcp", |(_, name)| name);
        let set: Vec<String> = set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (time, warm_up) = (format!("{}s", place.window_s), format!("{}s", place.warm_up_s));
        let words = [
            "stream",
            lab,
            "--json",
            "--time",
            &time,
            "--warm-up",
            &warm_up,
            "--transport",
            transport,
            "--set",
            &set.join(","),
        ];
        let report = json(&mut self.measure(&words))?;
        Ok(FlowResult {
            seconds: number(&report, "/streams/0/window_ns")? / 1e9,
            bytes: number(&report, "/streams/0/received_bytes")?,
            cores: cores(&report)?,
        })
    }

    /// Returns the share of a flow, of what it and a CUBIC flow that enters with it carry.
    fn beside(&self, how: TransportChoice, lab: &str) -> Result<f64> {
        let TransportChoice::Flow(set) = how else {
            let (run, beside) = self.libudt(&self.files.beside, lab, (0, BESIDE_S))?;
            let beside = beside.context("iperf3 told no rate")?;
            return Ok(run.rate_bps() / (run.rate_bps() + beside));
        };
        let leaves_ns = u64::from(BESIDE_S) * 1_000_000_000;
        let flow = |set| json!({ "settings": settings(set), "leaves_ns": leaves_ns });
        let plan = json!([flow(set), flow(CUBIC)]).to_string();
        let time = format!("{BESIDE_S}s");
        let words = ["staggered", lab, "--json", "--time", &time, "--probe-every", "0s", "--plan", &plan];
        let report = json(&mut self.measure(&words))?;
        let [own, cubic] = [0, 1].map(|flow| number(&report, &format!("/streams/0/flow_rate_bps/{flow}")));
        let (own, cubic) = (own?, cubic?);
        Ok(own / (own + cubic))
    }

    /// Runs libudt as an application of landspeed; returns its result, and the rate of the flow beside it.
    fn libudt(
        &self,
        file: &Path,
        lab: &str,
        (warm_up_s, window_s): (u32, u32),
    ) -> Result<(FlowResult, Option<f64>)> {
        let program = libudt_program()?.to_str().context("a path that is no text")?;
        let app = format!("app:{}", file.display());
        let (settles, seconds) = (warm_up_s.to_string(), window_s.to_string());
        let words = [&app, lab, "--program", program, "--settles", &settles, "--seconds", &seconds];
        let told = applications::measured(&self.landspeed, &words.map(str::to_owned))?;
        let figures: BTreeMap<String, f64> =
            told.into_iter().map(|(name, measured)| (name, measured.value)).collect();
        let figure = |name: &str| figures.get(name).copied().with_context(|| format!("no figure {name}"));
        let run = FlowResult {
            seconds: figure("receiver-took")? / 1e9,
            bytes: figure("received")?,
            cores: figure("receiver-ran")? / figure("receiver-took")?
                + figure("sender-ran")? / figure("sender-took")?,
        };
        Ok((run, figures.get("beside").copied()))
    }

    fn measure(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(&self.landspeed).arg("measure").args(words).stdin(Stdio::null());
        command
    }
}

fn settings(set: &[(&str, &str)]) -> Settings {
    set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn libudt_over_loopback(place: &TransportPath) -> Result<FlowResult> {
    let program = libudt_program()?;
    let end = |what: &str| {
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(program).arg(what).args(AT).args(["65535", "12582912"]);
        command.args([place.warm_up_s, place.window_s].map(|seconds| seconds.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    };
    let receiving = end("receive").spawn().context("the libudt program does not start")?;
    std::thread::sleep(Duration::from_millis(150));
    let sent = text(&mut end("send"));
    let received = receiving.wait_with_output()?;
    let [_, sender_took, sender_ran] = three(&sent?)?;
    let [bytes, took, ran] = three(&String::from_utf8_lossy(&received.stdout))?;
    Ok(FlowResult { seconds: took / 1e9, bytes, cores: sender_ran / sender_took + ran / took })
}

/// The application files of libudt, written beside landspeed: alone, and beside a CUBIC flow.
struct LibudtFiles {
    alone: PathBuf,
    beside: PathBuf,
}

impl LibudtFiles {
    fn write() -> Result<LibudtFiles> {
        const ALONE: &str = include_str!("libudt.toml");
        const BESIDE: &str = include_str!("beside.toml");
        let landspeed = built::landspeed()?;
        let at = |name| landspeed.with_file_name(name);
        let files = LibudtFiles { alone: at("libudt.toml"), beside: at("libudt-beside.toml") };
        std::fs::write(&files.alone, ALONE)?;
        std::fs::write(&files.beside, [ALONE, BESIDE].concat())?;
        Ok(files)
    }
}
