//! Checks that change settings while a stream runs: a few, every one that the driver has, and what `tune` chooses.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use landspeed_record::TuneSummary;

use super::battery::{Check, LONG, leaves_all_as, leaves_all_as_it_was};
use super::command::{Refusal, said, succeeded};
use super::guests::Guests;
use super::progress::Progress;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "tune --dry-run", is_short: true, look: dry_run },
    Check { name: "three knobs", is_short: true, look: three_knobs },
    Check { name: "every knob", is_short: false, look: every_knob },
    Check { name: "tune", is_short: false, look: tune },
];

/// Two values of each of three knobs.
const THREE_KNOBS: [&str; 3] =
    ["mtu=1400,1500", "gro=on,off", "tcp-rmem=4096 131072 6291456,4096 131072 33554432"];

fn dry_run(guests: &Guests) -> Result<String> {
    let output = leaves_all_as_it_was(guests, guests.landspeed(&["tune", "--dry-run"]))?;
    Ok(format!("{} settings", candidates(&output).len()))
}

/// Returns the settings that a dry run would try, each with its values. A row that cannot be tried says why behind the
/// value.
pub(super) fn candidates(dry_run: &Output) -> Vec<(String, Vec<String>)> {
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

/// Sets a knob to each value of `vary` in turn while a short stream runs, and checks that all settings are as before.
fn turned(guests: &Guests, before: &str, vary: &str) -> Result<()> {
    let words = ["measure", "stream", "-t", "300ms", "--blocks", "1", "--yes", "--vary", vary];
    leaves_all_as(guests, before, guests.landspeed(&words)).map(|_| ()).with_context(|| vary.to_owned())
}

fn three_knobs(guests: &Guests) -> Result<String> {
    let before = guests.settings()?;
    THREE_KNOBS.iter().try_for_each(|vary| turned(guests, &before, vary))?;
    Ok(String::new())
}

/// Sets every knob to each value that `tune` would try. What passed is not run again after the check was cut off or
/// another value failed.
fn every_knob(guests: &Guests) -> Result<String> {
    let output = succeeded(guests.landspeed(&["tune", "--dry-run", "--full"]).output()?)?;
    let all = candidates(&output);
    ensure!(all.len() > 10, "a dry run lists only {} settings", all.len());
    let mut progress = Progress::open(guests.kept("knobs"), guests.subject().key());
    let mut wrong = Vec::new();
    let mut before = guests.settings()?;
    for value in runs(&all) {
        if progress.has(&value) {
            continue;
        }
        match turned(guests, &before, &value) {
            Ok(()) => progress.add(&value)?,
            Err(why) if why.is::<Refusal>() || guests.time_left().is_zero() => return Err(why),
            Err(why) => {
                let why = format!("{why:#}");
                // It may pass when it is tried again.
                eprintln!("every knob: {why}");
                wrong.push(why);
                // Later values are not blamed for what this one left changed.
                before = guests.settings()?;
            }
        }
    }
    ensure!(wrong.is_empty(), "{} values: {}", wrong.len(), wrong.join("; "));
    progress.end()?;
    Ok(format!("{} knobs", all.len()))
}

/// Returns the words of --vary of each run. A processor list has commas of its own, so each value is a run of its own.
fn runs(all: &[(String, Vec<String>)]) -> impl Iterator<Item = String> {
    all.iter().flat_map(|(knob, values)| values.iter().map(move |value| format!("{knob}={value}")))
}

/// Tunes from the settings of 2003, so that there is something to keep, and to restore.
fn tune(guests: &Guests) -> Result<String> {
    let words =
        ["tune", "--yes", "--json", "--baseline", "sc03", "--only", "tcp-rmem,tso,gro", "--budget", "4m"];
    let output = leaves_all_as_it_was(guests, guests.landspeed_within(LONG, &words))?;
    let summary: TuneSummary = serde_json::from_slice(&output.stdout).with_context(|| said(&output))?;
    ensure!(summary.restored, "not restored: {}", summary.restored_notes.join("; "));
    let kept = summary.steps.iter().filter(|step| step.kept).count();
    Ok(format!("{kept} of {} settings kept, all restored", summary.steps.len()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn output(stdout: &str) -> Output {
        Output { status: ExitStatus::from_raw(0), stdout: stdout.into(), stderr: Vec::new() }
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
        let runs: Vec<String> = runs(&expected).collect();
        assert_eq!(runs, ["mtu=9000", "mtu=8160", "tcp-rmem=4096 131072 33554432"]);
    }
}
