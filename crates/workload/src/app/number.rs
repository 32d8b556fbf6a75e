//! Parses numbers from the output of programs.

use landspeed_record::units::EscapedText;

/// How a program writes its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberSpelling {
    /// Separator of groups of three digits; `None` if digits are not grouped.
    pub thousands: Option<char>,
    /// Decimal separator.
    pub decimal: char,
}

impl NumberSpelling {
    /// The spelling of "30406.5".
    pub(crate) const PLAIN: NumberSpelling = NumberSpelling { thousands: None, decimal: '.' };

    /// Parses `text` as a number in this spelling. Returns an error message for a text that is no number in this
    /// spelling.
    pub(crate) fn read(self, text: &str) -> Result<f64, String> {
        let trimmed = text.trim();
        let number = self.plain(trimmed).and_then(|plain| plain.parse().ok());
        number.ok_or_else(|| format!("'{}' is no number{}", EscapedText::from(text), self.remedy(trimmed)))
    }

    /// Returns `text` in Rust's spelling; `None` if it is not a number of this spelling.
    fn plain(self, text: &str) -> Option<String> {
        let (mantissa, exponent) = text.find(['e', 'E']).map_or((text, ""), |at| text.split_at(at));
        let (whole, fraction) = mantissa.split_once(self.decimal).unwrap_or((mantissa, ""));
        let whole = self.ungrouped(whole)?;
        let plain = format!("{whole}.{fraction}{exponent}");
        let is_plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        plain.bytes().all(is_plain).then_some(plain)
    }

    /// Removes the separators of groups; returns `None` if a group does not have three digits.
    fn ungrouped(self, whole: &str) -> Option<String> {
        let Some(separator) = self.thousands else { return Some(whole.to_owned()) };
        let digits = whole.trim_start_matches(['+', '-']);
        let mut groups = digits.split(separator);
        let first = groups.next().unwrap_or_default();
        let others: Vec<&str> = groups.collect();
        let is_grouped = (1..=3).contains(&first.len()) && others.iter().all(|group| group.len() == 3);
        (others.is_empty() || is_grouped).then(|| whole.replace(separator, ""))
    }

    /// Returns advice about the figure's `thousands` and `decimal` if `text` may be a number in another spelling;
    /// otherwise an empty text.
    fn remedy(self, text: &str) -> &'static str {
        let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.,'_ eE".contains(&byte);
        let is_other = text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().all(is_number);
        if !is_other {
            ""
        } else if self == NumberSpelling::PLAIN {
            ": say how the program spells numbers, by thousands = \",\" or decimal = \",\" beside the figure"
        } else {
            " as the figure's thousands and decimal say that it spells them"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: NumberSpelling = NumberSpelling { thousands: Some(','), decimal: '.' };
    const GERMAN: NumberSpelling = NumberSpelling { thousands: Some('.'), decimal: ',' };
    const COMMA: NumberSpelling = NumberSpelling { thousands: None, decimal: ',' };

    #[test]
    fn plain_numbers_are_read_as_they_are() {
        for (text, number) in
            [("30406", 30406.0), (" 12.5 ", 12.5), ("1e6", 1e6), (".5", 0.5), ("-2.5E-3", -2.5e-3)]
        {
            assert_eq!(NumberSpelling::PLAIN.read(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn text_that_may_be_two_numbers_is_refused_and_shown() {
        for text in
            ["30,406", "12,5", "1,234,567", "1 234", "1'234", "1_000", "1.234,5", "1.234.567", "1,234.5"]
        {
            let why = NumberSpelling::PLAIN.read(text).expect_err(text);
            assert!(why.contains(&format!("'{text}'")) && why.contains("thousands = "), "{why}");
        }
    }

    #[test]
    fn text_that_is_no_number_gets_no_advice() {
        for text in ["", "fast", "inf", "NaN", "infinity", "0x10", "12 ms", "\u{1b}[2J"] {
            let why = NumberSpelling::PLAIN.read(text).expect_err(text);
            assert!(!why.contains("thousands") && !why.contains('\u{1b}'), "{why}");
        }
    }

    #[test]
    fn a_spelling_that_the_file_states_is_kept_to() {
        for (spelling, text, number) in [
            (ENGLISH, "30,406", 30406.0),
            (ENGLISH, "1,234,567.25", 1_234_567.25),
            (ENGLISH, "406", 406.0),
            (ENGLISH, "30406", 30406.0),
            (GERMAN, "30.406,5", 30406.5),
            (GERMAN, "12,5", 12.5),
            (COMMA, "12,5", 12.5),
            (NumberSpelling { thousands: Some(' '), decimal: ',' }, "1 234,5", 1234.5),
        ] {
            assert_eq!(spelling.read(text), Ok(number), "{text}");
        }
        for (spelling, text) in [
            (ENGLISH, "12,5"),
            (ENGLISH, "1234,567"),
            (ENGLISH, "1,23,456"),
            (ENGLISH, ",5"),
            (GERMAN, "12.5"),
            (COMMA, "12.5"),
            (ENGLISH, "1.234,5"),
        ] {
            let why = spelling.read(text).expect_err(text);
            assert!(why.contains(&format!("'{text}'")), "{why}");
        }
    }
}
