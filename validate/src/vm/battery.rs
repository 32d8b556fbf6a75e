//! The checks of a pair of guests.

use std::fmt;
use std::fs::File;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::guests::{Guests, said};
use super::results::CheckOutcome;

pub(super) struct Check {
    pub(super) name: &'static str,
    /// True if the check belongs to the short battery.
    pub(super) is_short: bool,
    /// Returns what was found; an error that is a [`Refusal`] if landspeed says that it cannot work here.
    look: fn(&Guests) -> Result<String>,
}

pub(super) const BATTERY: &[Check] = &[
    Check { name: "boots", is_short: true, look: boots },
    Check { name: "doctor", is_short: true, look: doctor },
    Check { name: "knobs", is_short: true, look: knobs },
    Check { name: "measure", is_short: true, look: measure },
    Check { name: "tune --dry-run", is_short: true, look: dry_run },
    Check { name: "three knobs", is_short: true, look: three_knobs },
    Check { name: "kill -9 of all, undo", is_short: true, look: kill_all },
    Check { name: "kill -9 of the controller", is_short: false, look: kill_controller },
    Check { name: "kill -9 of an agent", is_short: false, look: kill_agent },
    Check { name: "every knob", is_short: false, look: every_knob },
    Check { name: "tune", is_short: false, look: tune },
    Check { name: "explain", is_short: false, look: explain },
    Check { name: "lab", is_short: false, look: lab },
    Check { name: "exec --path local", is_short: false, look: exec_local },
    Check { name: "VLAN", is_short: false, look: vlan },
    Check { name: "agents by hand", is_short: false, look: agents_by_hand },
];

/// The time within which a device that was reset has its link again.
const SETTLED: Duration = Duration::from_secs(20);
/// The time within which a guardian restores a guest without any help.
const RESTORED: Duration = Duration::from_secs(120);
/// The time within which a run of knobs changes the first one.
const CHANGED: Duration = Duration::from_secs(180);

impl Check {
    pub(super) fn run(&self, guests: &Guests) -> CheckOutcome {
        match (self.look)(guests) {
            Ok(what) => CheckOutcome::Passed(what),
            Err(why) if why.is::<Refusal>() => CheckOutcome::Refused(format!("{why:#}")),
            Err(why) => CheckOutcome::Failed(format!("{why:#}")),
        }
    }
}

/// The sentence by which landspeed says that a kernel cannot do something.
#[derive(Debug)]
struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Returns the error of a command that failed: a [`Refusal`] if it says which Linux it needs.
fn failure(output: &Output) -> anyhow::Error {
    let all =
        [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat();
    match all.lines().find(|line| line.contains("needs Linux")) {
        Some(line) => Refusal(line.trim().to_owned()).into(),
        None => anyhow!(said(output)),
    }
}

/// Returns a command's output, or its [`failure`].
fn succeeded(output: Output) -> Result<Output> {
    if output.status.success() { Ok(output) } else { Err(failure(&output)) }
}

/// Runs a command, and then compares all settings of both guests with those before.
fn leaves_all_as_it_was(guests: &Guests, mut command: Command) -> Result<Output> {
    let before = guests.settings()?;
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let done = succeeded(output);
    become_again(guests, &before, SETTLED)?;
    done
}

/// Waits until both guests have all settings as `before`: a device that was reset needs a moment for its link, and a
/// guardian for its work.
fn become_again(guests: &Guests, before: &str, within: Duration) -> Result<()> {
    let end = Instant::now() + within;
    loop {
        match same(before, &guests.settings()?) {
            Err(_) if Instant::now() < end => thread::sleep(Duration::from_secs(1)),
            other => return other.with_context(|| format!("after {within:?}")),
        }
    }
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
fn document(guests: &Guests, words: &str) -> Result<Value> {
    let program = guests.installed(1)?;
    let output = guests.try_on(1, &format!("{program} {words} --json"))?;
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

fn doctor(guests: &Guests) -> Result<String> {
    let document = document(guests, "doctor d0")?;
    let findings = document["findings"].as_array().context("no findings")?;
    Ok(format!("{} findings", findings.len()))
}

fn knobs(guests: &Guests) -> Result<String> {
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

fn dry_run(guests: &Guests) -> Result<String> {
    let output = leaves_all_as_it_was(guests, guests.landspeed(&["tune", "--dry-run"]))?;
    Ok(format!("{} settings", candidates(&output).len()))
}

/// Returns the settings that a dry run would try, each with its values. A row that cannot be tried says why behind the
/// value.
fn candidates(dry_run: &Output) -> Vec<(String, Vec<String>)> {
    let text = String::from_utf8_lossy(&dry_run.stdout);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("knob "));
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let Some(at) = lines.next().and_then(|head| head.find("try")) else { return found };
    for row in lines.skip(1).take_while(|line| !line.trim().is_empty()) {
        let knob = row.split("  ").next().unwrap_or_default().trim();
        let rest = row.get(at..).unwrap_or_default();
        let (value, more) = rest.split_once("  ").unwrap_or((rest, ""));
        let (value, more) = (value.trim(), more.trim());
        let is_tried = more.is_empty() || more.starts_with("with ");
        if knob.is_empty() || value.is_empty() || !is_tried {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known == knob) {
            Some((_, values)) if values.iter().any(|known| known == value) => {}
            Some((_, values)) => values.push(value.to_owned()),
            None => found.push((knob.to_owned(), vec![value.to_owned()])),
        }
    }
    found
}

/// Sets a knob to each value in turn while a short stream runs, and checks that all settings are as before.
fn turned(guests: &Guests, knob: &str, values: &str) -> Result<()> {
    let vary = format!("{knob}={values}");
    let words = ["measure", "stream", "-t", "300ms", "--blocks", "1", "--yes", "--vary", &vary];
    leaves_all_as_it_was(guests, guests.landspeed(&words)).map(|_| ()).with_context(|| vary.clone())
}

fn three_knobs(guests: &Guests) -> Result<String> {
    let knobs =
        [("mtu", "1400,1500"), ("gro", "on,off"), ("tcp-rmem", "4096 131072 6291456,4096 131072 33554432")];
    for (knob, values) in knobs {
        turned(guests, knob, values)?;
    }
    Ok("mtu, gro, tcp-rmem".to_owned())
}

fn every_knob(guests: &Guests) -> Result<String> {
    let output = succeeded(guests.landspeed(&["tune", "--dry-run", "--full"]).output()?)?;
    let all = candidates(&output);
    ensure!(all.len() > 10, "a dry run lists only {} settings", all.len());
    let mut wrong = Vec::new();
    // A processor list has commas of its own, so each value is a run of its own.
    for (knob, value) in all.iter().flat_map(|(knob, values)| values.iter().map(move |value| (knob, value))) {
        wrong.extend(turned(guests, knob, value).err().map(|why| format!("{why:#}")));
    }
    ensure!(wrong.is_empty(), "{} of {}: {}", wrong.len(), all.len(), wrong.join("; "));
    Ok(format!("{} knobs", all.len()))
}

/// A run that changes the MTU of both guests again and again until it is killed.
struct EndlessRun<'a> {
    guests: &'a Guests,
    controller: Child,
    before: String,
}

impl<'a> EndlessRun<'a> {
    /// Starts the run, and returns when the MTU of guest 1 has changed.
    ///
    /// # Errors
    /// Returns the run's [`failure`] if it ends before.
    fn start(guests: &'a Guests) -> Result<Self> {
        let before = guests.settings()?;
        let words =
            ["measure", "stream", "-t", "300ms", "--blocks", "100", "--yes", "--vary", "mtu=1400,1500"];
        let errors = guests.work.path().join("endless-run");
        let mut command = guests.landspeed(&words);
        command.stdout(Stdio::null()).stderr(File::create(&errors)?);
        let mut run = EndlessRun { guests, controller: command.spawn()?, before };
        let end = Instant::now() + CHANGED;
        while guests.on(1, "cat /sys/class/net/d0/mtu")?.trim() != "1400" {
            if let Some(status) = run.controller.try_wait()? {
                let output = Output { status, stdout: Vec::new(), stderr: std::fs::read(&errors)? };
                return Err(failure(&output));
            }
            ensure!(Instant::now() < end, "the MTU did not change within {CHANGED:?}");
            thread::sleep(Duration::from_millis(200));
        }
        Ok(run)
    }

    /// Kills the controller, which is the child of timeout(1).
    fn kill_controller(&mut self) -> Result<()> {
        Command::new("pkill").args(["-9", "-P", &self.controller.id().to_string()]).status()?;
        self.controller.wait()?;
        Ok(())
    }

    /// Waits until both guests have all settings as before, without any help.
    fn restored(&self) -> Result<()> {
        become_again(self.guests, &self.before, RESTORED)
    }
}

impl Drop for EndlessRun<'_> {
    fn drop(&mut self) {
        let _ = self.kill_controller();
    }
}

/// Kills every landspeed process of a guest; the brackets keep the pattern from matching its own command line.
const KILL_ALL: &str = "pkill -9 -f '[l]andspeed'; true";

fn kill_all(guests: &Guests) -> Result<String> {
    let mut run = EndlessRun::start(guests)?;
    run.kill_controller()?;
    guests.on(1, KILL_ALL)?;
    guests.on(2, KILL_ALL)?;
    let output = guests.undo().output()?;
    ensure!(output.status.success(), "undo: {}", said(&output));
    become_again(guests, &run.before, SETTLED)?;
    Ok(String::new())
}

fn kill_controller(guests: &Guests) -> Result<String> {
    let mut run = EndlessRun::start(guests)?;
    run.kill_controller()?;
    run.restored()?;
    Ok("restored by itself".to_owned())
}

fn kill_agent(guests: &Guests) -> Result<String> {
    let run = EndlessRun::start(guests)?;
    // The agent is the oldest of the guest's processes of landspeed; its guardian is left alone.
    guests.on(1, "pkill -9 -o -f '[l]andspeed.*agent'")?;
    run.restored()?;
    Ok("restored by its guardian".to_owned())
}

fn tune(guests: &Guests) -> Result<String> {
    let words = ["tune", "--yes", "--only", "mtu,tcp-rmem", "--budget", "4m"];
    leaves_all_as_it_was(guests, guests.landspeed(&words)).map(|_| String::new())
}

fn explain(guests: &Guests) -> Result<String> {
    leaves_all_as_it_was(guests, guests.landspeed(&["explain", "--time", "3s"])).map(|_| String::new())
}

/// Runs a command of landspeed on guest 1.
fn on_the_guest(guests: &Guests, words: &str) -> Result<String> {
    let program = guests.installed(1)?;
    succeeded(guests.try_on(1, &format!("{program} {words}"))?).map(|_| String::new())
}

fn lab(guests: &Guests) -> Result<String> {
    on_the_guest(guests, "measure stream lab -t 300ms")
}

fn exec_local(guests: &Guests) -> Result<String> {
    on_the_guest(guests, "exec --path local -- true")
}

/// The data link below a VLAN: what carries is the VLAN, what is turned is the link below it too.
fn vlan(guests: &Guests) -> Result<String> {
    for number in 1..=2 {
        guests.on(
            number,
            &format!("ip link add link d0 name d0.5 type vlan id 5; ip addr add 10.79.0.{number}/24 dev d0.5; ip link set d0.5 up"),
        )?;
    }
    let words = ["measure", "stream", "-t", "300ms", "--blocks", "1", "--yes", "--vary", "mtu=1400,1500"];
    let done = leaves_all_as_it_was(guests, guests.landspeed_to("10.79.0.2", &words));
    for number in 1..=2 {
        guests.on(number, "ip link del d0.5")?;
    }
    done.map(|_| String::new())
}

fn agents_by_hand(guests: &Guests) -> Result<String> {
    let program = guests.installed(2)?;
    guests.on(2, &format!("setsid {program} agent --listen 10.77.0.2:4711 >/run/agent 2>&1 </dev/null & sleep 5; cat /run/agent"))?;
    let line = guests.on(2, "grep -o 'landspeed://.*' /run/agent")?;
    let program = guests.installed(1)?;
    let done = guests.on(1, &format!("{program} measure stream local '{}' -t 1s", line.trim()));
    guests.on(2, KILL_ALL)?;
    done?;
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(stdout: &str) -> Output {
        Output { status: ExitStatus::from_raw(256), stdout: stdout.into(), stderr: Vec::new() }
    }

    #[test]
    fn the_settings_of_a_dry_run_are_read_from_its_table() {
        let text = "start: A: gso: on -> off\n\
            knob        now                    try\n\
            ───────────\n\
            mtu         1500                   9000\n\
            tcp-rmem    4096 131072 6291456    4096 131072 33554432   with tcp-wmem\n\
            qdisc       default                fq                     the kernel has no fq\n\
            mtu         1500                   8160\n\n\
            socket      later                  not read\n";
        let expected = [
            ("mtu".to_owned(), vec!["9000".to_owned(), "8160".to_owned()]),
            ("tcp-rmem".to_owned(), vec!["4096 131072 33554432".to_owned()]),
        ];
        assert_eq!(candidates(&output(text)), expected);
    }

    #[test]
    fn a_refusal_is_told_from_a_failure() {
        assert!(failure(&output("error: no knob can be turned here: it needs Linux 5.14\n")).is::<Refusal>());
        assert!(!failure(&output("error: mtu was set to 1400 and is 1500\n")).is::<Refusal>());
    }

    #[test]
    fn a_setting_that_is_not_restored_is_named() {
        assert!(same("mtu 1500\nqdisc fq\n", "mtu 1500\nqdisc fq\n").is_ok());
        let why = same("mtu 1500\nqdisc fq\n", "mtu 1400\nqdisc fq\n").unwrap_err().to_string();
        assert_eq!(why, "was \"mtu 1500\", is \"mtu 1400\"");
        assert!(same("mtu 1500\n", "mtu 1500\nqdisc fq\n").is_err());
    }
}
