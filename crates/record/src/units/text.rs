//! Text from untrusted sources: a peer, a record, a device's name.

use std::fmt;
use std::ops::Deref;

use serde::Deserialize;

/// Longest text that is kept, in bytes. A call stack of 127 named frames fits.
const LONGEST: usize = 8192;

/// Text that is safe to print on a terminal.
///
/// Text from a peer, a record or a string is escaped when the value is created, so that the raw text is never
/// available. Control characters, escape sequences, direction overrides (UAX #9; CVE-2021-42574), zero-width and
/// other unprintable characters become `\u{..}`; line ends and tabs become `\n`, `\r` and `\t`. Text of more than 8
/// KiB is cut and ends in `…`. Backslashes and quotes stay as they are, so that escaping twice changes nothing and
/// equal texts stay equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(from = "String")]
pub struct EscapedText(Box<str>);

impl EscapedText {
    /// Returns the first `most` characters, followed by `…` if there are more.
    pub fn cut(&self, most: usize) -> String {
        match self.char_indices().nth(most) {
            Some((end, _)) => format!("{}…", &self[..end]),
            None => self.to_string(),
        }
    }
}

/// Quotes `word` as one word of a POSIX shell (POSIX.1-2024, XCU 2.2.2).
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns `text` escaped and cut, or `None` if it needs neither.
fn escaped(text: &str) -> Option<String> {
    if text.len() <= LONGEST && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    let mut shown = String::with_capacity(text.len().min(LONGEST));
    for c in text.chars() {
        let before = shown.len();
        match c {
            '\\' | '\'' | '"' => shown.push(c),
            // Escapes what `Debug` escapes: all characters that the Unicode tables define as unprintable.
            _ => shown.extend(c.escape_debug()),
        }
        if shown.len() > LONGEST {
            shown.truncate(before);
            shown.push('…');
            break;
        }
    }
    Some(shown)
}

impl From<&str> for EscapedText {
    fn from(text: &str) -> Self {
        EscapedText(escaped(text).unwrap_or_else(|| text.to_owned()).into())
    }
}

impl From<String> for EscapedText {
    fn from(text: String) -> Self {
        EscapedText(escaped(&text).unwrap_or(text).into())
    }
}

impl From<EscapedText> for String {
    fn from(text: EscapedText) -> Self {
        text.0.into()
    }
}

impl From<&EscapedText> for String {
    fn from(text: &EscapedText) -> Self {
        text.0.as_ref().to_owned()
    }
}

impl Deref for EscapedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for EscapedText {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl fmt::Display for EscapedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys_or_a_reader_cannot_see() {
        for (raw, shown) in [
            ("\u{1b}[2J\rhome", r"\u{1b}[2J\rhome"),
            ("a\n\tb\0", r"a\n\tb\0"),
            ("\u{9b}2J\u{7f}", r"\u{9b}2J\u{7f}"),
            ("on\u{202e}ffo\u{2066}", r"on\u{202e}ffo\u{2066}"),
            ("lo\u{200b}\u{feff}\u{ad}\u{e0041}", r"lo\u{200b}\u{feff}\u{ad}\u{e0041}"),
            ("line\u{2028}break\u{85}", r"line\u{2028}break\u{85}"),
        ] {
            assert_eq!(EscapedText::from(raw), shown);
            assert_eq!(EscapedText::from(raw.to_owned()), EscapedText::from(shown), "escaped twice");
        }
        for plain in ["Zürich: 10 µs → 日本…", r#"C:\dir "quoted" it's"#, ""] {
            assert_eq!(EscapedText::from(plain), plain);
        }
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| !c.is_ascii_graphic()) {
            let shown = EscapedText::from(c.to_string());
            assert!(!shown.chars().any(char::is_control), "{shown}");
            assert_eq!(EscapedText::from(&*shown), shown);
        }
    }

    #[test]
    fn a_cut_is_marked() {
        let text = EscapedText::from("\u{1b}ü");
        assert_eq!([7, 6, 0].map(|most| text.cut(most)), [r"\u{1b}ü", r"\u{1b}…", "…"]);
    }

    #[test]
    fn no_text_is_longer_than_a_call_stack() {
        assert_eq!(EscapedText::from("x".repeat(LONGEST)).len(), LONGEST);
        for long in ["x", "\u{1b}", "ü"].map(|c| c.repeat(20_000)) {
            let cut = EscapedText::from(long);
            assert!(cut.len() <= LONGEST + '…'.len_utf8() && cut.ends_with('…'));
            assert_eq!(EscapedText::from(&*cut), cut);
        }
    }
}
