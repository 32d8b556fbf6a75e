//! Tests of connections with Debian's libudt over real sockets on loopback, directly and over a network that loses,
//! duplicates, reorders and delays datagrams.
//!
//! `make interop-udt` runs the large transfers.

mod end;
mod exchange;
mod failures;
mod matrix;
mod peer;
mod record;
mod relay;

use std::net::Ipv6Addr;
use std::time::Duration;

use exchange::{TransferCase, run};
use relay::NetworkImpairments;

/// Returns one case for each direction.
fn both() -> [TransferCase; 2] {
    [true, false].map(TransferCase::new)
}

/// Runs the cases of both directions in parallel, because they mostly wait.
fn over(impairments: NetworkImpairments, bytes: u64) {
    std::thread::scope(|scope| {
        for case in both() {
            scope.spawn(move || run(&TransferCase { impairments: Some(impairments), bytes, ..case }));
        }
    });
}

#[test]
fn a_stream_to_libudt() {
    run(&TransferCase::new(true));
}

#[test]
fn a_stream_from_libudt() {
    run(&TransferCase::new(false));
}

#[test]
fn over_ipv6() {
    for case in both() {
        run(&TransferCase { ip: Ipv6Addr::LOCALHOST.into(), ..case });
    }
}

#[test]
fn packets_of_9000_bytes() {
    for case in both() {
        run(&TransferCase { mss: 9000, ..case });
    }
}

#[test]
fn losses() {
    over(NetworkImpairments { lost: 0.01, ..NetworkImpairments::default() }, 500_000);
    over(NetworkImpairments { lost: 0.05, ..NetworkImpairments::default() }, 200_000);
}

#[test]
fn packets_out_of_order_and_twice() {
    over(NetworkImpairments { reordered: 0.05, ..NetworkImpairments::default() }, 500_000);
    over(NetworkImpairments { doubled: 0.05, ..NetworkImpairments::default() }, 500_000);
}

#[test]
fn a_long_path() {
    over(NetworkImpairments { delay: Duration::from_millis(90), ..NetworkImpairments::default() }, 300_000);
}
