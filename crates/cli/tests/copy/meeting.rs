//! How the ends of a copy meet behind firewalls, and how a relayed copy survives a break of its path.

use std::process::Child;
use std::time::Instant;

use super::*;
use crate::support::{output, skip};

/// Rules of a firewall that accepts logins, replies, and the host's own traffic. It drops other packets silently.
const SILENT: &str = "iif lo accept; ct state established,related accept; tcp dport 22 accept;";
/// The same rules, but other packets get an answer, so that connections fail immediately instead of timing out.
/// Neighbour discovery is accepted.
const TELLING: &str = "iif lo accept; ct state established,related accept; tcp dport 22 accept; \
    meta l4proto ipv6-icmp accept; reject with icmpx type admin-prohibited;";

/// Returns the command that adds a firewall with these rules to the namespace in which it runs.
fn nft(rules: &str) -> String {
    format!("nft 'table inet f {{ chain c {{ type filter hook input priority 0; policy drop; {rules} }}; }}'")
}

/// Ends a test, as skipped, if it cannot make namespaces and firewalls.
macro_rules! needs_nft {
    () => {
        needs_root!();
        if !output(&format!("unshare --net {}", nft(TELLING))).status.success() {
            return skip("no firewall can be made: there is no nft, or the kernel lacks what it takes");
        }
    };
}

/// Adds a firewall to a host, in place of an existing one.
fn shut(hosts: &TestHosts, name: &str, rules: &str) {
    let within = format!("ip netns exec {}", hosts.ns(name));
    sh(&format!("set -e; {within} nft flush ruleset; {within} {}", nft(rules)));
}

/// Returns hosts, of which the named ones have a firewall with these rules, and a tree to copy.
fn shut_hosts(names: &[&str], rules: &str) -> TestHosts {
    let hosts = TestHosts::new();
    tree(&hosts.file("src"));
    names.iter().for_each(|name| shut(&hosts, name, rules));
    hosts
}

/// Returns the arguments of a copy of the tree: its path at host a, and this folder of host b.
fn from_a_to_b(hosts: &TestHosts, to: &str) -> [String; 2] {
    [format!("{A}:{}", hosts.file("src/").display()), format!("{B}:{}", hosts.file(to).display())]
}

/// Checks whether this machine relayed a copy of the tree.
fn has_copied(done: &Value, is_relayed: bool) {
    assert_eq!((&done["copied"], &done["is_relayed"]), (&Value::from(2), &Value::from(is_relayed)), "{done}");
}

#[test]
fn the_target_opens_the_flows_where_the_source_does_not_reach_it() {
    needs_nft!();
    let hosts = shut_hosts(&["b"], SILENT);
    let [from, to] = from_a_to_b(&hosts, "to0");
    has_copied(&document(&hosts, &["--direct", &from, &to]), false);
    is_same(&hosts.file("src"), &hosts.file("to0"));
    shut(&hosts, "b", TELLING);
    ended(&hosts, &["--verify", "--direct", &from, &to], "copy-verify", 0);
    // The source is on this machine.
    let [from, to] = [hosts.file("src/").display().to_string(), from_a_to_b(&hosts, "to1")[1].clone()];
    has_copied(&document(&hosts, &["--direct", &from, &to]), false);
    is_same(&hosts.file("src"), &hosts.file("to1"));
}

#[test]
fn data_pass_through_this_machine_where_neither_host_reaches_the_other() {
    needs_nft!();
    let hosts = shut_hosts(&["a", "b"], TELLING);
    let [from, to] = from_a_to_b(&hosts, "to");

    let (out, err) = text(&copy(&hosts, &["--direct", &from, &to]));
    let errors: Vec<&str> = err.lines().filter(|line| line.starts_with("landspeed: ")).collect();
    assert_eq!(errors.len(), 1, "{out}{err}");
    assert!(errors[0].contains(&format!("no data path from {A} to {B}: ")), "{err}");
    let remedy = "--direct needs one host that accepts TCP connections of the other, at any port";
    assert!(errors[0].contains(remedy), "{err}");
    assert!(!hosts.file("to").exists());

    ["a", "b"].iter().for_each(|name| shut(&hosts, name, SILENT));
    let output = copy(&hosts, &["--json", &from, &to]);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    let done = checked("copy", &out);
    has_copied(&done, true);
    for spent in ["relayed_ns", "source_processor_ns", "target_processor_ns", "handing_ns"] {
        assert!(done["stages"]["relay"][spent].as_u64() > Some(0), "{spent}: {done}");
    }
    let said = format!("neither {A} nor {B} reaches the other: data pass through this machine, ");
    assert_eq!(err.matches(&said).count(), 1, "{err}");
    assert!(err.find(&said) < err.find(" -> "), "it is said first: {err}");
    is_same(&hosts.file("src"), &hosts.file("to"));
    ["a", "b"].iter().for_each(|name| shut(&hosts, name, TELLING));
    ended(&hosts, &["--verify", &from, &to], "copy-verify", 0);
}

/// A relay uses any kind of session, here those of agents that landspeed starts on its own machine.
#[test]
fn data_are_relayed_between_hosts_without_ssh_too() {
    needs_nft!();
    let hosts = shut_hosts(&["a", "b"], TELLING);
    let [a, b] = ["a", "b"].map(|host| format!("netns:{}", hosts.ns(host)));
    let [from, to] = ["src/", "to"].map(|name| hosts.file(name).display().to_string());
    has_copied(&document(&hosts, &["--from", &a, "--to", &b, "--flows", "64", &from, &to]), true);
    is_same(&hosts.file("src"), &hosts.file("to"));
}

#[test]
fn a_copy_takes_the_ports_that_a_firewall_lets_in() {
    needs_nft!();
    let hosts = shut_hosts(&["a"], TELLING);
    let open = ["tcp", "udp"].map(|protocol| format!("{protocol} dport 5000-5007 accept; ")).concat();
    shut(&hosts, "b", &format!("{open}{TELLING}"));
    for name in ["tcp", "quic"] {
        let [from, to] = from_a_to_b(&hosts, name);
        let all = ["--direct", "--transport", name, "--ports", "5000-5007", &from, &to];
        has_copied(&document(&hosts, &all), false);
        is_same(&hosts.file("src"), &hosts.file(name));
    }
    // The firewall drops other ports.
    let [from, to] = from_a_to_b(&hosts, "other");
    let output = copy(&hosts, &["--direct", "--ports", "6000-6063", &from, &to]);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("no data path from"), "{err}");
}

/// A relay carries only TCP. Multipath TCP falls back to TCP there.
#[test]
fn a_relay_refuses_what_is_not_tcp_and_names_what_fell_back() {
    needs_nft!();
    let hosts = shut_hosts(&["a", "b"], TELLING);
    let [from, to] = from_a_to_b(&hosts, "to");
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
        let lines = done["not_as_asked"].as_array().expect("a list").iter();
        let fell_back =
            lines.filter(|line| line.as_str().is_some_and(|line| line.contains("asked for mptcp, got tcp")));
        assert_eq!((fell_back.count(), &done["is_relayed"]), (2, &Value::from(true)), "{done}");
        is_same(&hosts.file("src"), &hosts.file("to"));
    }
}

/// Begins a relayed copy of a long file with this patience over a slow path. Returns once much of the file has arrived.
fn relayed_copy(hosts: &TestHosts, patience: &str) -> Child {
    fs::write(hosts.file("src/long"), long_content()).unwrap();
    slow_path(hosts, "40mbit");
    let [from, to] = from_a_to_b(hosts, "dst");
    let mut command = command(hosts, &["--json", "--patience", patience, &from, &to]);
    let copying = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let has_begun = || has_part(&hosts.file("dst"), 4_096);
    assert!(within(Duration::from_secs(90), has_begun), "the copy does not begin");
    copying
}

/// Cuts or restores the path between this machine and host b.
fn set_path(hosts: &TestHosts, state: &str) {
    sh(&format!("ip -n {} link set pb {state}", hosts.ns("ctl")));
}

#[test]
fn a_relayed_copy_outlasts_a_cut_of_its_path() {
    needs_nft!();
    let hosts = shut_hosts(&["a", "b"], TELLING);
    let copying = relayed_copy(&hosts, "2s");
    set_path(&hosts, "down");
    // This is longer than the patience, and shorter than ten times the patience.
    std::thread::sleep(Duration::from_secs(3));
    sh(&format!("tc -n {} qdisc del dev pb root", hosts.ns("ctl")));
    set_path(&hosts, "up");
    let output = copying.wait_with_output().expect("it ends");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(checked("copy", &out)["is_relayed"], true, "{out}");
    assert!(fs::read(hosts.file("dst/long")).unwrap() == long_content(), "the content differs");
}

#[test]
fn a_relayed_copy_whose_path_stays_cut_ends_at_both_ends() {
    needs_nft!();
    let hosts = shut_hosts(&["a", "b"], TELLING);
    let mut copying = relayed_copy(&hosts, "2s");
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
