//! Where text goes, and what it may look like there.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use crate::block::micros;

/// Width that is assumed where there is no terminal to ask.
const PLAIN_WIDTH: u16 = 100;

/// What a stream of text may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Whether a person watches: lines may be drawn over.
    pub terminal: bool,
    pub width: u16,
    pub color: bool,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

impl Output {
    /// A file or a pipe of this width.
    pub const fn plain(width: u16) -> Self {
        Output { terminal: false, width, color: false, unicode: true }
    }

    pub fn stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub fn stderr() -> Self {
        Self::of(&io::stderr())
    }

    /// No colour where NO_COLOR is set to anything (no-color.org), or the terminal is a dumb one.
    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let terminal = stream.is_terminal();
        let width = rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col).filter(|&w| w > 0);
        Output {
            terminal: terminal && !dumb,
            width: width.unwrap_or(PLAIN_WIDTH),
            color: terminal && !dumb && !no_color,
            unicode: is_unicode(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os)),
        }
    }

    /// `text` in the characters that this stream shows, with units as people write them.
    pub fn spell(self, text: &str) -> String {
        if self.unicode { micros(text) } else { text.chars().map(ascii).collect() }
    }
}

/// What a locale says of its characters (POSIX: the first that is set of LC_ALL, LC_CTYPE, LANG). Where none is set, as under cron
/// and in containers, a terminal of today is taken for one of UTF-8, as systemd does.
fn is_unicode(locale: [Option<OsString>; 3]) -> bool {
    let set = locale.into_iter().flatten().find(|value| !value.is_empty());
    set.is_none_or(|value| {
        let value = value.to_string_lossy().to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// One character for one, so that columns stay where they are.
fn ascii(of: char) -> char {
    match of {
        c if c.is_ascii() => c,
        '─' | '━' | '–' | '·' => '-',
        '×' => 'x',
        'µ' | 'ü' => 'u',
        'ä' => 'a',
        'ö' => 'o',
        '✓' => '+',
        '✗' => 'x',
        '±' => '~',
        '→' | '›' => '>',
        '←' => '<',
        '“' | '”' => '"',
        '○' => 'o',
        '╸' => '>',
        '…' => '.',
        '█' | '▇' | '▆' | '▉' | '▊' => '#',
        '▅' | '▄' | '▋' | '▌' => '=',
        '▃' | '▂' | '▍' | '▎' => '-',
        '▁' | '▏' => '.',
        _ => '?',
    }
}

/// A colour's meaning; see [`Style::paint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Proven to help.
    Good,
    /// Harms, or a warning.
    Bad,
    /// Not decided.
    Open,
    Noise,
    /// Less important.
    Dim,
    /// More important.
    Strong,
}

/// Paints text with SGR codes, or leaves it alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) color: bool,
}

impl Style {
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Open => "33",
            Tone::Noise => "35",
            Tone::Dim => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_locale_that_says_so_has_no_utf_8() {
        let locale =
            |values: [&str; 3]| values.map(|value| (value != "unset").then(|| OsString::from(value)));
        let cases = [
            (["C", "en_US.UTF-8", "en_US.UTF-8"], false),
            (["", "unset", "de_DE.utf8"], true),
            (["unset", "POSIX", "C.UTF-8"], false),
            (["C.UTF-8", "unset", "C"], true),
            (["unset", "unset", "en_US.ISO-8859-1"], false),
            (["unset"; 3], true),
        ];
        for (values, expected) in cases {
            assert_eq!(is_unicode(locale(values)), expected, "{values:?}");
        }
    }

    #[test]
    fn a_line_in_ascii_is_as_wide() {
        let (line, output) =
            ("✓ mtu 1500 → 9000  1.8× ±2 µs ──╸ ▁█", Output { unicode: false, ..Output::plain(80) });
        assert_eq!(output.spell(line), "+ mtu 1500 > 9000  1.8x ~2 us --> .#");
        assert_eq!(Output { unicode: true, ..output }.spell(line), line);
    }
}
