//! Lays out tables and lines of text for a given width.

use super::table::{CellValue, ColumnKind};
use super::text::{TextSpan, TextStyle, plain};
use super::{ReportTable, TableCell, TableColumn, TableRow};
use crate::output::{Painter, Tone};
use crate::words::unit;

/// Spaces between two columns: normally, and on a narrow terminal.
const GAPS: [usize; 2] = [2, 1];
/// Least and greatest width of a drawing in a table, in characters.
const DRAWN: (usize, usize) = (4, 40);

/// The columns of a table that a terminal shows, with their widths in characters.
pub(super) struct TableLayout<'a> {
    kept: &'a [usize],
    widths: Vec<usize>,
    gap: usize,
}

impl<'a> TableLayout<'a> {
    /// Computes the widths of the columns `kept` for a table of `width` characters. Figures get the width that they
    /// need, words share the rest, and drawings take what is still left. If the table is too wide, the gaps become
    /// narrower before any word is broken.
    pub(super) fn of(table: &ReportTable, rows: &[&TableRow], kept: &'a [usize], width: usize) -> Self {
        let room = |gap: usize| width.saturating_sub(gap * (kept.len() - 1));
        let needs =
            |longest| kept.iter().map(|&index| ColumnWidths::of(table, rows, index, longest)).collect();
        let tries: [(usize, LongestUnbroken); 4] = [
            (GAPS[0], LongestUnbroken { of_words: word, of_figures: count }),
            (GAPS[1], LongestUnbroken { of_words: word, of_figures: count }),
            (GAPS[1], LongestUnbroken { of_words: piece, of_figures: count }),
            (GAPS[1], LongestUnbroken { of_words: piece, of_figures: piece }),
        ];
        for (gap, longest) in tries {
            let columns: Vec<ColumnWidths> = needs(longest);
            if columns.iter().map(|column| column.least).sum::<usize>() <= room(gap) {
                return TableLayout { kept, widths: shared(&columns, room(gap)), gap };
            }
        }
        // Even the pieces of words do not fit, so any text may be broken anywhere.
        let columns: Vec<ColumnWidths> = needs(LongestUnbroken { of_words: |_| 1, of_figures: |_| 1 });
        let mut widths = vec![1; columns.len()];
        let all: Vec<usize> = (0..columns.len()).collect();
        spread(&mut widths, &all, room(GAPS[1]).saturating_sub(columns.len()), |at| columns[at].most);
        TableLayout { kept, widths, gap: GAPS[1] }
    }

    /// Returns the lines above the rows: the names of column groups, the names of columns and, unless the table has
    /// drawings, a rule. Returns nothing if no column has a name.
    pub(super) fn heads(&self, table: &ReportTable) -> Vec<String> {
        let columns = || self.kept.iter().map(|&index| &table.columns[index]);
        if columns().all(|column| column.name.is_empty()) {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if columns().any(|column| !column.group.is_empty()) {
            let mut last = "";
            let names: Vec<String> = columns()
                .map(|column| {
                    if column.group == last {
                        String::new()
                    } else {
                        last = &column.group;
                        column.group.clone()
                    }
                })
                .collect();
            lines.push(self.line(columns().zip(names).map(|(column, name)| (name, column.is_number()))));
        }
        let cells: Vec<Vec<String>> =
            columns().zip(&self.widths).map(|(column, width)| wrap(&column.name, *width)).collect();
        let tall = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..tall {
            // A name of several lines ends on the last line above the rule.
            let part = |cell: &Vec<String>| {
                (line + cell.len()).checked_sub(tall).map(|at| cell[at].clone()).unwrap_or_default()
            };
            lines.push(
                self.line(columns().zip(&cells).map(|(column, cell)| (part(cell), column.is_number()))),
            );
        }
        // Rows with bars need no rule above them.
        if columns().any(|column| column.kind == ColumnKind::Drawn) {
            return lines;
        }
        let wide = self.widths.iter().sum::<usize>() + self.gap * (self.widths.len() - 1);
        lines.push("─".repeat(wide));
        lines
    }

    pub(super) fn row(&self, table: &ReportTable, row: &TableRow, painter: Painter) -> Vec<String> {
        let cells: Vec<Vec<String>> = self
            .kept
            .iter()
            .zip(&self.widths)
            .map(|(&index, width)| {
                row.cells
                    .get(index)
                    .map(|cell| drawn(cell, &table.columns[index], *width))
                    .unwrap_or_default()
            })
            .collect();
        let tall = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            self.line(self.kept.iter().zip(&cells).map(|(&index, lines)| {
                let words = lines.get(at).cloned().unwrap_or_default();
                (words, table.columns[index].is_number())
            }))
        };
        let paint = |text: String| match row.tone {
            Some(tone) => toned(&text, row.cells.iter().flat_map(TableCell::spans), tone, painter),
            None => text,
        };
        (0..tall).map(line).map(paint).collect()
    }

    /// Joins cells to a line. Each cell is a pair of its text and true if it is right-aligned.
    fn line(&self, cells: impl Iterator<Item = (String, bool)>) -> String {
        let gap = " ".repeat(self.gap);
        let padded = cells.zip(&self.widths).map(|((words, right), width)| {
            let pad = " ".repeat(width.saturating_sub(count(&words)));
            if right { pad + &words } else { words + &pad }
        });
        padded.collect::<Vec<_>>().join(&gap).trim_end().to_owned()
    }
}

/// Functions that return how many characters of a text must stay on one line, in a column of words and in one of
/// figures.
#[derive(Clone, Copy)]
struct LongestUnbroken {
    of_words: fn(&str) -> usize,
    of_figures: fn(&str) -> usize,
}

/// The widths that a column needs, in characters: `least` breaks no word, `most` breaks no line.
struct ColumnWidths {
    least: usize,
    most: usize,
    kind: ColumnKind,
}

impl ColumnWidths {
    fn of(table: &ReportTable, rows: &[&TableRow], index: usize, longest: LongestUnbroken) -> ColumnWidths {
        let column = &table.columns[index];
        let cells = || rows.iter().filter_map(|row| row.cells.get(index));
        let shown = |cell: &TableCell| plain(&cell.shown(column.kind == ColumnKind::Ratio));
        let whole = |cell: &TableCell| match &cell.value {
            CellValue::Bar(_) => DRAWN.1,
            CellValue::Curve(values) => values.len(),
            _ => count(&shown(cell)),
        };
        let most = cells().map(whole).max().unwrap_or(0);
        let of_cells = match column.kind {
            ColumnKind::Drawn => |_: &str| DRAWN.0,
            kind if is_words(kind) => longest.of_words,
            _ => longest.of_figures,
        };
        let least = cells().map(|cell| of_cells(&shown(cell))).max().unwrap_or(0);
        let name = (longest.of_words)(&column.name);
        ColumnWidths { least: least.max(name), most: most.max(count(&column.name)), kind: column.kind }
    }
}

fn is_words(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Words | ColumnKind::Why)
}

/// Divides `room`, a number of characters, among the columns. Each column gets its least width. What is left goes to
/// words, then to figures if all of their names then fit, then to drawings.
fn shared(columns: &[ColumnWidths], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|needs| needs.least).collect();
    let places = |chosen: &dyn Fn(ColumnKind) -> bool| -> Vec<usize> {
        (0..columns.len()).filter(|at| chosen(columns[*at].kind)).collect()
    };
    let is_drawn = |kind| kind == ColumnKind::Drawn;
    let mut left = room.saturating_sub(widths.iter().sum());
    let mut give = |places: &[usize], left: usize| spread(&mut widths, places, left, |at| columns[at].most);
    left = give(&places(&is_words), left);
    let figures = places(&|kind| !is_words(kind) && !is_drawn(kind));
    if figures.iter().map(|at| columns[*at].most - columns[*at].least).sum::<usize>() <= left {
        left = give(&figures, left);
    }
    give(&places(&is_drawn), left);
    widths
}

/// Widens the columns at the indices `places` to the widths that they need, by `room` characters in all. If `room` is
/// too small, the columns that need little get all of it, and the others get equal shares. Returns the rest of `room`.
fn spread(widths: &mut [usize], places: &[usize], room: usize, needed: impl Fn(usize) -> usize) -> usize {
    let lacks = |widths: &[usize], at: usize| needed(at).saturating_sub(widths[at]);
    let mut order = places.to_vec();
    order.sort_by_key(|at| lacks(widths, *at));
    let mut left = room;
    for (rank, at) in order.iter().enumerate() {
        let more = lacks(widths, *at).min(left / (order.len() - rank));
        widths[*at] += more;
        left -= more;
    }
    left
}

pub(super) fn toned<'a>(
    line: &str,
    spans: impl IntoIterator<Item = &'a TextSpan>,
    tone: Tone,
    painter: Painter,
) -> String {
    let mut line = line.to_owned();
    for span in spans.into_iter().filter(|span| span.look == TextStyle::Toned) {
        line = line.replacen(&span.words, &painter.paint(tone, &span.words), 1);
    }
    line
}

fn drawn(cell: &TableCell, column: &TableColumn, width: usize) -> Vec<String> {
    match &cell.value {
        CellValue::Bar(share) => vec![bar(*share, width)],
        CellValue::Curve(values) => vec![curve(values, width)],
        _ => wrap(&plain(&cell.shown(column.kind == ColumnKind::Ratio)), width),
    }
}

pub(super) fn count(words: &str) -> usize {
    words.chars().count()
}

/// Breaks `text` into lines of `width` columns: at spaces, and within words that are longer than a line, where
/// possible after a hyphen or a similar character. A figure stays with its percent sign, and leading spaces are kept.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let glued = text.replace(" %", "\u{a0}%");
    let lead: String = glued.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead.clone()];
    let mut is_fresh = true;
    for word in glued.split(' ').filter(|word| !word.is_empty()) {
        let used = lines.last().map_or(0, |line| count(line));
        if !is_fresh && used + 1 + count(word) <= width {
            lines.last_mut().expect("a line").push_str(&format!(" {word}"));
            continue;
        }
        if !is_fresh {
            lines.push(String::new());
        }
        is_fresh = false;
        let is_whole = lines.last().map_or(0, |line| count(line)) + count(word) <= width;
        let pieces = if is_whole { vec![word] } else { pieces(word).collect() };
        pieces.into_iter().for_each(|piece| append(&mut lines, piece, width));
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).filter(|line| !line.is_empty()).collect()
}

/// Adds a piece of a word to the last line, or to new lines below it.
fn append(lines: &mut Vec<String>, piece: &str, width: usize) {
    let used = |lines: &[String]| lines.last().map_or(0, |line| count(line));
    let has_words = lines.last().is_some_and(|line| !line.trim_start().is_empty());
    if has_words && used(lines) + count(piece) > width {
        lines.push(String::new());
    }
    let mut letters = piece.chars().peekable();
    while letters.peek().is_some() {
        let room = width.saturating_sub(used(lines)).max(1);
        lines.last_mut().expect("a line").extend(letters.by_ref().take(room));
        if letters.peek().is_some() {
            lines.push(String::new());
        }
    }
}

/// Splits a word into the pieces after which a line may end: "socket-", "notsent-", "lowat".
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    word.split_inclusive(['-', '–', '_', '/', '='])
}

/// Returns the length of the longest word.
fn word(words: &str) -> usize {
    words.replace(" %", "\u{a0}%").split(' ').map(count).max().unwrap_or(0)
}

/// Returns the length of the longest piece of a word.
fn piece(words: &str) -> usize {
    words.replace(" %", "\u{a0}%").split(' ').flat_map(pieces).map(count).max().unwrap_or(0)
}

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a bar that fills `share` (0 to 1) of `width` characters. Any share above zero is visible.
fn bar(share: f64, width: usize) -> String {
    let share = unit(share);
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

/// Draws a curve of values from 0 to 1, at most `width` characters wide. A missing value leaves a gap.
fn curve(values: &[Option<f64>], width: usize) -> String {
    let columns = values.len().min(width);
    let column = |index: usize| match values[index * values.len() / columns] {
        Some(v) if v.is_finite() => HEIGHTS[(v.clamp(0.0, 1.0) * 7.0).round() as usize],
        _ => ' ',
    };
    (0..columns).map(column).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_width_and_anything_above_nothing_shows() {
        let shown =
            [(0.5, 4), (1e-9, 4), (0.0, 2), (f64::NAN, 2), (9.0, 3)].map(|(share, width)| bar(share, width));
        assert_eq!(shown, ["██", "▏", "", "", "███"]);
        assert_eq!(curve(&[Some(0.0), None, Some(1.0), Some(f64::NAN)], 9), "▁ █");
        assert_eq!(curve(&[Some(0.0), Some(0.5), Some(1.0), Some(0.0)], 2), "▁█");
    }

    #[test]
    fn lines_break_at_spaces_and_only_endless_words_within() {
        assert_eq!(wrap("no rings: a, bc, d 5 %", 8), ["no", "rings:", "a, bc, d", "5 %"]);
        assert_eq!(wrap("  - abcdefghij k", 8), ["  -", "abcdefgh", "ij k"]);
        assert_eq!(wrap("slow-start-after-idle is off", 12), ["slow-start-", "after-idle", "is off"]);
        assert!(wrap("", 8).is_empty());
    }
}
