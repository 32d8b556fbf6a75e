//! `make bench-udp`: measures datagrams of 1472 B by landspeed, by established tools and by plain loops in C
//! (`udp.c`), all between the same two namespaces, in rounds of random order. It prints a table with intervals and
//! judges nothing, so it is not a timed test.
//!
//! All programs send as fast as they can, from the first core to the first of the upper half. The result is what the
//! receiving program took, over the time for which the sender sent. landspeed and the loops count this themselves. For
//! the tools the kernel does, by Udp of /proc/net/snmp in both namespaces, because sockperf's receiver reports
//! nothing; the kernel would count datagrams that UDP_SEGMENT or UDP_GRO joined as one.

use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_stats::{estimate, mean_and_deviation, mean_interval};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{CONFIDENCE, LIMIT, NamespacePair, SERVER, last_number, number, text};

/// Payload of a datagram in bytes: with the headers of UDP and IPv4, the MTU of Ethernet.
const SIZE: f64 = 1472.0;
const SIZE_TEXT: &str = "1472";

/// A sender, and the way of landspeed to compare it with.
struct UdpContender {
    name: &'static str,
    /// Index in [`SUBJECTS`] of landspeed's same way; for landspeed, its own index.
    ours: usize,
    run: fn(&UdpBench) -> Result<UdpRun>,
}

/// The result of one run.
#[derive(Debug, Clone, Copy)]
struct UdpRun {
    arrived: f64,
    sent: f64,
    seconds: f64,
    /// Processor time of both ends while they sent and received; for the tools and loops, from start to end, which is
    /// little more.
    cpu_s: f64,
    /// Processor time of every program that the run started, from start to end.
    programs_s: f64,
}

const SUBJECTS: &[UdpContender] = &[
    UdpContender { name: "landspeed, plain", ours: 0, run: |lab| lab.landspeed("plain", "plain") },
    UdpContender { name: "landspeed, batch", ours: 1, run: |lab| lab.landspeed("batch", "batch") },
    UdpContender { name: "landspeed, gso and gro", ours: 2, run: |lab| lab.landspeed("gso", "gro") },
    UdpContender { name: "iperf3 -u -b 0", ours: 0, run: UdpBench::iperf3 },
    UdpContender { name: "nuttcp -u -R0", ours: 0, run: UdpBench::nuttcp },
    UdpContender { name: "sockperf throughput", ours: 0, run: UdpBench::sockperf },
    UdpContender { name: "loop in C, send and recv", ours: 0, run: |lab| lab.plain_loop("plain", "plain") },
    UdpContender {
        name: "loop in C, sendmmsg and recvmmsg",
        ours: 1,
        run: |lab| lab.plain_loop("batch", "batch"),
    },
    UdpContender {
        name: "loop in C, UDP_SEGMENT and UDP_GRO",
        ours: 2,
        run: |lab| lab.plain_loop("gso", "gro"),
    },
];

/// How much to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rounds; each runs everyone once.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    seconds: u32,
    /// Another seed draws other orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Measures all rounds, and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 1, "--rounds is below 2: there is no interval of one");
    let lab = UdpBench::new(options.seconds)?;
    let mut dice = ChaCha8Rng::seed_from_u64(options.seed);
    let mut runs = vec![Vec::new(); SUBJECTS.len()];
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        let mut order: Vec<usize> = (0..SUBJECTS.len()).collect();
        order.shuffle(&mut dice);
        for which in order {
            ensure!(!lab.bench.stop.load(Ordering::Relaxed), "stopped in round {round}");
            let subject = &SUBJECTS[which];
            let run = (subject.run)(&lab).with_context(|| subject.name)?;
            ensure!(run.arrived > 0.0 && run.cpu_s > 0.0, "{}: a run measured nothing", subject.name);
            runs[which].push(run);
        }
    }
    print(options, &runs);
    Ok(())
}

fn print(Options { rounds, seconds, seed }: &Options, runs: &[Vec<UdpRun>]) {
    println!(
        "{rounds} rounds of {seconds} s runs, seed {seed}; ratios and differences: landspeed's same way and the row's, \
         {:.0} % intervals\n",
        CONFIDENCE * 100.0
    );
    println!(
        "| | datagrams/s | Gb/s | lost | MB per CPU-second | rate: landspeed over it | bytes per CPU-second | the same, whole \
         programs | lost: landspeed less it, points |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (subject, theirs) in SUBJECTS.iter().zip(runs) {
        println!("{}", row(subject, &runs[subject.ours], theirs));
    }
}

fn row(subject: &UdpContender, ours: &[UdpRun], theirs: &[UdpRun]) -> String {
    let mean = |figure: fn(&UdpRun) -> f64| {
        mean_and_deviation(&theirs.iter().map(|run| figure(run).ln()).collect::<Vec<_>>()).0.exp()
    };
    let lost = 100.0 * mean_and_deviation(&theirs.iter().map(UdpRun::loss).collect::<Vec<_>>()).0;
    let rate = mean(UdpRun::rate);
    let figures = format!(
        "{} | {rate:.0} | {:.2} | {lost:.1} % | {:.0}",
        subject.name,
        rate * SIZE * 8e-9,
        mean(UdpRun::bytes_per_cpu_s) / 1e6
    );
    if std::ptr::eq(ours, theirs) {
        return format!("| {figures} | | | | |");
    }
    let ratio = |figure: fn(&UdpRun) -> f64| {
        let logs: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| (figure(a) / figure(b)).ln()).collect();
        let e = estimate(&logs, CONFIDENCE);
        format!("{:.3} [{:.3}, {:.3}]", e.ratio, e.low, e.high)
    };
    let points: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| 100.0 * (a.loss() - b.loss())).collect();
    let (low, high) = mean_interval(&points, CONFIDENCE).unwrap_or_default();
    let [rate, cost, whole] =
        [UdpRun::rate, UdpRun::bytes_per_cpu_s, UdpRun::bytes_per_cpu_s_of_programs].map(ratio);
    format!(
        "| {figures} | {rate} | {cost} | {whole} | {:.1} [{low:.1}, {high:.1}] |",
        mean_and_deviation(&points).0
    )
}

impl UdpRun {
    fn rate(&self) -> f64 {
        self.arrived / self.seconds
    }

    fn loss(&self) -> f64 {
        1.0 - self.arrived / self.sent
    }

    fn bytes_per_cpu_s(&self) -> f64 {
        self.arrived * SIZE / self.cpu_s
    }

    fn bytes_per_cpu_s_of_programs(&self) -> f64 {
        self.arrived * SIZE / self.programs_s
    }
}

/// Both namespaces, and the loops in C.
struct UdpBench {
    bench: NamespacePair,
    loops: PathBuf,
    seconds: u32,
}

/// The commands of a tool's two ends.
struct ToolCommands<'a> {
    server: &'a [&'a str],
    client: &'a [&'a str],
    /// True if the server ends by itself after its client.
    server_ends: bool,
}

/// The output of both ends, and their processor time in total.
struct ToolOutputs {
    client: String,
    server: String,
    cpu_s: f64,
}

impl UdpBench {
    fn new(seconds: u32) -> Result<UdpBench> {
        // No data is sent over TCP here, so any congestion control will do.
        let bench = NamespacePair::new("reno")?;
        let loops = bench.landspeed.with_file_name("bench-udp-loops");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/udp.c");
        text(Command::new("cc").args(["-O2", "-Wall", "-o"]).arg(&loops).arg(source))?;
        Ok(UdpBench { bench, loops, seconds })
    }

    /// Measures without warm-up, so that all that arrives counts, as for the others.
    fn landspeed(&self, send: &str, receive: &str) -> Result<UdpRun> {
        let set = format!(
            "placement=neighbours,write-size={SIZE_TEXT},read-size=65536,datagram-send={send},datagram-receive={receive}"
        );
        let time = format!("{}s", self.seconds);
        let args = ["measure", "stream", "--json", "--transport", "udp", "--warm-up", "0s", "--time", &time];
        let before = children_ran_s()?;
        let report = self.bench.landspeed(&[&args[..], &["--set", &set]].concat())?;
        let programs_s = children_ran_s()? - before;
        let at = |figure: &str| number(&report, figure);
        let notes = report["notes"].as_array().context("no notes")?;
        let (lost, expected) =
            notes.iter().filter_map(|note| lost_of(note.as_str()?)).next().context("no loss")?;
        Ok(UdpRun {
            arrived: at("/streams/0/received_bytes")? / SIZE,
            // From the receiver's counts: it knows the number of each datagram.
            sent: at("/streams/0/received_bytes")? / SIZE * expected / (expected - lost),
            seconds: at("/streams/0/window_ns")? / 1e9,
            cpu_s: (at("/cpu/0/workload_ns")? + at("/cpu/1/workload_ns")?) / 1e9,
            programs_s,
        })
    }

    fn iperf3(&self) -> Result<UdpRun> {
        let time = self.seconds.to_string();
        self.tool(
            &ToolCommands {
                server: &["iperf3", "-s", "-1", "-p", "5301"],
                client: &[
                    "iperf3", "-c", SERVER, "-p", "5301", "-u", "-b", "0", "-l", SIZE_TEXT, "-t", &time, "-J",
                ],
                server_ends: true,
            },
            |said| {
                // A warning follows the document.
                let report = serde_json::Deserializer::from_str(said).into_iter::<Value>().next()?.ok()?;
                number(&report, "/end/sum_sent/seconds").ok()
            },
        )
    }

    fn nuttcp(&self) -> Result<UdpRun> {
        let (length, time) = (format!("-l{SIZE_TEXT}"), format!("-T{}", self.seconds));
        self.tool(
            &ToolCommands {
                server: &["nuttcp", "-1", "--nofork"],
                // Without -R0, nuttcp sends 1 Mb/s.
                client: &["nuttcp", "-u", "-R0", "-fparse", &length, &time, SERVER],
                server_ends: true,
            },
            |said| said.split_whitespace().find_map(|word| word.strip_prefix("real_seconds=")?.parse().ok()),
        )
    }

    fn sockperf(&self) -> Result<UdpRun> {
        let time = self.seconds.to_string();
        self.tool(
            &ToolCommands {
                server: &["sockperf", "server", "-i", SERVER, "-p", "5303"],
                client: &["sockperf", "throughput", "-i", SERVER, "-p", "5303", "-m", SIZE_TEXT, "-t", &time],
                server_ends: false,
            },
            |said| {
                // "sockperf: Total of 512343 messages sent in 1.004 sec"
                let line = said.lines().find(|line| line.contains("messages sent in"))?;
                last_number(line).ok()
            },
        )
    }

    fn plain_loop(&self, send: &str, receive: &str) -> Result<UdpRun> {
        let program = self.loops.to_str().context("a path that is no text")?;
        let said = self.both(&ToolCommands {
            server: &[program, "receive", receive, SERVER, "5304"],
            client: &[program, "send", send, SERVER, "5304", &self.seconds.to_string()],
            server_ends: true,
        })?;
        let sent: Vec<f64> = said.client.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[sent, seconds] = &sent[..] else { bail!("it said {}", said.client) };
        Ok(UdpRun {
            arrived: last_number(said.server.trim())?,
            sent,
            seconds,
            cpu_s: said.cpu_s,
            programs_s: said.cpu_s,
        })
    }

    /// Runs a tool. `seconds` finds in the client's output how long it sent.
    fn tool(&self, ends: &ToolCommands<'_>, seconds: fn(&str) -> Option<f64>) -> Result<UdpRun> {
        let count = || -> Result<[f64; 2]> {
            Ok([
                self.counter(&self.bench.client, "OutDatagrams")?,
                self.counter(&self.bench.server, "InDatagrams")?,
            ])
        };
        let before = count()?;
        let said = self.both(ends)?;
        let after = count()?;
        let seconds = seconds(&said.client).with_context(|| format!("no time in: {}", said.client))?;
        let [sent, arrived] = [0, 1].map(|end| after[end] - before[end]);
        Ok(UdpRun { arrived, sent, seconds, cpu_s: said.cpu_s, programs_s: said.cpu_s })
    }

    fn both(&self, ends: &ToolCommands<'_>) -> Result<ToolOutputs> {
        let before = children_ran_s()?;
        let server =
            self.pinned(&self.bench.server, &second_core(), ends.server).stdout(Stdio::piped()).spawn()?;
        std::thread::sleep(Duration::from_millis(150));
        let client = text(&mut self.pinned(&self.bench.client, "0", ends.client))?;
        if !ends.server_ends {
            end(&server)?;
        }
        let server = server.wait_with_output()?;
        Ok(ToolOutputs {
            client,
            server: String::from_utf8_lossy(&server.stdout).into_owned(),
            cpu_s: children_ran_s()? - before,
        })
    }

    /// Returns a command that runs on one core for a bounded time. `timeout` waits for the program, so its processor
    /// time is included in that of this process's children.
    fn pinned(&self, namespace: &str, core: &str, program: &[&str]) -> Command {
        let mut command = self.bench.inside(namespace, "timeout");
        command.args([LIMIT, "taskset", "-c", core]).args(program);
        command
    }

    /// Returns a UDP counter of the namespace.
    fn counter(&self, namespace: &str, name: &str) -> Result<f64> {
        let all = text(self.bench.inside(namespace, "cat").arg("/proc/net/snmp"))?;
        let [names, values] = {
            let mut lines = all.lines().filter(|line| line.starts_with("Udp:"));
            [lines.next(), lines.next()].map(|line| line.unwrap_or_default().split_whitespace())
        };
        let value = names.zip(values).find(|(known, _)| *known == name).context("no such counter of UDP")?.1;
        Ok(value.parse()?)
    }
}

/// Returns the core on which landspeed's `placement=neighbours` runs the receiver of a lab: the first of the upper
/// half.
fn second_core() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).to_string()
}

/// Ends the program that `timeout` runs.
fn end(child: &Child) -> Result<()> {
    kill_process(Pid::from_child(child), Signal::TERM).context("cannot end the server")
}

/// Parses "B: 250 of 1000 datagrams were lost (25.00 %) ..." into 250 and 1000.
fn lost_of(note: &str) -> Option<(f64, f64)> {
    let (counts, _) = note.split_once(" datagrams were lost")?;
    let (lost, expected) = counts.rsplit_once(": ")?.1.split_once(" of ")?;
    Some((lost.parse().ok()?, expected.parse().ok()?))
}

/// Returns the user and system time of all processes that this one has started and waited for, and of those that they
/// waited for.
fn children_ran_s() -> Result<f64> {
    ran_s(libc::RUSAGE_CHILDREN)
}

/// Returns the user and system time of `whom`, as in getrusage(2).
pub(crate) fn ran_s(whom: i32) -> Result<f64> {
    // SAFETY: zeros are a valid rusage.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `usage` is a valid rusage for the kernel to fill.
    let refused = unsafe { libc::getrusage(whom, &raw mut usage) } != 0;
    ensure!(!refused, "getrusage: {}", std::io::Error::last_os_error());
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_read_from_what_landspeed_says() {
        let note = "B: 250 of 1000 datagrams were lost (25.00 %), 3 came out of order, 0 twice";
        assert_eq!(lost_of(note), Some((250.0, 1000.0)));
        assert_eq!(lost_of("B: clocks differ: 3 of 4"), None);
    }

    #[test]
    fn each_is_held_against_landspeeds_same_way() {
        assert!(SUBJECTS.iter().all(|subject| SUBJECTS[subject.ours].name.starts_with("landspeed")));
    }
}
