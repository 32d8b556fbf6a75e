//! How the ends of a copy meet behind firewalls, and what a relayed copy does while its path is cut.

use std::process::Child;
use std::time::Instant;

use super::*;
use crate::support::{output, skip};

const A: &str = "root@10.99.0.2";
const B: &str = "root@10.99.0.3";
/// A firewall that lets in only logins, replies, and what a host sends to itself.
const FIREWALL: &str = "table inet f { chain c { type filter hook input priority 0; policy drop; iif lo accept; \
    ct state established,related accept; tcp dport 22 accept; }; }";

/// Ends a test, as skipped, if it cannot make namespaces and firewalls.
macro_rules! needs_nft {
    () => {
        needs_root!();
        if !output(&format!("unshare --net nft '{FIREWALL}'")).status.success() {
            return skip("no firewall can be made: there is no nft, or the kernel lacks what it takes");
        }
    };
}

/// Gives hosts the firewall.
fn shut(hosts: &TestHosts, names: &[&str]) {
    names.iter().for_each(|name| drop(sh(&format!("ip netns exec {} nft '{FIREWALL}'", hosts.ns(name)))));
}

#[test]
fn the_target_opens_the_flows_where_the_source_does_not_reach_it() {
    needs_nft!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    shut(&hosts, &["b"]);
    for (number, from) in [format!("{A}:"), String::new()].into_iter().enumerate() {
        let to = format!("to{number}");
        let (from, there) = (format!("{from}{}", at("src/")), format!("{B}:{}", at(&to)));
        let done = document(&hosts, &["--direct", &from, &there]);
        assert_eq!((&done["copied"], &done["is_relayed"]), (&Value::from(2), &Value::from(false)), "{done}");
        is_same(&hosts.file("src"), &hosts.file(&to));
    }
    let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at("to0")));
    ended(&hosts, &["--verify", "--direct", &from, &to], "copy-verify", 0);
}

#[test]
fn data_pass_through_this_machine_where_neither_host_reaches_the_other() {
    needs_nft!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    shut(&hosts, &["a", "b"]);
    let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at("to")));

    let (out, err) = text(&copy(&hosts, &["--direct", &from, &to]));
    let errors: Vec<&str> = err.lines().filter(|line| line.starts_with("landspeed: ")).collect();
    assert_eq!(errors.len(), 1, "{out}{err}");
    assert!(errors[0].contains(&format!("no data path from {A} to {B}: ")), "{err}");
    let remedy = "--direct needs one host that accepts TCP connections of the other, at any port";
    assert!(errors[0].contains(remedy), "{err}");
    assert!(!hosts.file("to").exists());

    let output = copy(&hosts, &["--json", &from, &to]);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    let done = checked("copy", &out);
    assert_eq!((&done["copied"], &done["is_relayed"]), (&Value::from(2), &Value::from(true)), "{done}");
    for spent in ["relayed_ns", "source_processor_ns", "target_processor_ns", "handing_ns"] {
        assert!(done["stages"]["relay"][spent].as_u64() > Some(0), "{spent}: {done}");
    }
    let said = format!("neither {A} nor {B} reaches the other: data pass through this machine, ");
    assert_eq!(err.matches(&said).count(), 1, "{err}");
    assert!(err.find(&said) < err.find(" -> "), "it is said first: {err}");
    is_same(&hosts.file("src"), &hosts.file("to"));
    ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
}

/// A relay takes whatever session there is: here those of agents that landspeed starts on its own machine.
#[test]
fn data_are_relayed_between_hosts_without_ssh_too() {
    needs_nft!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    shut(&hosts, &["a", "b"]);
    let [a, b] = ["a", "b"].map(|host| format!("netns:{}", hosts.ns(host)));
    let done = document(&hosts, &["--from", &a, "--to", &b, "--flows", "64", &at("src/"), &at("to")]);
    assert_eq!((&done["copied"], &done["is_relayed"]), (&Value::from(2), &Value::from(true)), "{done}");
    is_same(&hosts.file("src"), &hosts.file("to"));
}

/// Gives a host the firewall, with these ports open for TCP and UDP.
fn open_ports(hosts: &TestHosts, name: &str, ports: &str) {
    let rules = ["tcp", "udp"].map(|protocol| format!("{protocol} dport {ports} accept; ")).concat();
    let firewall = FIREWALL.replace("tcp dport 22 accept; ", &format!("tcp dport 22 accept; {rules}"));
    sh(&format!("ip netns exec {} nft '{firewall}'", hosts.ns(name)));
}

#[test]
fn a_copy_takes_the_ports_that_a_firewall_lets_in() {
    needs_nft!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    shut(&hosts, &["a"]);
    open_ports(&hosts, "b", "5000-5007");
    for name in ["tcp", "quic"] {
        let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at(name)));
        let all = ["--direct", "--transport", name, "--ports", "5000-5007", &from, &to];
        let done = document(&hosts, &all);
        assert_eq!((&done["copied"], &done["is_relayed"]), (&Value::from(2), &Value::from(false)), "{done}");
        is_same(&hosts.file("src"), &hosts.file(name));
    }
    // Other ports are shut.
    let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at("other")));
    let output = copy(&hosts, &["--direct", "--ports", "6000-6063", &from, &to]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("no data path from"), "{err}");
}

/// A relay carries TCP alone. Multipath TCP falls back to TCP there.
#[test]
fn a_relay_refuses_what_is_not_tcp_and_names_what_fell_back() {
    needs_nft!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    tree(&hosts.file("src"));
    shut(&hosts, &["a", "b"]);
    let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at("to")));
    for name in ["udt", "quic", "unix"] {
        let output = copy(&hosts, &["--transport", name, &from, &to]);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {out}{err}");
        assert!(err.contains("this machine, which relays TCP: leave --transport out"), "{name}: {err}");
    }
    assert!(!hosts.file("to").exists());
    let mptcp = landspeed_transport::find("tls-mptcp").expect("a transport");
    if mptcp.can_run(&landspeed_transport::settings::defaults(mptcp)).is_ok() {
        let done = document(&hosts, &["--transport", "mptcp", &from, &to]);
        let told = done["not_as_asked"].as_array().expect("a list").iter();
        let fell_back =
            told.filter(|line| line.as_str().is_some_and(|line| line.contains("asked for mptcp, got tcp")));
        assert_eq!((fell_back.count(), &done["is_relayed"]), (2, &Value::from(true)), "{done}");
        is_same(&hosts.file("src"), &hosts.file("to"));
    }
}

/// Begins a relayed copy of a long file with this patience, over a slow path, and returns once much of it is there.
fn relayed_copy(hosts: &TestHosts, bytes: &[u8], patience: &str) -> Child {
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("src")).unwrap();
    fs::write(hosts.file("src/long"), bytes).unwrap();
    shut(hosts, &["a", "b"]);
    sh(&format!("tc -n {} qdisc add dev pb root tbf rate 40mbit burst 100k latency 50ms", hosts.ns("ctl")));
    let (from, to) = (format!("{A}:{}", at("src/")), format!("{B}:{}", at("dst")));
    let mut command = command(hosts, &["--json", "--patience", patience, &from, &to]);
    let copying = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let has_part = || {
        let entries = fs::read_dir(hosts.file("dst/.landspeed-copy")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).any(|seen| seen.blocks() > 4_096)
    };
    assert!(within(Duration::from_secs(90), has_part), "the copy does not begin");
    copying
}

fn long_content() -> Vec<u8> {
    (0..40_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Cuts the path between this machine and host b, or mends it.
fn set_path(hosts: &TestHosts, state: &str) {
    sh(&format!("ip -n {} link set pb {state}", hosts.ns("ctl")));
}

#[test]
fn a_relayed_copy_outlasts_a_cut_of_its_path() {
    needs_nft!();
    let (hosts, bytes) = (TestHosts::new(), long_content());
    let copying = relayed_copy(&hosts, &bytes, "2s");
    set_path(&hosts, "down");
    // More than the patience, and less than ten times as much.
    std::thread::sleep(Duration::from_secs(5));
    set_path(&hosts, "up");
    let output = copying.wait_with_output().expect("it ends");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(checked("copy", &out)["is_relayed"], true, "{out}");
    assert!(fs::read(hosts.file("dst/long")).unwrap() == bytes, "the content differs");
}

#[test]
fn a_relayed_copy_whose_path_stays_cut_ends_at_both_ends() {
    needs_nft!();
    let hosts = TestHosts::new();
    let mut copying = relayed_copy(&hosts, &long_content(), "2s");
    let are_gone = || ["a", "b"].iter().all(|host| hosts.pids(host, "agent --stdio").is_empty());
    assert!(!are_gone());
    set_path(&hosts, "down");
    let begun = Instant::now();
    let ended = loop {
        match copying.try_wait().expect("it is a child") {
            Some(status) => break status,
            None => assert!(begun.elapsed() < Duration::from_secs(120), "the copy does not end"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(ended.code(), Some(1));
    assert!(within(Duration::from_secs(120), are_gone), "an agent stays");
    assert!(!hosts.file("dst/long").exists() && hosts.file("dst/.landspeed-copy").exists());
}
