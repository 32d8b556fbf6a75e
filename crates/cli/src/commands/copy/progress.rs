//! The progress line of a copy.

use std::sync::Arc;
use std::time::Instant;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyCounts, CopyTimes};
use landspeed_report::live::{ProgressLine, clock};
use landspeed_report::{OutputCapabilities, counted};
use parking_lot::Mutex;

use super::held::{HeldNow, LATELY};

/// The progress of a copy: what was moved, of how much, how fast in the last ten seconds, and what held it meanwhile.
pub(super) struct CopyLine {
    seen: Arc<Mutex<Vec<(Instant, CopyCounts)>>>,
    held: Arc<Mutex<HeldNow>>,
    line: ProgressLine,
}

impl CopyLine {
    pub(super) fn new() -> CopyLine {
        let seen: Arc<Mutex<Vec<(Instant, CopyCounts)>>> = Arc::default();
        let held = Arc::new(Mutex::new(HeldNow::new()));
        let (shown, holds, begun) = (Arc::clone(&seen), Arc::clone(&held), Instant::now());
        let line = ProgressLine::new(OutputCapabilities::stderr(), move |width| {
            let margin = if width.is_some() { "  " } else { "" };
            let (words, time) = (words(&shown.lock()), clock(begun.elapsed().into()));
            format!("{margin}{words}  {time}{}", holds.lock().words())
        });
        CopyLine { seen, held, line }
    }

    pub(super) fn take_with(&self, counts: CopyCounts, times: CopyTimes) {
        self.held.lock().take(times);
        self.take(counts);
    }

    pub(super) fn take(&self, mut counts: CopyCounts) {
        let mut seen = self.seen.lock();
        // A file that changed is sent anew, and what was shown stays.
        let before = seen.last().map_or(Bytes(0), |(_, last)| last.moved_bytes);
        counts.moved_bytes = counts.moved_bytes.max(before);
        if seen.len() > LATELY {
            seen.remove(0);
        }
        seen.push((Instant::now(), counts));
        drop(seen);
        self.line.draw();
    }
}

/// Returns the progress in words. The time that is left is there only once the whole amount is known.
fn words(seen: &[(Instant, CopyCounts)]) -> String {
    let (Some((begun, first)), Some((now, last))) = (seen.first(), seen.last()) else {
        return "copying".to_owned();
    };
    let seconds = (*now - *begun).as_secs_f64();
    let rate = (last.moved_bytes.0 - first.moved_bytes.0.min(last.moved_bytes.0)) as f64 / seconds.max(1e-9);
    let of = if last.is_walked { "of" } else { "of at least" };
    let (moved, found) = (last.moved_bytes, last.found_bytes);
    let entries = counted(last.found, "entry");
    let mut words = format!("{moved} {of} {found}{}, {} of {entries}", percent(last), last.settled);
    if seconds > 0.0 {
        words.push_str(&format!(", {}/s", Bytes(rate as u64)));
    }
    if last.broken_flows > 0 {
        let flows = counted(last.broken_flows, "flow");
        words.push_str(&format!(", the path broke: opening {flows} again"));
    }
    if last.is_walked && rate > 1.0 {
        let left = last.found_bytes.0.saturating_sub(last.moved_bytes.0) as f64 / rate;
        words.push_str(&format!(", {} left", clock(Nanos((left * 1e9) as u64))));
    }
    words
}

/// Returns the share of the bytes that were moved, " (30 %)", or that the walk goes on.
fn percent(counts: &CopyCounts) -> String {
    match (counts.is_walked, counts.found_bytes.0) {
        (false, _) => ", still walking".to_owned(),
        (true, 0) => String::new(),
        (true, found) => {
            let share = (counts.moved_bytes.0 as f64 / found as f64).min(1.0);
            format!(" ({:.0} %)", (share * 100.0).floor())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_left_is_told_once_the_amount_is_known() {
        let begun = Instant::now();
        let counts = |moved, is_walked| CopyCounts {
            found: 9,
            found_bytes: Bytes::mib(100),
            is_walked,
            settled: 3,
            moved_bytes: Bytes::mib(moved),
            broken_flows: 0,
        };
        let later = begun + Duration::from_secs(2);
        let walking = words(&[(begun, counts(10, false)), (later, counts(30, false))]);
        assert_eq!(walking, "30 MiB of at least 100 MiB, still walking, 3 of 9 entries, 10 MiB/s");
        let walked = words(&[(begun, counts(10, true)), (later, counts(30, true))]);
        assert!(walked.starts_with("30 MiB of 100 MiB (30 %), 3") && walked.ends_with("left"), "{walked}");
        let broken = CopyCounts { broken_flows: 3, ..counts(30, false) };
        assert!(words(&[(begun, broken)]).ends_with(", the path broke: opening 3 flows again"));
        assert_eq!(words(&[]), "copying");
    }
}
