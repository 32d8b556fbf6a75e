//! Tests that hosts are restored and labs are removed, whichever process dies at any moment, and that nothing of
//! landspeed is left.
//!
//! `LANDSPEED_KILLS` is the number of kills of one or two processes (default 16: each combination once).
//! `LANDSPEED_TOTAL_KILLS` is the number of kills of everything, and also of kills of parts of a lab (default 8). The target
//! `make kills` makes 200 of each.
//! `LANDSPEED_SEED` repeats a sequence.

use parking_lot::RwLock;

mod hosts;
mod labs;
#[path = "../support/mod.rs"]
mod support;

/// Congestion controls are global: while a lab's owner loads some, no test may inspect hosts' settings.
static CONTROLS: RwLock<()> = RwLock::new(());

/// Returns an environment variable with a number of kills or a seed.
fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn seed() -> u64 {
    let seed = variable("LANDSPEED_SEED").unwrap_or_else(rand::random);
    println!("LANDSPEED_SEED={seed}");
    seed
}

/// Returns the number of kills of everything, half of them on hosts and half in labs, and of parts of a lab.
fn total_kills() -> u32 {
    variable("LANDSPEED_TOTAL_KILLS").unwrap_or(8)
}
