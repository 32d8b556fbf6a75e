//! Text from the other end, made fit for a terminal.

/// Longest line of foreign text that is shown, in characters.
const LONGEST: usize = 400;

/// `text` as one line that a terminal shows as it is: control characters, line ends and characters that
/// change the writing direction are escaped as `\u{..}`, and what exceeds 400 characters is cut with `...`.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    let text = text.trim_end();
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            line.push_str("...");
            break;
        }
        if c.is_control() || misleads(c) { line.extend(c.escape_unicode()) } else { line.push(c) }
    }
    line
}

/// Line separators, and the explicit direction marks of UAX #9 (Trojan Source, CVE-2021-42574).
fn misleads(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn escapes_what_would_move_the_cursor_or_turn_the_text() {
        assert_eq!(one_line("red\u{1b}[31m\nnext\r\n"), "red\\u{1b}[31m\\u{a}next");
        assert_eq!(one_line("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(one_line("Zürich 10 µs"), "Zürich 10 µs");
    }

    #[test]
    fn cuts_what_is_long() {
        let line = one_line(&"x".repeat(10_000));
        assert_eq!(line.len(), 403);
        assert!(line.ends_with("..."));
    }
}
