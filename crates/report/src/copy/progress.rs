//! The progress line of a copy.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyCounts, CopyHeld, CopyProgressFigures};

use super::words::held_words;
use crate::counted;
use crate::live::{clock, margin};

/// Returns the progress line of a copy after `time`: the data moved and the total, the rate over the last 10 s, the
/// time left, and the current limit. On a terminal of `width` columns that is too narrow, leaves out the less important
/// parts.
pub fn copy_progress_line(progress: &CopyProgressFigures, time: Nanos, width: Option<usize>) -> String {
    let margin = margin(width);
    let CopyProgressFigures { counts, held, .. } = progress;
    let first = CopyHeld { by: held.by.iter().take(1).copied().collect(), ..CopyHeld::default() };
    let [all, first] = [held, &first].map(|held| held_words(held).map(|words| format!("  {words}")));
    let [all, first] = [all, first].map(Option::unwrap_or_default);
    let (moved, rate) = (moved_words(progress), rate_words(progress));
    let entries = format!(", {} of {}", counts.settled, counted(counts.found, "entry"));
    let time = format!("  {}", clock(time));
    let lines = [
        format!("{margin}{moved}{entries}{rate}{time}{all}"),
        format!("{margin}{moved}{entries}{rate}{time}{first}"),
        format!("{margin}{moved}{rate}{time}{first}"),
    ];
    let shortest = format!("{margin}{moved}{rate}{first}");
    // The last column of a terminal stays empty.
    let fits = |line: &String| width.is_none_or(|width| line.chars().count() < width);
    lines.into_iter().find(fits).unwrap_or(shortest)
}

/// Formats "30 MiB of at least 100 MiB, still walking" or, after the walk, "30 MiB of 100 MiB (30 %)".
fn moved_words(progress: &CopyProgressFigures) -> String {
    let CopyCounts { moved_bytes: moved, found_bytes: found, is_walked, .. } = progress.counts;
    match (is_walked, progress.moved_share) {
        (false, _) => format!("{moved} of at least {found}, still walking"),
        (true, Some(share)) => format!("{moved} of {found} ({:.0} %)", (share * 100.0).floor()),
        (true, None) => format!("{moved} of {found}"),
    }
}

/// Formats the rate, a break of the path, and the time left, each if known.
fn rate_words(progress: &CopyProgressFigures) -> String {
    let mut words = String::new();
    if progress.at_ns > Nanos(0) {
        words.push_str(&format!(", {}/s", Bytes((progress.rate_bps.0 / 8.0) as u64)));
    }
    if progress.counts.broken_flows > 0 {
        let flows = counted(progress.counts.broken_flows, "flow");
        words.push_str(&format!(", the path broke: opening {flows} again"));
    }
    if let Some(left) = progress.left_ns {
        words.push_str(&format!(", {} left", clock(left)));
    }
    words
}

#[cfg(test)]
mod tests {
    use landspeed_record::{CopyHold, CopyHolder};

    use super::*;

    fn progress(is_walked: bool) -> CopyProgressFigures {
        let holder = |hold, share| CopyHolder { hold, stage: None, share };
        let by = vec![holder(CopyHold::TargetDisk, 0.91), holder(CopyHold::SourceDisk, 0.4)];
        CopyProgressFigures {
            at_ns: Nanos::secs(3),
            counts: CopyCounts {
                found: 9,
                found_bytes: Bytes::mib(100),
                is_walked,
                settled: 3,
                moved_bytes: Bytes::mib(30),
                broken_flows: 0,
            },
            moved_share: is_walked.then_some(0.309),
            rate_bps: Bytes::mib(10).per(Nanos::secs(1)),
            left_ns: is_walked.then_some(Nanos::secs(67)),
            held: CopyHeld { by, gain_at_most: Some(1.1) },
        }
    }

    #[test]
    fn the_share_and_the_time_left_are_there_once_the_amount_is_known() {
        let held = "held by: target's disk, 91 % of the time; then source's disk";
        let time = Nanos::secs(4);
        let walking = copy_progress_line(&progress(false), time, None);
        let expected = "30 MiB of at least 100 MiB, still walking, 3 of 9 entries, 10 MiB/s  0:04";
        assert_eq!(walking, format!("{expected}  {held}"));
        let walked = copy_progress_line(&progress(true), time, None);
        let expected = "30 MiB of 100 MiB (30 %), 3 of 9 entries, 10 MiB/s, 1:07 left  0:04";
        assert_eq!(walked, format!("{expected}  {held}"));
    }

    #[test]
    fn a_path_that_broke_is_said_and_nothing_is_said_of_a_beginning() {
        let mut broken = progress(false);
        (broken.counts.broken_flows, broken.held) = (3, CopyHeld::default());
        let line = copy_progress_line(&broken, Nanos(0), None);
        assert!(line.contains(", the path broke: opening 3 flows again  0:00"), "{line}");
        let begun = copy_progress_line(&CopyProgressFigures::default(), Nanos(0), None);
        assert_eq!(begun, "0 B of at least 0 B, still walking, 0 of 0 entries  0:00");
    }

    /// A terminal of 80 columns still shows the current limit.
    #[test]
    fn a_narrow_terminal_shows_what_matters_most() {
        let line = |width| copy_progress_line(&progress(true), Nanos::secs(4), Some(width));
        let (moved, held) = ("  30 MiB of 100 MiB (30 %)", "  held by: target's disk, 91 % of the time");
        let whole = format!("{moved}, 3 of 9 entries, 10 MiB/s, 1:07 left  0:04{held}");
        assert_eq!(line(200), format!("{whole}; then source's disk"));
        assert_eq!(line(whole.len() + 1), whole);
        assert_eq!(line(whole.len()), format!("{moved}, 10 MiB/s, 1:07 left  0:04{held}"));
        assert_eq!(line(80), format!("{moved}, 10 MiB/s, 1:07 left{held}"));
    }
}
