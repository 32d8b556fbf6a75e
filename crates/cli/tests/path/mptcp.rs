//! Tests of Multipath TCP below programs.

use serde_json::Value;

use crate::namespaces::Namespaces;
use crate::run::{TestServer, can, client, counts};
use crate::support::{self, text};

#[test]
fn sockets_become_those_of_multipath_tcp_and_the_program_does_not_see_it() {
    if !can("mptcp") {
        return;
    }
    let server = TestServer::start(Some("mptcp"), 20);
    let seen = client(Some("mptcp"), &format!("ask {} 20 300000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");

    let server = TestServer::start(Some("mptcp"), 1);
    client(Some("mptcp"), &format!("ask-without-waiting {}", server.port));
    assert_eq!(server.counts()["carried"], 1);
}

#[test]
fn a_connection_is_counted_once_however_often_its_program_calls_connect() {
    if can("mptcp") {
        let server = TestServer::start(Some("mptcp"), 1);
        let seen = client(Some("mptcp"), &format!("ask-twice-without-waiting {}", server.port));
        assert_eq!((&seen["carried"], &seen["left"]), (&1.into(), &serde_json::json!({})), "{seen}");
    }
}

#[test]
fn calls_that_signals_end_are_made_again() {
    if can("mptcp") {
        let seen = client(Some("mptcp"), "ask-itself-in-signals 300");
        // A signal may end a call while it is being counted. The connection may then be counted twice or not at all.
        let carried = seen["carried"].as_u64().expect("a number");
        assert!(carried.abs_diff(600) <= 6 && seen["left"] == serde_json::json!({}), "{seen}");
    }
}

#[test]
fn multipath_tcp_with_an_end_that_speaks_tcp_is_counted_as_a_fallback() {
    if !can("mptcp") {
        return;
    }
    let server = TestServer::start(None, 3);
    let seen = client(Some("mptcp"), &format!("ask {} 3 100000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]["plain-peer"]), (&0.into(), &3.into()), "{seen}");

    let server = TestServer::start(Some("mptcp"), 3);
    client(None, &format!("ask {} 3 100000", server.port));
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["plain-peer"]), (&0.into(), &3.into()), "{seen}");
}

/// Adds a second link between the namespaces. Shapers limit the rate of both, so that neither link alone can carry all
/// data.
fn join_again(Namespaces([a, b]): &Namespaces) {
    support::sh(&format!("ip link add v1 netns {a} type veth peer name v1 netns {b}"));
    for (name, number) in [(a, 1), (b, 2)] {
        for command in [
            format!("ip -n {name} addr add 10.99.8.{number}/24 dev v1"),
            format!("ip -n {name} link set v1 up"),
            format!("tc -n {name} qdisc add dev v0 root tbf rate 200mbit burst 64kb latency 50ms"),
            format!("tc -n {name} qdisc add dev v1 root tbf rate 200mbit burst 64kb latency 50ms"),
            // Without checksums, Linux 6.18 delivered wrong bytes in 1 of 150 such connections, even without
            // landspeed.
            format!("ip netns exec {name} sysctl -qw net.mptcp.checksum_enabled=1"),
            format!("ip -n {name} mptcp limits set subflow 2 add_addr_accepted 2"),
        ] {
            support::sh(&command);
        }
    }
    support::sh(&format!("ip -n {b} mptcp endpoint add 10.99.8.2 dev v1 subflow"));
}

#[test]
fn multipath_tcp_carries_a_program_over_two_links() {
    if !support::root() || !can("mptcp") {
        return;
    }
    let namespaces = Namespaces::new("links");
    join_again(&namespaces);
    let over = Some("mptcp");
    let server = TestServer::of(namespaces.command(0, "10.99.7.1", over, "serve 5 0"));
    let sent = |link: &str| {
        let links = support::sh(&format!("ip -n {} -s -j link show {link}", namespaces.0[1]));
        let links: Value = serde_json::from_str(&links).expect("JSON");
        links[0]["stats64"]["tx"]["bytes"].as_u64().expect("a count")
    };
    // A server that is not ready refuses a second subflow, and the kernel does not retry. Not all connections therefore
    // have a second subflow.
    let does = format!("ask {} 5 4000000", server.port);
    let out = namespaces.command(1, "10.99.7.1", over, &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(counts(&err)["carried"], 5, "{err}");
    assert_eq!(server.counts()["carried"], 5);
    for link in ["v0", "v1"] {
        assert!(sent(link) > 1_000_000, "{link} carried {}", sent(link));
    }
}
