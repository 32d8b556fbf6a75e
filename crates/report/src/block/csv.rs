//! Prints a document's tables as CSV (RFC 4180), separated by a blank line. Figures are exact and in base units,
//! which the headers name.

use super::table::{CellValue, ColumnKind};
use super::{Document, ReportBlock, ReportTable, TableCell, TableColumn, Visibility};

impl Document {
    /// Returns all tables of the document as CSV, which ends with a line break.
    pub fn csv(&self) -> String {
        let mut tables = Vec::new();
        collect(&self.head.blocks, &mut tables);
        for section in &self.sections {
            collect(&section.blocks, &mut tables);
        }
        tables.iter().map(|table| printed(table)).collect::<Vec<_>>().join("\r\n")
    }
}

/// Returns `rows` of words under `headers` as CSV, which ends with a line break.
pub fn csv(headers: &[&str], rows: &[Vec<String>]) -> String {
    let columns = headers.iter().map(|name| TableColumn::words(*name)).collect();
    printed(&ReportTable::new("", "", columns).rows(rows.iter().cloned()))
}

fn collect<'a>(blocks: &'a [ReportBlock], into: &mut Vec<&'a ReportTable>) {
    for block in blocks {
        match block {
            ReportBlock::Table(table) => into.push(table),
            ReportBlock::Only(Visibility::InBrief, _) => {}
            ReportBlock::Group(group) => collect(&group.blocks, into),
            ReportBlock::Only(_, blocks) | ReportBlock::Labelled(_, blocks) => collect(blocks, into),
            _ => {}
        }
    }
}

fn printed(table: &ReportTable) -> String {
    let kept: Vec<(usize, &TableColumn, Vec<&str>)> = (table.columns.iter().enumerate())
        .filter(|(_, column)| column.kind != ColumnKind::Drawn)
        .map(|(index, column)| (index, column, units(table, index)))
        .collect();
    let mut text = line(kept.iter().flat_map(|(_, column, units)| heads(column, units)));
    for row in table.rows.iter().filter(|row| row.visibility != Visibility::InBrief) {
        text += &line(kept.iter().flat_map(|(index, column, units)| {
            let found = row.cells.get(*index);
            let own_unit = (units.len() > 1).then(|| found.and_then(unit).unwrap_or_default().to_owned());
            cell(found, column.kind).into_iter().chain(own_unit)
        }));
    }
    text
}

fn units(table: &ReportTable, index: usize) -> Vec<&'static str> {
    let mut units: Vec<_> = table.rows.iter().filter_map(|row| unit(row.cells.get(index)?)).collect();
    units.sort_unstable();
    units.dedup();
    units
}

fn unit(cell: &TableCell) -> Option<&'static str> {
    match &cell.value {
        CellValue::Quantity(quantity) if !quantity.unit.is_empty() => Some(quantity.unit),
        _ => None,
    }
}

/// Returns a column's headers: three for an estimate, two if its figures have different units.
fn heads(column: &TableColumn, units: &[&str]) -> Vec<String> {
    let name = [column.group.as_str(), &column.name].map(str::trim).join(" ").trim().to_owned();
    match (column.kind, units) {
        (ColumnKind::Estimate | ColumnKind::Ratio, _) => {
            ["", " low", " high"].map(|end| format!("{name}{end}")).to_vec()
        }
        (_, []) => vec![name],
        (_, [unit]) => vec![format!("{name} [{unit}]")],
        _ => vec![name.clone(), format!("{name} unit")],
    }
}

fn cell(cell: Option<&TableCell>, kind: ColumnKind) -> Vec<String> {
    let value = cell.map(|cell| &cell.value);
    if matches!(kind, ColumnKind::Estimate | ColumnKind::Ratio) {
        return match value {
            Some(CellValue::Estimate(Some(e))) => [e.ratio, e.low, e.high].map(|v| v.to_string()).to_vec(),
            _ => vec![String::new(); 3],
        };
    }
    vec![match value {
        Some(CellValue::Quantity(quantity)) => quantity.value.to_string(),
        // An unknown value is an empty field.
        Some(CellValue::Text(text)) => {
            Some(text.words()).filter(|words| words != super::table::ABSENT).unwrap_or_default()
        }
        _ => String::new(),
    }]
}

/// Joins fields to a line. A field that begins like a formula gets an apostrophe, so that a spreadsheet takes it as
/// text.
fn line(fields: impl Iterator<Item = String>) -> String {
    let field = |field: String| {
        let is_number = field.parse::<f64>().is_ok();
        let field =
            if field.starts_with(['=', '+', '-', '@']) && !is_number { format!("'{field}") } else { field };
        if field.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    };
    fields.map(field).collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use landspeed_record::Estimate;
    use landspeed_record::units::Nanos;

    use super::super::{ReportSection, TableRow};
    use super::*;

    #[test]
    fn figures_keep_their_digits_and_words_obey_nothing() {
        let columns = vec![
            TableColumn::words("step"),
            TableColumn::of(ColumnKind::Ratio, "rate"),
            TableColumn::number("round trip"),
        ];
        let estimate = Estimate { ratio: 1.25, low: 1.0, high: 1.5 };
        let row = |name: &str, e: Option<Estimate>, time: Option<Nanos>| {
            TableRow::from([TableCell::from(name), e.into(), time.into()])
        };
        let table = ReportTable::new("steps", "", columns)
            .row(row("a, \"b\"", Some(estimate), Some(Nanos(41_234))))
            .row(row("=cmd()", None, None));
        let document =
            Document { sections: vec![ReportSection::new("x", "").with(table)], ..Document::default() };
        assert_eq!(
            document.csv(),
            "step,rate,rate low,rate high,round trip [ns]\r\n\"a, \"\"b\"\"\",1.25,1,1.5,41234\r\n'=cmd(),,,,\r\n"
        );
    }
}
