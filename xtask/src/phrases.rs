//! Checks that pages and help texts do not contain certain phrases, which are not how engineers write.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A phrase, and what to write in its place.
const PHRASES: [(&str, &str); 7] = [
    ("that which", "what"),
    ("whoever", "name who"),
    ("nobody", "say what does not happen"),
    ("by lot", "at random"),
    ("shall", "the imperative, or \"must\""),
    ("goes on behind", "continues after"),
    ("stands", "\"is\", or the value"),
];
/// Files that are checked completely: pages, and the help of the command line. Decisions and the changelog keep their
/// words.
const READ: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs", "crates/cli/src/args"];
const LEFT_OUT: [&str; 1] = ["docs/decisions"];

pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let mut files = vec![root.join("crates/cli/src/args.rs")];
    READ.iter().try_for_each(|path| gather(&root.join(path), root, &mut files))?;
    let mut sources = Vec::new();
    gather(&root.join("crates"), root, &mut sources)?;
    let is_test = |file: &PathBuf| file.to_string_lossy().ends_with("tests.rs");
    sources.retain(|file| file.components().any(|part| part.as_os_str() == "src") && !is_test(file));
    let mut wrong = Vec::new();
    for (file, whole) in files.iter().map(|file| (file, true)).chain(sources.iter().map(|file| (file, false)))
    {
        let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let text = if whole { text } else { messages(&text) };
        let name = file.strip_prefix(root).unwrap_or(file).display();
        wrong.extend(
            found(&text)
                .map(|(line, phrase, better)| format!("{name}:{line} says \"{phrase}\": write {better}")),
        );
    }
    Ok(wrong)
}

/// Returns the messages of a source for users: its strings, each on its line, up to its tests, without those of a
/// panic.
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
        let read = fs::read_dir(path).with_context(|| format!("look into {}", path.display()))?;
        let mut entries = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| gather(entry, root, files));
    }
    if path.extension().is_some_and(|extension| extension == "md" || extension == "rs") {
        files.push(path.to_owned());
    }
    Ok(())
}

/// Returns line, phrase and advice for whole words.
fn found(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    (1..).zip(text.lines()).flat_map(|(number, line)| {
        // `nobody` is also a Unix user.
        let line = line.replace("`nobody`", "");
        let line = if line == "nobody" { "" } else { &line };
        let words: String =
            line.chars().map(|c| if c.is_alphabetic() { c.to_ascii_lowercase() } else { ' ' }).collect();
        let words = format!(" {words} ");
        let is_in = move |(phrase, _): &(&str, &str)| words.contains(&format!(" {phrase} "));
        PHRASES.into_iter().filter(is_in).map(move |(phrase, better)| (number, phrase, better))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_found_in_their_lines() {
        let text = "nobody\nas `nobody`\nIt works.\nWhat shall get better, and Nobody knows.\nmarshalling understands bystanders";
        let found: Vec<_> = found(text).map(|(line, phrase, _)| (line, phrase)).collect();
        assert_eq!(found, [(4, "nobody"), (4, "shall")]);
    }

    #[test]
    fn messages_are_read_and_comments_are_not() {
        let source = "/// Nobody calls.\nlet a = \"it shall\";\nx.expect(\"nobody\");\n#[cfg(test)]\nlet b = \"stands\";";
        let found: Vec<_> = found(&messages(source)).map(|(line, phrase, _)| (line, phrase)).collect();
        assert_eq!(found, [(2, "shall")]);
    }
}
