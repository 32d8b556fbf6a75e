//! What holds a copy while it goes on, in words.

use landspeed_analysis::copy_held;
use landspeed_record::CopyTimes;
use landspeed_report::held_words;

/// The number of reports, one a second, that tell of now.
pub(super) const LATELY: usize = 10;

/// What holds a copy now: in the last reports, of which one comes each second.
pub(super) struct HeldNow {
    seen: Vec<CopyTimes>,
    words: String,
}

impl HeldNow {
    pub(super) fn new() -> Self {
        HeldNow { seen: vec![CopyTimes::default()], words: String::new() }
    }

    pub(super) fn take(&mut self, times: CopyTimes) {
        if self.seen.len() > LATELY {
            self.seen.remove(0);
        }
        let since = self.seen.first().map_or(times, |first| times.since(first));
        self.seen.push(times);
        self.words = held_words(&copy_held(&since)).map(|words| format!("  {words}")).unwrap_or_default();
    }

    /// Returns the words for a progress line, which come after others; empty if nothing is known.
    pub(super) fn words(&self) -> &str {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::CopyStage;
    use landspeed_record::units::Nanos;

    use super::*;

    /// The first half of a copy says nothing of what holds it now.
    #[test]
    fn a_progress_line_tells_of_the_last_seconds() {
        let mut now = HeldNow::new();
        let mut times = CopyTimes::default();
        let mut after = |seconds: u64, is_disk: bool| {
            for _ in 0..seconds {
                let write = times.target.of_mut(CopyStage::Write);
                let spent = if is_disk { &mut write.device_ns } else { &mut write.processor_ns };
                *spent += Nanos::secs(1);
                now.take(times);
            }
            now.words().to_owned()
        };
        assert_eq!(after(1, true), "  held by: target's disk, 100 % of the time");
        assert_eq!(after(30, false), "  held by: target's processor (writing), 100 % of the time");
    }
}
