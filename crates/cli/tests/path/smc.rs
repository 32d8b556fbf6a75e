//! Tests of SMC below programs, and of what landspeed says where no RDMA device can carry.

use crate::run::{TestServer, can, client, run};
use crate::support::text;

/// What landspeed says that a host lacks, in the order in which it looks.
const LACKS: [&str; 5] = [
    "this kernel has no SMC",
    "run `modprobe -a smc smc_diag`",
    "run `modprobe smc_diag`",
    "run `rdma link add rxe0 type rxe netdev IF`",
    "run `smcr ueid add NAME`",
];

#[test]
fn a_host_that_cannot_carry_names_what_it_lacks() {
    let out = run(Some("smc"), "ask 1 0 0");
    let (_, err) = text(&out);
    let says = |lacks: &&str| err.contains(*lacks);
    assert!(out.status.success() || LACKS.iter().any(says), "{err}");
}

#[test]
fn smc_with_an_end_that_speaks_tcp_is_counted_as_a_fallback() {
    if !can("smc") {
        return;
    }
    let server = TestServer::start(None, 3);
    let seen = client(Some("smc"), &format!("ask {} 3 100000", server.port));
    assert_eq!((&seen["carried"], &seen["left"]["peer-without-smc"]), (&0.into(), &3.into()), "{seen}");

    let server = TestServer::start(Some("smc"), 3);
    client(None, &format!("ask {} 3 100000", server.port));
    let seen = server.counts();
    assert_eq!((&seen["carried"], &seen["left"]["peer-without-smc"]), (&0.into(), &3.into()), "{seen}");
}

#[test]
fn a_connection_within_the_host_is_carried_or_counted_with_the_reason() {
    if !can("smc") {
        return;
    }
    let server = TestServer::start(Some("smc"), 6);
    for does in ["ask", "ask-without-waiting", "ask-twice-without-waiting"] {
        let (words, connections) = match does {
            "ask" => (format!("ask {} 4 100000", server.port), 4),
            other => (format!("{other} {}", server.port), 1),
        };
        let seen = client(Some("smc"), &words);
        assert_eq!(all(&seen), connections, "{does}: {seen}");
    }
    assert_eq!(all(&server.counts()), 6);
}

/// Returns the number of connections, carried and left on TCP.
fn all(counts: &serde_json::Value) -> u64 {
    let left = counts["left"].as_object().into_iter().flatten();
    left.filter_map(|(_, count)| count.as_u64()).sum::<u64>() + counts["carried"].as_u64().unwrap_or(0)
}
