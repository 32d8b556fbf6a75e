//! Makes text from a record safe to print on a terminal.

use landspeed_record::units::EscapedText;

/// Largest number of characters that are shown of one field. Longer text is cut and marked.
const LIMIT: usize = 600;

/// Returns `text` with all characters escaped that would control a terminal or a browser, as
/// [`EscapedText`] does. A text of more than 600 characters is cut and ends in an ellipsis.
pub fn safe(text: &str) -> String {
    EscapedText::from(text).cut(LIMIT)
}

/// Returns the escaped `text`, cut only at the limit of [`EscapedText`].
pub(crate) fn clean(text: &str) -> String {
    EscapedText::from(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_is_shown_without_end_and_none_is_obeyed() {
        assert_eq!(safe("\u{1b}[31mred\u{202e}"), r"\u{1b}[31mred\u{202e}");
        assert_eq!(safe(&"x".repeat(600)).chars().count(), 600);
        let cut = safe(&"ü".repeat(1_000_000));
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (601, true));
        assert_eq!(safe(&cut), cut);
    }
}
