//! The wide-area link as others see it: ping for its round trip, iperf3 for its goodput, at the rates of the
//! design's lab figures. Takes two minutes and a machine left alone: `make bench-wan`.
//!
//! ```text
//!   a  ==== veth ====  the link  ==== veth ====  b
//! ```

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use landspeed_netlink::{LinkChange, Rtnl};
use landspeed_record::DirectionStats;
use landspeed_topology::{Hosts, Lab, LabHost, with_namespace};
use landspeed_units::Nanos;

/// What is asked of the link, and at least expected of it (shares of its rate are of payload, so headers and
/// acknowledgements are off).
struct Case {
    rate: &'static str,
    bps: f64,
    mtu: u32,
    least_share: f64,
}

const CASES: [Case; 3] = [
    Case { rate: "1G", bps: 1e9, mtu: 1500, least_share: 0.95 },
    Case { rate: "2500M", bps: 2.5e9, mtu: 9000, least_share: 0.97 },
    // Superpackets of small segments.
    Case { rate: "2500M", bps: 2.5e9, mtu: 1500, least_share: 0.90 },
];
const RTT: Nanos = Nanos::millis(180);
const LATE_P99: Nanos = Nanos::micros(500);
/// What ping may see beyond the round trip: both stacks, and a look of each thread.
const PING_SLACK_MS: f64 = 1.0;

/// A program that is ended with the test, however it ends.
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

/// Windows that fill the path and part of its queue, but never all of it: half to nine tenths of the receive
/// buffer (tcp(7), tcp_adv_win_scale). A sender that overruns the queue would be judged by its recovery.
fn prepare(host: &LabHost, case: &Case) {
    let bdp = (case.bps / 8.0 * RTT.as_secs_f64()) as u64;
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

/// The average of twenty round trips.
fn ping_ms(a: &LabHost, b: &LabHost) -> f64 {
    let text = output(a, "ping", &["-n", "-q", "-c", "20", "-i", "0.2", &b.v4.to_string()]);
    let averages = text.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    averages.and_then(|line| line.split('/').nth(1)?.parse().ok()).unwrap_or_else(|| panic!("ping: {text}"))
}

/// Payload that arrived, bits a second over 20 seconds after 10. By CUBIC: BBR stops for half a second in ten, to see
/// the round trip (PROBE_RTT).
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
        "    {name}: late {} / {} / {}, {} queue drops, {} faults, most queued {}, thread {:?}",
        direction.late_p50_ns,
        direction.late_p99_ns,
        direction.late_max_ns,
        direction.queue_drops,
        direction.faults(),
        direction.most_queued_bytes,
        direction.cpu_ns
    );
}

/// What was not as it should be.
fn look(case: &Case) -> Vec<String> {
    let name = format!("rate={},rtt=180ms at MTU {}", case.rate, case.mtu);
    let lab = Lab::create(format!("lab:wan:rate={},rtt=180ms", case.rate).parse().unwrap()).unwrap();
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    [a, b].into_iter().for_each(|host| prepare(host, case));
    let ping = ping_ms(a, b);
    lab.mark_wan();
    let bps = iperf_bps(a, b);
    let (link, queue) = lab.wan_since_mark().unwrap();
    println!(
        "{name}: ping {ping:.2} ms, iperf3 {:.3} Gb/s ({} samples of the queue)",
        bps / 1e9,
        queue.len()
    );
    show("A to B", &link.a_to_b);
    show("B to A", &link.b_to_a);
    let late = link.a_to_b.late_p99_ns.max(link.b_to_a.late_p99_ns);
    let held = [
        (ping - 180.0 < PING_SLACK_MS && ping >= 179.99, format!("{name}: ping {ping} ms")),
        (bps >= case.least_share * case.bps, format!("{name}: iperf3 {:.3} Gb/s", bps / 1e9)),
        (late <= LATE_P99, format!("{name}: late by {late}")),
        (link.a_to_b.faults() + link.b_to_a.faults() == 0, format!("{name}: faults of the link's own")),
    ];
    held.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

#[test]
#[ignore = "two minutes on a machine left alone: make bench-wan"]
fn others_see_the_path_that_was_asked_for() {
    if !common::can_run("lab:wan") {
        return;
    }
    let missed: Vec<String> = CASES.iter().flat_map(look).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
