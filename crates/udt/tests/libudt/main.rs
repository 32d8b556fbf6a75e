//! Connections with Debian's libudt over real sockets on loopback, directly and over a network that loses,
//! duplicates, reorders and delays datagrams.
//!
//! `make interop-udt` makes the large transfers.

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
use landspeed_udt::SocketType;
use relay::NetworkImpairments;

const BOTH: [SocketType; 2] = [SocketType::Stream, SocketType::Datagram];

/// Returns a case for each direction and each type.
fn four() -> impl Iterator<Item = TransferCase> {
    [true, false]
        .into_iter()
        .flat_map(|to_libudt| BOTH.map(|socket_type| TransferCase::new(to_libudt, socket_type)))
}

/// Runs all four cases in parallel, because they mostly wait.
fn over(impairments: NetworkImpairments, bytes: u64) {
    std::thread::scope(|scope| {
        for case in four() {
            scope.spawn(move || run(&TransferCase { impairments: Some(impairments), bytes, ..case }));
        }
    });
}

#[test]
fn a_stream_to_libudt() {
    run(&TransferCase::new(true, SocketType::Stream));
}

#[test]
fn messages_to_libudt() {
    run(&TransferCase::new(true, SocketType::Datagram));
}

#[test]
fn a_stream_from_libudt() {
    run(&TransferCase::new(false, SocketType::Stream));
}

#[test]
fn messages_from_libudt() {
    run(&TransferCase::new(false, SocketType::Datagram));
}

#[test]
fn over_ipv6() {
    for case in four() {
        run(&TransferCase { ip: Ipv6Addr::LOCALHOST.into(), ..case });
    }
}

#[test]
fn packets_of_9000_bytes() {
    for case in four() {
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
