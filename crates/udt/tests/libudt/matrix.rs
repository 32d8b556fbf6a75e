//! The large transfers: every network, with both packet sizes and in both directions (docs/results/udt-interop.md).

use std::time::Duration;

use landspeed_udt::PacketCounts;

use crate::both;
use crate::exchange::{TransferCase, TransferFigures, libudt_alone, run};
use crate::relay::NetworkImpairments;

const MIB: u64 = 1 << 20;

/// Returns for each network its name, its impairments, and the number of bytes to transfer.
fn networks() -> [(&'static str, Option<NetworkImpairments>, u64); 7] {
    let impairments = NetworkImpairments::default();
    let delay = Duration::from_millis(90);
    [
        ("loopback", None, 1024 * MIB),
        ("1 % lost", Some(NetworkImpairments { lost: 0.01, ..impairments }), 32 * MIB),
        ("5 % lost", Some(NetworkImpairments { lost: 0.05, ..impairments }), 32 * MIB),
        ("5 % up to 2 ms late", Some(NetworkImpairments { reordered: 0.05, ..impairments }), 32 * MIB),
        ("5 % twice", Some(NetworkImpairments { doubled: 0.05, ..impairments }), 32 * MIB),
        ("180 ms", Some(NetworkImpairments { delay, ..impairments }), 32 * MIB),
        ("180 ms, 0.1 % lost", Some(NetworkImpairments { delay, lost: 0.001, ..impairments }), 32 * MIB),
    ]
}

fn row(network: &str, case: &TransferCase, figures: &TransferFigures) {
    let direction = if case.to_libudt { "to libudt" } else { "from libudt" };
    let PacketCounts { sent_again, received_again, timeouts, .. } = figures.counts;
    print_row(network, case, figures.took, direction);
    println!("{sent_again} | {received_again} | {timeouts} |");
}

fn print_row(network: &str, case: &TransferCase, took: Duration, what: &str) {
    let seconds = took.as_secs_f64();
    let rate = case.bytes as f64 * 8.0 / seconds / 1e6;
    print!("| {network} | {} | {what} | {} | {seconds:.1} | {rate:.0} | ", case.mss, case.bytes / MIB);
}

#[test]
fn every_network_both_ways() {
    if std::env::var_os("LANDSPEED_UDT_FULL").is_none() {
        println!("SKIP: ten minutes: make interop-udt");
        return;
    }
    let only = std::env::var("LANDSPEED_UDT_ONLY").unwrap_or_default();
    println!("\n| network | packet | direction | MiB | s | Mb/s | sent again | received twice | timeouts |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, impairments, bytes) in networks().into_iter().filter(|(name, ..)| name.contains(&only)) {
        for mss in [1500, 9000] {
            let full =
                |case| TransferCase { impairments, bytes, mss, most: Duration::from_secs(900), ..case };
            for case in both().map(full) {
                let Some(figures) = run(&case) else { return };
                row(name, &case, &figures);
            }
            let case = full(TransferCase::new(false));
            print_row(name, &case, libudt_alone(&case), "between libudts");
            println!("| | |");
        }
    }
}
