//! Text from the other end, escaped for a terminal.

use landspeed_record::units::EscapedText;

const LONGEST: usize = 400;

/// Returns `text` as one line, with its control characters escaped as in an [`EscapedText`], so that a terminal
/// displays them and does not obey them. A text of more than 400 characters is cut and ends in `…`.
pub fn one_line(text: &str) -> String {
    EscapedText::from(text.trim_end()).cut(LONGEST)
}
