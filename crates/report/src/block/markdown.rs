//! Prints a document as Markdown, with pipe tables (GitHub Flavored Markdown, "Tables").

use super::layout::count;
use super::table::ColumnKind;
use super::{
    Article, DetailLevel, Document, ParagraphStyle, ReportBlock, ReportSection, ReportTable, StyledText,
    TableRow,
};
use crate::output::micros;
use crate::safe::clean;

impl Document {
    /// Returns the document as Markdown, which ends with a line break.
    pub fn markdown(&self, detail: DetailLevel) -> String {
        let printer = MarkdownPrinter { full: detail == DetailLevel::Full };
        let mut parts = printer.head(self);
        parts.extend(self.sections.iter().flat_map(|section| printer.section(section)));
        parts.retain(|part| !part.is_empty());
        micros(&parts.join("\n\n")) + "\n"
    }
}

/// Returns `rows` of words under `headers` as a Markdown table, which ends with a line break.
pub fn markdown_table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |words: &[String]| words.iter().map(|word| escaped(word)).collect::<Vec<_>>();
    let heads: Vec<String> = headers.iter().map(|head| escaped(head)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    micros(&pipes(&heads, &vec![false; heads.len()], &rows)) + "\n"
}

#[derive(Clone, Copy)]
struct MarkdownPrinter {
    full: bool,
}

impl MarkdownPrinter {
    fn head(self, document: &Document) -> Vec<String> {
        let head = &document.head;
        let facts: Vec<String> = head.facts.iter().map(text).filter(|fact| !fact.is_empty()).collect();
        let warnings = head.warnings.iter().map(|warning| format!("**{}**", text(warning)));
        let mut parts = vec![heading(1, &head.title)];
        parts.extend(warnings);
        parts.extend([text(&head.lead), facts.join(" · ")]);
        parts.extend(head.remarks.iter().map(text));
        parts.extend(self.blocks(if head.brief.is_empty() { &head.blocks } else { &head.brief }));
        parts
    }

    fn section(self, section: &ReportSection) -> Vec<String> {
        let parts = self.blocks(&section.blocks);
        let is_headed = !parts.is_empty() && (self.full || !section.is_minor);
        let heading = is_headed.then(|| heading(2, &section.title));
        heading.into_iter().chain(parts).collect()
    }

    fn blocks(self, blocks: &[ReportBlock]) -> Vec<String> {
        blocks.iter().flat_map(|block| self.block(block)).collect()
    }

    fn block(self, block: &ReportBlock) -> Vec<String> {
        match block {
            ReportBlock::Heading(title) => vec![heading(3, title)],
            ReportBlock::Paragraph(ParagraphStyle::Good | ParagraphStyle::Bad, words) => {
                vec![format!("**{}**", text(words))]
            }
            ReportBlock::Paragraph(_, words) => vec![text(words)],
            ReportBlock::List(list) => vec![items(&list.items)],
            ReportBlock::Pairs(_, pairs) => {
                let rows: Vec<Vec<String>> =
                    pairs.iter().map(|(what, value)| vec![text(what), text(value)]).collect();
                vec![pipes(&[String::new(), String::new()], &[false, false], &rows)]
            }
            ReportBlock::Commands(commands) => vec![fenced(commands)],
            ReportBlock::Table(table) => self.table(table).into_iter().collect(),
            ReportBlock::Article(article) => self.article(article),
            ReportBlock::Chart(_) | ReportBlock::Cards(..) => Vec::new(),
            ReportBlock::Group(group) if self.full => {
                [vec![heading(3, &group.title)], self.blocks(&group.blocks)].concat()
            }
            ReportBlock::Group(_) => Vec::new(),
            ReportBlock::Labelled("", blocks) => self.blocks(blocks),
            ReportBlock::Labelled(label, blocks) => {
                [vec![format!("**{label}**")], self.blocks(blocks)].concat()
            }
            ReportBlock::Only(visibility, blocks) if visibility.is_in_text(self.full) => self.blocks(blocks),
            ReportBlock::Only(..) => Vec::new(),
        }
    }

    fn article(self, article: &Article) -> Vec<String> {
        if let Some(brief) = article.brief.as_ref().filter(|_| !self.full) {
            return vec![text(brief)];
        }
        let mut parts = Vec::new();
        if !article.is_first {
            parts.extend([heading(3, &article.title), text(&article.lead)]);
        }
        let facts: Vec<String> = article.facts.iter().map(|(_, fact)| text(fact)).collect();
        parts.push(facts.join("; "));
        parts.extend(article.lists.iter().map(|(_, list)| items(&list.items)));
        parts
    }

    fn table(self, table: &ReportTable) -> Option<String> {
        let kept: Vec<usize> = (0..table.columns.len())
            .filter(|index| table.columns[*index].kind != ColumnKind::Drawn)
            .collect();
        let name = |index: &usize| {
            let column = &table.columns[*index];
            escaped(format!("{} {}", column.group, column.name).trim())
        };
        let cells = |row: &TableRow| -> Vec<String> {
            let shown =
                |index: &usize| row.cells.get(*index).map_or_else(String::new, |cell| cell.shown(false));
            kept.iter().map(|index| escaped(&shown(index))).collect()
        };
        let rows: Vec<Vec<String>> =
            table.rows.iter().filter(|row| self.full || !row.only_in_full).map(cells).collect();
        let numbers: Vec<bool> = kept.iter().map(|index| table.columns[*index].is_number()).collect();
        let heads: Vec<String> = kept.iter().map(name).collect();
        (!rows.is_empty() && !heads.is_empty()).then(|| pipes(&heads, &numbers, &rows))
    }
}

fn text(of: &StyledText) -> String {
    escaped(&of.words())
}

fn heading(level: usize, title: &StyledText) -> String {
    let title = text(title);
    if title.is_empty() { title } else { format!("{} {title}", "#".repeat(level)) }
}

fn items(items: &[StyledText]) -> String {
    items.iter().map(|item| format!("- {}", text(item))).collect::<Vec<_>>().join("\n")
}

fn fenced(commands: &[(StyledText, String)]) -> String {
    let line = |(what, command): &(StyledText, String)| format!("{}  # {}", clean(command), what.words());
    let lines: Vec<String> = commands.iter().map(line).collect();
    format!("```sh\n{}\n```", lines.join("\n").replace("```", ""))
}

/// Returns `text` on one line, with the characters of tables, code, `*` emphasis, links and HTML escaped.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '\\' | '[' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

/// Returns a pipe table whose cells are padded to the width of their column. `numbers` is true for right-aligned
/// columns.
fn pipes(heads: &[String], numbers: &[bool], rows: &[Vec<String>]) -> String {
    let cell = |row: &[String], index: usize| row.get(index).cloned().unwrap_or_default();
    let widest = |index: usize| rows.iter().map(|row| count(&cell(row, index))).max().unwrap_or(0);
    let widths: Vec<usize> =
        heads.iter().enumerate().map(|(index, head)| count(head).max(widest(index)).max(3)).collect();
    let line = |row: &[String]| {
        let padded = widths.iter().enumerate().map(|(index, width)| {
            let text = cell(row, index);
            let room = " ".repeat(width.saturating_sub(count(&text)));
            if numbers.get(index) == Some(&true) { room + &text } else { text + &room }
        });
        format!("| {} |", padded.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.iter().enumerate().map(|(index, width)| match numbers.get(index) {
        Some(true) => format!("{}:", "-".repeat(width - 1)),
        _ => "-".repeat(*width),
    });
    let rule = format!("| {} |", rule.collect::<Vec<_>>().join(" | "));
    let lines = [line(heads), rule].into_iter().chain(rows.iter().map(|row| line(row)));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::TableColumn;
    use super::*;

    #[test]
    fn tables_are_of_pipes_and_words_instruct_nothing() {
        let columns = vec![TableColumn::words("knob"), TableColumn::number("rate")];
        let rows = [TableRow::from(["a|b <i>*x*", "2.65 Gb/s"]), TableRow::from(["tso", "5 Gb/s"])];
        let table = ReportTable::new("steps", "", columns).rows(rows);
        let section = ReportSection::new("x", "What *differs*").with(table);
        let document = Document { sections: vec![section], ..Document::default() };
        let expected = [
            r"## What \*differs\*",
            "",
            "| knob             |      rate |",
            "| ---------------- | --------: |",
            r"| a\|b &lt;i>\*x\* | 2.65 Gb/s |",
            "| tso              |    5 Gb/s |",
            "",
        ];
        assert_eq!(document.markdown(DetailLevel::Brief), expected.join("\n"));
    }

    #[test]
    fn a_list_is_a_table_too() {
        let rows = [vec!["mine".to_owned(), "up".to_owned()]];
        assert_eq!(
            markdown_table(&["lab", "state"], &rows),
            "| lab  | state |\n| ---- | ----- |\n| mine | up    |\n"
        );
    }
}
