//! The glossary of a report's page.

use crate::block::{ReportBlock, ReportSection, Visibility};

/// The text of all glossaries. Each section begins with a line "# kind of report" and has one line "word: meaning" per
/// word.
const WORDS: &str = include_str!("glossary.txt");

pub(crate) fn of(kind: &str) -> ReportSection {
    let lines = WORDS.lines().skip_while(|line| line.strip_prefix("# ") != Some(kind)).skip(1);
    let pairs = lines.map_while(|line| line.split_once(": "));
    let pairs = pairs.map(|(word, meaning)| (word.into(), meaning.into())).collect();
    ReportSection::new("glossary", "Terms")
        .all(ReportBlock::only(Visibility::OnPage, [ReportBlock::Pairs("", pairs)]))
}
