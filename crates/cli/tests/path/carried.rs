//! Tests of which connections `local` carries, which it does not, and what it counts.

use std::process::Command;

use crate::PROGRAM;
use crate::run::{PATIENT, TestServer, can, carries, client, command, counts, run};
use crate::support::{self, LANDSPEED, text};

#[test]
fn programs_that_both_run_over_the_path_are_carried_and_see_the_addresses_of_tcp() {
    if !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 20);
    let port = server.port;
    let seen = client(Some(PATIENT), &format!("ask {port} 20 300000"));
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&20.into(), &serde_json::json!({})), "{seen}");
}

#[test]
fn a_connection_without_a_peer_on_the_path_stays_on_tcp_and_is_counted_with_the_reason() {
    if !carries() {
        return;
    }
    let server = TestServer::start(None, 3);
    let does = format!("ask {} 3 100000", server.port);
    let seen = client(Some("local"), &does);
    assert_eq!((&seen["carried"], &seen["left"]["no-peer"]), (&0.into(), &3.into()), "{seen}");

    let server = TestServer::start(Some("local"), 3);
    client(None, &format!("ask {} 3 100000", server.port));
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["stranger"]), (&0.into(), &3.into()), "{seen}");
}

#[test]
fn a_socket_that_is_more_than_one_descriptor_stays_on_tcp() {
    if !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 2);
    for (does, why) in [("ask-in-epoll", "in-epoll"), ("ask-duplicated", "duplicated")] {
        let seen = client(Some("local"), &format!("{does} {}", server.port));
        assert_eq!((&seen["carried"], &seen["left"][why]), (&0.into(), &1.into()), "{seen}");
    }
}

#[test]
fn connections_that_were_not_chosen_stay_on_tcp_and_are_not_counted() {
    if !carries() {
        return;
    }
    let server = TestServer::start(Some("local"), 5);
    let does = format!("ask {} 1 100000", server.port);
    let over = |only: &str| {
        let seen = client(Some(&format!("{PATIENT} {only}")), &does);
        assert_eq!(seen["left"], serde_json::json!({}), "{seen}");
        seen["carried"].as_u64().expect("a count")
    };
    assert_eq!(over(&format!("--only {}", server.port)), 1);
    assert_eq!(over("--only 1 --only 127.0.0.0/8 --require"), 1);
    assert_eq!(over("--only 1"), 0);
    assert_eq!(over("--only 10.0.0.0/8 --only fd00::/8"), 0);
    assert_eq!(over("--only ::ffff:127.0.0.1"), 1);
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["stranger"]), (&3.into(), &2.into()), "{seen}");

    // If the accepting end does not select the connection, the other end immediately continues over TCP.
    let server = TestServer::start(Some("local --only 10.0.0.0/8 --only 1"), 2);
    let seen = client(Some("local"), &format!("ask {} 2 100000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]["not-accepted"]), (&0.into(), &2.into()), "{seen}");
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]), (&0.into(), &serde_json::json!({})), "{seen}");
}

#[test]
fn a_choice_that_is_none_or_that_a_path_cannot_make_is_refused() {
    for (over, says) in [
        ("local --only 70000", "a port is a number from 1 to 65535"),
        ("local --only http", "this is neither a port (6379) nor a network"),
        ("local --only 10.0.0.1/8", "write 10.0.0.0/8"),
        ("mptcp --only 80", "mptcp cannot choose between connections: a socket is made before"),
        ("smc --only 80", "smc cannot choose between connections: a socket is made before"),
        ("rsocket --only 80", "rsocket cannot choose between connections: its library takes every socket"),
    ] {
        let out = run(Some(over), "ask 1 0 0");
        let (_, err) = text(&out);
        assert!(!out.status.success() && err.contains(says), "{over}: {err}");
    }
}

#[test]
fn bytes_of_carried_connections_are_counted() {
    if !support::root() {
        return;
    }
    for path in ["local", "mptcp"].into_iter().filter(|path| can(path)) {
        let over = format!("{} --bytes", if path == "local" { PATIENT } else { path });
        let server = TestServer::start(Some(&over), 4);
        let seen = client(Some(&over), &format!("ask {} 3 300000", server.port));
        if let Some(why) = seen["no_bytes"].as_str() {
            return support::skip(why);
        }
        assert_eq!(
            (&seen["bytes_sent"], &seen["bytes_received"]),
            (&900_000.into(), &900_000.into()),
            "{seen}"
        );
        if path == "mptcp" {
            let seen = client(Some(&over), &format!("ask-without-waiting {}", server.port));
            assert_eq!((&seen["bytes_sent"], &seen["bytes_received"]), (&1.into(), &1.into()), "{seen}");
        } else {
            client(Some(&over), &format!("ask {} 1 1", server.port));
        }
        let seen = server.counts();
        assert_eq!(
            (&seen["bytes_sent"], &seen["bytes_received"]),
            (&900_001.into(), &900_001.into()),
            "{seen}"
        );
        // The bytes of connections that stay on TCP are not counted.
        let server = TestServer::start(None, 1);
        let seen = client(Some(&over), &format!("ask {} 1 1000", server.port));
        assert_eq!((&seen["bytes_sent"], &seen["bytes_received"]), (&0.into(), &0.into()), "{seen}");
    }
}

#[test]
fn if_bytes_cannot_be_counted_connections_are_and_the_reason_is_printed() {
    if !support::root() || !carries() {
        return;
    }
    // Root without any capabilities.
    let ours = command(Some("local --bytes"), "ask 1 0 0");
    let mut without = Command::new("setpriv");
    without.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(ours.get_program()).args(ours.get_args());
    let out = without.env(PROGRAM, "ask 1 0 0").output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    let seen = counts(&err);
    assert!(seen["no_bytes"].as_str().is_some_and(|why| why.contains("run landspeed as root")), "{seen}");
    assert_eq!((&seen["carried"], seen.get("bytes_sent")), (&0.into(), None), "{seen}");
}

#[test]
fn require_fails_where_a_connection_stayed_on_tcp() {
    let why = [
        ("local", "no program on this host that runs over this path listens there"),
        ("mptcp", "the other end, or something on the way, does not speak Multipath TCP"),
        ("smc", "the other end, or something on the way, does not speak SMC"),
    ];
    for (path, why) in why.into_iter().filter(|(path, _)| can(path)) {
        let server = TestServer::start(None, 1);
        let own = std::env::current_exe().expect("this program");
        let mut required = Command::new(LANDSPEED);
        required.args(["exec", "--path", path, "--require", "--"]).arg(own);
        required.args(["--exact", "program", "--nocapture"]);
        let out = required.env(PROGRAM, format!("ask {} 1 10", server.port)).output().expect("it runs");
        let (_, err) = text(&out);
        assert_eq!(out.status.code(), Some(1), "{err}");
        assert!(err.contains(&format!("{path} carried 0 of 1 connection\n")), "{err}");
        assert!(err.contains(&format!("1 stayed on TCP: {why}")), "{err}");
    }
}
