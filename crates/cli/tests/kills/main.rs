//! Whatever dies at whatever moment: hosts are put back, labs are taken down, nothing of landspeed is left.
//!
//! `LANDSPEED_KILLS` says how many kills of one or two processes (default 20), `LANDSPEED_TOTAL_KILLS` how
//! many of everything, and as many of parts of a lab (default 8); the target `make kills` makes 200 of each.
//! `LANDSPEED_SEED` repeats a sequence.

mod hosts;
mod labs;
#[path = "../support/mod.rs"]
mod support;

use std::sync::RwLock;

/// Congestion controls are the whole machine's: while a lab's owner loads some, no test looks at hosts' settings.
static CONTROLS: RwLock<()> = RwLock::new(());

/// An environment variable that says how much to do, or repeats a sequence.
fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn seed() -> u64 {
    let seed = variable("LANDSPEED_SEED").unwrap_or_else(rand::random);
    println!("LANDSPEED_SEED={seed}");
    seed
}

/// How many kills of everything, half of them on hosts and half in labs, and of parts of a lab.
fn total_kills() -> u32 {
    variable("LANDSPEED_TOTAL_KILLS").unwrap_or(8)
}
