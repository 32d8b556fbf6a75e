//! Tests of programs in several network namespaces.

use std::process::{Command, Stdio};

use crate::run::{PATIENT, TestServer, carries, command, counts};
use crate::support::{self, text};
use crate::{ADDRESS, PROGRAM};

/// Two network namespaces of a test, on one network.
pub(crate) struct Namespaces(pub(crate) [String; 2]);

impl Namespaces {
    /// Creates the namespaces of `test`. Their names are unique, because other tests run at the same time.
    pub(crate) fn new(test: &str) -> Self {
        let names = ["a", "b"].map(|end| format!("path-{}-{test}-{end}", std::process::id()));
        let [a, b] = &names;
        for command in [
            format!("ip netns add {a}"),
            format!("ip netns add {b}"),
            format!("ip link add v0 netns {a} type veth peer name v0 netns {b}"),
            format!("ip -n {a} addr add 10.99.7.1/24 dev v0"),
            format!("ip -n {b} addr add 10.99.7.2/24 dev v0"),
        ] {
            support::sh(&command);
        }
        for name in &names {
            support::sh(&format!("ip -n {name} link set lo up"));
            support::sh(&format!("ip -n {name} link set v0 up"));
        }
        Namespaces(names)
    }

    /// Returns a command that runs the program in one of the namespaces.
    pub(crate) fn command(&self, at: usize, address: &str, over: Option<&str>, does: &str) -> Command {
        let inner = command(over, does);
        let mut outer = Command::new("ip");
        outer.args(["netns", "exec", &self.0[at]]).arg(inner.get_program()).args(inner.get_args());
        outer.env(PROGRAM, does).env(ADDRESS, address);
        outer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        outer
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

#[test]
fn two_network_namespaces_are_one_host_and_equal_addresses_in_them_are_two() {
    if !support::root() || !carries() {
        return;
    }
    let namespaces = Namespaces::new("hosts");
    let local = Some("local");
    let server = TestServer::of(namespaces.command(0, "10.99.7.1", local, "serve 5 0"));
    let does = format!("ask {} 5 100000", server.port);
    let out = namespaces.command(1, "10.99.7.1", Some(PATIENT), &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(counts(&err)["carried"], 5, "{err}");
    assert_eq!(server.counts()["carried"], 5);

    // Both namespaces have a server at the same address and port. Only the server in the other namespace runs over the
    // path.
    let other = TestServer::of(namespaces.command(0, "127.0.0.1", local, "serve 100 0"));
    let own = TestServer::of(namespaces.command(1, "127.0.0.1", None, &format!("serve 3 {}", other.port)));
    let does = format!("ask {} 3 100000", own.port);
    let out = namespaces.command(1, "127.0.0.1", local, &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(
        (&counts(&err)["carried"], &counts(&err)["left"]["not-accepted"]),
        (&0.into(), &3.into()),
        "{err}"
    );
}

/// The capabilities to drop, without which a process cannot look up a socket in another network namespace.
const LOOKS: &str = "-bpf,-sys_admin,-net_admin";

#[test]
fn without_rights_connections_between_namespaces_are_carried_where_addresses_are_said_to_be_unique() {
    if !support::root() || !carries() {
        return;
    }
    let namespaces = Namespaces::new("rights");
    let over = |at: usize, path: &str, net: &str, does: &str| {
        let inner = command(Some(path), does);
        let mut outer = Command::new("ip");
        outer.args([
            "netns",
            "exec",
            &namespaces.0[at],
            "setpriv",
            "--bounding-set",
            LOOKS,
            "--inh-caps",
            LOOKS,
        ]);
        outer.arg(inner.get_program()).args(inner.get_args());
        outer.env(PROGRAM, does).env(ADDRESS, "10.99.7.1").env("LANDSPEED_PATH_NET", net);
        outer.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        outer
    };
    for (nets, clients, servers) in [
        (["one", "one"], "/carried", "/carried"),
        (["one", "other"], "/left/other-namespace", "/left/stranger"),
        (["", ""], "/left/other-namespace", "/left/stranger"),
    ] {
        let server = TestServer::of(over(0, "local", nets[0], "serve 5 0"));
        let path = if clients == "/carried" { PATIENT } else { "local" };
        let does = format!("ask {} 5 10000", server.port);
        let out = over(1, path, nets[1], &does).output().expect("it runs");
        let (said, err) = text(&out);
        assert!(out.status.success(), "{said}{err}");
        let (client, server) = (counts(&err), server.counts());
        let both = (client.pointer(clients), server.pointer(servers));
        assert_eq!(both, (Some(&5.into()), Some(&5.into())), "{nets:?}: {client} {server}");
    }
}
