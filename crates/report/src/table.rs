//! Tables for a terminal.

use comfy_table::{Cell, ContentArrangement, Table, TableComponent, presets};

use crate::safe;

/// `rows` under `headers`, wrapped to `width` columns. Cells are made safe; a row may be shorter than
/// the headers. Ends without a line break.
pub fn table(headers: &[&str], rows: &[Vec<String>], width: u16) -> String {
    let rows = rows.iter().map(|row| row.iter().map(|cell| Cell::new(safe(cell))).collect());
    shown(headers, rows, width).to_string()
}

/// The house's table: no frame, a rule under the headers, columns two spaces apart.
pub(crate) fn shown(headers: &[&str], rows: impl Iterator<Item = Vec<Cell>>, width: u16) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_style(TableComponent::HeaderLines, '─');
    for none in [TableComponent::VerticalLines, TableComponent::LeftBorder, TableComponent::RightBorder] {
        table.remove_style(none);
    }
    for none in [TableComponent::MiddleHeaderIntersections, TableComponent::LeftHeaderIntersection] {
        table.remove_style(none);
    }
    table.remove_style(TableComponent::RightHeaderIntersection);
    table.set_header(headers.iter().copied().map(Cell::new));
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_stays_within_its_width_and_shows_no_escape() {
        let rows = vec![vec!["tcp_rmem".to_owned(), "word ".repeat(40)], vec!["\u{1b}[2Jmtu".to_owned()]];
        let text = table(&["knob", "value"], &rows, 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("knob") && text.contains("mtu") && !text.contains('\u{1b}'), "{text}");
    }
}
