//! Tests that both hosts are restored: by a surviving process, or by `undo` if none survives.
//!
//! The hosts are namespaces that landspeed did not create, reached by ssh, with their own addresses, static routes and
//! device settings. Half of the runs use hosts without landspeed. These runs send landspeed to the hosts, and a kill
//! may interrupt the sending.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;

use crate::support::hosts::TestHosts;
use crate::support::ours::{freeze, signal};
use crate::support::{bpf, needs_root, text};
use crate::{CONTROLS, seed, total_kills, variable};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillTarget {
    Agent(&'static str),
    Guardian(&'static str),
    Controller,
    SshClient(&'static str),
    SshServer(&'static str),
    /// All of the processes above, at one moment.
    Everything,
}

use KillTarget::{Agent, Controller, Everything, Guardian, SshClient, SshServer};

/// Single deaths and pairs, in all relevant combinations.
const DEATHS: &[&[KillTarget]] = &[
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
fn every_host_is_restored_whatever_dies() {
    needs_root!();
    let kills: u32 = variable("LANDSPEED_KILLS").unwrap_or(DEATHS.len() as u32);
    let totals = total_kills() / 2;
    let seed = seed();
    println!("{kills} kills, {totals} of everything");
    let unheld = bpf::unheld();
    let lanes = 2.min(kills);
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            scope.spawn(move || {
                let share = |all: u32| all / lanes + u32::from(lane < all % lanes);
                kill_many(
                    [share(kills), share(totals)],
                    StdRng::seed_from_u64(seed.wrapping_add(u64::from(lane))),
                    lane as usize * DEATHS.len() / 2,
                    lane % 2 == 1,
                );
            });
        }
    });
    let left = bpf::left(&unheld);
    assert!(left.is_empty(), "BPF objects that nothing holds are left: {left:?}");
}

fn kill_many([kills, totals]: [u32; 2], mut random: StdRng, first: usize, sends: bool) {
    let hosts = TestHosts::new();
    let before = looked(|| hosts.snapshot());
    let (mut aimed, mut hits) = (0, 0);
    for kill in 0..(kills + totals) as usize {
        // Each combination in turn, at a random moment. After one round, combinations are random as well.
        let death: &[KillTarget] = if kill >= kills as usize {
            &[Everything]
        } else if kill < DEATHS.len() {
            DEATHS[(first + kill) % DEATHS.len()]
        } else {
            DEATHS.choose(&mut random).expect("not empty")
        };
        let while_tuning = random.random_bool(if sends { 0.6 } else { 0.8 });
        let longest = if sends && !while_tuning { 2500 } else { 5000 };
        let after = Duration::from_millis(random.random_range(0..longest));
        let moment = KillMoment { sends, while_tuning, after };
        let hit = one_kill(&hosts, death, &moment, random.random());
        aimed += u32::from(while_tuning);
        hits += u32::from(while_tuning && hit);
        let differences = looked(|| hosts.differences(&before));
        assert!(differences.is_empty(), "{death:?} at {moment:?}:\n{}", differences.join("\n"));
        let journals = hosts.journals();
        assert!(journals.is_empty(), "{death:?} at {moment:?} left journals: {journals:?}");
        let files = hosts.left_there();
        assert!(files.is_empty(), "{death:?} at {moment:?} left files: {files:?}");
    }
    // A kill before the first setting changes often comes before its victim has started, depending on the machine.
    println!("{hits} of {aimed} kills while tuning met every victim alive; hosts identical after all kills");
    assert!(hits * 2 >= aimed, "most kills missed: this test tests nothing");
}

/// Runs `look` while no test has loaded congestion controls.
fn looked<T>(look: impl FnOnce() -> T) -> T {
    let _none_loaded = CONTROLS.read();
    look()
}

/// The moment of a kill: some time after the start, or after both hosts have begun to change settings.
#[derive(Debug)]
struct KillMoment {
    /// True if the hosts have no landspeed.
    sends: bool,
    while_tuning: bool,
    after: Duration,
}

/// Runs landspeed and kills victims. Then the survivors get time to restore. On hosts where agent and guardian are both
/// dead, `undo` runs. Returns true if each victim was alive when it was killed.
fn one_kill(hosts: &TestHosts, death: &[KillTarget], moment: &KillMoment, seed: u64) -> bool {
    let mut run = start(hosts, seed, moment.sends);
    let begun = Instant::now();
    let tuning = || ["a", "b"].iter().all(|host| !find(hosts, Guardian(host), &run).is_empty());
    while moment.while_tuning && !tuning() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(moment.after);
    let victims: Vec<Vec<i32>> = death.iter().map(|victim| find(hosts, *victim, &run)).collect();
    victims.iter().flatten().for_each(|pid| signal(*pid, Signal::KILL));
    let met_one = victims.iter().any(|pids| !pids.is_empty());
    if met_one && !death.contains(&Controller) && !death.contains(&Everything) {
        wait(&mut run, Duration::from_secs(40));
    }
    let _ = run.kill();
    let _ = run.wait();
    assert!(hosts.quiet(Duration::from_secs(60)), "{death:?} at {moment:?}: a process is left");
    for host in ["a", "b"] {
        let guardian = [Guardian(host), Everything].iter().any(|v| death.contains(v));
        let agent = [Agent(host), SshServer(host), Everything].iter().any(|v| death.contains(v));
        if guardian && agent {
            if death.contains(&Everything) {
                forgets_nothing_unasked(hosts, host);
            }
            let undo: &[&str] = if death.contains(&Everything) { &["undo"] } else { &["undo", "--here"] };
            let undo = hosts.on_host(host, undo).output().expect("undo runs");
            assert!(undo.status.success(), "undo on {host}: {}", String::from_utf8_lossy(&undo.stderr));
        }
    }
    victims.iter().all(|pids| !pids.is_empty())
}

/// Checks that `undo --forget` without a terminal shows what it would forget, and forgets nothing.
fn forgets_nothing_unasked(hosts: &TestHosts, host: &'static str) {
    let before = hosts.journals();
    let forget = hosts.on_host(host, &["undo", "--here", "--forget"]).stdin(Stdio::null()).output();
    let (out, err) = text(&forget.expect("undo runs"));
    assert_eq!(hosts.journals(), before, "{out}{err}");
    let asked = err.contains("nothing was removed: there is no terminal to agree at, add --yes");
    assert_eq!(asked, !out.contains("nothing to undo"), "{out}{err}");
}

fn start(hosts: &TestHosts, seed: u64, sends: bool) -> Child {
    let reach = if sends { hosts.reach_bare(["root", "root"]) } else { hosts.reach() };
    let seed = (seed >> 1).to_string();
    let mut args = vec!["tune", "--yes", "--baseline", "sc03", "--budget", "90s", "--seed", &seed];
    args.extend(reach.iter().map(String::as_str));
    let mut command: Command = if sends { hosts.sending(&args) } else { hosts.landspeed(&args) };
    let log = std::fs::File::create(hosts.file("tune.log")).expect("a log");
    command.stdout(Stdio::null()).stderr(log).spawn().expect("tune starts")
}

/// Returns the ids of a victim's living processes.
fn find(hosts: &TestHosts, victim: KillTarget, run: &Child) -> Vec<i32> {
    match victim {
        Agent(host) => hosts.pids(host, "landspeed agent"),
        Guardian(host) => hosts.pids(host, "landspeed guardian"),
        Controller => vec![run.id() as i32],
        SshClient(host) => hosts.pids("ctl", &format!("-- root@10.99.0.{}", if host == "a" { 2 } else { 3 })),
        SshServer(host) => hosts.pids(host, "sshd: root@"),
        Everything => freeze(&hosts.file(""), |_| true).iter().map(|one| one.pid).collect(),
    }
}

fn wait(child: &mut Child, limit: Duration) {
    let end = Instant::now() + limit;
    while child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
}
