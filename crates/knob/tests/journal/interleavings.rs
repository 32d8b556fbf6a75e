//! Tests with our writes and those of other programs in any order, on two hosts that are alike. Landspeed works on
//! one of them, and ends by restoring, by one death or by two. Afterwards both are alike again.
//!
//! `LANDSPEED_UNDO_RUNS` is the number of runs (default 3; `make undo` makes 200), `LANDSPEED_UNDO_SEED` the first
//! seed. `make test` plays the same three each time, so that a failure comes from the change under test.

use std::fs;

use landspeed_knob::journal::KnobLookup;

use super::host::{AgentProcess, TestHost, assert_same, can_ip, can_run, undo_with};
use super::kills::{KILL, guardian_pid, signal, wait_until_no_journal};
use super::knobs::lookup;

/// Knuth's MMIX generator. Any distribution of choices and moments suffices.
pub(crate) struct RandomSource(pub(crate) u64);

impl RandomSource {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// The writes of our run. Those of the tests' knobs remove IPv6 and bring it back, and those of the real knobs use
/// everything that a veth has.
const TURNS: [&[&str]; 2] = [
    &["mtu 1200", "mtu 9000", "mtu 3000", "down on", "down off", "sack 0", "sack 1"],
    &[
        "mtu 9000",
        "mtu 1400",
        "mtu 3000",
        "txqueuelen 300",
        "txqueuelen 700",
        "tx-checksum off",
        "tx-checksum on",
        "tso off",
        "scatter-gather off",
        "gso off",
        "gro on",
        "gro off",
        "channels 1",
        "channels 2",
        "qdisc pfifo",
        "qdisc default",
    ],
];

/// Commands of another program. N is a number that nothing else sets.
const FOREIGN: &[&str] = &[
    "addr del 198.18.0.9/24 dev v0",
    "addr del fd00:1::2/64 dev v0",
    "addr del fd00:3::1/64 dev v0",
    "addr add 198.18.7.N/24 dev v0",
    "addr add fd00:7::N/64 dev v0 nodad",
    "route del 203.0.113.0/24 table 100",
    "route add 192.168.N.0/24 via 198.18.0.4",
    "-6 route del fd00:2::/48",
    "-6 route add fd00:N::/48 via fd00:1::7",
    "link set v0 txqueuelen 5N",
    "rp_filter",
    "gc_stale_time",
    "hop_limit",
];

const FILES: &[&str] = &["ipv4/conf/v0/rp_filter", "ipv6/neigh/v0/gc_stale_time", "ipv6/conf/v0/hop_limit"];

/// Runs the command `what` as another program on our host and, if it had an effect there, on the other host.
fn foreign(ours: &TestHost, other: &TestHost, what: &str, n: usize) {
    if let Some(file) = FILES.iter().find(|file| file.ends_with(what)) {
        let value = if what == "rp_filter" { n % 2 } else { 100 + n };
        let set = || {
            let path = format!("/proc/sys/net/{file}");
            let is_news = fs::read_to_string(&path).is_ok_and(|now| now.trim() != value.to_string());
            is_news && fs::write(&path, value.to_string()).is_ok()
        };
        if ours.inside(set) {
            other.inside(set);
        }
        return;
    }
    let command = what.replace('N', &(10 + n % 90).to_string());
    if ours.inside(|| can_ip(&command)) {
        assert!(other.inside(|| can_ip(&command)), "{command}");
    }
}

/// The knobs of this build.
pub(crate) fn table() -> KnobLookup {
    |name| landspeed_knob::find(name).ok()
}

fn end(host: &TestHost, mut agent: AgentProcess, table: KnobLookup, how: usize) {
    match how {
        0 => drop(agent.ask("restore")),
        1 => agent.kill(),
        _ => {
            signal(agent.pid(), rustix::process::Signal::STOP);
            guardian_pid(host).into_iter().for_each(|guardian| signal(guardian, KILL));
            agent.kill();
            let report = host.inside(|| undo_with(false, &host.state(), table)).unwrap();
            assert!(report.clean, "{report:?}");
        }
    }
    wait_until_no_journal(host);
}

fn one_run(seed: u64) {
    let random = &mut RandomSource(seed);
    for _ in 0..3 {
        random.below(2);
    }
    let is_real = random.below(2);
    let (ours, other) = std::thread::scope(|scope| {
        let other = scope.spawn(TestHost::alike);
        (TestHost::alike(), other.join().unwrap())
    });
    let start = format!("seed {seed}, at the start");
    assert_same(&ours.picture(), &other.picture(), &start);
    let mut agent = if is_real == 1 { ours.agent_with_table(60_000) } else { ours.agent(60_000) };
    assert_eq!(agent.ask("start").unwrap(), "ok");
    let mut story = Vec::new();
    let mut queue_is_foreign = false;
    for _ in 0..4 + random.below(7) {
        if random.below(2) == 0 {
            let turn = random.of(TURNS[is_real]);
            // The guardian allows no write of a knob that another program has set.
            if !(queue_is_foreign && turn.starts_with("txqueuelen")) {
                story.push(format!("{turn}: {}", agent.ask(&format!("turn {turn}")).unwrap()));
            }
        } else {
            let what = random.of(FOREIGN);
            queue_is_foreign |= what.contains("txqueuelen");
            story.push(format!("somebody: {what}"));
            foreign(&ours, &other, what, random.below(90));
        }
    }
    let how = random.below(3);
    story.push(format!("end {how}"));
    let table: KnobLookup = if is_real == 1 { table() } else { lookup };
    end(&ours, agent, table, how);
    assert_same(&ours.picture(), &other.picture(), &format!("seed {seed}: {}", story.join("; ")));
}

/// Writes that change other knobs: offloads and those that need them, and what the table names for the rest.
const SIBLINGS: &[&str] = &[
    "rx-checksum off",
    "rx-checksum on",
    "gro on",
    "gro off",
    "rx-gro-list on",
    "rx-gro-list off",
    "rx-udp-gro-forwarding on",
    "rx-udp-gro-forwarding off",
    "tx-checksum off",
    "tx-checksum on",
    "scatter-gather off",
    "scatter-gather on",
    "tso off",
    "tso on",
    "gso off",
    "gso on",
    "tx-udp-segmentation off",
    "tx-udp-segmentation on",
    "mtu 9000",
    "mtu 1400",
    "gso-max-size 32768",
    "gso-max-size 65536",
    "gso-ipv4-max-size 30000",
    "channels 1",
    "channels 2",
    "txqueuelen 300",
    "qdisc pfifo",
    "qdisc default",
    "threaded-napi on",
    "threaded-napi off",
];

fn alone(seed: u64) {
    let random = &mut RandomSource(seed);
    for _ in 0..3 {
        random.below(2);
    }
    let host = TestHost::new();
    let (before, mut agent) = (host.picture(), host.agent_with_table(60_000));
    assert_eq!(agent.ask("start").unwrap(), "ok");
    let mut story = Vec::new();
    for _ in 0..5 + random.below(25) {
        let turn = random.of(SIBLINGS);
        story.push(format!("{turn}: {}", agent.ask(&format!("turn {turn}")).unwrap()));
    }
    let said = agent.ask("restore").unwrap();
    assert!(said.starts_with("true"), "seed {seed}: {said}\n{}", story.join("\n"));
    assert_same(&host.picture(), &before, &format!("seed {seed}: {}", story.join("; ")));
}

/// `LANDSPEED_OWN_RUNS` is the number of runs (default 3; `make undo` makes 50).
#[test]
fn side_effects_of_our_turns_are_ours() {
    if !can_run() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = number("LANDSPEED_UNDO_SEED").unwrap_or(1);
    (0..number("LANDSPEED_OWN_RUNS").unwrap_or(3)).for_each(|run| alone(seed + run));
}

#[test]
fn a_host_ends_as_its_twin_on_which_we_never_were() {
    if !can_run() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let runs = number("LANDSPEED_UNDO_RUNS").unwrap_or(3);
    let seed = number("LANDSPEED_UNDO_SEED").unwrap_or(1);
    println!("{runs} runs, LANDSPEED_UNDO_SEED={seed}");
    let lanes = runs.min(3);
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            scope.spawn(move || (lane..runs).step_by(lanes as usize).for_each(|run| one_run(seed + run)));
        }
    });
}
