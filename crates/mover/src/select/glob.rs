//! Patterns of names, as those of a .gitignore file. They are bytes, as names are.
//!
//! No step is tried more than once for each position in the name, whatever the pattern: only the last '*' of a component,
//! and the last "**", take more when the rest does not fit.

use std::collections::BTreeSet;

/// A pattern of names with '/' between their components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(Vec<Component>);

/// The part of a pattern between two '/'.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Component {
    /// "**": any number of components, also none.
    AnyFolders,
    One(Vec<Token>),
}

/// A part of a component, which matches one byte or any number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// '?': any byte.
    AnyByte,
    /// '*': any number of bytes, also none.
    AnyBytes,
    /// "[a-z]": one of these bytes.
    OneOf(BTreeSet<u8>),
}

impl Glob {
    /// Returns a pattern of whole names; `None` if a bracket is not closed, or if nothing follows a backslash.
    pub(super) fn parse(text: &[u8]) -> Option<Glob> {
        let mut components: Vec<Component> =
            text.split(|byte| *byte == b'/').map(component).collect::<Option<_>>()?;
        if components.last() == Some(&Component::AnyFolders) {
            // "a/**" is what lies in a, and not a itself.
            components.push(Component::One(vec![Token::AnyBytes]));
        }
        Some(Glob(components))
    }

    /// Returns the pattern of names whose last component matches this one.
    pub(super) fn in_any_folder(mut self) -> Glob {
        self.0.insert(0, Component::AnyFolders);
        self
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let name: Vec<&[u8]> = name.split(|byte| *byte == b'/').collect();
        fits(
            &self.0,
            &name,
            |one| *one == Component::AnyFolders,
            |one, leaf| match one {
                Component::AnyFolders => true,
                Component::One(tokens) => fits(tokens, leaf, |token| *token == Token::AnyBytes, Token::fits),
            },
        )
    }
}

impl Token {
    fn fits(&self, byte: &u8) -> bool {
        match self {
            Token::Byte(own) => own == byte,
            Token::AnyByte | Token::AnyBytes => true,
            Token::OneOf(bytes) => bytes.contains(byte),
        }
    }
}

/// Returns true if the whole of `text` fits the pattern. Those of its parts that are `any` fit any number of items, the
/// others one for which `fits_one` is true.
fn fits<P, T>(
    pattern: &[P],
    text: &[T],
    any: impl Fn(&P) -> bool,
    fits_one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut part, mut at) = (0, 0);
    // The last part that is `any`, and what it does not take.
    let mut last: Option<(usize, usize)> = None;
    while at < text.len() {
        match (pattern.get(part), last) {
            (Some(one), _) if any(one) => {
                last = Some((part, at));
                part += 1;
            }
            (Some(one), _) if fits_one(one, &text[at]) => {
                part += 1;
                at += 1;
            }
            (_, Some((from, taken))) => {
                last = Some((from, taken + 1));
                (part, at) = (from + 1, taken + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[part..].iter().all(any)
}

fn component(text: &[u8]) -> Option<Component> {
    if text == b"**" {
        return Some(Component::AnyFolders);
    }
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let [first, after @ ..] = rest {
        let (token, left) = match first {
            b'\\' => {
                let (byte, left) = after.split_first()?;
                (Token::Byte(*byte), left)
            }
            b'?' => (Token::AnyByte, after),
            b'*' => (Token::AnyBytes, after),
            b'[' => one_of(after)?,
            byte => (Token::Byte(*byte), after),
        };
        tokens.push(token);
        rest = left;
    }
    Some(Component::One(tokens))
}

/// Returns the bytes that brackets stand for, and what follows the closing one. `text` begins after the opening one.
fn one_of(text: &[u8]) -> Option<(Token, &[u8])> {
    let (is_negated, mut rest) = match text {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (mut bytes, mut is_first) = (BTreeSet::new(), true);
    loop {
        match rest {
            [b']', left @ ..] if !is_first => {
                let all = if is_negated {
                    (0..=u8::MAX).filter(|byte| !bytes.contains(byte)).collect()
                } else {
                    bytes
                };
                return Some((Token::OneOf(all), left));
            }
            [b'[', b':', class @ ..] => {
                let end = class.windows(2).position(|two| two == b":]")?;
                let is_of = of_class(&class[..end])?;
                bytes.extend((0..=u8::MAX).filter(is_of));
                rest = &class[end + 2..];
            }
            _ => {
                let (low, left) = escaped(rest)?;
                let (high, left) = match left {
                    [b'-', after @ ..] if after.first().is_some_and(|byte| *byte != b']') => escaped(after)?,
                    _ => (low, left),
                };
                bytes.extend(low..=high);
                rest = left;
            }
        }
        is_first = false;
    }
}

/// Returns the first byte, or the one after a backslash, and what follows.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', byte, left @ ..] | [byte, left @ ..] => Some((*byte, left)),
        [] => None,
    }
}

/// Returns which bytes a named class has, as "alpha" in "[[:alpha:]]"; `None` if there is no such class.
fn of_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    let is_of: fn(&u8) -> bool = match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    Some(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        Glob::parse(pattern).expect("a pattern").matches(name)
    }

    /// Lines of git's own table (t/t3070-wildmatch.sh), for names with slashes.
    #[test]
    fn patterns_match_as_in_git() {
        for (pattern, name, expected) in [
            ("foo", "foo", true),
            ("foo", "bar", false),
            ("???", "foo", true),
            ("??", "foo", false),
            ("*", "foo", true),
            ("f*", "foo", true),
            ("*f", "foo", false),
            ("*foo*", "foo", true),
            ("*ob*a*r*", "foobar", true),
            ("*ab", "aaaaaaabababab", true),
            ("foo\\*", "foo*", true),
            ("foo\\*bar", "foobar", false),
            ("f\\\\oo", "f\\oo", true),
            ("*[al]?", "ball", true),
            ("[ten]", "ten", false),
            ("**[!te]", "ten", true),
            ("t[a-g]n", "ten", true),
            ("t[!a-g]n", "ten", false),
            ("t[^a-g]n", "ton", true),
            ("a[]]b", "a]b", true),
            ("a[]-]b", "a-b", true),
            ("a[]a-]b", "aab", true),
            ("foo*bar", "foo/baz/bar", false),
            ("foo**bar", "foo/baz/bar", false),
            ("foo/**/bar", "foo/baz/bar", true),
            ("foo/**/**/bar", "foo/b/a/z/bar", true),
            ("foo/**/bar", "foo/bar", true),
            ("foo?bar", "foo/bar", false),
            ("**/foo", "foo", true),
            ("**/foo", "a/b/foo", true),
            ("*/foo", "bar/baz/foo", false),
            ("**/bar/*", "deep/foo/bar/baz", true),
            ("**/bar/**", "deep/foo/bar/baz/x", true),
            ("**/bar/**", "deep/foo/bar", false),
            ("*/bar/**", "deep/foo/bar/baz/x", false),
            ("[[:alpha:]][[:digit:]][[:upper:]]", "a1B", true),
            ("[[:digit:][:upper:][:space:]]", "a", false),
            ("[[:xdigit:]]", "f", true),
            ("[\\\\-^]", "]", true),
            ("[\\-_]", "-", true),
            ("[a-c]b*", "abc", true),
            (
                "-*-*-*-*-*-*-12-*-*-*-m-*-*-*",
                "-adobe-courier-bold-o-normal--12-120-75-75-m-70-iso8859-1",
                true,
            ),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn names_and_patterns_need_not_be_text() {
        assert!(matches(b"*.\xff", b"\xfe.\xff") && matches(b"a?", b"a\xff"));
        assert!(matches(b"[\x80-\xff]*", b"\xe9t\xe9") && !matches(b"\xff", b"\xfe"));
        assert!(!matches(b"[!a]", b"a") && matches(b"[!a]", b"\xff"));
    }

    #[test]
    fn an_unclosed_bracket_is_no_pattern() {
        // Brackets end in their component.
        for bad in [&b"[a"[..], b"a[", b"[]", b"a\\", b"a[/]b", b"[[:alpha:]", b"[[:nothing:]]", b"[!]"] {
            assert_eq!(Glob::parse(bad), None, "{}", bad.escape_ascii());
        }
    }

    /// A matcher that tries all ways would not end with this one.
    #[test]
    fn many_stars_take_no_longer() {
        let pattern = b"*a".repeat(60);
        let name = [b"a".repeat(4_000).as_slice(), b"b"].concat();
        assert!(!matches(&pattern, &name));
        let folders = [b"**/a/".repeat(60).as_slice(), b"c"].concat();
        assert!(!matches(&folders, &[b"a/".repeat(2_000).as_slice(), b"b"].concat()));
    }
}
