//! Experiments of the papers on the guests, in their short versions. Their answers are printed, and not judged.

use std::fs;

use anyhow::{Context, Result, ensure};
use landspeed_record::{ExpectationAgreement, GridReport};

use super::battery::{Check, LONG, keeps_settings};
use super::command::{printed, said};
use super::compare::is_marked;
use super::guests::Guests;
use super::smc;
use crate::table;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "balaji/sockets-latency over SMC",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| balaji(guests, &SOCKETS[0])),
    },
    Check {
        name: "balaji/sockets-bandwidth over SMC",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| balaji(guests, &SOCKETS[1])),
    },
    Check {
        name: "balaji/sockets-connect over SMC",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| balaji(guests, &SOCKETS[2])),
    },
    Check {
        name: "balaji/sockets-streams over SMC",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| balaji(guests, &SOCKETS[3])),
    },
    Check {
        name: "balaji's sockets of many hosts",
        is_short: false,
        look: |guests| keeps_settings(guests, many_hosts),
    },
    Check {
        name: "feng/coalescing",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| feng(guests, "feng/coalescing")),
    },
    Check {
        name: "feng/ladder",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| feng(guests, "feng/ladder")),
    },
];

/// The experiments that vary what carries a program's bytes below its sockets.
const SOCKETS: [(&str, &str); 4] = [
    ("sockets-latency", include_str!("../../../experiments/balaji/sockets-latency.toml")),
    ("sockets-bandwidth", include_str!("../../../experiments/balaji/sockets-bandwidth.toml")),
    ("sockets-connect", include_str!("../../../experiments/balaji/sockets-connect.toml")),
    ("sockets-streams", include_str!("../../../experiments/balaji/sockets-streams.toml")),
];
/// Those of them that take up to 13 hosts, and why `run` refuses two.
const OF_MANY_HOSTS: [&str; 2] = ["balaji/sockets-hotspot", "balaji/sockets-fan"];
const REFUSED: &str = "makes its hosts itself";

/// The drivers that hold interrupts back.
const HOLD_BACK: [&str; 2] = ["e1000e", "igb"];

fn balaji(guests: &Guests, (name, text): &(&str, &str)) -> Result<String> {
    smc::with_devices(guests, || {
        let file = guests.work.path().join(format!("{name}.toml"));
        fs::write(&file, over_smc(text))?;
        let report = ran(guests, &file.to_string_lossy())?;
        is_marked(&report)?;
        Ok(answers(&report))
    })
}

fn many_hosts(guests: &Guests) -> Result<String> {
    for name in OF_MANY_HOSTS {
        let output = guests.landspeed(&["run", name, "--short", "--yes"]).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && errors.contains(REFUSED), "{name}: {}", said(&output));
    }
    Ok(format!("refused: each {REFUSED}"))
}

/// Returns the experiment with SMC in the place of AF_UNIX, which does not leave a host.
fn over_smc(text: &str) -> String {
    text.replace("kernel,local,mptcp", "kernel,smc")
        .replace("path = \"local\"", "path = \"smc\"")
        .replace("AF_UNIX in place", "SMC over RDMA in software in place")
}

/// Runs an experiment whose answer depends on interrupts that are held back, where the driver does that.
fn feng(guests: &Guests, name: &str) -> Result<String> {
    let driver = guests.on(1, "basename $(readlink /sys/class/net/d0/device/driver)")?;
    if !HOLD_BACK.contains(&driver.trim()) {
        return Ok(format!("{} holds none back", driver.trim()));
    }
    ran(guests, name).map(|report| answers(&report))
}

fn ran(guests: &Guests, file: &str) -> Result<GridReport> {
    let words = ["run", file, "--short", "--anyway", "--yes", "--json"];
    let report: GridReport =
        printed(guests.landspeed_within(LONG, &words)).with_context(|| file.to_owned())?;
    ensure!(report.failed < report.trials, "{file}: all {} trials failed", report.trials);
    ensure!(!report.expected.is_empty(), "{file}: it answers nothing");
    Ok(report)
}

/// Returns how many expectations came out how, such as "2 reproduces, 1 undecided".
fn answers(report: &GridReport) -> String {
    let all = [
        ExpectationAgreement::Reproduces,
        ExpectationAgreement::Differs,
        ExpectationAgreement::Undecided,
        ExpectationAgreement::NotHere,
    ];
    let count =
        |answer: ExpectationAgreement| report.expected.iter().filter(|one| one.agreement == answer).count();
    let counts = all.into_iter().map(|answer| (count(answer), table::came_out(answer)));
    let counts: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use landspeed_engine::read_experiment;
    use landspeed_record::ExpectationReport;

    use super::*;

    #[test]
    fn the_experiments_compare_tcp_with_smc() {
        for (name, text) in SOCKETS {
            let experiment = read_experiment(Path::new(name), &over_smc(text), true).unwrap();
            let path = experiment.grid.factors.iter().find(|factor| factor.name == "path").unwrap();
            assert_eq!(path.levels, ["kernel", "smc"], "{name}");
        }
    }

    #[test]
    fn answers_are_counted() {
        let one = |agreement| ExpectationReport { agreement, ..ExpectationReport::default() };
        let expected = [
            ExpectationAgreement::Undecided,
            ExpectationAgreement::Reproduces,
            ExpectationAgreement::Undecided,
        ];
        let report = GridReport { expected: expected.map(one).to_vec(), ..GridReport::default() };
        assert_eq!(answers(&report), "1 reproduces, 2 undecided");
    }
}
