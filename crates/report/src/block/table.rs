//! Tables whose cells keep the exact values of their figures beside the text that is shown.

use std::borrow::Cow;

use landspeed_record::Estimate;
use landspeed_record::units::{BitRate, ByteRate, Bytes, BytesPerCpuSecond, CpuNanos, Nanos};

use super::StyledText;
use super::text::TextSpan;
use crate::output::Tone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Words,
    /// Figures, which are broken only on a terminal that is too narrow for the table otherwise.
    Number,
    Estimate,
    /// Ratios with intervals; a terminal shows the ratios only.
    Ratio,
    /// Reasons. A terminal that is too narrow for this column prints reasons below the table: those of harmful and open
    /// rows, or those of all rows in full detail.
    Why,
    /// Drawings, which a page and a terminal show. A text file, Markdown and CSV do not.
    Drawn,
}

#[derive(Debug, Clone)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    /// Name of the group of adjacent columns to which this one belongs; empty for none.
    pub(crate) group: String,
    pub(crate) kind: ColumnKind,
    /// Least terminal width that shows this column, in characters.
    pub(crate) least: usize,
}

impl TableColumn {
    pub(crate) fn of(kind: ColumnKind, name: impl Into<String>) -> Self {
        TableColumn { name: crate::safe(&name.into()), group: String::new(), kind, least: 0 }
    }

    pub(crate) fn words(name: impl Into<String>) -> Self {
        TableColumn::of(ColumnKind::Words, name)
    }

    pub(crate) fn number(name: impl Into<String>) -> Self {
        TableColumn::of(ColumnKind::Number, name)
    }

    pub(crate) fn under(self, group: impl Into<String>) -> Self {
        TableColumn { group: crate::safe(&group.into()), ..self }
    }

    pub(crate) fn above_width(self, least: usize) -> Self {
        TableColumn { least, ..self }
    }

    /// Returns true if the column holds figures, which are right-aligned.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, ColumnKind::Number | ColumnKind::Estimate | ColumnKind::Ratio)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: Cow<'static, str>,
    pub(crate) shown: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellValue {
    Text(StyledText),
    Quantity(Quantity),
    Estimate(Option<Estimate>),
    /// A bar that fills this share (0 to 1) of its column.
    Bar(f64),
    /// A curve of values from 0 to 1, one per character. `None` leaves a gap.
    Curve(Vec<Option<f64>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableCell {
    pub(crate) value: CellValue,
    pub(crate) class: Option<&'static str>,
    /// Text that a page shows while the pointer is on the cell.
    pub(crate) tooltip: Option<StyledText>,
}

/// The text of a cell whose value is unknown.
pub(crate) const ABSENT: &str = "–";

impl TableCell {
    fn of(value: CellValue) -> Self {
        TableCell { value, class: None, tooltip: None }
    }

    /// Returns the cell of a figure without a unit, or with a unit that the column's name states.
    pub(crate) fn number(value: f64, shown: impl Into<String>) -> Self {
        TableCell::of(CellValue::Quantity(Quantity { value, unit: "".into(), shown: shown.into() }))
    }

    /// Returns the cell of a figure whose unit a program or an observer names.
    pub(crate) fn in_unit(value: f64, unit: &str) -> Self {
        let shown = crate::words::amount_in(value, unit);
        TableCell::of(CellValue::Quantity(Quantity { value, unit: crate::safe(unit).into(), shown }))
    }

    pub(crate) fn bar(share: f64) -> Self {
        TableCell::of(CellValue::Bar(share))
    }

    pub(crate) fn curve(values: Vec<Option<f64>>) -> Self {
        TableCell::of(CellValue::Curve(values))
    }

    pub(crate) fn classed(self, class: &'static str) -> Self {
        TableCell { class: Some(class), ..self }
    }

    pub(crate) fn spans(&self) -> &[TextSpan] {
        match &self.value {
            CellValue::Text(text) => text.spans(),
            _ => &[],
        }
    }

    /// Returns the text that a terminal and a page show; `brief` leaves out the interval of an estimate.
    pub(crate) fn shown(&self, brief: bool) -> String {
        match &self.value {
            CellValue::Text(text) => text.words(),
            CellValue::Quantity(quantity) => quantity.shown.clone(),
            CellValue::Estimate(Some(e)) if brief => crate::words::times(e.ratio),
            CellValue::Estimate(Some(e)) => crate::words::estimate(e),
            CellValue::Estimate(None) => ABSENT.to_owned(),
            CellValue::Bar(_) | CellValue::Curve(_) => String::new(),
        }
    }
}

macro_rules! words {
    ($($name:ty)*) => {$(
        impl From<$name> for TableCell {
            fn from(text: $name) -> Self {
                TableCell::of(CellValue::Text(text.into()))
            }
        }
    )*};
}

words! { StyledText &str String &String }

impl From<Quantity> for TableCell {
    fn from(quantity: Quantity) -> Self {
        TableCell::of(CellValue::Quantity(quantity))
    }
}

impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(known: Option<T>) -> Self {
        known.map_or_else(|| ABSENT.into(), Into::into)
    }
}

impl From<Estimate> for TableCell {
    fn from(e: Estimate) -> Self {
        TableCell::of(CellValue::Estimate(Some(e).filter(Estimate::is_plausible)))
    }
}

/// Implements the conversion of quantities to cells. The literal is the unit of the cell's exact value.
macro_rules! quantities {
    ($($name:ident $unit:literal $value:expr;)*) => {$(
        impl From<$name> for TableCell {
            fn from(of: $name) -> Self {
                let shown = StyledText::from(of.to_string()).words();
                Quantity { value: $value(of), unit: $unit.into(), shown }.into()
            }
        }
    )*};
}

quantities! {
    BitRate "bit/s" |rate: BitRate| rate.0;
    ByteRate "B/s" |rate: ByteRate| rate.0;
    Bytes "B" |bytes: Bytes| bytes.0 as f64;
    Nanos "ns" |time: Nanos| time.0 as f64;
    CpuNanos "ns" |time: CpuNanos| time.0 as f64;
    BytesPerCpuSecond "B/cpu-s" |cost: BytesPerCpuSecond| cost.0;
}

impl From<u64> for TableCell {
    fn from(count: u64) -> Self {
        TableCell::number(count as f64, crate::words::grouped(count))
    }
}

/// A row; its first cell is its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableRow {
    pub(crate) cells: Vec<TableCell>,
    pub(crate) class: String,
    /// Colour of the row's `TextStyle::Toned` words on a terminal.
    pub(crate) tone: Option<Tone>,
    /// True if a terminal in brief detail leaves the row out.
    pub(crate) only_in_full: bool,
}

impl<C: Into<TableCell>, I: IntoIterator<Item = C>> From<I> for TableRow {
    fn from(cells: I) -> Self {
        TableRow { cells: cells.into_iter().map(Into::into).collect(), ..TableRow::default() }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ReportTable {
    /// Label that a screen reader reads before the table, and from which the name of its CSV file is made.
    pub(crate) label: String,
    /// Caption above the table on a page.
    pub(crate) caption: Option<StyledText>,
    /// Class in the page's style sheet: "stacked" tables become cards on a phone, others scroll sideways.
    pub(crate) class: &'static str,
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) rows: Vec<TableRow>,
    /// True if a page shows a single wide cell where all values of a row are equal.
    pub(crate) merged: bool,
}

impl ReportTable {
    pub(crate) fn new(label: impl Into<String>, class: &'static str, columns: Vec<TableColumn>) -> Self {
        ReportTable { label: crate::safe(&label.into()), class, columns, ..ReportTable::default() }
    }

    /// Returns a table without rows and with the columns `names`. The first column holds words, the others figures.
    pub(crate) fn figures(label: impl Into<String>, names: &[&str]) -> Self {
        let column = |(index, name): (usize, &&str)| match index {
            0 => TableColumn::words(*name),
            _ => TableColumn::number(*name),
        };
        ReportTable::new(label, "figures", names.iter().enumerate().map(column).collect())
    }

    pub(crate) fn captioned(self, caption: impl Into<StyledText>) -> Self {
        ReportTable { caption: Some(caption.into()), ..self }
    }

    pub(crate) fn row(mut self, row: impl Into<TableRow>) -> Self {
        self.rows.push(row.into());
        self
    }

    pub(crate) fn rows<R: Into<TableRow>>(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        self.rows.extend(rows.into_iter().map(Into::into));
        self
    }

    pub(crate) fn non_empty(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}
