//! What a report says, apart from how it looks. Content is put together once; three printers show any of it: on a terminal,
//! as a page, and as CSV.
//!
//! No text in a block holds what a terminal or a browser acts on: [`Text`] drops that wherever it comes from.

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

/// How much a terminal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What fits a screen or two.
    #[default]
    Brief,
    /// Everything that the page says, as far as words can.
    Full,
}

#[derive(Debug, Clone, Default)]
pub struct Document {
    pub(crate) head: Head,
    pub(crate) sections: Vec<Section>,
    /// The landspeed that made what is shown.
    pub(crate) version: String,
    /// Style sheets beside the one of every page.
    pub(crate) styles: &'static [&'static str],
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// "tuning report".
    pub(crate) kind: &'static str,
    /// What must be known before anything else.
    pub(crate) warnings: Vec<Text>,
    pub(crate) title: Text,
    pub(crate) lead: Text,
    /// What a terminal says in the place of all else here, where that is too long for one.
    pub(crate) brief: Vec<Block>,
    /// What was measured, where and when, a few words each.
    pub(crate) facts: Vec<Text>,
    /// What a reader should know of the path, a sentence each.
    pub(crate) remarks: Vec<Text>,
    /// What stands beneath: the figures at a glance.
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// The page's anchor.
    pub(crate) id: String,
    /// The heading; a terminal does without where it is empty.
    pub(crate) title: Text,
    pub(crate) blocks: Vec<Block>,
    /// Whether a terminal does without its heading that does not say everything.
    pub(crate) is_minor: bool,
}

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<Text>) -> Self {
        Section { id: id.into(), title: title.into(), ..Section::default() }
    }

    pub(crate) fn minor(self) -> Self {
        Section { is_minor: true, ..self }
    }

    /// The same for a page, and for a terminal that says everything.
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

/// Who is shown a part of a report. A page has room for everything; a terminal says everything where that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen {
    #[default]
    Everywhere,
    /// The page, and a terminal that says everything.
    InFull,
    /// A terminal that does not say everything.
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
    /// Drawn on a page; what a terminal draws is in a table.
    Chart(Chart),
    Article(Article),
    /// The figures that matter most, on a page; a terminal has them in its first lines.
    Cards(&'static str, Vec<Card>),
    /// Shown where it is asked for.
    Group(Group),
    /// A word at the left of what it is of; a little air where there is none. For terminals.
    Labelled(&'static str, Vec<Block>),
    Only(Seen, Vec<Block>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Plain,
    /// Beside the point.
    Aside,
    Absent,
    Good,
    Bad,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) class: &'static str,
    pub(crate) items: Vec<Text>,
    /// How many a terminal shows that does not say everything.
    pub(crate) most: Option<usize>,
    pub(crate) tone: Option<Tone>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    pub(crate) figure: Text,
    pub(crate) under: Text,
}

/// One of several things of a kind that need more than a row each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Article {
    pub(crate) class: &'static str,
    pub(crate) title: Text,
    /// What it is, in a few words each, some with a share to be drawn.
    pub(crate) facts: Vec<(Option<f64>, Text)>,
    pub(crate) lead: Text,
    pub(crate) lists: Vec<(&'static str, List)>,
    /// What a terminal says of it that does not say everything.
    pub(crate) brief: Option<Text>,
    /// Colour of its toned words on a terminal.
    pub(crate) tone: Option<Tone>,
    /// Whether the head of the report has its title and lead.
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

    /// What only some are shown, or nothing.
    pub(crate) fn only<B: Into<Block>>(seen: Seen, blocks: impl IntoIterator<Item = B>) -> Option<Self> {
        let blocks: Vec<Block> = blocks.into_iter().map(Into::into).collect();
        (!blocks.is_empty()).then_some(Block::Only(seen, blocks))
    }

    pub(crate) fn heading(text: impl Into<Text>) -> Self {
        Block::Heading(text.into())
    }

    /// Lines of little weight, or nothing where there are none.
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
