//! Prints a document as text for a terminal or a file.

use super::layout::{TableLayout, count, toned, wrap};
use super::table::ColumnKind;
use super::text::plain;
use super::{
    Article, CollapsibleGroup, DetailLevel, Document, List, ParagraphStyle, ReportBlock, ReportSection,
    ReportTable, StyledText, TableColumn, TableRow,
};
use crate::output::{OutputCapabilities, Painter, Tone};
use crate::safe::clean;

/// Least and greatest width of a line in characters, even if the terminal is narrower or wider.
const WIDTHS: std::ops::RangeInclusive<u16> = 60..=160;
/// The largest number of commands of an article that brief detail shows.
const ARTICLE_COMMANDS: usize = 4;
/// Width of a label with the gap after it, in characters.
const LABEL: usize = 9;
/// Indent of blocks without a label.
const INDENT: usize = 2;

impl Document {
    /// Returns the document as text in the width and style of `output`. The text ends with a line break.
    pub fn text(&self, output: OutputCapabilities, detail: DetailLevel) -> String {
        let printer = TerminalPrinter::of(output, detail);
        let mut parts = vec![printer.head(self)];
        parts.extend(self.sections.iter().map(|section| printer.section(section)));
        let parts: Vec<String> =
            parts.iter().filter(|lines| !lines.is_empty()).map(|l| l.join("\n")).collect();
        output.spell(&(parts.join("\n\n") + "\n"))
    }
}

/// Returns `rows` under `headers` as a table for `output`, without a line break at the end. A row may have fewer cells
/// than there are headers.
pub fn table(headers: &[&str], rows: &[Vec<String>], output: OutputCapabilities) -> String {
    let columns = headers.iter().map(|name| TableColumn::words(*name)).collect();
    let printer = TerminalPrinter {
        painter: Painter { color: false },
        width: output.width.into(),
        watched: false,
        full: true,
    };
    output.spell(&printer.table(&ReportTable::new("", "", columns).rows(rows.iter().cloned())).join("\n"))
}

#[derive(Debug, Clone, Copy)]
struct TerminalPrinter {
    painter: Painter,
    width: usize,
    watched: bool,
    full: bool,
}

impl TerminalPrinter {
    fn of(output: OutputCapabilities, detail: DetailLevel) -> Self {
        TerminalPrinter {
            painter: Painter { color: output.color },
            width: output.width.clamp(*WIDTHS.start(), *WIDTHS.end()).into(),
            watched: output.terminal,
            full: detail == DetailLevel::Full,
        }
    }

    fn section(self, section: &ReportSection) -> Vec<String> {
        let mut lines = self.blocks(&section.blocks);
        // The head of the report already names the first article, so the section needs no heading.
        let is_said =
            matches!(section.blocks.first(), Some(ReportBlock::Article(article)) if article.is_first);
        let is_headed = !section.title.is_empty() && (self.full || !section.is_minor);
        if !lines.is_empty() && is_headed && !is_said {
            lines.splice(0..0, self.heading(&section.title));
        }
        lines
    }

    fn head(self, document: &Document) -> Vec<String> {
        let head = &document.head;
        let facts: Vec<String> =
            head.facts.iter().map(StyledText::words).filter(|fact| !fact.is_empty()).collect();
        let facts = self.toned(Tone::Dim, &facts.join(" · ").into());
        let remarks: Vec<String> = head.remarks.iter().flat_map(|text| self.wrapped(text, 0)).collect();
        if !head.brief.is_empty() {
            let lines = [remarks, self.blocks(&head.brief)].concat();
            return if self.full { [lines, vec![String::new()], facts].concat() } else { lines };
        }
        let mut lines: Vec<String> =
            head.warnings.iter().flat_map(|text| self.toned(Tone::Bad, text)).collect();
        lines.extend(self.toned(Tone::Strong, &head.title));
        lines.extend(self.wrapped(&head.lead, 0));
        lines.extend(facts);
        lines.extend(remarks);
        let blocks = self.blocks(&head.blocks);
        lines.extend((!blocks.is_empty()).then(String::new));
        lines.extend(blocks);
        lines
    }

    /// Prints blocks one below the other, with blank lines between those that would look like one block otherwise.
    fn blocks(self, blocks: &[ReportBlock]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut above: Option<&ReportBlock> = None;
        for block in blocks {
            let more = self.block(block);
            if more.is_empty() {
                continue;
            }
            if above.is_some_and(|above| is_apart(above, block)) {
                lines.push(String::new());
            }
            lines.extend(more);
            above = Some(block);
        }
        lines
    }

    fn block(self, block: &ReportBlock) -> Vec<String> {
        match block {
            ReportBlock::Heading(text) => self.heading(text),
            ReportBlock::Paragraph(style, text) => match style {
                ParagraphStyle::Plain => self.wrapped(text, 0),
                ParagraphStyle::Aside | ParagraphStyle::Absent => self.toned(Tone::Dim, text),
                ParagraphStyle::Good => self.toned(Tone::Good, text),
                ParagraphStyle::Bad => self.toned(Tone::Bad, text),
            },
            ReportBlock::List(list) => self.list(list),
            ReportBlock::Pairs(_, pairs) => {
                self.pairs(pairs.iter().map(|(what, value)| (what.words(), value.words())))
            }
            ReportBlock::Commands(commands) => commands_of(commands),
            ReportBlock::Table(table) => self.table(table),
            ReportBlock::Article(article) => self.article(article),
            ReportBlock::Chart(_) | ReportBlock::Cards(..) => Vec::new(),
            ReportBlock::Group(group) => self.group(group),
            ReportBlock::Labelled(label, blocks) => self.labelled(label, blocks),
            ReportBlock::Only(visibility, blocks) if visibility.is_in_text(self.full) => self.blocks(blocks),
            ReportBlock::Only(..) => Vec::new(),
        }
    }

    fn labelled(self, label: &str, blocks: &[ReportBlock]) -> Vec<String> {
        let margin = if label.is_empty() { INDENT } else { LABEL };
        let lines = TerminalPrinter { width: self.width - margin, ..self }.blocks(blocks);
        let lead = |index| if index == 0 { label } else { "" };
        let line = |(index, line): (usize, &String)| {
            let lead = self.painter.paint(Tone::Strong, &format!("{:margin$}", lead(index)));
            if line.is_empty() { String::new() } else { lead + line }
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn heading(self, text: &StyledText) -> Vec<String> {
        self.toned(Tone::Strong, text)
    }

    fn toned(self, tone: Tone, text: &StyledText) -> Vec<String> {
        self.wrapped(text, 0).iter().map(|line| self.painter.paint(tone, line)).collect()
    }

    fn wrapped(self, text: &StyledText, indent: usize) -> Vec<String> {
        let lines = wrap(&plain(&text.words()), self.width.saturating_sub(indent));
        let lead = |index| if index == 0 { String::new() } else { " ".repeat(indent) };
        lines.iter().enumerate().map(|(index, line)| lead(index) + line).collect()
    }

    fn list(self, list: &List) -> Vec<String> {
        // If only one item would be hidden, it is printed, because the line that counts hidden items would be as long.
        let most = list.most.filter(|most| !self.full && *most + 1 < list.items.len()).unwrap_or(usize::MAX);
        let is_dim = list.class == "asides";
        let (lead, indent) = if is_dim { ("", 0) } else { ("  - ", 4) };
        let paint =
            |line: &String| list.tone.map_or_else(|| line.clone(), |tone| self.painter.paint(tone, line));
        let shown = list.items.iter().take(most).map(|item| StyledText::from(lead).and(item.words()));
        let mut lines: Vec<String> =
            shown.flat_map(|item| self.wrapped(&item, indent)).map(|line| paint(&line)).collect();
        let left = list.items.len().saturating_sub(most);
        lines.extend(
            (left > 0).then(|| self.painter.paint(Tone::Dim, &format!("{lead}{left} more (--full)"))),
        );
        lines
    }

    /// Prints an article, or its brief form if it has one and full detail is not requested.
    fn article(self, article: &Article) -> Vec<String> {
        if let Some(brief) = article.brief.as_ref().filter(|_| !self.full) {
            return self.wrapped(&StyledText::from("  ").and(brief.words()), 4);
        }
        let mut lines = Vec::new();
        if !article.is_first {
            let title = self.wrapped(&article.title, 4);
            let paint = |line: &String| {
                article.tone.map_or_else(
                    || line.clone(),
                    |tone| toned(line, article.title.spans(), tone, self.painter),
                )
            };
            lines.extend(title.iter().map(paint));
            lines.extend(self.wrapped(&StyledText::from("    ").and(article.lead.words()), 4));
        }
        let facts: Vec<String> = article.facts.iter().map(|(_, fact)| fact.words()).collect();
        lines.extend(self.toned(Tone::Dim, &facts.join("; ").into()));
        lines.extend(article.lists.iter().flat_map(|(_, list)| self.list(list)));
        let most = if self.full { usize::MAX } else { ARTICLE_COMMANDS };
        let shown: Vec<_> = article.commands.iter().take(most).cloned().collect();
        lines.extend(commands_of(&shown).iter().map(|line| format!("    {line}")));
        lines
    }

    fn pairs(self, pairs: impl Iterator<Item = (String, String)>) -> Vec<String> {
        let rows = pairs.map(|(what, value)| TableRow::from([what, value]));
        self.table(&ReportTable::new("", "", vec![TableColumn::words(""), TableColumn::words("")]).rows(rows))
    }

    fn group(self, group: &CollapsibleGroup) -> Vec<String> {
        if !self.full {
            return Vec::new();
        }
        let mut lines = self.heading(&group.title);
        lines.extend(self.blocks(&group.blocks));
        lines
    }

    /// Prints a table within the width of a line, and the reasons below it if their column does not fit.
    fn table(self, table: &ReportTable) -> Vec<String> {
        // If only one row would be hidden, it is printed, because the line that counts hidden rows would be as long.
        let is_cut = |row: &&TableRow| row.only_in_full && !self.full;
        let hidden = table.rows.iter().filter(is_cut).count();
        let rows = table.rows.iter().filter(|row| hidden == 1 || !is_cut(row));
        let rows: Vec<&TableRow> = rows.collect();
        let (below, kept): (Vec<usize>, Vec<usize>) = (0..table.columns.len())
            .filter(|index| self.has_room(&table.columns[*index], *index))
            .partition(|index| self.is_told_below(&table.columns[*index]));
        if rows.is_empty() || kept.is_empty() {
            return Vec::new();
        }
        let layout = TableLayout::of(table, &rows, &kept, self.width);
        let mut lines = layout.heads(table);
        lines.extend(rows.iter().flat_map(|row| layout.row(table, row, self.painter)));
        if hidden > 1 {
            lines.push(self.painter.paint(Tone::Dim, &format!("{hidden} more (--full)")));
        }
        for index in below {
            lines.extend(self.reasons(&rows, index));
        }
        lines
    }

    fn has_room(self, column: &TableColumn, index: usize) -> bool {
        match column.kind {
            ColumnKind::Drawn => self.watched,
            ColumnKind::Why => true,
            _ => index == 0 || column.least <= self.width,
        }
    }

    fn is_told_below(self, column: &TableColumn) -> bool {
        column.kind == ColumnKind::Why && column.least > self.width
    }

    /// Prints the reasons of harmful and open rows, or of all rows in full detail.
    fn reasons(self, rows: &[&TableRow], index: usize) -> Vec<String> {
        let called = rows.iter().filter(|row| self.full || matches!(row.tone, Some(Tone::Bad | Tone::Open)));
        let texts: Vec<StyledText> = called
            .filter_map(|row| Some((row.cells.first()?.shown(false), row.cells.get(index)?.shown(false))))
            .filter(|(_, why)| !why.is_empty())
            .map(|(name, why)| format!("{name}: {why}").into())
            .collect();
        let lines = texts.iter().flat_map(|text| self.wrapped(text, 4));
        let lines: Vec<String> = lines.map(|line| self.painter.paint(Tone::Dim, &line)).collect();
        if lines.is_empty() { lines } else { std::iter::once(String::new()).chain(lines).collect() }
    }
}

/// Prints commands unbroken, however long, so that they can be copied.
fn commands_of(commands: &[(StyledText, String)]) -> Vec<String> {
    let wide = commands.iter().map(|(what, _)| count(&what.words())).max().unwrap_or(0);
    let line = |(what, command): &(StyledText, String)| format!("{:wide$}  {}", what.words(), clean(command));
    commands.iter().map(line).collect()
}

/// Returns true if a blank line separates two blocks.
fn is_apart(above: &ReportBlock, below: &ReportBlock) -> bool {
    let is_wide = |block: &ReportBlock| {
        matches!(block, ReportBlock::Table(_) | ReportBlock::Pairs(..) | ReportBlock::Commands(_))
    };
    match (above, below) {
        // Labelled blocks are apart only after one with an empty label.
        (ReportBlock::Labelled(above, _), ReportBlock::Labelled(..)) => above.is_empty(),
        (ReportBlock::Labelled(..), _) | (_, ReportBlock::Labelled(..)) => true,
        (ReportBlock::Only(_, blocks), below) => blocks.last().is_some_and(|above| is_apart(above, below)),
        (above, ReportBlock::Only(_, blocks)) => blocks.first().is_some_and(|below| is_apart(above, below)),
        (ReportBlock::Heading(_), _)
        | (ReportBlock::Paragraph(..), ReportBlock::Table(_) | ReportBlock::Commands(_)) => false,
        (_, ReportBlock::Heading(_) | ReportBlock::Group(_)) => true,
        (ReportBlock::Article(above), ReportBlock::Article(_)) => {
            above.brief.is_none() && !above.lists.is_empty()
        }
        (above, ReportBlock::Paragraph(ParagraphStyle::Aside, _) | ReportBlock::List(_))
            if is_wide(above) =>
        {
            false
        }
        (above, below) => is_wide(above) || is_wide(below),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TableCell;
    use super::*;

    fn printer(width: usize) -> TerminalPrinter {
        TerminalPrinter { painter: Painter { color: false }, width, watched: true, full: false }
    }

    #[test]
    fn a_table_stays_within_its_width_and_figures_stay_whole() {
        let columns = vec![
            TableColumn::words("knob"),
            TableColumn::number("rate"),
            TableColumn::of(ColumnKind::Why, "why").above_width(70),
        ];
        let row = |tone| TableRow {
            tone,
            ..TableRow::from([
                TableCell::from("mtu of a long name"),
                TableCell::number(1.0, "1.25 Gb/s"),
                "word ".repeat(20).into(),
            ])
        };
        let table = ReportTable::new("", "", columns).row(row(Some(Tone::Bad))).row(row(None));
        for width in [30, 60, 90] {
            let lines = printer(width).table(&table);
            assert!(lines.iter().all(|line| count(line) <= width), "{lines:#?}");
            assert!(lines.iter().any(|line| line.contains("1.25 Gb/s")), "{lines:#?}");
            let below = lines.iter().filter(|line| line.starts_with("mtu of a long name: word")).count();
            assert_eq!(below, usize::from(width < 70), "{lines:#?}");
        }
    }
}
