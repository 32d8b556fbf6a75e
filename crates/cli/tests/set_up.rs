//! Tests of flows that cannot be set up as requested: the errors, and that nothing is measured under a wrong name.
//!
//! ```text
//!   [a] 10.98.0.1 ------ 10.98.0.2 [b]      a firewall on b, or few ports and files on a
//! ```

mod support;

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{LANDSPEED, needs_root, sh, skip, text};

/// The port that all firewalls here let in.
const OPEN: &str = "4712";
/// Time within which an error must be reported.
const SOON: Duration = Duration::from_secs(30);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Two joined network namespaces; removed on drop.
struct JoinedNamespaces {
    id: String,
    folder: tempfile::TempDir,
}

impl JoinedNamespaces {
    fn new() -> JoinedNamespaces {
        let id = format!("lsu{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let joined = JoinedNamespaces { id, folder: tempfile::tempdir().expect("a temporary folder") };
        let [a, b] = [joined.ns("a"), joined.ns("b")];
        sh(&format!("ip netns add {a} && ip netns add {b}"));
        sh(&format!("ip link add data netns {a} type veth peer name data netns {b}"));
        for (ns, address) in [(a, "10.98.0.1/24"), (b, "10.98.0.2/24")] {
            // IPv6 is disabled, so that a host has only one address.
            sh(&format!("ip netns exec {ns} sysctl -qw net.ipv6.conf.all.disable_ipv6=1"));
            sh(&format!("ip -n {ns} link set lo up && ip -n {ns} link set data up"));
            sh(&format!("ip -n {ns} addr add {address} dev data"));
        }
        joined
    }

    fn ns(&self, host: &str) -> String {
        format!("{}{host}", self.id)
    }

    /// Adds a firewall on host b with these rules.
    fn filter(&self, hook: &str, rules: &str) {
        let table = format!("table inet f {{ chain c {{ type filter hook {hook}; {rules} }}; }}");
        sh(&format!("ip netns exec {} nft '{table}'", self.ns("b")));
    }

    /// Runs landspeed with `args` and both hosts, started by the command `before`.
    fn landspeed(&self, before: &[&str], args: &[&str]) -> Output {
        let hosts = ["a", "b"].map(|host| format!("netns:{}", self.ns(host)));
        let words = [before, &[LANDSPEED], args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(hosts).stdin(Stdio::null());
        command.env("XDG_DATA_HOME", self.folder.path()).output().expect("it runs")
    }

    /// Returns the one-line error of `args`.
    fn refused(&self, before: &[&str], args: &[&str]) -> String {
        let began = Instant::now();
        let output = self.landspeed(before, args);
        let (out, err) = text(&output);
        assert!(began.elapsed() < SOON, "{args:?}: it took {:?}: {err}", began.elapsed());
        assert_eq!(output.status.code(), Some(1), "{args:?}: {out}{err}");
        // Lines about what it waits for may precede the error.
        let said: Vec<&str> = err.lines().filter(|line| line.contains("landspeed: ")).collect();
        assert_eq!(said.len(), 1, "{args:?}: {err}");
        assert!(!err.contains("cancelled"), "{args:?}: {err}");
        said[0].to_owned()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.landspeed(&[], &[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {:?}", text(&output));
        serde_json::from_slice(&output.stdout).expect("one document")
    }
}

impl Drop for JoinedNamespaces {
    fn drop(&mut self) {
        for host in ["b", "a"] {
            let _ = Command::new("ip").args(["netns", "del", &self.ns(host)]).status();
        }
    }
}

/// Ends a test, as skipped, if nft is not installed.
macro_rules! needs_nft {
    () => {
        needs_root!();
        if Command::new("nft").arg("-v").output().is_err() {
            return skip("there is no nft");
        }
    };
}

const STREAM: &[&str] = &["measure", "stream", "--time", "200ms"];
/// Rules that let in replies, and new connections to [`OPEN`] only.
const ONE_PORT: &str = "policy drop; ct state established,related accept; tcp dport 4712 accept;";
const INPUT: &str = "input priority 0";

#[test]
fn a_blocked_data_port_is_named_and_another_can_be_chosen() {
    needs_nft!();
    let hosts = JoinedNamespaces::new();
    hosts.filter(INPUT, ONE_PORT);
    let why = hosts.refused(&[], STREAM);
    for wanted in ["TCP port ", "10.98.0.2 does not answer (blocked by a firewall?)", "--data-port"] {
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
    let report = hosts.json(&[STREAM, &["--data-port", OPEN]].concat());
    assert!(report["streams"][0]["received_bytes"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_blocked_port_of_datagrams_is_one_of_udp() {
    needs_nft!();
    let hosts = JoinedNamespaces::new();
    hosts.filter(INPUT, ONE_PORT);
    let why = hosts
        .refused(&[], &[STREAM, &["--transport", "udp", "--data-port", OPEN, "--patience", "5s"]].concat());
    assert!(why.contains("UDP port 4712 of 10.98.0.2 does not answer"), "{why}");
}

#[test]
fn a_firewall_that_rejects_is_named_too() {
    needs_nft!();
    let hosts = JoinedNamespaces::new();
    hosts.filter(INPUT, "policy accept; ct state new tcp dport != 4712 reject with tcp reset;");
    let why = hosts.refused(&[], STREAM);
    assert!(why.contains("10.98.0.2 refuses connections (blocked by a firewall?)"), "{why}");
}

#[test]
fn files_and_ports_are_counted_before_flows_are_opened() {
    needs_root!();
    let hosts = JoinedNamespaces::new();
    let idle = ["measure", "idle", "-n", "200", "--time", "100ms"];
    let why = hosts.refused(&["prlimit", "--nofile=96:96", "--"], &idle);
    assert!(why.contains("200 connections need ") && why.contains("ulimit -n "), "{why}");
    let many = [STREAM, &["-P", "128"]].concat();
    let why = hosts.refused(&["prlimit", "--nofile=96:96", "--"], &many);
    assert!(why.contains("128 connections need ") && why.contains("ulimit -n "), "{why}");
    let few = "net.ipv4.ip_local_port_range=40000 40050";
    sh(&format!("ip netns exec {} sysctl -qw '{few}'", hosts.ns("a")));
    let why = hosts.refused(&[], &idle);
    assert!(why.contains("net.ipv4.ip_local_port_range (40000-40050) has 51"), "{why}");
    // Flows of a stream have assigned source ports, so the range does not limit them.
    let report = hosts.json(&[STREAM, &["-P", "60"]].concat());
    assert_eq!(report["streams"][0]["flow_rate_bps"].as_array().map(Vec::len), Some(60));
}

#[test]
fn multipath_tcp_that_fell_back_is_not_called_so() {
    needs_nft!();
    let hosts = JoinedNamespaces::new();
    let mptcp = [STREAM, &["--transport", "mptcp"]].concat();
    let output = hosts.landspeed(&[], &mptcp);
    if text(&output).1.contains("opens no Multipath TCP socket") {
        return skip("the kernel has no Multipath TCP");
    }
    assert!(output.status.success(), "{output:?}");
    hosts.filter("prerouting priority -300", "policy accept; tcp option mptcp exists drop;");
    let why = hosts.refused(&[], &mptcp);
    assert!(why.contains("transport: asked for mptcp, got tcp"), "{why}");
    let grid = [&mptcp[..2], &["--time", "100ms", "--vary", "transport=tcp,mptcp", "--blocks", "2"]].concat();
    let report = hosts.json(&grid);
    let cells = report["figures"][0]["cells"].as_array().expect("cells");
    let trials: Vec<_> = cells.iter().map(|cell| cell["trials"].as_u64()).collect();
    assert_eq!(trials, [Some(2), Some(0)], "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("transport=mptcp: 2 of 2 trials failed") && notes.contains("got tcp"), "{notes}");
}

#[test]
fn lost_syns_are_in_the_set_up_times() {
    needs_nft!();
    let hosts = JoinedNamespaces::new();
    // Most SYNs after the first few are dropped.
    hosts.filter(
        INPUT,
        "policy accept; tcp flags & (syn|ack) == syn limit rate over 20/second burst 10 packets drop;",
    );
    let report = hosts.json(&["measure", "connect", "--time", "1500ms"]);
    let set_up = &report["latency"][0];
    assert!(set_up["beyond_1s"].as_u64() >= Some(1), "{report}");
    assert!(set_up["max_ns"].as_u64() > Some(1_000_000_000), "{report}");
    let figures = report["figures"][0]["figures"].to_string();
    assert!(figures.contains("SYNs sent again"), "{report}");
    let (out, _) = text(&hosts.landspeed(&[], &["measure", "connect", "--time", "1s"]));
    assert!(out.contains("over 1 s") && out.contains("max"), "{out}");
}
