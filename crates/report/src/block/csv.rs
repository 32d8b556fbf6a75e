//! Prints a document's tables as CSV (RFC 4180), one file per table. Figures are exact and in base units, which the
//! headers name.

use super::table::{CellValue, ColumnKind};
use super::{Document, ReportBlock, ReportTable, TableCell, TableColumn, TableRow, Visibility};

/// A table as CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvTable {
    /// The part of a file's name that identifies the table: letters, digits and '-'. It is unique within a document.
    pub name: String,
    /// The header line and the rows, each with CR LF at its end.
    pub text: String,
}

impl Document {
    /// Returns each table of the document as CSV, except those that only a terminal in brief detail shows.
    pub fn csv(&self) -> Vec<CsvTable> {
        let mut tables = Vec::new();
        collect(&self.head.blocks, &mut tables);
        for section in &self.sections {
            collect(&section.blocks, &mut tables);
        }
        let mut named: Vec<CsvTable> = Vec::new();
        for table in tables {
            let name = free_name(&file_name(&table.label), &named);
            named.push(CsvTable { name, text: printed(table) });
        }
        named
    }
}

/// Returns up to six words of a label in lower case, joined by '-', for a file's name.
fn file_name(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' };
    let words: String = label.chars().map(plain).collect();
    let words: Vec<&str> = words.split_whitespace().take(6).collect();
    if words.is_empty() { "table".to_owned() } else { words.join("-") }
}

fn free_name(name: &str, taken: &[CsvTable]) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.iter().all(|other| other.name != *name)).unwrap_or_default()
}

/// Returns `headers` and `rows` as CSV, with CR LF at the end of each line.
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
    let kept: Vec<CsvColumn<'_>> = (table.columns.iter().enumerate())
        .filter(|(_, column)| column.kind != ColumnKind::Drawn)
        .map(|(index, column)| CsvColumn {
            index,
            column,
            units: units(table, index),
            ends: ends(table, index),
        })
        .collect();
    let mut text = line(kept.iter().flat_map(CsvColumn::heads));
    for row in &table.rows {
        text += &line(kept.iter().flat_map(|column| column.fields(row)));
    }
    text
}

/// A column of a table, with the units and the additional numbers that become further CSV columns.
struct CsvColumn<'a> {
    index: usize,
    column: &'a TableColumn,
    units: Vec<&'a str>,
    /// The names of the additional numbers in each text: "±" for "18.1 ±0.5", "low" and "high" for an interval.
    ends: &'static [&'static str],
}

impl CsvColumn<'_> {
    fn heads(&self) -> Vec<String> {
        let heads = heads(self.column, &self.units);
        let name = heads.first().cloned().unwrap_or_default();
        heads.into_iter().chain(self.ends.iter().map(|end| format!("{name} {end}"))).collect()
    }

    fn fields(&self, row: &TableRow) -> Vec<String> {
        let found = row.cells.get(self.index);
        let own_unit = (self.units.len() > 1).then(|| found.and_then(unit).unwrap_or_default().to_owned());
        let mut fields = cell(found, self.column.kind);
        if !self.ends.is_empty() {
            let text = fields.pop().unwrap_or_default();
            let (_, numbers) = numbers(&text).unwrap_or((self.ends, vec![text.clone()]));
            fields = numbers;
            fields.resize(1 + self.ends.len(), String::new());
        }
        fields.into_iter().chain(own_unit).collect()
    }
}

/// Returns the names of the additional numbers in a column's texts; empty if there are none.
fn ends(table: &ReportTable, index: usize) -> &'static [&'static str] {
    let text = |row: &TableRow| match &row.cells.get(index)?.value {
        CellValue::Text(text) => Some(text.words()),
        _ => None,
    };
    let found = table.rows.iter().filter_map(text).find_map(|text| Some(numbers(&text)?.0));
    found.unwrap_or_default()
}

/// Splits "18.1 ±0.5" or "2.82× [1.37×, 5.77×]" into numbers. Returns the names of all but the first number, and the
/// numbers; `None` for any other text.
fn numbers(text: &str) -> Option<(&'static [&'static str], Vec<String>)> {
    let (ends, parts): (&[&str], Vec<&str>) = match text.split_once(" ±") {
        Some((value, error)) => (&["±"], vec![value, error]),
        None => {
            let (ratio, rest) = text.split_once(" [")?;
            let (low, high) = rest.strip_suffix(']')?.split_once(", ")?;
            (&["low", "high"], vec![ratio, low, high])
        }
    };
    let number = |part: &str| part.trim_end_matches('×').to_owned();
    let parts: Vec<String> = parts.into_iter().map(number).collect();
    parts.iter().all(|part| part.parse::<f64>().is_ok()).then_some((ends, parts))
}

fn units(table: &ReportTable, index: usize) -> Vec<&str> {
    let mut units: Vec<_> = table.rows.iter().filter_map(|row| unit(row.cells.get(index)?)).collect();
    units.sort_unstable();
    units.dedup();
    units
}

fn unit(cell: &TableCell) -> Option<&str> {
    match &cell.value {
        CellValue::Quantity(quantity) if !quantity.unit.is_empty() => Some(&quantity.unit),
        _ => None,
    }
}

/// Returns the CSV headers of a column: three for an estimate (ratio, low, high), two if its figures have different
/// units (figure, unit), otherwise one.
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

    use super::super::ReportSection;
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
        let [steps]: [CsvTable; 1] = document.csv().try_into().expect("one table");
        assert_eq!(steps.name, "steps");
        assert_eq!(
            steps.text,
            "step,rate,rate low,rate high,round trip [ns]\r\n\"a, \"\"b\"\"\",1.25,1,1.5,41234\r\n'=cmd(),,,,\r\n"
        );
    }

    #[test]
    fn the_unit_that_a_program_names_is_in_the_heading() {
        let table = ReportTable::new("requests", "", vec![TableColumn::number("served")])
            .row(TableRow::from([TableCell::in_unit(1500.0, "requests/s")]));
        let document =
            Document { sections: vec![ReportSection::new("x", "").with(table)], ..Document::default() };
        assert_eq!(document.csv()[0].text, "served [requests/s]\r\n1500\r\n");
    }

    #[test]
    fn one_table_is_one_file_and_its_fields_are_numbers() {
        let columns = || {
            vec![TableColumn::words("protocol"), TableColumn::number("Mb/s"), TableColumn::number("share")]
        };
        let row = |name: &str, cells: [&str; 2]| TableRow::from([name, cells[0], cells[1]]);
        let table = |label: &str| {
            ReportTable::new(label, "", columns())
                .row(row("Reno", ["18.1 ±0.5", "2.82× [1.37×, 5.77×]"]))
                .row(row("BBR", ["–", "–"]))
        };
        let section =
            ReportSection::new("x", "").with(table("Long flows, 20 Mb/s")).with(table("")).with(table(""));
        let tables = Document { sections: vec![section], ..Document::default() }.csv();
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["long-flows-20-mb-s", "table", "table-2"]);
        assert_eq!(
            tables[0].text,
            "protocol,Mb/s,Mb/s ±,share,share low,share high\r\nReno,18.1,0.5,2.82,1.37,5.77\r\nBBR,,,,,\r\n"
        );
    }
}
