//! Text from a record, made fit for a terminal.

/// Longest text that is shown of one field, in characters; anything beyond is cut and marked.
const LIMIT: usize = 600;

/// `text` without anything that a terminal or a browser acts on instead of showing: escape sequences
/// (ECMA-48 CSI, OSC, DCS and two-character ones), C0 and C1 control characters, and Unicode's
/// bidirectional overrides and invisible formats, which can make a line read as another. Line breaks and
/// tabs become spaces; a text of more than 600 characters is cut and ends in an ellipsis.
pub fn safe(text: &str) -> String {
    shown(text, LIMIT)
}

/// As [`safe`], of any length.
pub(crate) fn clean(text: &str) -> String {
    shown(text, usize::MAX)
}

fn shown(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    let mut chars = text.chars().peekable();
    let mut shown = 0;
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => out.push(' '),
            c if c.is_control() || is_invisible(c) => continue,
            c => out.push(c),
        }
        shown += 1;
        if shown == limit && chars.peek().is_some() {
            out.push('…');
            break;
        }
    }
    out
}

/// Characters without a width that change how their neighbours are read.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Behind an ESC: drops the rest of its sequence.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        Some(' '..='~') => {
            chars.next();
        }
        _ => {}
    }
}

/// Behind a CSI: drops parameters and intermediates up to the final byte.
fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Within a control string: drops it up to its end (BEL or ST), or to the end of the text.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next() {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_gone() {
        assert_eq!(safe("\u{1b}[31mred\u{1b}[0m"), "red");
        assert_eq!(safe("a\u{1b}]0;title\u{7}b"), "ab");
        assert_eq!(safe("a\u{1b}]8;;http://x\u{1b}\\b"), "ab");
        assert_eq!(safe("\u{9b}2Jx\u{9d}52;c;aGk=\u{9c}y"), "xy");
        assert_eq!(safe("a\r\nb\tc\u{8}\u{7f}\0"), "a  b c");
        assert_eq!(safe("kept\u{202e}dekorb\u{2069}"), "keptdekorb");
        assert_eq!(safe("\u{1b}"), "");
        assert_eq!(safe("µs é 日本"), "µs é 日本");
    }

    #[test]
    fn no_field_is_shown_without_end() {
        assert_eq!(safe(&"x".repeat(600)).chars().count(), 600);
        let cut = safe(&"x".repeat(1_000_000));
        assert_eq!(cut.chars().count(), 601);
        assert!(cut.ends_with('…'));
    }
}
