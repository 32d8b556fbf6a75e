//! Text from the other end, made fit for a terminal.

use landspeed_units::Text;

/// Longest line of foreign text that is shown, in characters.
const LONGEST: usize = 400;

/// `text` as one line that a terminal shows as it is, escaped as a [`Text`]; what exceeds 400 characters is cut with
/// `...`.
pub fn one_line(text: &str) -> String {
    let mut line = String::from(Text::from(text.trim_end()));
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
    fn escapes_what_would_move_the_cursor_or_turn_the_text() {
        assert_eq!(one_line("red\u{1b}[31m\nnext\r\n"), "red\\u{1b}[31m\\nnext");
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
