//! Where text goes, and what it may look like there.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Width that is assumed where there is no terminal to ask.
const PLAIN_WIDTH: u16 = 100;

/// What a stream of text may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Whether a person watches: lines may be drawn over.
    pub terminal: bool,
    pub width: u16,
    pub color: bool,
}

impl Output {
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
        }
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
