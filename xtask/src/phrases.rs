//! Phrases that no page and no help text may have: they are not how engineers write.

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
/// What readers see: pages, and the help of the command line. Decisions and the changelog keep their words.
const READ: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs", "crates/cli/src/args"];
const LEFT_OUT: [&str; 1] = ["docs/decisions"];

pub(crate) fn wrong(root: &Path) -> Result<Vec<String>> {
    let mut files = vec![root.join("crates/cli/src/args.rs")];
    READ.iter().try_for_each(|path| gather(&root.join(path), root, &mut files))?;
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display();
        wrong.extend(
            found(&text)
                .map(|(line, phrase, better)| format!("{name}:{line} says \"{phrase}\": write {better}")),
        );
    }
    Ok(wrong)
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

/// Line, phrase and advice, of whole words.
fn found(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    (1..).zip(text.lines()).flat_map(|(number, line)| {
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
        let text = "It works.\nWhat shall get better, and Nobody knows.\nmarshalling understands bystanders";
        let found: Vec<_> = found(text).map(|(line, phrase, _)| (line, phrase)).collect();
        assert_eq!(found, [(2, "nobody"), (2, "shall")]);
    }
}
