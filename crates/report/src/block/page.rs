//! Prints a document as one self-contained HTML page that makes no requests and runs no scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::table::{CellValue, ColumnKind};
use super::text::{TextSpan, TextStyle};
use super::{
    Article, Card, Chart, CollapsibleGroup, Document, DocumentHead, List, ParagraphStyle, ReportBlock,
    ReportSection, ReportTable, StyledText, TableCell, TableColumn, TableRow, Visibility,
};
use crate::chart::frame::n;
use crate::words::{interval, times, unit};

const STYLE: &str = include_str!("page.css");

/// The page's content security policy. It forbids loads and scripts, because the page needs only its own style sheet.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

impl Document {
    pub fn page(&self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="no-referrer";
                    meta name="generator" content={ "landspeed " (crate::safe(&self.version)) };
                    link rel="icon" href="data:,";
                    title { (self.head.title.words()) " – landspeed" }
                    style { (PreEscaped(STYLE)) @for style in self.styles { (PreEscaped(style)) } }
                }
                body { main { (head(&self.head)) @for section in &self.sections { (part(section)) } } }
            }
        }
        .into_string()
    }
}

fn head(head: &DocumentHead) -> Markup {
    html! {
        header {
            p class="eyebrow" { "landspeed · " (head.kind) }
            h1 { (text(&head.title)) }
            @for warning in &head.warnings { p class="notice bad" role="alert" { (text(warning)) } }
            @if !head.lead.is_empty() { p class="lead" { (text(&head.lead)) } }
            ul class="facts" { @for fact in head.facts.iter().filter(|fact| !fact.is_empty()) { li { (text(fact)) } } }
            @for remark in &head.remarks { p class="notice" { (text(remark)) } }
            (all(&head.blocks))
        }
    }
}

fn part(section: &ReportSection) -> Markup {
    html! {
        @if section.blocks.iter().any(is_on_page) {
            section id=(section.id) {
                @if !section.title.is_empty() { h2 { (text(&section.title)) } }
                (all(&section.blocks))
            }
        }
    }
}

fn is_on_page(block: &ReportBlock) -> bool {
    !matches!(block, ReportBlock::Only(Visibility::InBrief | Visibility::OnTerminal, _))
}

fn all(blocks: &[ReportBlock]) -> Markup {
    html! { @for block in blocks { (one(block)) } }
}

fn one(block: &ReportBlock) -> Markup {
    match block {
        ReportBlock::Heading(words) => html! { h3 { (text(words)) } },
        ReportBlock::Paragraph(style, words) => html! { p class=[class(*style)] { (text(words)) } },
        ReportBlock::List(of) => list(of),
        ReportBlock::Pairs(class, pairs) => {
            html! { dl class=(format!("pairs {class}").trim_end()) { @for (what, value) in pairs { dt { (text(what)) } dd { (text(value)) } } } }
        }
        ReportBlock::Commands(commands) => commands_of(commands),
        ReportBlock::Table(of) => table(of),
        ReportBlock::Chart(Chart(drawn)) => html! { (drawn) },
        ReportBlock::Article(of) => article(of),
        ReportBlock::Cards(label, all) => {
            html! { div class="cards" role="group" aria-label=(label) { @for (index, of) in all.iter().enumerate() { (card(index, of)) } } }
        }
        ReportBlock::Group(CollapsibleGroup { title, open, blocks }) => {
            html! { details class="rest" open[*open] { summary { (text(title)) } (all(blocks)) } }
        }
        ReportBlock::Labelled(_, blocks) => all(blocks),
        ReportBlock::Only(_, blocks) if is_on_page(block) => all(blocks),
        ReportBlock::Only(..) => html! {},
    }
}

fn commands_of(commands: &[(StyledText, String)]) -> Markup {
    html! {
        dl class="commands" {
            @for (what, command) in commands { dt { (text(what)) } dd { pre tabindex="0" { code { (crate::safe::clean(command)) } } } }
        }
    }
}

fn class(style: ParagraphStyle) -> Option<&'static str> {
    match style {
        ParagraphStyle::Plain => None,
        ParagraphStyle::Aside => Some("aside"),
        ParagraphStyle::Absent => Some("absent"),
        ParagraphStyle::Good => Some("notice good"),
        ParagraphStyle::Bad => Some("notice bad"),
    }
}

fn text(text: &StyledText) -> Markup {
    html! { @for span in text.spans() { (spanned(span)) } }
}

fn spanned(TextSpan { words, look }: &TextSpan) -> Markup {
    match look {
        TextStyle::Plain => html! { (words) },
        TextStyle::Code => html! { code { (words) } },
        TextStyle::Strong => html! { strong { (words) } },
        TextStyle::Quiet | TextStyle::Beside => html! { span class="quiet" { (words) } },
        TextStyle::Toned => html! { span class="answer" { (words) } },
        TextStyle::Group => html! { span class="group" { (words) } },
    }
}

fn card(index: usize, card: &Card) -> Markup {
    html! {
        div class={ "card" @if index == 0 { " primary" } } {
            h2 { (card.name) }
            p class="ratio" { (text(&card.figure)) }
            p class="from-to" { (text(&card.under)) }
        }
    }
}

fn article(article: &Article) -> Markup {
    html! {
        article class=(article.class) {
            h3 { (text(&article.title)) }
            @if !article.facts.is_empty() {
                ul class="facts" { @for (share, fact) in &article.facts { li { @if let Some(share) = share { (meter(*share)) } (text(fact)) } } }
            }
            // The head of the report shows the first article's lead.
            @if !article.is_first && !article.lead.is_empty() { p { (text(&article.lead)) } }
            div class="pair" { @for (heading, of) in &article.lists { div { h4 { (heading) } (list(of)) } } }
            @if !article.commands.is_empty() { (commands_of(&article.commands)) }
        }
    }
}

fn meter(share: f64) -> Markup {
    html! {
        svg class="meter" viewBox="0 0 48 8" width="48" height="8" aria-hidden="true" {
            rect class="all" width="48" height="8" rx="4" {}
            rect class="part" width=(n(unit(share) * 48.0)) height="8" rx="4" {}
        }
    }
}

fn bar(share: f64) -> Markup {
    html! { svg class="drawn" viewBox="0 0 96 12" width="96" height="12" aria-hidden="true" { rect width=(n(unit(share) * 96.0)) height="12" {} } }
}

fn curve(values: &[Option<f64>]) -> Markup {
    let wide = values.len() * 4;
    let columns = values.iter().enumerate().filter_map(|(at, value)| Some((at * 4, (*value)?)));
    html! {
        svg class="drawn" viewBox={ "0 0 " (wide) " 20" } width=(wide) height="20" aria-hidden="true" {
            @for (at, value) in columns {
                @let tall = (unit(value) * 20.0).max(1.0);
                rect x=(at) y=(n(20.0 - tall)) width="3" height=(n(tall)) {}
            }
        }
    }
}

fn list(list: &List) -> Markup {
    html! { ul class=[some(list.class)] { @for item in &list.items { li { (text(item)) } } } }
}

fn some(class: &str) -> Option<&str> {
    Some(class).filter(|class| !class.is_empty())
}

/// True if the parts of a table get explicit ARIA roles. Where a phone shows a table as cards, the roles let a screen
/// reader still read it as a table.
#[derive(Clone, Copy)]
struct AriaRoles(bool);

impl AriaRoles {
    fn of(self, role: &'static str) -> Option<&'static str> {
        self.0.then_some(role)
    }
}

fn table(table: &ReportTable) -> Markup {
    let roles = AriaRoles(table.class.contains("stacked"));
    let columns: Vec<(usize, &TableColumn)> = table.columns.iter().enumerate().collect();
    html! {
        div class="scroll" tabindex="0" role="group" aria-label=(table.label) {
            table class=[some(table.class)] role=[roles.of("table")] {
                @if let Some(caption) = &table.caption { caption { (text(caption)) } }
                thead role=[roles.of("rowgroup")] { (heads(&columns, roles)) }
                tbody role=[roles.of("rowgroup")] {
                    @for row in &table.rows {
                        tr role=[roles.of("row")] class=[some(&row.class)] { (cells(table, row, &columns, roles)) }
                    }
                }
            }
        }
    }
}

fn numeric(column: &TableColumn) -> Option<&'static str> {
    column.is_number().then_some("number")
}

fn heads(columns: &[(usize, &TableColumn)], roles: AriaRoles) -> Markup {
    let groups: Vec<&[(usize, &TableColumn)]> = columns.chunk_by(|a, b| a.1.group == b.1.group).collect();
    let grouped = groups.len() > 1;
    let head = |column: &TableColumn, rows: Option<u8>| {
        html! { th scope="col" role=[roles.of("columnheader")] rowspan=[rows] class=[numeric(column)] { (column.name) } }
    };
    html! {
        @if grouped {
            tr {
                @for group in &groups {
                    @if group[0].1.group.is_empty() { @for (_, column) in *group { (head(column, Some(2))) } }
                    @else { th class="first" scope="colgroup" colspan=(group.len()) { (group[0].1.group) } }
                }
            }
        }
        tr role=[roles.of("row")] { @for (_, column) in columns.iter().filter(|(_, c)| !grouped || !c.group.is_empty()) { (head(column, None)) } }
    }
}

fn cells(table: &ReportTable, row: &TableRow, columns: &[(usize, &TableColumn)], roles: AriaRoles) -> Markup {
    let of = |index: usize| row.cells.get(index);
    let values = columns.iter().skip(1).map(|(index, _)| of(*index));
    let alike = table.merged && columns.len() > 2 && values.clone().all(|value| value == of(columns[1].0));
    html! {
        th scope="row" role=[roles.of("rowheader")] { @if let Some(cell) = columns.first().and_then(|(index, _)| of(*index)) { (shown(cell)) } }
        @if alike {
            td role=[roles.of("cell")] colspan=(columns.len() - 1) data-label=[roles.of("both hosts")] { @if let Some(cell) = of(columns[1].0) { (shown(cell)) } }
        } @else {
            @for (column, value) in columns.iter().skip(1).map(|(_, column)| column).zip(values) { (cell(column, value, roles)) }
        }
    }
}

fn cell(column: &TableColumn, cell: Option<&TableCell>, roles: AriaRoles) -> Markup {
    let own = cell.and_then(|cell| cell.class);
    let why = (column.kind == ColumnKind::Why).then_some("why");
    let classes: Vec<&str> = [numeric(column), why, own].into_iter().flatten().collect();
    let class = (!classes.is_empty()).then(|| classes.join(" "));
    let label = roles.0.then_some(&column.name);
    let tooltip = cell.and_then(|cell| cell.tooltip.as_ref()).map(StyledText::words);
    html! {
        td role=[roles.of("cell")] class=[class] data-label=[label] title=[tooltip] { @if let Some(cell) = cell { (shown(cell)) } }
    }
}

fn shown(cell: &TableCell) -> Markup {
    match &cell.value {
        CellValue::Text(words) => text(words),
        CellValue::Estimate(Some(e)) => {
            html! { span class="estimate" { (times(e.ratio)) " " span class="interval" { (interval(e)) } } }
        }
        CellValue::Bar(share) => bar(*share),
        CellValue::Curve(values) => curve(values),
        _ => html! { (cell.shown(false)) },
    }
}
