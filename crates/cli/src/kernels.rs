//! The kernel versions that parts need, collected from the rows of the parts.
//!
//! `xtask` includes this file and generates the page from it.

use landspeed_knob::journal;
use landspeed_observer::OBSERVERS;
use landspeed_path::PATHS;
use landspeed_record::KernelNeed;
use landspeed_transport::TRANSPORTS;
use landspeed_transport::settings::EVERY_FLOW;

/// The page that lists all needs.
pub(crate) const PAGE: &str = "docs/reference/kernels.md";

/// Returns each part that some supported kernel lacks, with its need, oldest kernel first.
pub(crate) fn needs() -> Vec<(String, KernelNeed)> {
    let mut rows = vec![(String::new(), journal::NEEDS), (String::new(), landspeed_congestion::NEEDS)];
    rows.extend(PATHS.iter().map(|path| (format!("path {}", path.name()), path.kernel())));
    rows.extend(TRANSPORTS.iter().map(|row| (format!("transport {}", row.name()), row.kernel())));
    rows.extend(OBSERVERS.iter().map(|row| (format!("observer {}", row.name), row.kernel)));
    let of_flows = TRANSPORTS.iter().flat_map(|row| row.factors()).chain(EVERY_FLOW.iter().copied());
    let factors = landspeed_knob::table::factors().chain(of_flows);
    rows.extend(factors.map(|factor| (factor.name.to_owned(), factor.kernel)));
    let of_row = |(name, needs): &(String, &'static [KernelNeed])| {
        needs.iter().map(|need| (need.named(name), *need)).collect::<Vec<_>>()
    };
    let mut needs: Vec<(String, KernelNeed)> = rows.iter().flat_map(of_row).collect();
    needs.sort_by_key(|(_, need)| need.since);
    needs
}
