//! Detects a sender that has retransmitted a notable share of its segments.

use super::thresholds::{COMMON_LOSS, FEW_LOSSES};
use super::words::{percent, share};

/// Returns "95 of 1000 segments were sent again (9.50 %)"; `None` if these are too few to matter beside another limit
/// of the flow. `sent` counts segments with data, those that were sent again included.
pub fn resent_words(sent: u64, resent: u64) -> Option<String> {
    let again = if sent > 0 { share(resent as f64 / sent as f64) } else { 0.0 };
    let is_notable = again >= COMMON_LOSS && resent as f64 >= FEW_LOSSES;
    is_notable.then(|| format!("{resent} of {sent} segments were sent again ({})", percent(again)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notable_share_is_reported_and_chance_is_not() {
        let words = resent_words(1_231_705, 117_192);
        assert_eq!(words.as_deref(), Some("117192 of 1231705 segments were sent again (9.51 %)"));
        // A link that loses one of 10,000, one loss of a short flow, and nothing at all.
        for (sent, resent) in [(1_000_000, 100), (100, 1), (0, 0), (0, 7)] {
            assert_eq!(resent_words(sent, resent), None, "{resent} of {sent}");
        }
        assert!(resent_words(1, u64::MAX).is_some_and(|words| words.ends_with("(100 %)")));
    }
}
