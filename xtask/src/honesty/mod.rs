//! Is nothing kept that must not be, and found what must be? docs/honesty.md says what is promised and has the figures.

mod noise;
pub(crate) mod real;
pub(crate) mod simulated;

use landspeed_stats::proportion_interval;

fn share(hits: u32, of: u32) -> f64 {
    f64::from(hits) / f64::from(of.max(1))
}

fn percent(hits: u32, of: u32) -> String {
    format!("{:.1} %", 100.0 * share(hits, of))
}

/// The 95 % interval of a share.
fn interval(hits: u32, of: u32) -> String {
    let (low, high) = proportion_interval(hits.into(), of.into());
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}
