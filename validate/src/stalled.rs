//! Is the stalled window made and unmade at will? Each recipe opens connections in a lab, one after the other, and
//! counts those whose receiver drops what it has promised room for, and whose sender then waits for its timer
//! (docs/results/stalled.md).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_lab::faults::{FaultLab, FaultScenario, Traffic};
use landspeed_record::units::{BitRate, Bytes};
use landspeed_stats::median;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::faults::lab;
use crate::landspeed::landspeed;
use crate::{stop, table};

/// Time for a connection to begin.
const START_UP: Duration = Duration::from_millis(700);
/// The time for which a connection's counters are watched. A stall takes a fifth of a second.
const WATCH: Duration = Duration::from_secs(2);
/// The least number of waits for the timer within [`WATCH`] that make a connection a stalled one: one may be a loss.
const LEAST_WAITS: u64 = 2;
/// The fault that makes the state, at its middle.
const MADE: (&str, f64) = ("dropped-window", 0.5);

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Connections by each recipe.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Run only the recipes whose name contains this.
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
}

/// The number of a recipe's connections that stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// All stall.
    Made,
    /// None does.
    Unmade,
    /// It is shown, and nothing is promised of it.
    Shown,
}

/// A change of the fault that makes the state.
struct Recipe {
    name: &'static str,
    promise: Promise,
    change: fn(&mut FaultScenario),
    /// A command for the receiver's host, or nothing.
    also: &'static str,
}

const RECIPES: &[Recipe] = &[
    Recipe { name: "the fault", promise: Promise::Made, change: |_| {}, also: "" },
    Recipe { name: "SO_RCVBUF, not tcp_rmem", promise: Promise::Made, change: with_fixed_buffer, also: "" },
    Recipe { name: "timestamps off", promise: Promise::Shown, change: without_timestamps, also: "" },
    Recipe {
        name: "tcp_shrink_window=1",
        promise: Promise::Shown,
        change: |_| {},
        also: "sysctl -qw net.ipv4.tcp_shrink_window=1",
    },
    Recipe {
        name: "a buffer of 512 KiB",
        promise: Promise::Shown,
        change: |s| buffer(s, "524288"),
        also: "",
    },
    Recipe { name: "reads of 256 KiB", promise: Promise::Shown, change: with_large_reads, also: "" },
    Recipe { name: "programs on any core", promise: Promise::Shown, change: on_any_core, also: "" },
    Recipe {
        name: "tcp_rmem to 32 MiB",
        promise: Promise::Unmade,
        change: |s| buffer(s, "33554432"),
        also: "",
    },
    Recipe { name: "scatter-gather on", promise: Promise::Unmade, change: with_scatter_gather, also: "" },
    Recipe { name: "MTU 1500", promise: Promise::Unmade, change: with_small_packets, also: "" },
    Recipe { name: "writes of 128 KiB", promise: Promise::Shown, change: with_large_writes, also: "" },
];

fn on_any_core(scenario: &mut FaultScenario) {
    (scenario.sender_core, scenario.receiver_core) = (None, None);
}

fn buffer(scenario: &mut FaultScenario, most: &str) {
    scenario.b.insert("tcp-rmem".into(), format!("4096 131072 {most}"));
}

fn with_fixed_buffer(scenario: &mut FaultScenario) {
    scenario.b.remove("tcp-rmem");
    if let Traffic::Stream { receive_buffer, .. } = &mut scenario.traffic {
        // The kernel doubles what is asked for.
        *receive_buffer = Some(Bytes(725 * 1024));
    }
}

fn without_timestamps(scenario: &mut FaultScenario) {
    for host in [&mut scenario.a, &mut scenario.b] {
        host.insert("timestamps".into(), "0".into());
    }
}

fn with_scatter_gather(scenario: &mut FaultScenario) {
    scenario.a.remove("scatter-gather");
}

fn with_small_packets(scenario: &mut FaultScenario) {
    for host in [&mut scenario.a, &mut scenario.b] {
        host.remove("mtu");
    }
}

fn with_large_reads(scenario: &mut FaultScenario) {
    if let Traffic::Stream { read, .. } = &mut scenario.traffic {
        *read = Bytes(256 * 1024);
    }
}

fn with_large_writes(scenario: &mut FaultScenario) {
    if let Traffic::Stream { write, nodelay, .. } = &mut scenario.traffic {
        (*write, *nodelay) = (Bytes(128 * 1024), false);
    }
}

/// What the counters of both hosts say of one connection.
struct Connection {
    /// Segments that the receiver dropped for want of room (TCPRcvQDrop).
    drops: u64,
    /// Times that the sender's timer expired (TCPTimeouts).
    waits: u64,
    rate: BitRate,
}

impl Connection {
    fn is_stalled(&self) -> bool {
        self.drops > 0 && self.waits >= LEAST_WAITS
    }
}

/// Runs the study, and prints a row for each recipe.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    table::head("recipe | stalled | promise | rate, median | waits in 2 s, median | drops, median");
    let mut broken = table::BrokenPromises::default();
    let asked = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only));
    for recipe in RECIPES.iter().filter(|recipe| asked(recipe.name)) {
        ensure!(!stop.load(Ordering::Relaxed), "stopped at {}", recipe.name);
        let all = connections(&landspeed, recipe, options.runs).with_context(|| recipe.name)?;
        let stalled = all.iter().filter(|one| one.is_stalled()).count();
        let kept = match recipe.promise {
            Promise::Made => broken.check(stalled == all.len()),
            Promise::Unmade => broken.check(stalled == 0),
            Promise::Shown => "-",
        };
        let typical = |of: fn(&Connection) -> f64| median(all.iter().map(of)).unwrap_or_default();
        let rate = BitRate(typical(|one| one.rate.0));
        let (waits, drops) = (typical(|one| one.waits as f64), typical(|one| one.drops as f64));
        let of = format!("{stalled} of {}", all.len());
        table::row(&[&recipe.name, &of, &kept, &rate, &waits, &drops]);
    }
    broken.sum_up()
}

/// Opens `runs` connections in a lab, one after the other.
fn connections(landspeed: &Path, recipe: &Recipe, runs: usize) -> Result<Vec<Connection>> {
    let mut scenario = FaultScenario::with(&[MADE])?;
    (recipe.change)(&mut scenario);
    let mut lab = lab(landspeed, &scenario)?;
    if !recipe.also.is_empty() {
        inside(&lab.names()[1], &["sh", "-c", recipe.also])?;
    }
    let mut all = Vec::with_capacity(runs);
    for _ in 0..runs {
        // The first connection may be older than the command.
        lab.restart_traffic(&scenario)?;
        all.push(watched(&lab)?);
    }
    Ok(all)
}

fn watched(lab: &FaultLab) -> Result<Connection> {
    let [a, b] = lab.names();
    std::thread::sleep(START_UP);
    let began = Instant::now();
    let before = (counters(&a)?, counters(&b)?);
    std::thread::sleep(WATCH);
    let after = (counters(&a)?, counters(&b)?);
    let grown = |before: &Counters, after: &Counters, name: &str| {
        let [before, after] = [before, after].map(|all| all.get(name).copied().unwrap_or_default());
        after.saturating_sub(before)
    };
    let octets = grown(&before.1, &after.1, "InOctets");
    Ok(Connection {
        drops: grown(&before.1, &after.1, "TCPRcvQDrop"),
        waits: grown(&before.0, &after.0, "TCPTimeouts"),
        rate: BitRate(octets as f64 * 8.0 / began.elapsed().as_secs_f64()),
    })
}

type Counters = BTreeMap<String, u64>;

/// Returns the counters of /proc/net/netstat of a host: lines of names, each followed by one of values.
fn counters(host: &str) -> Result<Counters> {
    let text = inside(host, &["cat", "/proc/net/netstat"])?;
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| {
        let [names, values] = [pair[0], pair[1]].map(|line| line.split_whitespace().skip(1));
        names.zip(values)
    });
    Ok(pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect())
}

/// Runs a command in the namespace of a host, and returns what it prints.
fn inside(host: &str, command: &[&str]) -> Result<String> {
    let netns = host.trim_start_matches("netns:");
    let output = Command::new("ip").args(["netns", "exec", netns]).args(command).output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recipe_is_another_scenario() {
        let made = |recipe: &Recipe| {
            let mut scenario = FaultScenario::with(&[MADE]).unwrap();
            (recipe.change)(&mut scenario);
            format!("{scenario:?}{}", recipe.also)
        };
        let all: std::collections::BTreeSet<String> = RECIPES.iter().map(made).collect();
        assert_eq!(all.len(), RECIPES.len());
    }
}
