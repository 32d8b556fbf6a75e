//! The glossary of a report's page.

use crate::block::{Block, Section, Seen};

/// Sections that begin with "# kind of report", then one "word: meaning" per line.
const WORDS: &str = include_str!("glossary.txt");

pub(crate) fn of(kind: &str) -> Section {
    let lines = WORDS.lines().skip_while(|line| line.strip_prefix("# ") != Some(kind)).skip(1);
    let pairs = lines.map_while(|line| line.split_once(": "));
    let pairs = pairs.map(|(word, meaning)| (word.into(), meaning.into())).collect();
    Section::new("glossary", "Words").all(Block::only(Seen::OnPage, [Block::Pairs("", pairs)]))
}
