//! The roles of the test program when it is started as a child: an agent that obeys lines on its standard input, or
//! the guardian of one.

use std::io::{BufRead, Write};

use landspeed_knob::KnobTarget;
use landspeed_knob::journal::{KnobLookup, KnobTurner, TurnerOptions, guardian_main_with};
use landspeed_record::units::Nanos;

use super::host::{ROLE, TABLE};
use super::knobs;

/// If the environment variable [`ROLE`] names a role, plays it and ends the process.
pub(crate) fn play() {
    match std::env::var(ROLE).as_deref() {
        Ok("guardian") => {
            let _ = guardian_main_with(table());
            std::process::exit(0);
        }
        Ok("agent") => {
            agent();
            std::process::exit(0);
        }
        _ => {}
    }
}

fn table() -> KnobLookup {
    match std::env::var(TABLE).as_deref() {
        Ok("real") => |name| landspeed_knob::find(name).ok(),
        _ => knobs::lookup,
    }
}

pub(crate) fn options() -> TurnerOptions {
    let me = std::env::current_exe().unwrap();
    let guardian = ["/usr/bin/env".into(), format!("{ROLE}=guardian").into(), me.into_os_string()];
    let filter = ["--exact", "role", "--nocapture"].map(Into::into);
    let millis = |variable| std::env::var(variable).ok().and_then(|v| v.parse().ok()).map(Nanos::millis);
    let usual = TurnerOptions::default();
    TurnerOptions {
        lease: millis("LANDSPEED_TEST_LEASE_MS").unwrap_or(usual.lease),
        answer: millis("LANDSPEED_TEST_ANSWER_MS").unwrap_or(usual.answer),
        guardian: guardian.into_iter().chain(filter).collect(),
        lookup: table(),
        ..usual
    }
}

fn agent() {
    let mut turner = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match (words.as_slice(), &turner) {
            (["start-with", guardian], _) => {
                let options = TurnerOptions { guardian: vec![guardian.into()], ..options() };
                KnobTurner::start(options).err().map_or("ok".into(), |e| e.to_string())
            }
            (["start"], _) => match KnobTurner::start(options()) {
                Ok(started) => {
                    turner = Some(started);
                    "ok".to_owned()
                }
                Err(e) => e.to_string(),
            },
            (["turn", knob, value @ ..], Some(turner)) => {
                let target = KnobTarget { device: "v0".into() };
                match turner.turn(knob, &value.join(" "), &target) {
                    Ok(report) => format!("{} -> {}", report.before, report.after),
                    Err(e) => e.to_string(),
                }
            }
            (["beat"], Some(turner)) => {
                turner.heartbeat();
                "ok".into()
            }
            (["short", ms], Some(turner)) => {
                turner.short_lease(Nanos::millis(ms.parse().unwrap()));
                "ok".into()
            }
            (["lost"], Some(turner)) => turner.lost().unwrap_or_else(|| "no".into()),
            (["restore"], Some(_)) => {
                let restored = turner.take().unwrap().restore_all();
                format!("{} {}", restored.restored, restored.notes.join("; "))
            }
            _ => "what?".into(),
        };
        // The asking test may be gone.
        let _ = writeln!(std::io::stdout(), "@{answer}");
    }
}
