//! Tables in Markdown for the pages of docs/results, and the promises whose results they show.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::{Result, ensure};
use landspeed_record::{Estimate, ExpectationAgreement};
use landspeed_stats::proportion_interval;

/// Prints the head of a table. `columns` holds names such as "noise | kept | promise".
pub(crate) fn head(columns: &str) {
    println!("| {columns} |\n|{}", "---|".repeat(columns.split('|').count()));
}

/// Prints one row of a table.
pub(crate) fn row(cells: &[&dyn Display]) {
    let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
    println!("| {} |", cells.join(" | "));
}

pub(crate) fn share(hits: u32, of: u32) -> f64 {
    f64::from(hits) / f64::from(of.max(1))
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns the 95 % interval of the share `hits` / `of`, as text in percent.
pub(crate) fn interval(hits: u32, of: u32) -> String {
    let (low, high) = proportion_interval(hits.into(), of.into());
    format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high)
}

/// Returns how often each text occurs, the most frequent first: "disk: 3; nothing: 1"; "-" for none.
pub(crate) fn counts(texts: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let counts: Vec<String> = counts.iter().map(|(text, count)| format!("{text}: {count}")).collect();
    if counts.is_empty() { "-".to_owned() } else { counts.join("; ") }
}

/// An interval that goes from less than its inverse to more than this has no ends: there was one value.
const FARTHEST: f64 = 1e6;

/// Returns a ratio with its interval as text; "-" for `None` and for what is no number, and "[-]" for an interval without ends.
pub(crate) fn ratio(found: Option<Estimate>) -> String {
    match found {
        Some(found) if found.low < 1.0 / FARTHEST && found.high > FARTHEST => {
            format!("{:.3} [-]", found.ratio)
        }
        Some(found) if [found.ratio, found.low, found.high].iter().all(|end| end.is_finite()) => {
            format!("{:.3} [{:.3}, {:.3}]", found.ratio, found.low, found.high)
        }
        _ => "-".to_owned(),
    }
}

/// Returns the answer to an expectation as text.
pub(crate) fn came_out(answer: ExpectationAgreement) -> &'static str {
    match answer {
        ExpectationAgreement::Reproduces => "reproduces",
        ExpectationAgreement::Differs => "**differs**",
        ExpectationAgreement::Undecided => "undecided",
        ExpectationAgreement::NotHere => "not on this hardware",
    }
}

/// The number of promises that did not hold.
#[derive(Debug, Default)]
pub(crate) struct BrokenPromises(u32);

impl BrokenPromises {
    /// Counts a promise, as broken unless `holds` is true, and returns its cell for the table.
    pub(crate) fn check(&mut self, holds: bool) -> &'static str {
        self.0 += u32::from(!holds);
        if holds { "kept" } else { "NOT KEPT" }
    }

    /// Prints the number of broken promises. Returns an error if there are any.
    pub(crate) fn sum_up(&self) -> Result<()> {
        println!("\n{} promises broken.", self.0);
        ensure!(self.0 == 0, "a promise is broken");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use landspeed_stats::{estimate, ratio_of};

    use super::*;

    #[test]
    fn a_broken_promise_fails_the_study() {
        let mut broken = BrokenPromises::default();
        assert_eq!(broken.check(true), "kept");
        assert!(broken.sum_up().is_ok());
        assert_eq!(broken.check(false), "NOT KEPT");
        assert!(broken.sum_up().is_err());
    }

    #[test]
    fn figures_have_their_units() {
        assert_eq!(percent(share(1, 8)), "12.5 %");
        assert_eq!(percent(share(0, 0)), "0.0 %");
        assert_eq!(ratio(None), "-");
        assert_eq!(ratio(Some(ratio_of(0.0, -0.1, 0.1))), "1.000 [0.905, 1.105]");
        // One value has no interval, and no processor time no ratio.
        assert_eq!(ratio(Some(estimate(&[2_f64.ln()], 0.95))), "2.000 [-]");
        assert_eq!(ratio(Some(ratio_of(f64::NAN, f64::NAN, f64::NAN))), "-");
    }
}
