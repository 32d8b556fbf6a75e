//! A write to a knob that takes longer than every lease, with controller, agent and guardian in separate processes. The
//! leases are shortened to seconds; nothing else is scaled.

use std::process::{Command, Stdio};
use std::time::Duration;

use landspeed_agent::Agent;
use landspeed_agent::session::{
    KnobChange, LineSink, Options, Reply, Request, ServeOptions, Session, serve_stdio,
};
use landspeed_knob::journal::{self, guardian_main_with};
use landspeed_knob::{Domain, Error, Factor, HostKnob, Knob, KnobTarget};
use landspeed_record::units::Nanos;

const ROLE: &str = "LANDSPEED_TEST_ROLE";
const LEASE: Nanos = Nanos::secs(3);
/// Duration of a slow write: longer than a lease and the guardian's grace together.
const WRITE: Duration = Duration::from_secs(7);
const FILE: &str = "/proc/sys/net/ipv4/tcp_probe_threshold";

/// A knob whose write takes as long as a slow driver's.
struct SlowKnob;

impl HostKnob for SlowKnob {
    fn read(&self, _: &KnobTarget) -> Result<String, Error> {
        std::fs::read_to_string(FILE)
            .map(|text| text.trim().to_owned())
            .map_err(|e| Error::Unavailable(format!("{FILE}: {e}")))
    }

    fn write(&self, _: &KnobTarget, value: &str) -> Result<(), Error> {
        if value == "9" {
            std::thread::sleep(WRITE);
        }
        std::fs::write(FILE, value).map_err(|e| Error::Unavailable(format!("{FILE}: {e}")))
    }
}

static SLOW: Knob = Knob {
    factor: Factor {
        name: "slow",
        about: "of the tests",
        domain: Domain::Int(0, 1000),
        // The duration in the table is far too short. The write must succeed all the same while the controller lives.
        toggle: Nanos::millis(1),
        source: "none",
        ..Factor::KNOB
    },
    setting: &SlowKnob,
};

fn lookup(name: &str) -> Option<&'static Knob> {
    (name == SLOW.factor.name).then_some(&SLOW)
}

/// Not a test: turns this program into an agent or a guardian.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("guardian") => {
            let _ = guardian_main_with(lookup);
            std::process::exit(0);
        }
        Ok("agent") => {
            // The test harness prints to standard output, so frames go to another descriptor, to which it does not
            // write.
            // SAFETY: the shell that started this program opened descriptor 3, and it stays open.
            let frames = unsafe { std::os::fd::BorrowedFd::borrow_raw(3) };
            rustix::stdio::dup2_stdout(frames).unwrap();
            let me = std::env::current_exe().unwrap();
            let guardian = ["/usr/bin/env".into(), format!("{ROLE}=guardian").into(), me.into_os_string()];
            let filter = ["--exact", "role", "--nocapture"].map(Into::into);
            let options = journal::TurnerOptions {
                lease: LEASE,
                guardian: guardian.into_iter().chain(filter).collect(),
                lookup,
                ..journal::TurnerOptions::default()
            };
            let agent = Agent::with_journal(true, options);
            let served = serve_stdio(agent, &ServeOptions { lease: LEASE, ..ServeOptions::default() });
            std::process::exit(i32::from(served.is_err()));
        }
        _ => {}
    }
}

/// Opens a session with an agent in a separate network namespace, which ends with the session.
fn session(state: &std::path::Path) -> Session {
    let mut command = Command::new("unshare");
    let me = std::env::current_exe().unwrap();
    command.args(["--net", "sh", "-c", "exec 3>&1 1>&2; exec \"$0\" --exact role --nocapture"]).arg(me);
    command.env(ROLE, "agent").env(journal::STATE_DIR_VARIABLE, state).stdin(Stdio::null());
    let lines = LineSink::new(|line| println!("{line}"));
    Session::over_child("slow", command, &Options { lease: LEASE, lines, ..Options::default() }).unwrap()
}

fn turn(
    session: &Session,
    value: &str,
    short: Option<Nanos>,
) -> Result<Reply, landspeed_agent::session::Error> {
    let changes =
        vec![KnobChange { knob: SLOW.factor.name.into(), value: value.into(), device: String::new() }];
    session.call(&Request::Turn { device: String::new(), changes, short_lease_ns: short })
}

#[test]
fn a_turn_longer_than_every_lease_ends_well_while_the_controller_lives() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: needs root");
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let session = session(&state.path().join("state"));
    for (value, short) in [("10", None), ("9", Some(Nanos::secs(2))), ("11", None)] {
        let turned = turn(&session, value, short);
        let Ok(Reply::Turned { turns }) = &turned else { panic!("{value}: {turned:?}") };
        assert_eq!(turns[0].after, value);
    }
    let restored = session.call(&Request::Restore {}).unwrap();
    let Reply::Restored { restored } = restored else { panic!("{restored:?}") };
    assert!(restored.restored, "{restored:?}");
    assert!(restored.notes[0].starts_with("slow: 11 -> "), "{restored:?}");
}
