//! Prints what this host could do at most: `cargo run --release -p landspeed-limits --example limits LINK [quick]`.

use std::time::Instant;

use landspeed_limits::{Options, measure};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let link = arguments.first().map_or("lo", String::as_str);
    let quick = arguments.iter().any(|argument| argument == "quick");
    let started = Instant::now();
    let found = measure(link, &Options { quick, ..Options::default() }, &|| false);
    println!("measured in {:.1} s", started.elapsed().as_secs_f64());
    for rate in &found.memory {
        println!(
            "STREAM {:?} on {} core(s): best {}, median {}",
            rate.kernel, rate.threads, rate.best_bps, rate.median_bps
        );
    }
    for pass in &found.passes {
        let warmth = if pass.hot { "hot" } else { "cold" };
        println!("{} of {}, {warmth}: {}", pass.what, pass.size_bytes, pass.rate_bps);
    }
    found.loopback_bps.iter().for_each(|rate| println!("TCP over loopback: {rate}"));
    for rate in &found.packets {
        let loaded = rate.loaded_pps.map_or("not measured".into(), |pps| format!("{pps:.0}/s"));
        println!(
            "{} of {} B: {:.0} packets/s alone, {loaded} beside a load",
            rate.method, rate.packet_bytes.0, rate.alone_pps
        );
    }
    println!(
        "link {:?}, node {:?}, interrupts on nodes {:?}",
        found.link_bps, found.link_node, found.irq_nodes
    );
    println!("bus {:?}", found.pcie);
    println!("clock {:?} Hz of {:?}, governor '{}'", found.cpu_hz, found.most_cpu_hz, found.governor);
    found.notes.iter().for_each(|note| println!("note: {note}"));
}
