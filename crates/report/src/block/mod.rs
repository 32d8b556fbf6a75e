//! The content of a report, separate from its presentation. A report is built once. Four printers print it: for a
//! terminal, as an HTML page, as Markdown and as CSV.
//!
//! No text in a block can control a terminal or a browser: [`StyledText`] escapes its words, and the printers escape
//! commands.

mod csv;
mod layout;
mod markdown;
mod page;
mod table;
mod terminal;
mod text;

pub use csv::{CsvTable, csv};
pub use markdown::markdown_table;
pub(crate) use table::{ABSENT, ColumnKind, Quantity, ReportTable, TableCell, TableColumn, TableRow};
pub use terminal::table;
pub(crate) use text::{StyledText, TextStyle, code, plain};

use crate::gauges::{self, Gauge};
use crate::output::Tone;

#[derive(Debug, Clone)]
pub(crate) struct Chart(pub(crate) maud::Markup);

/// The amount of detail that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailLevel {
    /// The main results, on one or two screens.
    #[default]
    Brief,
    /// Everything that the HTML page shows, except what text cannot show, such as charts.
    Full,
}

/// A report, independent of the output that shows it.
#[derive(Debug, Clone, Default)]
pub struct Document {
    pub(crate) head: DocumentHead,
    pub(crate) sections: Vec<ReportSection>,
    /// The landspeed version that made the data.
    pub(crate) version: String,
    /// Style sheets in addition to the one that all pages share.
    pub(crate) styles: &'static [&'static str],
    /// The report's figures for OpenMetrics.
    pub(crate) gauges: Vec<Gauge>,
}

impl Document {
    /// Returns the document's figures in OpenMetrics' text format, or `None` if it has no figures.
    pub fn open_metrics(&self) -> Option<String> {
        (!self.gauges.is_empty()).then(|| gauges::open_metrics(&self.gauges))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentHead {
    /// The kind of report, such as "tuning report".
    pub(crate) kind: &'static str,
    /// Warnings that a reader must see first.
    pub(crate) warnings: Vec<StyledText>,
    pub(crate) title: StyledText,
    pub(crate) lead: StyledText,
    /// Blocks that a terminal shows in place of the warnings, title, lead and `blocks`, and Markdown in place of
    /// `blocks`. Empty if the head needs no short form.
    pub(crate) brief: Vec<ReportBlock>,
    /// What was measured, where and when, a few words each.
    pub(crate) facts: Vec<StyledText>,
    /// Remarks on the path, a sentence each.
    pub(crate) remarks: Vec<StyledText>,
    /// The main figures, shown below the rest of the head.
    pub(crate) blocks: Vec<ReportBlock>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ReportSection {
    /// The section's anchor on an HTML page.
    pub(crate) id: String,
    /// The heading; a terminal shows none if it is empty.
    pub(crate) title: StyledText,
    pub(crate) blocks: Vec<ReportBlock>,
    /// True if a terminal in brief detail leaves out the heading.
    pub(crate) is_minor: bool,
}

impl ReportSection {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<StyledText>) -> Self {
        ReportSection { id: id.into(), title: title.into(), ..ReportSection::default() }
    }

    pub(crate) fn minor(self) -> Self {
        ReportSection { is_minor: true, ..self }
    }

    /// Restricts the section to pages and to terminals in full detail.
    pub(crate) fn in_full(self) -> Self {
        if self.blocks.is_empty() {
            return self;
        }
        let blocks = vec![ReportBlock::Only(Visibility::InFull, self.blocks)];
        ReportSection { blocks, ..self }
    }

    pub(crate) fn with(mut self, block: impl Into<ReportBlock>) -> Self {
        self.blocks.push(block.into());
        self
    }

    pub(crate) fn all<B: Into<ReportBlock>>(mut self, blocks: impl IntoIterator<Item = B>) -> Self {
        self.blocks.extend(blocks.into_iter().map(Into::into));
        self
    }

    pub(crate) fn non_empty(self) -> Option<Self> {
        (!self.blocks.is_empty()).then_some(self)
    }
}

/// The outputs that show a part of a report. A terminal is in full detail if the user requests it (`--full`), otherwise
/// in brief detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Visibility {
    #[default]
    Everywhere,
    /// The page, and a terminal in full detail.
    InFull,
    /// A terminal in brief detail.
    InBrief,
    OnPage,
    OnTerminal,
}

impl Visibility {
    /// Returns true if a terminal, or Markdown, shows the part in full or in brief detail.
    fn is_in_text(self, full: bool) -> bool {
        match self {
            Visibility::Everywhere | Visibility::OnTerminal => true,
            Visibility::InFull => full,
            Visibility::InBrief => !full,
            Visibility::OnPage => false,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum ReportBlock {
    Heading(StyledText),
    Paragraph(ParagraphStyle, StyledText),
    List(List),
    Pairs(&'static str, Vec<(StyledText, StyledText)>),
    Commands(Vec<(StyledText, String)>),
    Table(ReportTable),
    /// A drawing, which only a page shows.
    Chart(Chart),
    Article(Article),
    /// The most important figures under a label for screen readers. Only a page shows them.
    Cards(&'static str, Vec<Card>),
    /// A part that a reader of a page can fold, and that a terminal shows only in full detail.
    Group(CollapsibleGroup),
    /// Blocks with a label at their left on a terminal, or with a small indent if the label is empty. A page shows no
    /// label.
    Labelled(&'static str, Vec<ReportBlock>),
    Only(Visibility, Vec<ReportBlock>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParagraphStyle {
    Plain,
    /// Of minor importance.
    Aside,
    Absent,
    Good,
    Bad,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) class: &'static str,
    pub(crate) items: Vec<StyledText>,
    /// The largest number of items that a terminal in brief detail shows; `None` for all.
    pub(crate) most: Option<usize>,
    pub(crate) tone: Option<Tone>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    pub(crate) figure: StyledText,
    pub(crate) under: StyledText,
}

/// An item, such as a finding, that needs more space than a row of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Article {
    pub(crate) class: &'static str,
    pub(crate) title: StyledText,
    /// Its properties in a few words each, some with a share (0 to 1) that a page draws.
    pub(crate) facts: Vec<(Option<f64>, StyledText)>,
    pub(crate) lead: StyledText,
    pub(crate) lists: Vec<(&'static str, List)>,
    /// Commands to paste, each as (where it runs, command).
    pub(crate) commands: Vec<(StyledText, String)>,
    /// The line that a terminal in brief detail shows in place of the article.
    pub(crate) brief: Option<StyledText>,
    /// Colour of the [`TextStyle::Toned`] words of its title on a terminal.
    pub(crate) tone: Option<Tone>,
    /// True if the head of the report already shows its title and lead.
    pub(crate) is_first: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CollapsibleGroup {
    pub(crate) title: StyledText,
    pub(crate) open: bool,
    pub(crate) blocks: Vec<ReportBlock>,
}

impl ReportBlock {
    pub(crate) fn text(text: impl Into<StyledText>) -> Self {
        ReportBlock::Paragraph(ParagraphStyle::Plain, text.into())
    }

    pub(crate) fn aside(text: impl Into<StyledText>) -> Self {
        ReportBlock::Paragraph(ParagraphStyle::Aside, text.into())
    }

    pub(crate) fn absent(text: impl Into<StyledText>) -> Self {
        ReportBlock::Paragraph(ParagraphStyle::Absent, text.into())
    }

    /// Returns blocks that are shown only at `visibility`, or `None` if there are none.
    pub(crate) fn only<B: Into<ReportBlock>>(
        visibility: Visibility,
        blocks: impl IntoIterator<Item = B>,
    ) -> Option<Self> {
        let blocks: Vec<ReportBlock> = blocks.into_iter().map(Into::into).collect();
        (!blocks.is_empty()).then_some(ReportBlock::Only(visibility, blocks))
    }

    pub(crate) fn heading(text: impl Into<StyledText>) -> Self {
        ReportBlock::Heading(text.into())
    }

    /// Returns a list of lines of minor importance, or `None` if there are no lines.
    pub(crate) fn asides<T: Into<StyledText>>(lines: impl IntoIterator<Item = T>) -> Option<Self> {
        let items: Vec<StyledText> = lines.into_iter().map(Into::into).collect();
        (!items.is_empty()).then(|| {
            ReportBlock::List(List { class: "asides", items, tone: Some(Tone::Dim), ..List::default() })
        })
    }
}

macro_rules! blocks_from {
    ($($variant:ident($content:ty)),*) => {$(
        impl From<$content> for ReportBlock {
            fn from(content: $content) -> Self {
                ReportBlock::$variant(content)
            }
        }
    )*};
}

blocks_from!(Table(ReportTable), Article(Article), Chart(Chart), List(List), Group(CollapsibleGroup));
