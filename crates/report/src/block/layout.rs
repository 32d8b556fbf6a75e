//! Tables and lines of text laid out to a width.

use super::table::{ColumnKind, Value};
use super::terminal::plain;
use super::text::{Look, Span};
use super::{Cell, Column, Row, Table};
use crate::output::{Style, Tone};

/// Between two columns.
const GAP: usize = 2;
/// Columns of words get at least this.
const NARROW: usize = 10;
/// What is drawn is at least and at most this wide.
const DRAWN: (usize, usize) = (4, 40);

/// Where the columns of a table stand.
pub(super) struct Layout<'a> {
    kept: &'a [usize],
    widths: Vec<usize>,
}

impl<'a> Layout<'a> {
    /// Figures get the room that they need; words share what is left, and what is drawn what then is left.
    pub(super) fn of(table: &Table, rows: &[&Row], kept: &'a [usize], width: usize) -> Self {
        let room = width.saturating_sub(GAP * (kept.len() - 1));
        let longest = |name: &str| name.split(' ').map(count).max().unwrap_or(0);
        // Names are broken where there is no room for them beside each other.
        let mut widths = widths(table, rows, kept, count);
        let kind = |place: usize| table.columns[kept[place]].kind;
        let least =
            |(place, width): (usize, &usize)| if kind(place) == ColumnKind::Drawn { DRAWN.0 } else { *width };
        if widths.iter().enumerate().map(least).sum::<usize>() > room {
            widths = self::widths(table, rows, kept, longest);
        }
        let (drawn, mut words): (Vec<usize>, Vec<usize>) = (0..kept.len())
            .filter(|place| matches!(kind(*place), ColumnKind::Words | ColumnKind::Why | ColumnKind::Drawn))
            .partition(|place| kind(*place) == ColumnKind::Drawn);
        let soft = |place: &usize| words.contains(place) || drawn.contains(place);
        let hard: usize = (0..kept.len()).filter(|place| !soft(place)).map(|place| widths[place]).sum();
        let mut left = room.saturating_sub(hard + DRAWN.0 * drawn.len());
        if left < NARROW * words.len() {
            // Not even the figures fit: they are broken too.
            words = (0..kept.len()).filter(|place| !drawn.contains(place)).collect();
            left = room.saturating_sub(DRAWN.0 * drawn.len());
        }
        left = shared(&mut widths, &words, left, NARROW.min(left / words.len().max(1)));
        shared(&mut widths, &drawn, left + DRAWN.0 * drawn.len(), DRAWN.0);
        Layout { kept, widths }
    }

    /// Names of columns over a rule, those of groups above them; nothing where no column has a name.
    pub(super) fn heads(&self, table: &Table) -> Vec<String> {
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
            // Names of several lines stand on the rule.
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
        let wide = self.widths.iter().sum::<usize>() + GAP * (self.widths.len() - 1);
        lines.push("─".repeat(wide));
        lines
    }

    pub(super) fn row(&self, table: &Table, row: &Row, style: Style) -> Vec<String> {
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
            Some(tone) => toned(&text, row.cells.iter().flat_map(Cell::spans), tone, style),
            None => text,
        };
        (0..tall).map(line).map(paint).collect()
    }

    /// Cells beside each other: (words, whether they end at the right).
    fn line(&self, cells: impl Iterator<Item = (String, bool)>) -> String {
        let gap = " ".repeat(GAP);
        let padded = cells.zip(&self.widths).map(|((words, right), width)| {
            let pad = " ".repeat(width.saturating_sub(count(&words)));
            if right { pad + &words } else { words + &pad }
        });
        padded.collect::<Vec<_>>().join(&gap).trim_end().to_owned()
    }
}

/// What columns need for their cells, and for their names as `named` measures them.
fn widths(table: &Table, rows: &[&Row], kept: &[usize], named: impl Fn(&str) -> usize) -> Vec<usize> {
    let width = |&index: &usize| {
        let column = &table.columns[index];
        let cells = rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| needed(cell, column));
        cells.chain([named(&column.name)]).max().unwrap_or(0)
    };
    kept.iter().map(width).collect()
}

/// Gives `places` what they need of `room`, and an equal share of it where that is not enough; what is left of it.
fn shared(widths: &mut [usize], places: &[usize], room: usize, least: usize) -> usize {
    let mut order = places.to_vec();
    order.sort_by_key(|place| widths[*place]);
    let mut left = room;
    for (rank, place) in order.iter().enumerate() {
        widths[*place] = widths[*place].min((left / (order.len() - rank)).max(least));
        left = left.saturating_sub(widths[*place]);
    }
    left
}

pub(super) fn toned<'a>(
    line: &str,
    spans: impl IntoIterator<Item = &'a Span>,
    tone: Tone,
    style: Style,
) -> String {
    let mut line = line.to_owned();
    for span in spans.into_iter().filter(|span| span.look == Look::Toned) {
        line = line.replacen(&span.words, &style.paint(tone, &span.words), 1);
    }
    line
}

fn needed(cell: &Cell, column: &Column) -> usize {
    match &cell.value {
        Value::Bar(_) => DRAWN.1,
        Value::Curve(values) => values.len(),
        _ => count(&cell.shown(column.kind == ColumnKind::Ratio)),
    }
}

fn drawn(cell: &Cell, column: &Column, width: usize) -> Vec<String> {
    match &cell.value {
        Value::Bar(share) => vec![bar(*share, width)],
        Value::Curve(values) => vec![curve(values, width)],
        _ => wrap(&plain(&cell.shown(column.kind == ColumnKind::Ratio)), width),
    }
}

pub(super) fn count(words: &str) -> usize {
    words.chars().count()
}

/// `text` broken to `width` columns: at spaces, and within words that are longer than a line. A figure stays with its percent
/// sign, and spaces at the start stay.
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
        let mut letters = word.chars().peekable();
        while letters.peek().is_some() {
            let room = width.saturating_sub(lines.last().map_or(0, |line| count(line))).max(1);
            lines.last_mut().expect("a line").extend(letters.by_ref().take(room));
            if letters.peek().is_some() {
                lines.push(String::new());
            }
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).filter(|line| !line.is_empty()).collect()
}

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of `share` (0 to 1) of `width` columns; a share above zero shows.
fn bar(share: f64, width: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

/// A curve of `width` columns at most; a value that is none leaves a gap.
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
        assert!(wrap("", 8).is_empty());
    }
}
