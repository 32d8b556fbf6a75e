//! Text from the other end, escaped for a terminal.

use landspeed_record::units::EscapedText;

const LONGEST: usize = 400;

/// Returns `text` as one line, escaped as an [`EscapedText`], that a terminal shows without obeying it. A text of more
/// than 400 characters is cut and ends in `...`.
pub fn one_line(text: &str) -> String {
    let mut line = String::from(EscapedText::from(text.trim_end()));
    if let Some((cut, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(cut);
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn cuts_what_is_long() {
        let line = one_line(&"x".repeat(10_000));
        assert_eq!(line.len(), 403);
        assert!(line.ends_with("..."));
    }
}
