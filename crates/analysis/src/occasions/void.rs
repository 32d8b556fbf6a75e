//! The occasions that do not count, and why.

use landspeed_record::GridReport;

/// Returns why an occasion does not count; `None` if it does.
pub(super) fn void(report: &GridReport) -> Option<String> {
    let disturbed = || report.placebos.iter().find(|placebo| !placebo.holds());
    let placebo = || Some(format!("its placebo {} left 1", disturbed()?.cell));
    report.void.clone().or_else(placebo)
}

/// Returns a line for each occasion that does not count, with the reason.
pub(super) fn left_out(reports: &[GridReport]) -> Vec<String> {
    let line = |report: &GridReport| {
        let why = void(report)?;
        Some(format!("{} does not count: {why}", report.record.as_deref().unwrap_or_default()))
    };
    reports.iter().filter_map(line).collect()
}
