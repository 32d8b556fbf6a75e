//! The memory that an attack costs.

use std::fs;

/// The most memory that an attack may cost both ends together. By its own count, a target keeps up
/// to 64 MiB of answers that its source has not taken.
const MOST_KIB: u64 = 256 << 10;

/// Runs an attack, and checks the peak of this process's memory if no other attack runs beside it.
pub(super) fn bounded<T>(attack: impl FnOnce() -> T) -> T {
    if std::env::var_os("LANDSPEED_ATTACKS").is_none() {
        return attack();
    }
    // Resets the peak to what is there now (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = kib("VmHWM:");
    let result = attack();
    let grown = kib("VmHWM:") - before;
    println!("the attack cost {grown} KiB at its peak");
    assert!(grown <= MOST_KIB, "{grown} KiB");
    result
}

/// Returns a figure of this process in KiB (proc_pid_status(5)).
fn kib(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.split_whitespace().next().expect("a figure").parse().unwrap()
}
