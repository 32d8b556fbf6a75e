//! The capabilities of an output stream, and the colours of text.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Width of a line, in columns, if neither COLUMNS nor a terminal gives a width.
const PLAIN_WIDTH: u16 = 100;

/// What an output stream can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCapabilities {
    /// True if the stream is a terminal, on which lines may be overwritten.
    pub terminal: bool,
    pub width: u16,
    pub color: bool,
    /// True if the stream shows characters beyond ASCII.
    pub unicode: bool,
}

impl OutputCapabilities {
    /// Returns the capabilities of a file or a pipe, with lines of `width` columns.
    pub const fn plain(width: u16) -> Self {
        OutputCapabilities { terminal: false, width, color: false, unicode: true }
    }

    pub fn stdout() -> Self {
        Self::of(&io::stdout())
    }

    pub fn stderr() -> Self {
        Self::of(&io::stderr())
    }

    /// Detects the capabilities of `stream`. There is no colour if NO_COLOR is set and not empty (no-color.org), if
    /// `stream` is not a terminal, or if TERM is unset or "dumb".
    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let terminal = stream.is_terminal();
        let found = rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col).filter(|&w| w > 0);
        // POSIX: COLUMNS, which the user sets, overrides the width that the terminal reports.
        let width = columns(std::env::var_os("COLUMNS")).or(found);
        OutputCapabilities {
            terminal: terminal && !dumb,
            width: width.unwrap_or(PLAIN_WIDTH),
            color: terminal && !dumb && !no_color,
            unicode: is_unicode(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os)),
        }
    }

    /// Returns `text` in the characters that this stream can show: with "µs" for microseconds, or in ASCII only.
    pub fn spell(self, text: &str) -> String {
        if self.unicode { micros(text) } else { text.chars().map(ascii).collect() }
    }
}

/// Returns the width in `given`, the value of COLUMNS, or `None` if it is not a number above zero.
fn columns(given: Option<OsString>) -> Option<u16> {
    given?.to_str()?.parse().ok().filter(|&width| width > 0)
}

/// Returns true if the locale's encoding is UTF-8. `locale` is the values of LC_ALL, LC_CTYPE and LANG, of which the
/// first that is set applies (POSIX). If none is set, as under cron and in containers, UTF-8 is assumed, as in systemd.
fn is_unicode(locale: [Option<OsString>; 3]) -> bool {
    let set = locale.into_iter().flatten().find(|value| !value.is_empty());
    set.is_none_or(|value| {
        let value = value.to_string_lossy().to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Replaces the unit "us" after a number by "µs".
pub(crate) fn micros(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" us") {
        let is_unit = before.ends_with(|c: char| c.is_ascii_digit())
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        out.push_str(before);
        out.push_str(if is_unit { " µs" } else { " us" });
        rest = after;
    }
    out + rest
}

/// Returns the ASCII character that replaces `of`. It is always a single one, so columns stay aligned.
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

/// The meaning of a colour on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A proven improvement.
    Good,
    /// Harm, or a warning.
    Bad,
    /// A result that is open, or not confirmed.
    Open,
    Noise,
    /// Less important.
    Dim,
    /// More important.
    Strong,
}

/// Paints text with SGR codes if colour is on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painter {
    pub(crate) color: bool,
}

impl Painter {
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
    fn the_width_of_the_environment_is_a_number_above_0() {
        let read = |text: &str| columns(Some(text.into()));
        assert_eq!([read("72"), read("0"), read("wide"), columns(None)], [Some(72), None, None, None]);
    }

    #[test]
    fn only_a_unit_is_written_as_one() {
        assert_eq!(micros("98 us (least 13 us), 3 users; tell us"), "98 µs (least 13 µs), 3 users; tell us");
    }

    #[test]
    fn a_line_in_ascii_is_as_wide() {
        let (line, output) = (
            "✓ mtu 1500 → 9000  1.8× ±2 µs ──╸ ▁█",
            OutputCapabilities { unicode: false, ..OutputCapabilities::plain(80) },
        );
        assert_eq!(output.spell(line), "+ mtu 1500 > 9000  1.8x ~2 us --> .#");
        assert_eq!(OutputCapabilities { unicode: true, ..output }.spell(line), line);
    }
}
