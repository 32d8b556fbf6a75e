//! `make bench`: compares landspeed's workloads with established tools, in one lab, interleaved; `bench --only "two
//! cores" --blocks 60` measures one comparison more thoroughly. It prints ratios with intervals and judges nothing, so
//! it is not a timed test.
//!
//! Both tools run between the same two namespaces, with Reno, which is also the lab's baseline. Blocks are alternately
//! ABBA and BAAB; the statistic is the log ratio of a block. Both leave out the first second of a stream: a start-up
//! differs from what follows, and would decide for or against a tool that counts it. iperf3's rate and processor time
//! are its own figures for the same interval, of its own processes. Two figures of landspeed are compared with them:
//! its workers' time only, and the time that it reports, which includes ksoftirqd and so favours iperf3.

pub(crate) mod udp;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_stats::estimate;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::built::landspeed;
use crate::stop;

const CONFIDENCE: f64 = 0.95;
const SERVER: &str = "198.51.100.2";

/// Warm-up of UDT: slow start, and some seconds in which the rate grows.
const UDT_WARM_UP: &str = "3s";

/// Seconds after which `timeout` ends a program.
const LIMIT: &str = "60";

/// Measures the figures of one tool once.
type MeasureFn = fn(&NamespacePair) -> Result<Vec<f64>>;

/// One comparison: its name, the names of the figures, and landspeed's and the other tool's measurement.
struct ToolComparison {
    name: &'static str,
    figures: &'static [&'static str],
    ours: MeasureFn,
    theirs: MeasureFn,
}

/// Figures of a stream. iperf3 counts its own processes; landspeed's figure includes ksoftirqd, and that of its
/// workers does not.
const STREAM: &[&str] = &["rate", "bytes per CPU-second, own threads", "the same, ours with ksoftirqd"];

const COMPARISONS: &[ToolComparison] = &[
    ToolComparison {
        name: "stream against iperf3, one core",
        figures: STREAM,
        ours: |bench| bench.stream("same-core", "131072"),
        theirs: |bench| bench.iperf3("0,0"),
    },
    ToolComparison {
        name: "stream against iperf3, two cores",
        figures: STREAM,
        ours: |bench| bench.stream("neighbours", "131072"),
        theirs: |bench| bench.iperf3("0,1"),
    },
    ToolComparison {
        name: "pingpong 14 B against sockperf, one core",
        figures: &["median round trip"],
        ours: |bench| bench.pingpong("14"),
        theirs: NamespacePair::sockperf,
    },
    ToolComparison {
        name: "pingpong 1 B against qperf, one core",
        figures: &["half round trip (our median, their mean)"],
        ours: |bench| Ok(bench.pingpong("1")?.iter().map(|rtt| rtt / 2.0).collect()),
        theirs: NamespacePair::qperf,
    },
    ToolComparison {
        name: "UDT against TCP, two cores",
        figures: STREAM,
        ours: |bench| bench.udt("neighbours"),
        theirs: |bench| bench.stream("neighbours", "131072"),
    },
    ToolComparison {
        name: "UDT against TCP, one core",
        figures: STREAM,
        ours: |bench| bench.udt("same-core"),
        theirs: |bench| bench.stream("same-core", "131072"),
    },
    ToolComparison {
        name: "UDT against libudt, two cores",
        figures: STREAM,
        ours: |bench| bench.udt("neighbours"),
        theirs: |bench| bench.libudt(["0", "1"]),
    },
    ToolComparison {
        name: "UDT against libudt, one core",
        figures: STREAM,
        ours: |bench| bench.udt("same-core"),
        theirs: |bench| bench.libudt(["0", "0"]),
    },
    // SC'03 found NTTCP and iperf within 2 to 3 % of each other (section 3.2).
    ToolComparison {
        name: "sweep against stream, 16 KB writes, one core",
        figures: &["rate"],
        ours: |bench| bench.sweep("16384"),
        theirs: |bench| Ok(bench.stream("same-core", "16384")?[..1].to_vec()),
    },
];

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only comparisons whose name contains this.
    #[arg(long, default_value = "", value_name = "PART-OF-A-NAME")]
    only: String,
    /// Blocks of each comparison.
    #[arg(long, default_value_t = 20)]
    blocks: usize,
    /// Congestion control of both tools. On a path of microseconds BBR makes a quarter of what Reno does, and what it
    /// makes of a tool is not what the tool costs (docs/decisions/0016).
    #[arg(long, default_value = "reno", value_name = "NAME")]
    congestion: String,
}

/// Runs all comparisons, or those requested.
pub(crate) fn run(Options { only, blocks, congestion }: &Options) -> Result<()> {
    let (only, blocks) = (only.as_str(), *blocks);
    let asked: Vec<_> = COMPARISONS.iter().filter(|comparison| comparison.name.contains(only)).collect();
    ensure!(!asked.is_empty() && blocks > 1, "nothing to compare: --only names none, or --blocks is below 2");
    let bench = NamespacePair::new(congestion)?;
    println!(
        "{blocks} blocks of four runs of 1 s, {congestion}, landspeed over the other, {:.0} % intervals",
        CONFIDENCE * 100.0
    );
    for comparison in asked {
        compare(&bench, comparison, blocks)?;
    }
    Ok(())
}

fn compare(bench: &NamespacePair, comparison: &ToolComparison, blocks: usize) -> Result<()> {
    let mut ratios = vec![Vec::new(); comparison.figures.len()];
    for block in 0..blocks {
        ensure!(!bench.stop.load(Ordering::Relaxed), "stopped at block {block} of {blocks}");
        eprintln!("{}: block {} of {blocks}", comparison.name, block + 1);
        let mut sums = vec![0.0; comparison.figures.len()];
        // ABBA, then BAAB: linear drift over a block cancels.
        for position in 0..4 {
            let ours = (position == 0 || position == 3) == (block % 2 == 0);
            let measure = if ours { comparison.ours } else { comparison.theirs };
            for (sum, figure) in sums.iter_mut().zip(measure(bench)?) {
                ensure!(figure > 0.0, "{}: a run measured nothing", comparison.name);
                *sum += if ours { figure.ln() } else { -figure.ln() };
            }
        }
        for (figure, sum) in ratios.iter_mut().zip(sums) {
            figure.push(sum / 2.0);
        }
    }
    println!("\n{}", comparison.name);
    for (name, logs) in comparison.figures.iter().zip(&ratios) {
        let e = estimate(logs, CONFIDENCE);
        println!("  {name:45} {:.3} [{:.3}, {:.3}]", e.ratio, e.low, e.high);
    }
    Ok(())
}

/// Two namespaces joined by a veth pair, removed when dropped.
struct NamespacePair {
    client: String,
    server: String,
    landspeed: PathBuf,
    /// Set by a signal and checked before each block: if a signal ended xtask itself, the namespaces would stay.
    stop: Arc<AtomicBool>,
}

impl NamespacePair {
    fn new(congestion: &str) -> Result<NamespacePair> {
        let id = std::process::id();
        let bench = NamespacePair {
            client: format!("lsb{id}a"),
            server: format!("lsb{id}b"),
            landspeed: landspeed()?,
            stop: stop::on(&[SIGINT, SIGTERM])?,
        };
        let (a, b) = (&bench.client, &bench.server);
        sh(&format!(
            "set -e; ip netns add {a}; ip netns add {b}; ip -n {a} link set lo up; ip -n {b} link set lo up
            ip -n {a} link add d0 type veth peer name d0 netns {b}
            ip -n {a} addr add 198.51.100.1/24 dev d0; ip -n {a} link set d0 up
            ip -n {b} addr add {SERVER}/24 dev d0; ip -n {b} link set d0 up"
        ))?;
        for namespace in [a, b] {
            let sysctl = "net.ipv4.tcp_congestion_control";
            text(bench.inside(namespace, "sysctl").arg(format!("{sysctl}={congestion}")))?;
        }
        Ok(bench)
    }

    fn landspeed(&self, args: &[&str]) -> Result<Value> {
        let ends = [&self.client, &self.server].map(|name| format!("netns:{name}"));
        let bounded = [LIMIT.as_ref(), self.landspeed.as_os_str()];
        json(Command::new("timeout").args(bounded).args(args).args(ends).stdin(Stdio::null()))
    }

    fn stream(&self, placement: &str, write_size: &str) -> Result<Vec<f64>> {
        let set = format!("placement={placement},write-size={write_size},read-size=131072");
        self.streamed(&["--set", &set, "--warm-up", "1s"])
    }

    /// Measures UDT, with the time that its rate takes to settle, as for libudt.
    fn udt(&self, placement: &str) -> Result<Vec<f64>> {
        let set = format!("placement={placement}");
        self.streamed(&["--transport", "udt", "--set", &set, "--warm-up", UDT_WARM_UP])
    }

    fn streamed(&self, options: &[&str]) -> Result<Vec<f64>> {
        let report = self.landspeed(&[&["measure", "stream", "--json", "--time", "1s"], options].concat())?;
        let rate = number(&report, "/streams/0/rate_bps")?;
        Ok(vec![rate, rate / 8.0 / cores(&report)?, number(&report, "/bytes_per_cpu_s")?])
    }

    /// Measures about a second's worth of writes after a second of warm-up, from the first byte to the last at the
    /// receiver.
    fn sweep(&self, write_size: &str) -> Result<Vec<f64>> {
        let set = "placement=same-core,read-size=131072";
        let of = ["--sizes", write_size, "--count", "131072", "--warm-up", "1s", "--json", "--set", set];
        let report = self.landspeed(&[&["measure", "sweep"][..], &of[..]].concat())?;
        let bytes = number(&report, "/sweep/0/moved_bytes")?;
        Ok(vec![bytes * 8e9 / number(&report, "/sweep/0/took_ns")?])
    }

    fn pingpong(&self, size: &str) -> Result<Vec<f64>> {
        let args = [
            "measure",
            "pingpong",
            "--time",
            "1s",
            "--sizes",
            size,
            "--json",
            "--set",
            "placement=same-core",
        ];
        Ok(vec![number(&self.landspeed(&args)?, "/latency/0/p50_ns")? / 1e3])
    }

    fn iperf3(&self, cores: &str) -> Result<Vec<f64>> {
        let server = self.serve("iperf3", &["-s", "-1", "-p", "5201"])?;
        let mut command = self.inside(&self.client, "iperf3");
        command.args(["-c", SERVER, "-t", "1", "-O", "1", "-l", "131072", "-J", "-A", cores]);
        let report = json(&mut command)?;
        drop(server);
        let bytes = number(&report, "/end/sum_received/bytes")?;
        let seconds = number(&report, "/end/sum_received/seconds")?;
        let cpu = number(&report, "/end/cpu_utilization_percent/host_total")?
            + number(&report, "/end/cpu_utilization_percent/remote_total")?;
        let cost = bytes / (cpu / 100.0 * seconds);
        Ok(vec![bytes * 8.0 / seconds, cost, cost])
    }

    /// Measures libudt with the packet size of the path, and the buffers with which it is fastest here; with larger
    /// ones its rate collapses.
    fn libudt(&self, cores: [&str; 2]) -> Result<Vec<f64>> {
        let program = libudt_program()?;
        let end = |namespace: &str, what: &str, core: &str| {
            let mut command = self.inside(namespace, "timeout");
            command.args([LIMIT, "taskset", "-c", core]).arg(program);
            command
                .args([what, SERVER, "5204", "1500", "12582912"])
                .args([UDT_WARM_UP.trim_end_matches('s'), "1"]);
            command.stdout(Stdio::piped());
            command
        };
        let server =
            end(&self.server, "receive", cores[1]).spawn().context("the libudt program does not start")?;
        std::thread::sleep(Duration::from_millis(150));
        let sent = text(&mut end(&self.client, "send", cores[0]))?;
        let received = server.wait_with_output()?;
        let received = String::from_utf8_lossy(&received.stdout);
        let [_, sender_took, sender_ran] = three(&sent)?;
        let [bytes, took, ran] = three(&received)?;
        let cost = bytes / took / (sender_ran / sender_took + ran / took) * 1e9;
        Ok(vec![bytes * 8e9 / took, cost, cost])
    }

    fn sockperf(&self) -> Result<Vec<f64>> {
        let server =
            self.serve("taskset", &["-c", "0", "sockperf", "sr", "--tcp", "-i", SERVER, "-p", "5202"])?;
        let mut command = self.inside(&self.client, "taskset");
        command.args([
            "-c",
            "0",
            "sockperf",
            "pp",
            "--tcp",
            "-i",
            SERVER,
            "-p",
            "5202",
            "-t",
            "1",
            "--full-rtt",
        ]);
        let text = text(&mut command)?;
        drop(server);
        let line =
            text.lines().find(|l| l.contains("percentile 50.000")).context("sockperf printed no median")?;
        Ok(vec![last_number(line)?])
    }

    fn qperf(&self) -> Result<Vec<f64>> {
        let server = self.serve("taskset", &["-c", "0", "qperf", "-lp", "5203"])?;
        let mut command = self.inside(&self.client, "taskset");
        command.args(["-c", "0", "qperf", "-lp", "5203", "-t", "1", "-m", "1", "-uu", SERVER, "tcp_lat"]);
        let text = text(&mut command)?;
        drop(server);
        let line = text.lines().find(|l| l.contains("latency")).context("qperf printed no latency")?;
        // With -uu, the time is a plain number with a unit: "latency = 6.1 us".
        let mut words = line.split('=').nth(1).unwrap_or_default().split_whitespace();
        let value: f64 = words.next().context("no figure")?.replace(',', "").parse()?;
        let scale = match words.next() {
            Some("ns") => 1e-3,
            Some("us") => 1.0,
            Some("ms") => 1e3,
            Some("sec") => 1e6,
            unit => bail!("qperf printed an unknown unit {unit:?}: {line}"),
        };
        Ok(vec![value * scale])
    }

    fn inside(&self, namespace: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]).stdin(Stdio::null());
        command
    }

    /// Starts a server in the server's namespace, and waits a moment until it listens.
    fn serve(&self, program: &str, args: &[&str]) -> Result<ServerProcess> {
        let mut command = self.inside(&self.server, program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("{program} does not start"))?;
        std::thread::sleep(Duration::from_millis(150));
        Ok(ServerProcess(child))
    }
}

impl Drop for NamespacePair {
    fn drop(&mut self) {
        for ns in [&self.client, &self.server] {
            let _ = sh(&format!("for p in $(ip netns pids {ns}); do kill -9 $p; done; ip netns del {ns}"));
        }
    }
}

/// Returns the three numbers of a line.
pub(crate) fn three(line: &str) -> Result<[f64; 3]> {
    let numbers: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| anyhow::anyhow!("no three numbers: {line:?}"))
}

/// A running server, killed when dropped.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns libudt's stream program. It is built once per run, because an existing one may be of an older source.
pub(crate) fn libudt_program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(built) = PROGRAM.get() {
        return Ok(built);
    }
    let program = landspeed()?.with_file_name("bench-libudt");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/libudt.cpp");
    let link = [source, "-ludt", "-lpthread"];
    text(Command::new("g++").args(["-O2", "-Wall", "-o"]).arg(&program).args(link))?;
    Ok(PROGRAM.get_or_init(|| program))
}

fn sh(script: &str) -> Result<()> {
    let status = Command::new("bash").args(["-c", script]).status()?;
    ensure!(status.success(), "failed: {script}");
    Ok(())
}

pub(crate) fn text(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{command:?}: {out}{err}");
    Ok(format!("{out}{err}"))
}

pub(crate) fn json(command: &mut Command) -> Result<Value> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?}: no JSON"))
}

/// Returns the processor time per second of the window, of both ends' threads.
pub(crate) fn cores(report: &Value) -> Result<f64> {
    let of = |host: usize| -> Result<f64> {
        let figure = |name| number(report, &format!("/cpu/{host}/{name}"));
        Ok(figure("workload_ns")? / figure("window_ns")?)
    };
    Ok(of(0)? + of(1)?)
}

pub(crate) fn number(report: &Value, at: &str) -> Result<f64> {
    report.pointer(at).and_then(Value::as_f64).with_context(|| format!("no {at} in {report}"))
}

fn last_number(line: &str) -> Result<f64> {
    line.split(['=', ' ']).rev().find_map(|word| word.trim().parse().ok()).with_context(|| line.to_owned())
}
