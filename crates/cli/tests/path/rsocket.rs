//! Tests of rsockets below programs, and of what landspeed says where they cannot work.

use crate::run::{TestServer, can, client, command, command_after, counts, run};
use crate::support::text;

/// What landspeed says that a host lacks, in the order in which it looks.
const LACKS: [&str; 6] = [
    "install librdmacm1",
    "install a newer librdmacm",
    "install ibverbs-providers",
    "run `rdma link add rxe0 type rxe netdev IF`",
    "run `modprobe rdma_ucm`",
    "cannot open /dev/infiniband",
];

#[test]
fn a_host_that_cannot_carry_names_what_it_lacks() {
    let out = run(Some("rsocket"), "ask 1 0 0");
    let (_, err) = text(&out);
    let says = |lacks: &&str| err.contains(*lacks);
    assert!(out.status.success() || LACKS.iter().any(says), "{err}");
}

#[test]
fn rsockets_that_connect_over_tcp_first_are_refused() {
    let out = command(Some("rsocket"), "ask 1 0 0").env("RDMAV_FORK_SAFE", "1").output().expect("it runs");
    let (said, err) = text(&out);
    assert!(!out.status.success() && said.is_empty(), "{said}{err}");
    assert!(err.contains("run `unset RDMAV_FORK_SAFE`"), "{err}");
}

#[test]
fn a_server_over_tcp_is_reached_over_tcp_and_counted() {
    if !can("rsocket") {
        return;
    }
    let server = TestServer::start(None, 3);
    let seen = client(Some("rsocket"), &format!("ask {} 3 1000", server.port));
    let left = seen["left"].as_object().expect("reasons");
    // Programs in Rust set SOCK_CLOEXEC. Since rdma-core 63, rsockets take such sockets, and find no listener.
    let known = ["socket-flags", "no-rdma-connection"];
    let of_known: u64 = known.iter().filter_map(|why| left.get(*why)?.as_u64()).sum();
    assert_eq!((&seen["carried"], of_known), (&0.into(), 3), "{seen}");
}

#[test]
fn a_program_without_the_library_is_counted() {
    if !can("rsocket") {
        return;
    }
    let server = TestServer::start(None, 1);
    let does = format!("ask {} 1 1000", server.port);
    let out = command_after(Some("rsocket"), &["env", "-u", "LD_PRELOAD"], &does).output().expect("it runs");
    let (said, err) = text(&out);
    assert!(out.status.success(), "{said}{err}");
    assert_eq!(counts(&err)["left"]["not-preloaded"], 1, "{err}");
}
