//! Tables: columns of a kind, rows, and cells that keep their figures.

use landspeed_record::Estimate;
use landspeed_units::{BitRate, Bytes, BytesPerCpuSecond, CpuNanos, Nanos};

use super::text::Span;
use super::{Seen, Text};
use crate::output::Tone;
use crate::words::plausible;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Words,
    /// Figures, which may not.
    Number,
    Estimate,
    /// Ratios with their intervals, for which a terminal has no room.
    Ratio,
    /// Reasons: a terminal without room for them tells those of toned rows below the table.
    Why,
    /// What is drawn on a page, and on a terminal that someone watches.
    Drawn,
}

#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// What several columns beside each other are of.
    pub(crate) group: String,
    pub(crate) kind: ColumnKind,
    /// Columns of a terminal from which on there is room for it.
    pub(crate) least: usize,
}

impl Column {
    pub(crate) fn of(kind: ColumnKind, name: impl Into<String>) -> Self {
        Column { name: crate::safe(&name.into()), group: String::new(), kind, least: 0 }
    }

    pub(crate) fn words(name: impl Into<String>) -> Self {
        Column::of(ColumnKind::Words, name)
    }

    pub(crate) fn number(name: impl Into<String>) -> Self {
        Column::of(ColumnKind::Number, name)
    }

    pub(crate) fn under(self, group: impl Into<String>) -> Self {
        Column { group: crate::safe(&group.into()), ..self }
    }

    pub(crate) fn above_width(self, least: usize) -> Self {
        Column { least, ..self }
    }

    /// Whether it holds figures, which end at the right.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, ColumnKind::Number | ColumnKind::Estimate | ColumnKind::Ratio)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) shown: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(Text),
    Quantity(Quantity),
    Estimate(Option<Estimate>),
    /// A bar of this share of its column.
    Bar(f64),
    /// A curve, a value a column, from 0 to 1.
    Curve(Vec<Option<f64>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) value: Value,
    pub(crate) class: Option<&'static str>,
    /// What a page says where the cell is pointed at.
    pub(crate) told: Option<Text>,
}

/// Stands where nothing is known.
pub(crate) const ABSENT: &str = "–";

impl Cell {
    fn of(value: Value) -> Self {
        Cell { value, class: None, told: None }
    }

    /// A figure without a unit, or one that its column names.
    pub(crate) fn number(value: f64, shown: impl Into<String>) -> Self {
        Cell::of(Value::Quantity(Quantity { value, unit: "", shown: shown.into() }))
    }

    pub(crate) fn bar(share: f64) -> Self {
        Cell::of(Value::Bar(share))
    }

    pub(crate) fn curve(values: Vec<Option<f64>>) -> Self {
        Cell::of(Value::Curve(values))
    }

    pub(crate) fn classed(self, class: &'static str) -> Self {
        Cell { class: Some(class), ..self }
    }

    pub(crate) fn spans(&self) -> &[Span] {
        match &self.value {
            Value::Text(text) => text.spans(),
            _ => &[],
        }
    }

    /// As a terminal and a page show it; a terminal's column may have no room for an interval.
    pub(crate) fn shown(&self, brief: bool) -> String {
        match &self.value {
            Value::Text(text) => text.words(),
            Value::Quantity(quantity) => quantity.shown.clone(),
            Value::Estimate(Some(e)) if brief => crate::words::times(e.ratio),
            Value::Estimate(Some(e)) => crate::words::estimate(e),
            Value::Estimate(None) => ABSENT.to_owned(),
            Value::Bar(_) | Value::Curve(_) => String::new(),
        }
    }
}

macro_rules! words {
    ($($name:ty)*) => {$(
        impl From<$name> for Cell {
            fn from(text: $name) -> Self {
                Cell::of(Value::Text(text.into()))
            }
        }
    )*};
}

words! { Text &str String &String }

impl From<Quantity> for Cell {
    fn from(quantity: Quantity) -> Self {
        Cell::of(Value::Quantity(quantity))
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(known: Option<T>) -> Self {
        known.map_or_else(|| ABSENT.into(), Into::into)
    }
}

impl From<Estimate> for Cell {
    fn from(e: Estimate) -> Self {
        Cell::of(Value::Estimate(Some(e).filter(plausible)))
    }
}

/// Cells of figures with a unit.
macro_rules! quantities {
    ($($name:ident $unit:literal $value:expr;)*) => {$(
        impl From<$name> for Cell {
            fn from(of: $name) -> Self {
                let shown = Text::from(of.to_string()).words();
                Quantity { value: $value(of), unit: $unit, shown }.into()
            }
        }
    )*};
}

quantities! {
    BitRate "bit/s" |rate: BitRate| rate.0;
    Bytes "B" |bytes: Bytes| bytes.0 as f64;
    Nanos "ns" |time: Nanos| time.0 as f64;
    CpuNanos "ns" |time: CpuNanos| time.0 as f64;
    BytesPerCpuSecond "B/cpu-s" |cost: BytesPerCpuSecond| cost.0;
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Cell::number(count as f64, crate::words::grouped(count))
    }
}

/// A row, the first of whose cells names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) class: String,
    /// Colour of its toned words on a terminal.
    pub(crate) tone: Option<Tone>,
    pub(crate) seen: Seen,
}

impl<C: Into<Cell>, I: IntoIterator<Item = C>> From<I> for Row {
    fn from(cells: I) -> Self {
        Row { cells: cells.into_iter().map(Into::into).collect(), ..Row::default() }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// Read aloud before it.
    pub(crate) label: String,
    /// What a page says above it.
    pub(crate) caption: Option<Text>,
    /// Class in the page's style sheet; "stacked" ones are cards on a phone, others scroll sideways.
    pub(crate) class: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Whether a page shows values that are alike in all columns once.
    pub(crate) merged: bool,
}

impl Table {
    pub(crate) fn new(label: impl Into<String>, class: &'static str, columns: Vec<Column>) -> Self {
        Table { label: crate::safe(&label.into()), class, columns, ..Table::default() }
    }

    /// A table of words and figures under these names: the first column holds words.
    pub(crate) fn figures(label: impl Into<String>, names: &[&str]) -> Self {
        let column = |(index, name): (usize, &&str)| match index {
            0 => Column::words(*name),
            _ => Column::number(*name),
        };
        Table::new(label, "figures", names.iter().enumerate().map(column).collect())
    }

    pub(crate) fn captioned(self, caption: impl Into<Text>) -> Self {
        Table { caption: Some(caption.into()), ..self }
    }

    pub(crate) fn row(mut self, row: impl Into<Row>) -> Self {
        self.rows.push(row.into());
        self
    }

    pub(crate) fn rows<R: Into<Row>>(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        self.rows.extend(rows.into_iter().map(Into::into));
        self
    }

    pub(crate) fn some(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}
