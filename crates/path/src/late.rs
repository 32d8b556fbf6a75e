//! Delays a supervisor in tests, as a busy host would. A release build does not contain the delays.

/// Sleeps in 1 of 16 calls, for a random time of up to `LANDSPEED_PATH_LATE` milliseconds.
#[cfg(debug_assertions)]
pub(crate) fn late() {
    use std::sync::OnceLock;
    use std::time::Duration;
    static MOST: OnceLock<Option<u64>> = OnceLock::new();
    let most = || std::env::var("LANDSPEED_PATH_LATE").ok()?.parse().ok().filter(|most| *most > 0);
    if let Some(most) = *MOST.get_or_init(most) {
        let mut draw = [0; 8];
        let _ = getrandom::fill(&mut draw);
        let draw = u64::from_ne_bytes(draw);
        if draw.is_multiple_of(16) {
            std::thread::sleep(Duration::from_micros(draw / 16 % (1000 * most)));
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn late() {}
