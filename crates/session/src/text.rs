//! Text from the other end, made fit for a terminal.

use landspeed_units::Text;

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
    fn cuts_what_is_long() {
        let line = one_line(&"x".repeat(10_000));
        assert_eq!(line.len(), 403);
        assert!(line.ends_with("..."));
    }
}
