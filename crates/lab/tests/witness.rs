//! Measures the wide-area link with other programs: its RTT with ping and its goodput with iperf3, at the rates of the
//! design's lab figures, and with two pairs of hosts at a time. Takes three minutes, and needs an otherwise idle
//! machine: `make bench-wan`.
//!
//! ```text
//!   a  ==== veth ====  the link  ==== veth ====  b
//! ```

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landspeed_kernel::netlink::{LinkChange, Rtnl};
use landspeed_lab::topology::{HostSet, Lab, LabHost, with_namespace};
use landspeed_record::DirectionStats;
use landspeed_record::units::Nanos;

/// The parameters of a link, and the smallest share of its rate that must arrive as payload, without headers and
/// acknowledgements.
struct Case {
    rate: &'static str,
    rtt: Nanos,
    bps: f64,
    mtu: u32,
    least_share: f64,
}

const LONG: Nanos = Nanos::millis(180);

const CASES: [Case; 3] = [
    Case { rate: "1G", rtt: LONG, bps: 1e9, mtu: 1500, least_share: 0.95 },
    Case { rate: "2500M", rtt: LONG, bps: 2.5e9, mtu: 9000, least_share: 0.97 },
    // Superpackets of small segments.
    Case { rate: "2500M", rtt: LONG, bps: 2.5e9, mtu: 1500, least_share: 0.90 },
];
/// Two pairs of hosts that send in opposite directions. The acknowledgements of one pair share the line with the data
/// of the other pair.
const BOTH_WAYS: Case = Case { rate: "1G", rtt: Nanos::millis(40), bps: 1e9, mtu: 1500, least_share: 0.90 };
const LATE_P99: Nanos = Nanos::micros(500);
/// The largest time that ping may measure in addition to the link's RTT, in milliseconds: both network stacks, and a
/// wakeup of each thread.
const PING_SLACK_MS: f64 = 1.0;

/// A program that is killed when the test ends, even by a panic.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn within<T: Send>(host: &LabHost, work: impl FnOnce() -> T + Send) -> T {
    with_namespace(&host.netns, work).unwrap()
}

/// Sets windows that fill the path and part of its queue, but never all of it. A window is half to nine tenths of the
/// receive buffer (tcp(7), tcp_adv_win_scale). If a sender overran the queue, the test would measure its recovery.
fn prepare(host: &LabHost, case: &Case) {
    let bdp = (case.bps / 8.0 * case.rtt.as_secs_f64()) as u64;
    within(host, || {
        let set =
            |name: &str, value: &str| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
        set("tcp_rmem", &format!("4096 131072 {}", 2 * bdp));
        set("tcp_wmem", &format!("4096 16384 {}", 3 * bdp));
        set("tcp_no_metrics_save", "1");
        Rtnl::open().unwrap().set_link(&host.device, LinkChange::Mtu(case.mtu)).unwrap();
    });
}

fn output(host: &LabHost, program: &str, arguments: &[&str]) -> String {
    let run = || Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = within(host, run).unwrap_or_else(|e| panic!("{program}: {e}"));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the average of twenty RTTs, in milliseconds.
fn ping_ms(a: &LabHost, b: &LabHost) -> f64 {
    let text = output(a, "ping", &["-n", "-q", "-c", "20", "-i", "0.2", &b.v4.to_string()]);
    let averages = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    averages.and_then(|line| line.split('/').nth(1)?.parse().ok()).unwrap_or_else(|| panic!("ping: {text}"))
}

/// Returns the goodput in bits per second, over 20 seconds after the first 10. The sender uses CUBIC, because BBR stops
/// for half a second in ten to measure the RTT (PROBE_RTT).
fn iperf_bps(a: &LabHost, b: &LabHost) -> f64 {
    let serve = || Command::new("iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn();
    let _server = Server(within(b, serve).expect("iperf3"));
    std::thread::sleep(Duration::from_millis(500));
    let text = output(a, "iperf3", &["-c", &b.v4.to_string(), "-C", "cubic", "-t", "20", "-O", "10", "-J"]);
    let json: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("iperf3: {e}: {text}"));
    json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("iperf3: {text}"))
}

fn show(name: &str, direction: &DirectionStats) {
    println!(
        "    {name}: late {:?} / {:?} / {:?}, {} queue drops, {} faults, most queued {}, thread {:?}",
        direction.late_p50_ns,
        direction.late_p99_ns,
        direction.late_max_ns,
        direction.queue_drops,
        direction.faults(),
        direction.most_queued_bytes,
        direction.cpu_ns
    );
}

/// Returns a lab for a case with its hosts prepared, and the case's name.
fn lab(case: &Case, more: &str) -> (String, Lab) {
    let words = format!("lab:wan:rate={},rtt={}ns{more}", case.rate, case.rtt.0);
    let lab = Lab::open(&words).unwrap();
    lab.hosts().iter().for_each(|host| prepare(host, case));
    (format!("{} at MTU {}", lab.label(), case.mtu), lab)
}

/// Prints the statistics of the link since the last mark, and returns descriptions of what was wrong.
fn judged(name: &str, lab: &Lab) -> Vec<String> {
    let (link, queue) = lab.link().unwrap().since_mark();
    println!("    {} samples of the queue", queue.len());
    show("A to B", &link.a_to_b);
    show("B to A", &link.b_to_a);
    let late = link.a_to_b.late_p99_ns.max(link.b_to_a.late_p99_ns);
    let faults = link.a_to_b.faults() + link.b_to_a.faults();
    missed([
        (late <= Some(LATE_P99), format!("{name}: late by {late:?}")),
        (faults == 0, format!("{name}: {faults} faults of the link's own")),
    ])
}

/// Returns the descriptions of the conditions that do not hold.
fn missed<const N: usize>(held: [(bool, String); N]) -> Vec<String> {
    held.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

fn one_way(case: &Case) -> Vec<String> {
    let (name, lab) = lab(case, "");
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let ping = ping_ms(a, b);
    lab.link().unwrap().mark();
    let bps = iperf_bps(a, b);
    println!("{name}: ping {ping:.2} ms, iperf3 {:.3} Gb/s", bps / 1e9);
    let rtt_ms = case.rtt.as_secs_f64() * 1e3;
    let seen = missed([
        ((rtt_ms - 0.01..rtt_ms + PING_SLACK_MS).contains(&ping), format!("{name}: ping {ping} ms")),
        (bps >= case.least_share * case.bps, format!("{name}: iperf3 {:.3} Gb/s", bps / 1e9)),
    ]);
    [seen, judged(&name, &lab)].concat()
}

fn both_ways(case: &Case) -> Vec<String> {
    let (name, lab) = lab(case, ",pairs=2");
    let [a, b, a2, b2] = lab.hosts() else { panic!("four hosts") };
    lab.link().unwrap().mark();
    let [there, back] = std::thread::scope(|scope| {
        let runs = [scope.spawn(|| iperf_bps(a, b)), scope.spawn(|| iperf_bps(b2, a2))];
        runs.map(|run| run.join().unwrap())
    });
    println!("{name}: iperf3 {:.3} Gb/s there, {:.3} Gb/s back", there / 1e9, back / 1e9);
    let least = case.least_share * case.bps;
    let seen = missed([
        (there >= least, format!("{name}: there {there}")),
        (back >= least, format!("{name}: back {back}")),
    ]);
    [seen, judged(&name, &lab)].concat()
}

#[test]
#[ignore = "three minutes on a machine left alone: make bench-wan"]
fn others_see_the_path_that_was_asked_for() {
    if !common::can_run("lab:wan") {
        return;
    }
    let mut missed: Vec<String> = CASES.iter().flat_map(one_way).collect();
    missed.extend(both_ways(&BOTH_WAYS));
    assert!(missed.is_empty(), "{missed:#?}");
}
