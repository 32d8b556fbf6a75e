//! `make remedies`: checks that the commands which `landspeed explain` names remove the cause, and win what it expects. Each
//! fault of the lab whose remedy is a command is made at random strengths. The commands of the first finding are pasted
//! into shells on their hosts, the traffic starts again, and `explain` looks once more.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use landspeed_lab::faults::{Fault, FaultScenario};
use landspeed_record::{Cause, ExplainReport, Finding, Remedy};
use landspeed_stats::Random;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::named;
use super::run::{lab, watched};
use crate::landspeed::landspeed;
use crate::{stop, table};

/// Time for the traffic to profit from a remedy.
const SETTLING: Duration = Duration::from_secs(5);
/// The least share of remedies whose gain lies in the expected interval: of all, and of each fault.
const LEAST: [f64; 2] = [0.9, 0.7];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Run only the faults whose name contains this.
    #[arg(long, value_name = "PART-OF-A-NAME")]
    only: Option<String>,
    /// Draws strengths.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs of each fault.
    #[arg(long, default_value_t = 10)]
    runs: u32,
}

/// What the commands of a finding did.
struct PastedRemedy {
    /// The cause that was named first, whose commands were pasted.
    cause: Cause,
    /// The lines, as they were pasted.
    lines: Vec<String>,
    /// Goodput with the remedy, divided by goodput without it.
    gain: f64,
    /// The gain that was expected; `None` if none was.
    expected: Option<ExpectedGain>,
    /// True if the cause is no longer named among those that cost something.
    is_gone: bool,
}

/// An expected gain: its least ratio, and its largest one if it has one.
#[derive(Debug, Clone, Copy)]
struct ExpectedGain {
    low: f64,
    high: Option<f64>,
}

impl ExpectedGain {
    fn of(remedy: &Remedy) -> Option<ExpectedGain> {
        Some(ExpectedGain { low: remedy.expected_low?, high: remedy.expected_high })
    }

    fn holds(self, gain: f64) -> bool {
        gain >= self.low && self.high.is_none_or(|high| gain <= high)
    }
}

impl PastedRemedy {
    fn is_promised(&self) -> bool {
        self.expected.is_some()
    }

    fn is_as_expected(&self) -> bool {
        self.expected.is_some_and(|expected| expected.holds(self.gain))
    }

    fn line(&self) -> String {
        let expected = match self.expected {
            Some(ExpectedGain { low, high: Some(high) }) => format!("{low:.2} to {high:.2}"),
            Some(ExpectedGain { low, high: None }) => format!("at least {low:.2}"),
            None => "-".to_owned(),
        };
        let gone = if self.is_gone { "gone" } else { "STILL NAMED" };
        let held = match (self.is_promised(), self.is_as_expected()) {
            (false, _) => "nothing expected",
            (true, true) => "as expected",
            (true, false) => "NOT as expected",
        };
        format!("{:?} {gone}, {held}: {:.2}x of {expected}; {}", self.cause, self.gain, self.lines.join("; "))
    }
}

/// Runs the study, prints a row for each fault, and returns an error if too few gains were as expected.
pub(crate) fn run(options: &Options) -> Result<()> {
    let landspeed = landspeed()?;
    let stop = stop::on(&[SIGINT, SIGTERM])?;
    let mut random = Random::new(options.seed);
    println!("Seed {}.\n", options.seed);
    table::head("fault | commands in | cause gone | gain as expected, of those with an expectation");
    let mut held = [0, 0];
    let mut least = f64::INFINITY;
    for fault in named(options.only.as_deref()) {
        let mut pasted = Vec::new();
        for _ in 0..options.runs {
            ensure!(!stop.load(Ordering::Relaxed), "stopped at {}", fault.name);
            let strength = random.uniform();
            match paste(&landspeed, fault, strength) {
                Ok(Some(one)) => {
                    eprintln!("{}={strength:.2}: {}", fault.name, one.line());
                    pasted.push(one);
                }
                Ok(None) => eprintln!("{}={strength:.2}: no command", fault.name),
                Err(error) => eprintln!("{}={strength:.2}: FAILED: {error:#}", fault.name),
            }
        }
        let count = |of: fn(&PastedRemedy) -> bool| pasted.iter().filter(|one| of(one)).count();
        let (gone, promised) = (count(|one| one.is_gone), count(PastedRemedy::is_promised));
        let expected = count(PastedRemedy::is_as_expected);
        let of = |part: usize, all: usize| format!("{part} of {all}");
        let (all, runs) = (pasted.len(), options.runs as usize);
        table::row(&[&fault.name, &of(all, runs), &of(gone, all), &of(expected, promised)]);
        held = [held[0] + expected, held[1] + promised];
        if promised > 0 {
            least = least.min(expected as f64 / promised as f64);
        }
    }
    let share = held[0] as f64 / held[1].max(1) as f64;
    println!("\nGain as expected in {} of {} remedies that expect one.", held[0], held[1]);
    ensure!(share >= LEAST[0] && least >= LEAST[1], "too few gains were as expected");
    Ok(())
}

/// Makes a fault, pastes the commands of the first finding, and returns what they did; `None` if it has no command.
fn paste(landspeed: &Path, fault: &Fault, strength: f64) -> Result<Option<PastedRemedy>> {
    let scenario = FaultScenario::with(&[(fault.name, strength)])?;
    let mut lab = lab(landspeed, &scenario)?;
    let before = watched(&lab, landspeed, &format!("{}, before", fault.name))?;
    let Some(first) = before.verdict.first() else { return Ok(None) };
    let remedies: Vec<&Remedy> = first.remedies.iter().filter(|remedy| !remedy.commands.is_empty()).collect();
    let Some(promised) = remedies.first() else { return Ok(None) };
    let mut lines = Vec::new();
    for command in remedies.iter().flat_map(|remedy| &remedy.commands) {
        shell(&lab.names(), &before, &command.host, &command.line)?;
        lines.push(command.line.clone());
    }
    // A command that names a process is of no use to one that starts afterwards.
    if !lines.iter().any(|line| line.starts_with("taskset")) {
        lab.restart_traffic(&scenario)?;
    }
    // TCP probes for a smaller MTU only after some time-outs (tcp_retries1 in ip-sysctl).
    std::thread::sleep(SETTLING);
    let after = watched(&lab, landspeed, &format!("{}, after", fault.name))?;
    let is_named = |finding: &Finding| finding.cause == first.cause && finding.allows_bps.is_none();
    Ok(Some(PastedRemedy {
        cause: first.cause,
        lines,
        gain: after.goodput_bps.0 / before.goodput_bps.0,
        expected: ExpectedGain::of(promised),
        is_gone: !after.verdict.iter().any(is_named),
    }))
}

/// Runs a line in a shell on the host of this name.
fn shell(names: &[String; 2], report: &ExplainReport, host: &str, line: &str) -> Result<()> {
    let at =
        report.hosts.iter().position(|one| one.name == host).with_context(|| format!("no host {host}"))?;
    let netns = names[at].trim_start_matches("netns:");
    let status =
        Command::new("ip").args(["netns", "exec", netns, "sh", "-c", line]).stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}
