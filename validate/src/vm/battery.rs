//! The checks of a pair of guests: those of what landspeed sees, and what all checks share.

use std::collections::BTreeMap;
use std::fmt;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use landspeed_record::{ExplainReport, ExplainedHost, PathTrace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command::{is_due, is_older, said, succeeded};
use super::guests::Guests;

pub(super) struct Check {
    pub(super) name: &'static str,
    /// True if the check belongs to the short battery.
    pub(super) is_short: bool,
    /// Returns what was found; an error that is a `Refusal` if landspeed says that it cannot work here.
    pub(super) look: fn(&Guests) -> Result<String>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CheckOutcome {
    Passed(String),
    /// landspeed says that this cannot work here, and why.
    Refused(String),
    Failed(String),
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckOutcome::Passed(what) if what.is_empty() => f.write_str("passed"),
            CheckOutcome::Passed(what) => write!(f, "passed: {what}"),
            CheckOutcome::Refused(why) => write!(f, "refused: {why}"),
            CheckOutcome::Failed(why) => write!(f, "FAILED: {why}"),
        }
    }
}

pub(super) const CHECKS: &[Check] = &[
    Check { name: "boots", is_short: true, look: boots },
    Check { name: "doctor", is_short: true, look: doctor },
    Check { name: "knobs", is_short: true, look: count_knobs },
    Check { name: "measure, landspeed sent over ssh", is_short: true, look: measure },
    Check { name: "explain", is_short: false, look: explain },
];

/// The time within which a device that was reset has its link again. A guest without KVM takes seconds to say so.
pub(super) const SETTLED: Duration = Duration::from_secs(60);
/// The time that each command of a long check may take, where the pair has that much left. Without KVM, a run of `tune`
/// takes several times its budget.
pub(super) const LONG: Duration = Duration::from_secs(45 * 60);

/// The oldest kernel here on which the tracer must have traced packets.
const TRACED: [u32; 2] = [6, 1];

impl Check {
    pub(super) fn run(&self, guests: &Guests) -> CheckOutcome {
        outcome((self.look)(guests), guests.release())
    }
}

fn outcome(found: Result<String>, release: &str) -> CheckOutcome {
    match found {
        Ok(what) => CheckOutcome::Passed(what),
        Err(why) if is_due(&why, release) => CheckOutcome::Refused(format!("{why:#}")),
        Err(why) => CheckOutcome::Failed(format!("{why:#}")),
    }
}

/// Runs a command, and then compares all settings of both guests with those before.
pub(super) fn leaves_all_as_it_was(guests: &Guests, command: Command) -> Result<Output> {
    leaves_all_as(guests, &guests.settings()?, command)
}

/// Runs a command, and then compares all settings of both guests with `before`.
pub(super) fn leaves_all_as(guests: &Guests, before: &str, mut command: Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let done = succeeded(output);
    become_again(guests, before, SETTLED)?;
    done
}

/// Runs a check that may load modules, and then compares all settings that both guests had before. What modules bring is
/// new. A refusal that leaves a setting changed is a failure.
pub(super) fn keeps_settings(guests: &Guests, look: fn(&Guests) -> Result<String>) -> Result<String> {
    let before = guests.settings()?;
    let found = look(guests);
    both(found, again(guests, SETTLED, |now| still(&before, now)))
}

/// Returns what was found where all was kept, or else every error.
fn both(found: Result<String>, kept: Result<()>) -> Result<String> {
    match (found, kept) {
        (Err(why), Err(changed)) => Err(anyhow!("{why:#}; {changed:#}")),
        (found, kept) => kept.and(found),
    }
}

/// Waits until both guests have all settings as `before`: a device that was reset needs a moment for its link, and a
/// guardian for its work.
pub(super) fn become_again(guests: &Guests, before: &str, within: Duration) -> Result<()> {
    again(guests, within, |now| same(before, now))
}

/// Reads the settings of both guests until they are as `judge` wants them.
fn again(guests: &Guests, within: Duration, judge: impl Fn(&str) -> Result<()>) -> Result<()> {
    let end = Instant::now() + within;
    loop {
        match judge(&guests.settings()?) {
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_secs(1)),
            other => return other.with_context(|| format!("after {within:?}")),
        }
    }
}

/// Returns an error that names settings of `before` that are no longer there, each as often as before.
fn still(before: &str, now: &str) -> Result<()> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    now.lines().for_each(|line| *left.entry(line).or_default() += 1);
    let is_gone = |line: &&str| match left.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let gone: Vec<&str> = before.lines().filter(is_gone).take(3).collect();
    ensure!(gone.is_empty(), "no longer \"{}\"", gone.join("\", \""));
    Ok(())
}

fn same(before: &str, after: &str) -> Result<()> {
    let differing: Vec<String> = before
        .lines()
        .zip(after.lines())
        .filter(|(before, after)| before != after)
        .map(|(before, after)| format!("was \"{before}\", is \"{after}\""))
        .take(3)
        .collect();
    ensure!(differing.is_empty(), "{}", differing.join("; "));
    ensure!(before.lines().count() == after.lines().count(), "settings came or went");
    Ok(())
}

fn boots(guests: &Guests) -> Result<String> {
    let driver = guests.on(1, "basename $(readlink /sys/class/net/d0/device/driver)")?;
    let release = guests.on(1, "uname -r")?;
    ensure!(release.trim() == guests.release(), "the guest runs {release}");
    Ok(format!("{} {}", release.trim(), driver.trim()))
}

/// Returns the JSON document that a command of landspeed prints on guest 1. The exit code 1 of `doctor` is no failure.
pub(super) fn document(guests: &Guests, words: &str) -> Result<Value> {
    let program = guests.installed(1)?;
    let output = guests.try_on(1, &format!("{program} {words} --json"))?;
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

fn doctor(guests: &Guests) -> Result<String> {
    let document = document(guests, "doctor d0")?;
    let findings = document["findings"].as_array().context("no findings")?;
    Ok(format!("{} findings", findings.len()))
}

fn count_knobs(guests: &Guests) -> Result<String> {
    let document = document(guests, "knobs d0")?;
    let all = document["knobs"].as_array().context("no knobs")?;
    let here: Vec<&Value> = all.iter().filter_map(|knob| knob["here"].as_array()).flatten().collect();
    let settable = here.iter().filter(|knob| knob["fixed_because"].is_null()).count();
    ensure!(settable > 30, "only {settable} knobs can be turned");
    Ok(format!("{settable} of {} can be turned", here.len()))
}

fn measure(guests: &Guests) -> Result<String> {
    leaves_all_as_it_was(guests, guests.landspeed(&["measure", "stream", "-t", "1s"])).map(|_| String::new())
}

/// Explains a stream. Where BPF programs attach to all that the tracer needs, both guests must have traced packets.
fn explain(guests: &Guests) -> Result<String> {
    let output = leaves_all_as_it_was(guests, guests.landspeed(&["explain", "--time", "3s", "--json"]))?;
    let report: ExplainReport = serde_json::from_slice(&output.stdout).with_context(|| said(&output))?;
    let of = |host: &ExplainedHost| {
        host.observed.get::<Option<PathTrace>>().as_ref().map_or(0, |trace| trace.hops.len())
    };
    let hops: Vec<usize> = report.hosts.iter().map(of).collect();
    let why: Vec<&String> = report.hosts.iter().flat_map(|host| &host.observed.unseen).collect();
    let is_traced = hops.len() == 2 && hops.iter().all(|hops| *hops > 0);
    ensure!(is_traced || is_older(guests.release(), TRACED), "hops by host: {hops:?}; {why:?}");
    Ok(format!("hops traced: {hops:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::command::Refusal;
    use crate::vm::command::tests::refused;

    #[test]
    fn a_refusal_on_a_kernel_that_is_new_enough_is_a_failure() {
        let on = |release| outcome(Err(refused().context("mtu=1400")), release);
        assert!(matches!(on("5.10.0-46-amd64"), CheckOutcome::Refused(_)));
        assert!(matches!(on("5.14.0"), CheckOutcome::Failed(_)));
        assert!(matches!(on("6.1.0-50-amd64"), CheckOutcome::Failed(_)));
    }

    #[test]
    fn a_refusal_that_leaves_a_setting_changed_is_a_failure() {
        let changed = || Err(anyhow!("no longer \"mtu 1500\""));
        assert!(both(Err(refused()), Ok(())).unwrap_err().is::<Refusal>());
        let why = both(Err(refused()), changed()).unwrap_err();
        assert!(!why.is::<Refusal>() && why.to_string().contains("Linux 5.14; no longer"), "{why}");
        assert!(both(Ok("1 of 1".to_owned()), changed()).is_err());
        assert_eq!(both(Ok("1 of 1".to_owned()), Ok(())).unwrap(), "1 of 1");
    }

    #[test]
    fn a_setting_that_is_gone_is_named_and_one_that_a_module_brings_is_not() {
        let before = "ethtool -c d0\nmtu 1500\nethtool -c d0\n";
        assert!(still(before, "net.smc.wmem = 65536\nethtool -c d0\nmtu 1500\nethtool -c d0\n").is_ok());
        let why = still(before, "ethtool -c d0\nmtu 1400\nethtool -c d0\n").unwrap_err().to_string();
        assert_eq!(why, "no longer \"mtu 1500\"");
        assert!(
            still(before, "ethtool -c d0\nmtu 1500\n").is_err(),
            "a line that was there twice is there once"
        );
    }

    #[test]
    fn a_setting_that_is_not_restored_is_named() {
        assert!(same("mtu 1500\nqdisc fq\n", "mtu 1500\nqdisc fq\n").is_ok());
        let why = same("mtu 1500\nqdisc fq\n", "mtu 1400\nqdisc fq\n").unwrap_err().to_string();
        assert_eq!(why, "was \"mtu 1500\", is \"mtu 1400\"");
        assert!(same("mtu 1500\n", "mtu 1500\nqdisc fq\n").is_err());
    }
}
