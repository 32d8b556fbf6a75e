//! Tests that `measure` and `explain` report why a path carries nothing.

mod support;

use std::process::{Command, Output};

/// The namespaces of a path; removed on drop.
struct PathNamespaces {
    name: String,
}

impl PathNamespaces {
    /// Creates A and B with a host between them: a switch that carries at most 1500 bytes, or a router that
    /// fragments.
    fn new(kind: &str, words: impl Fn(&str) -> Vec<String>) -> PathNamespaces {
        let path = PathNamespaces { name: format!("ls{kind}{}", std::process::id()) };
        let name = &path.name;
        for host in ["a", "b", "r"] {
            sh(&format!("ip netns add {name}{host}; ip -n {name}{host} link set lo up"));
        }
        words(name).iter().for_each(|words| sh(words));
        path
    }

    fn hosts(&self) -> [String; 2] {
        ["a", "b"].map(|host| format!("netns:{}{host}", self.name))
    }
}

impl Drop for PathNamespaces {
    fn drop(&mut self) {
        let names = ["a", "b", "r"].map(|host| format!("ip netns del {}{host}", self.name));
        let _ = Command::new("sh").args(["-c", &names.join("; ")]).status();
    }
}

fn sh(words: &str) {
    let status = Command::new("sh").args(["-ec", words]).status().expect("a shell");
    assert!(status.success(), "{words}");
}

/// Joins both ends through a bridge whose ports carry 1500 bytes, while the ends send 4000.
fn black_hole(n: &str) -> Vec<String> {
    let ends = ["a 1", "b 2"].map(|end| {
        let (host, number) = end.split_once(' ').expect("two words");
        format!(
            "ip -n {n}{host} link add e mtu 4000 type veth peer name {host} netns {n}r; ip -n {n}r link set dev {host} master br up \
             mtu 1500; ip -n {n}{host} addr add 10.79.0.{number}/24 dev e; ip -n {n}{host} link set dev e up; \
             ip netns exec {n}{host} ethtool -K e tso off gso off tx-udp-segmentation off"
        )
    });
    [format!("ip -n {n}r link add dev br type bridge; ip -n {n}r link set dev br up")]
        .into_iter()
        .chain(ends)
        .collect()
}

/// Joins both ends through a router whose link to B carries `mtu` bytes; `rules` are its firewall's.
fn routed(n: &str, mtu: u32, rules: &str) -> Vec<String> {
    let ends = ["a 1", "b 2"].map(|end| {
        let (host, number) = end.split_once(' ').expect("two words");
        format!(
            "ip -n {n}{host} link add e type veth peer name {host} netns {n}r; ip -n {n}r link set dev {host} up; \
             ip -n {n}r addr add 10.79.{number}.254/24 dev {host}; ip -n {n}{host} addr add 10.79.{number}.1/24 dev e; \
             ip -n {n}{host} link set dev e up; ip -n {n}{host} route add default via 10.79.{number}.254; \
             ip netns exec {n}{host} ethtool -K e tso off gso off tx-udp-segmentation off"
        )
    });
    let router = format!(
        "ip netns exec {n}r sysctl -qw net.ipv4.ip_forward=1; ip -n {n}r link set dev b mtu {mtu}; \
         printf '%s' '{rules}' | ip netns exec {n}r nft -f -"
    );
    ends.into_iter().chain([router]).collect()
}

const NO_ICMP: &str = "table inet f { chain o { type filter hook output priority 0; icmp type destination-unreachable drop; }; }";
const NO_FRAGMENTS: &str =
    "table ip f { chain p { type filter hook prerouting priority -450; ip frag-off & 0x3fff != 0 drop; }; }";

fn landspeed(words: &[&str], path: &PathNamespaces) -> Output {
    let [a, b] = path.hosts();
    let mut command = Command::new(env!("CARGO_BIN_EXE_landspeed"));
    command.args(words).args([&a, &b, "-4"]).output().expect("landspeed runs")
}

/// Returns the output of `measure`, which fails and prints its figures.
fn measured(path: &PathNamespaces, settings: &[&str]) -> String {
    let words = [&["measure", "stream", "--time", "1s"][..], settings].concat();
    let output = landspeed(&words, path);
    let (said, complaint) = support::text(&output);
    assert!(output.status.code() == Some(1) && said.contains("PARTIAL"), "{said}{complaint}");
    // Another test checks line breaks.
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first cause that `explain` names, and its sentence.
fn explained(path: &PathNamespaces) -> (String, String) {
    let output = landspeed(&["explain", "--time", "1s", "--no-limits", "--no-trace", "--json"], path);
    let (said, complaint) = support::text(&output);
    let report: serde_json::Value = serde_json::from_str(&said).expect(&complaint);
    let first = |member: &str| report["verdict"][0][member].as_str().unwrap_or_default().to_owned();
    assert!(output.status.success(), "{complaint}");
    (first("cause"), first("summary"))
}

#[test]
fn a_black_hole_blocked_icmp_and_dropped_fragments_are_named() {
    if !support::root() {
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let path = PathNamespaces::new("bh", black_hole);
            let said = "packets over 1500 bytes do not arrive: set mtu 1500, or mtu-probing";
            let measured = measured(&path, &[]);
            assert!(measured.contains(said), "{measured}");
            assert_eq!(explained(&path), ("mtu-black-hole".to_owned(), said.to_owned()));
        });
        scope.spawn(|| {
            let path = PathNamespaces::new("vy", black_hole);
            let words =
                ["measure", "stream", "--time", "1s", "--vary", "mtu=1500,4000", "--blocks", "2", "--yes"];
            let (said, complaint) = support::text(&landspeed(&words, &path));
            // Only the trials of the size that does not arrive fail. The other size has its figures.
            let why = "mtu=4000: 2 of 2 trials failed: the path carried nothing for";
            assert!(said.contains(why), "{said}{complaint}");
        });
        scope.spawn(|| {
            let path = PathNamespaces::new("ic", |n| routed(n, 1400, NO_ICMP));
            let (cause, said) = explained(&path);
            assert!(cause == "icmp-blocked" && said.contains("1400 bytes"), "{cause}: {said}");
        });
        scope.spawn(|| {
            let path = PathNamespaces::new("fr", |n| routed(n, 1500, NO_FRAGMENTS));
            let measured = measured(&path, &["--transport", "udp", "--set", "write-size=8192"]);
            assert!(measured.contains("fragments are dropped on the way"), "{measured}");
        });
    });
}
