//! Whatever dies at whatever moment, both hosts are put back.
//!
//! The hosts are namespaces that landspeed did not make, reached by ssh, with addresses, static
//! routes and device settings of their own. `LANDSPEED_KILLS` says how many kills (default 20; the
//! target `make kills` runs 200), `LANDSPEED_SEED` repeats a sequence.

mod support;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use support::hosts::Hosts;
use support::root;

/// What can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Agent(&'static str),
    Guardian(&'static str),
    Controller,
    SshClient(&'static str),
    SshServer(&'static str),
}

use Victim::{Agent, Controller, Guardian, SshClient, SshServer};

/// Single deaths and pairs, in every combination that matters.
const DEATHS: &[&[Victim]] = &[
    &[Agent("a")],
    &[Agent("b")],
    &[Guardian("a")],
    &[Guardian("b")],
    &[Controller],
    &[SshClient("a")],
    &[SshServer("b")],
    &[Agent("a"), Guardian("a")],
    &[Agent("b"), Guardian("b")],
    &[Agent("a"), Agent("b")],
    &[Guardian("a"), Guardian("b")],
    &[Controller, Agent("b")],
    &[Controller, Guardian("a")],
    &[SshServer("a"), Guardian("a")],
    &[SshClient("b"), Agent("b")],
    &[Controller, SshServer("a")],
];

#[test]
fn every_host_is_put_back_whatever_dies() {
    if !root("every_host_is_put_back_whatever_dies") {
        return;
    }
    let kills: u32 = variable("LANDSPEED_KILLS").unwrap_or(20);
    let seed: u64 = variable("LANDSPEED_SEED").unwrap_or_else(rand::random);
    println!("{kills} kills, LANDSPEED_SEED={seed}");
    let lanes = 2.min(kills);
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            scope.spawn(move || {
                let share = kills / lanes + u32::from(lane < kills % lanes);
                kill_many(
                    share,
                    StdRng::seed_from_u64(seed.wrapping_add(u64::from(lane))),
                    lane as usize * 7,
                );
            });
        }
    });
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn kill_many(kills: u32, mut random: StdRng, first: usize) {
    let hosts = Hosts::new();
    let before = hosts.snapshot();
    let mut hits = 0;
    for kill in 0..kills as usize {
        // Every combination in turn; the moment is what is random. Beyond one round, all is.
        let death = if kill < DEATHS.len() {
            DEATHS[(first + kill) % DEATHS.len()]
        } else {
            DEATHS.choose(&mut random).expect("not empty")
        };
        let moment = Moment {
            while_tuning: random.random_bool(0.8),
            after: Duration::from_millis(random.random_range(0..5000)),
        };
        hits += u32::from(one_kill(&hosts, death, &moment, random.random()));
        let differences = hosts.differences(&before);
        assert!(differences.is_empty(), "{death:?} at {moment:?}:\n{}", differences.join("\n"));
        let journals = hosts.journals();
        assert!(journals.is_empty(), "{death:?} at {moment:?} left journals: {journals:?}");
    }
    println!("{hits} of {kills} kills met every victim alive; hosts identical after all of them");
    assert!(hits * 2 > kills, "most kills missed: this test tests nothing");
}

/// When to kill: some time after the start, or after both hosts' first turn of a knob.
#[derive(Debug)]
struct Moment {
    while_tuning: bool,
    after: Duration,
}

/// One run, killed; then everybody is given time to restore, and `undo` runs where both that could
/// restore are dead. Whether every victim was alive to be killed.
fn one_kill(hosts: &Hosts, death: &[Victim], moment: &Moment, seed: u64) -> bool {
    let mut run = start(hosts, seed);
    let end = Instant::now() + Duration::from_secs(10);
    let tuning = || ["a", "b"].iter().all(|host| !find(hosts, Guardian(host), &run).is_empty());
    while moment.while_tuning && !tuning() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(moment.after);
    let victims: Vec<Vec<i32>> = death.iter().map(|victim| find(hosts, *victim, &run)).collect();
    victims.iter().flatten().for_each(|pid| kill(*pid));
    if !death.contains(&Controller) {
        wait(&mut run, Duration::from_secs(40));
    }
    let _ = run.kill();
    let _ = run.wait();
    assert!(hosts.quiet(Duration::from_secs(25)), "{death:?} at {moment:?}: a process is left");
    for host in ["a", "b"] {
        let guardian = death.contains(&Guardian(host));
        let agent = [Agent(host), SshServer(host)].iter().any(|v| death.contains(v));
        if guardian && agent {
            let undo = hosts.on_host(host, &["undo", "--here"]).output().expect("undo runs");
            assert!(undo.status.success(), "undo on {host}: {}", String::from_utf8_lossy(&undo.stderr));
        }
    }
    victims.iter().all(|pids| !pids.is_empty())
}

fn start(hosts: &Hosts, seed: u64) -> Child {
    let reach = hosts.reach();
    let seed = (seed >> 1).to_string();
    let mut args = vec!["tune", "--yes", "--baseline", "sc03", "--budget", "60s", "--seed", &seed];
    args.extend(reach.iter().map(String::as_str));
    let mut command: Command = hosts.landspeed(&args);
    let log = std::fs::File::create(hosts.file("tune.log")).expect("a log");
    command.stdout(Stdio::null()).stderr(log).spawn().expect("tune starts")
}

/// The process ids of a victim, as far as it lives at this moment.
fn find(hosts: &Hosts, victim: Victim, run: &Child) -> Vec<i32> {
    match victim {
        Agent(host) => hosts.pids(host, "landspeed agent"),
        Guardian(host) => hosts.pids(host, "landspeed guardian"),
        Controller => vec![run.id() as i32],
        SshClient(host) => hosts.pids("ctl", &format!("root@10.99.0.{}", if host == "a" { 2 } else { 3 })),
        SshServer(host) => hosts.pids(host, "sshd: root@"),
    }
}

fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

fn wait(child: &mut Child, limit: Duration) {
    let end = Instant::now() + limit;
    while child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
}
