//! The content of a report, separate from its presentation. Content is put together once; three printers show it on a
//! terminal, as a page and as CSV.
//!
//! No text in a block can control a terminal or a browser: [`Text`] escapes its words wherever they come from.

mod csv;
mod layout;
mod page;
mod table;
mod terminal;
mod text;

pub use csv::csv;
pub(crate) use table::{ABSENT, Cell, Column, ColumnKind, Quantity, Row, Table};
pub(crate) use terminal::plain;
pub use terminal::table;
pub(crate) use text::{Look, Text, code, micros};

use crate::output::Tone;

#[derive(Debug, Clone)]
pub(crate) struct Chart(pub(crate) maud::Markup);

/// How much detail a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// A screen or two.
    #[default]
    Brief,
    /// Everything that the page shows, as far as text can.
    Full,
}

#[derive(Debug, Clone, Default)]
pub struct Document {
    pub(crate) head: Head,
    pub(crate) sections: Vec<Section>,
    /// The landspeed version that made the data.
    pub(crate) version: String,
    /// Style sheets in addition to the one that all pages share.
    pub(crate) styles: &'static [&'static str],
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// The kind of report, such as "tuning report".
    pub(crate) kind: &'static str,
    /// Warnings that a reader must see first.
    pub(crate) warnings: Vec<Text>,
    pub(crate) title: Text,
    pub(crate) lead: Text,
    /// Replaces the rest of the head on a terminal, if that is too long for one.
    pub(crate) brief: Vec<Block>,
    /// What was measured, where and when, a few words each.
    pub(crate) facts: Vec<Text>,
    /// What a reader should know of the path, a sentence each.
    pub(crate) remarks: Vec<Text>,
    /// The figures at a glance, below the rest of the head.
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// The page's anchor.
    pub(crate) id: String,
    /// The heading; a terminal shows none if it is empty.
    pub(crate) title: Text,
    pub(crate) blocks: Vec<Block>,
    /// True if a terminal in brief detail leaves out the heading.
    pub(crate) is_minor: bool,
}

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<Text>) -> Self {
        Section { id: id.into(), title: title.into(), ..Section::default() }
    }

    pub(crate) fn minor(self) -> Self {
        Section { is_minor: true, ..self }
    }

    /// Returns the section shown only on a page and on a terminal in full detail.
    pub(crate) fn in_full(self) -> Self {
        if self.blocks.is_empty() {
            return self;
        }
        let blocks = vec![Block::Only(Seen::InFull, self.blocks)];
        Section { blocks, ..self }
    }

    pub(crate) fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }

    pub(crate) fn all<B: Into<Block>>(mut self, blocks: impl IntoIterator<Item = B>) -> Self {
        self.blocks.extend(blocks.into_iter().map(Into::into));
        self
    }

    pub(crate) fn some(self) -> Option<Self> {
        (!self.blocks.is_empty()).then_some(self)
    }
}

/// Where a part of a report is shown. A page has room for everything; a terminal shows everything with full detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen {
    #[default]
    Everywhere,
    /// The page, and a terminal in full detail.
    InFull,
    /// A terminal in brief detail.
    InBrief,
    OnPage,
    OnTerminal,
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Heading(Text),
    Paragraph(Manner, Text),
    List(List),
    Pairs(&'static str, Vec<(Text, Text)>),
    Commands(Vec<(Text, String)>),
    Table(Table),
    /// A drawing on a page; a terminal draws within tables.
    Chart(Chart),
    Article(Article),
    /// The most important figures, on a page; a terminal shows them in its first lines.
    Cards(&'static str, Vec<Card>),
    /// A part that is shown on request.
    Group(Group),
    /// A label at the left of its blocks, or a small indent if the label is empty. For terminals.
    Labelled(&'static str, Vec<Block>),
    Only(Seen, Vec<Block>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
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
    pub(crate) items: Vec<Text>,
    /// The number of items that a terminal in brief detail shows.
    pub(crate) most: Option<usize>,
    pub(crate) tone: Option<Tone>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    pub(crate) figure: Text,
    pub(crate) under: Text,
}

/// One of several items of a kind, each of which needs more than a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Article {
    pub(crate) class: &'static str,
    pub(crate) title: Text,
    /// Its properties in a few words each, some with a share to be drawn.
    pub(crate) facts: Vec<(Option<f64>, Text)>,
    pub(crate) lead: Text,
    pub(crate) lists: Vec<(&'static str, List)>,
    /// The line that a terminal in brief detail shows in place of the article.
    pub(crate) brief: Option<Text>,
    /// Colour of its toned words on a terminal.
    pub(crate) tone: Option<Tone>,
    /// True if the head of the report already shows its title and lead.
    pub(crate) is_first: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) title: Text,
    pub(crate) open: bool,
    pub(crate) blocks: Vec<Block>,
}

impl Block {
    pub(crate) fn text(text: impl Into<Text>) -> Self {
        Block::Paragraph(Manner::Plain, text.into())
    }

    pub(crate) fn aside(text: impl Into<Text>) -> Self {
        Block::Paragraph(Manner::Aside, text.into())
    }

    pub(crate) fn absent(text: impl Into<Text>) -> Self {
        Block::Paragraph(Manner::Absent, text.into())
    }

    /// Returns blocks that are shown only at `seen`, or `None` if there are none.
    pub(crate) fn only<B: Into<Block>>(seen: Seen, blocks: impl IntoIterator<Item = B>) -> Option<Self> {
        let blocks: Vec<Block> = blocks.into_iter().map(Into::into).collect();
        (!blocks.is_empty()).then_some(Block::Only(seen, blocks))
    }

    pub(crate) fn heading(text: impl Into<Text>) -> Self {
        Block::Heading(text.into())
    }

    /// Returns lines of minor importance, or `None` if there are none.
    pub(crate) fn asides<T: Into<Text>>(lines: impl IntoIterator<Item = T>) -> Option<Self> {
        let items: Vec<Text> = lines.into_iter().map(Into::into).collect();
        (!items.is_empty())
            .then(|| Block::List(List { class: "asides", items, tone: Some(Tone::Dim), ..List::default() }))
    }
}

macro_rules! blocks_from {
    ($($kind:ident),*) => {$(
        impl From<$kind> for Block {
            fn from(content: $kind) -> Self {
                Block::$kind(content)
            }
        }
    )*};
}

blocks_from!(Table, Article, Chart, List, Group);
