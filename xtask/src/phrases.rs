//! Checks that pages, help texts, messages and comments do not contain certain phrases that engineers do not use.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::incoming::entries;

/// A phrase, and the text to write in its place.
type Phrase = (&'static str, &'static str);

/// Phrases that are wrong everywhere.
const EVERYWHERE: [Phrase; 6] = [
    ("that which", "what"),
    ("whoever", "name who"),
    ("nobody", "say what does not happen"),
    ("by lot", "at random"),
    ("shall", "the imperative, or \"must\""),
    ("goes on behind", "continues after"),
];
/// Phrases that are wrong on pages, in help texts and in messages.
const IN_TEXT: [Phrase; 1] = [("stands", "\"is\", or the value")];
/// Phrases that are wrong in comments.
const IN_COMMENTS: [Phrase; 2] =
    [("told", "\"reported\", \"returned\" or \"printed\""), ("as it were", "nothing")];

/// The files whose whole text is checked: pages, and the sources that contain the command line's help texts. Decisions
/// and the changelog are left out.
const READ: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs",
    "crates/cli/src/commands",
    "crates/cli/src/groups.rs",
];
const LEFT_OUT: [&str; 1] = ["docs/decisions"];

/// Returns one line for each phrase that was found.
pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let mut pages = Vec::new();
    READ.iter().try_for_each(|path| gather(&root.join(path), root, &mut pages))?;
    let mut sources = Vec::new();
    ["crates", "validate", "xtask"]
        .iter()
        .try_for_each(|path| gather(&root.join(path), root, &mut sources))?;
    sources.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let mut wrong = Vec::new();
    for file in &pages {
        wrong.extend(lines(root, file, &read(file)?, &IN_TEXT));
    }
    for file in &sources {
        let source = read(file)?;
        if speaks(file) {
            wrong.extend(lines(root, file, &messages(&source), &IN_TEXT));
        }
        wrong.extend(lines(root, file, &comments(&source), &IN_COMMENTS));
    }
    Ok(wrong)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("read {}", file.display()))
}

/// Returns one line for each phrase of `phrases` in `text`. `file` is the file of the text.
fn lines(root: &Path, file: &Path, text: &str, phrases: &'static [Phrase]) -> Vec<String> {
    let name = file.strip_prefix(root).unwrap_or(file).display();
    let line = |(line, (phrase, better)): (usize, Phrase)| {
        format!("{name}:{line} says \"{phrase}\": write {better}")
    };
    found(text, phrases).map(line).collect()
}

/// Returns true if the strings of a source file are messages for users. Strings of tests and of xtask are not.
fn speaks(file: &Path) -> bool {
    let has = |name: &str| file.components().any(|part| part.as_os_str() == name);
    has("crates") && has("src") && !file.to_string_lossy().ends_with("tests.rs")
}

/// Returns the comments of a source, with all other lines empty, so that line numbers stay the same.
fn comments(source: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        if line.starts_with("//") { line.to_owned() } else { String::new() }
    };
    source.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// Returns the messages for users in a source: the strings before its tests, except those of panics. Each string stays
/// on its line.
fn messages(source: &str) -> String {
    let said = |line: &str| {
        let is_bug =
            ["//", "assert", "expect(", "unreachable!", "panic!"].iter().any(|word| line.contains(word));
        let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        if is_bug { String::new() } else { quoted.join(" ") }
    };
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().map(said).collect::<Vec<_>>().join("\n")
}

fn gather(path: &Path, root: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if LEFT_OUT.iter().any(|left_out| path == root.join(left_out)) {
        return Ok(());
    }
    if path.is_dir() {
        return entries(path)?.iter().try_for_each(|entry| gather(entry, root, files));
    }
    if path.extension().is_some_and(|extension| extension == "md" || extension == "rs") {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Returns the phrases of `EVERYWHERE` and of `more` that `text` has as whole words, each with its line's number.
fn found(text: &str, more: &'static [Phrase]) -> impl Iterator<Item = (usize, Phrase)> {
    (1..).zip(text.lines()).flat_map(move |(number, line)| {
        // `nobody` is also a Unix user.
        let line = line.replace("`nobody`", "");
        let line = if line == "nobody" { "" } else { &line };
        let words: String =
            line.chars().map(|c| if c.is_alphabetic() { c.to_ascii_lowercase() } else { ' ' }).collect();
        let words = format!(" {words} ");
        let is_in = move |(phrase, _): &Phrase| words.contains(&format!(" {phrase} "));
        EVERYWHERE.iter().chain(more).copied().filter(is_in).map(move |phrase| (number, phrase))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(text: &str, more: &'static [Phrase]) -> Vec<(usize, &'static str)> {
        found(text, more).map(|(line, (phrase, _))| (line, phrase)).collect()
    }

    #[test]
    fn whole_words_are_found_in_their_lines() {
        let text = "nobody\nas `nobody`\nIt works.\nWhat shall get better, and Nobody knows.\nmarshalling understands bystanders";
        assert_eq!(phrases(text, &IN_TEXT), [(4, "nobody"), (4, "shall")]);
    }

    #[test]
    fn messages_and_comments_have_phrases_of_their_own() {
        let source = "/// Nobody is told what stands.\nlet a = \"it shall\";\nx.expect(\"nobody\");\n#[cfg(test)]\nlet b = \"stands\";";
        assert_eq!(phrases(&messages(source), &IN_TEXT), [(2, "shall")]);
        assert_eq!(phrases(&comments(source), &IN_COMMENTS), [(1, "nobody"), (1, "told")]);
    }
}
