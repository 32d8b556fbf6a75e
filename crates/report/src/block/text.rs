//! Styled text, with everything escaped that could control a terminal or a browser.

use crate::output::micros;
use crate::safe::clean;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Plain,
    /// Text that is typed, or read by a machine.
    Code,
    Strong,
    Quiet,
    /// Quiet text that only a page shows.
    Beside,
    /// Text in the colour of its row or article.
    Toned,
    /// One group of a ranking. Text output separates groups by ">".
    Group,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(crate) words: String,
    pub(crate) look: TextStyle,
}

/// A text of styled spans without line breaks. The output that prints it wraps it to its own width.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StyledText(Vec<TextSpan>);

impl StyledText {
    pub(crate) fn with(mut self, look: TextStyle, words: impl AsRef<str>) -> Self {
        let words = micros(&clean(words.as_ref()));
        if !words.is_empty() {
            self.0.push(TextSpan { words, look });
        }
        self
    }

    pub(crate) fn and(self, words: impl AsRef<str>) -> Self {
        self.with(TextStyle::Plain, words)
    }

    pub(crate) fn spans(&self) -> &[TextSpan] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text without styles. Spans of [`TextStyle::Beside`] are left out.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        for (index, span) in self.0.iter().filter(|span| span.look != TextStyle::Beside).enumerate() {
            if index > 0 && span.look == TextStyle::Group {
                words.push_str(" > ");
            }
            words.push_str(&span.words);
        }
        words
    }
}

impl From<&str> for StyledText {
    fn from(words: &str) -> Self {
        StyledText::default().and(words)
    }
}

impl From<String> for StyledText {
    fn from(words: String) -> Self {
        StyledText::from(words.as_str())
    }
}

impl From<&String> for StyledText {
    fn from(words: &String) -> Self {
        StyledText::from(words.as_str())
    }
}

pub(crate) fn code(words: impl AsRef<str>) -> StyledText {
    StyledText::default().with(TextStyle::Code, words)
}

/// Replaces `×` by `x`, because some terminal fonts lack it.
pub(crate) fn plain(text: &str) -> String {
    text.replace('×', "x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_never_get_into_a_text() {
        let text = StyledText::from("a\u{1b}[2Jb").with(TextStyle::Strong, "\u{202e}c\r\n").and("");
        assert_eq!((text.words().as_str(), text.spans().len()), (r"a\u{1b}[2Jb\u{202e}c\r\n", 2));
    }
}
