//! Checks of the markup of a page and of the text for a terminal.

use std::collections::BTreeSet;

struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

/// Returns the start tags of `page`, without those in its style sheet. Panics if a tag does not end.
fn tags(page: &str) -> Vec<Tag> {
    let (before, rest) = page.split_once("<style>").expect("a style sheet");
    let (_, after) = rest.split_once("</style>").expect("the end of the style sheet");
    let mut tags = Vec::new();
    for mut rest in [before, after] {
        while let Some((_, opened)) = rest.split_once('<') {
            let (tag, behind) = tag(opened);
            tags.push(tag);
            rest = behind;
        }
    }
    tags
}

/// Returns the tag whose "<" has just been read, and the text after it.
fn tag(opened: &str) -> (Tag, &str) {
    let name_end = opened.find(|c: char| c.is_whitespace() || c == '>').expect("a tag ends");
    let (name, mut rest) = opened.split_at(name_end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('>') {
            return (Tag { name: name.to_owned(), attributes }, behind);
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '=' || c == '>').expect("an attribute ends");
        let (key, behind) = rest.split_at(end);
        let (value, behind) = match behind.strip_prefix("=\"") {
            Some(quoted) => quoted.split_once('"').expect("a quoted value ends"),
            None => ("", behind),
        };
        attributes.push((key.to_owned(), value.to_owned()));
        rest = behind;
    }
}

/// Returns all tags, all tags with each attribute's name, and all classes.
fn vocabulary(page: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for tag in tags(page) {
        words.insert(format!("<{}", tag.name));
        for (key, value) in tag.attributes {
            words.insert(format!("<{} {key}", tag.name));
            if key == "class" {
                words.extend(value.split(' ').map(|class| format!(".{class}")));
            }
        }
    }
    words
}

/// Panics if `page` has a tag, an attribute or a class that `honest` lacks, or a character that a browser acts on
/// instead of displaying it.
pub(crate) fn check_within(page: &str, honest: &str) {
    let (own, known) = (vocabulary(page), vocabulary(honest));
    let strange: Vec<&String> = own.difference(&known).collect();
    assert!(strange.is_empty(), "a report brought its own markup: {strange:?}");
    let acted_on = |c: &char| {
        (c.is_control() && *c != '\n')
            || ('\u{202a}'..='\u{202e}').contains(c)
            || ('\u{e0000}'..='\u{e007f}').contains(c)
    };
    assert_eq!(page.chars().find(acted_on), None);
}

/// Panics if a position or a size in the drawings of `page` is not a finite number.
pub(crate) fn check_figures(page: &str) {
    const PLACES: [&str; 11] = ["x", "y", "width", "height", "cx", "cy", "r", "x1", "x2", "y1", "y2"];
    for tag in tags(page).iter().filter(|tag| tag.name != "meta") {
        for (key, value) in &tag.attributes {
            if PLACES.contains(&key.as_str()) {
                let number = value.trim_end_matches('%').parse::<f64>();
                assert!(number.is_ok_and(f64::is_finite), "<{} {key}={value:?}>", tag.name);
            }
            if ["style", "d", "viewBox"].contains(&key.as_str()) {
                assert!(!value.contains("NaN") && !value.contains("inf"), "<{} {key}={value:?}>", tag.name);
            }
            if key == "style" {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-:;.".contains(c);
                assert!(value.chars().all(plain), "<{} style={value:?}>", tag.name);
            }
        }
    }
}

/// Panics if `text` has an escape other than a colour, or another character that a terminal acts on.
pub(crate) fn check_terminal(text: &str) {
    for rest in text.split('\u{1b}').skip(1) {
        let code = rest.strip_prefix('[').and_then(|r| r.split_once('m')).map(|(code, _)| code);
        let colour = code.is_some_and(|code| code.chars().all(|c| c.is_ascii_digit() || c == ';'));
        assert!(colour, "an escape that is no colour: {rest:?}");
    }
    let acted_on =
        |c: &char| (c.is_control() && !['\n', '\u{1b}'].contains(c)) || ('\u{202a}'..='\u{202e}').contains(c);
    assert_eq!(text.chars().find(acted_on), None);
}
