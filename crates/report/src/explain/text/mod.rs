//! The explanation on a terminal.

mod bars;
mod cost;
mod path;
mod sizes;
mod verdict;

use landspeed_record::ExplainReport;

use super::{cost as costs, parts, words};
use crate::output::{Output, Style, Tone};
use crate::words::{estimate, plausible, wrapped};
use crate::{safe, table, wan};

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What fits a screen or two: about 60 lines.
    #[default]
    Brief,
    /// Everything that the page says, as far as words can.
    Full,
}

/// What all parts of a text are made with.
#[derive(Debug, Clone, Copy)]
struct Pen {
    style: Style,
    width: usize,
    /// Whether bars and curves may be drawn with block characters.
    blocks: bool,
    detail: Detail,
}

impl Pen {
    /// `brief` lines at most, or all where all were asked for.
    fn most(self, brief: usize) -> usize {
        if self.detail == Detail::Full { usize::MAX } else { brief }
    }

    /// `text` that starts with a space or two, broken to the width.
    fn line(self, text: &str) -> String {
        let lead = text.len() - text.trim_start().len();
        let room = self.width.saturating_sub(lead).max(20);
        let indent = " ".repeat(lead);
        // A figure stays with its percent sign.
        let broken = wrapped(&text.replace(" %", "\u{a0}%"), room).replace('\u{a0}', " ");
        // A paragraph hangs nowhere.
        let shown =
            |line: &str| if lead == 0 { line.trim_start().to_owned() } else { format!("{indent}{line}") };
        broken.lines().map(shown).collect::<Vec<_>>().join("\n")
    }

    /// A heading.
    fn heading(self, text: &str) -> String {
        self.style.paint(Tone::Strong, text)
    }
}

/// The explanation for `output`, the verdict first. Bars are drawn where a person watches; elsewhere
/// the figures stand alone. Ends with a line break.
pub fn explain_text(report: &ExplainReport, output: Output, detail: Detail) -> String {
    let pen = Pen {
        style: Style { color: output.color },
        width: usize::from(output.width.clamp(60, 160)),
        blocks: output.terminal,
        detail,
    };
    let mut sections = vec![verdict::head(report, pen)];
    sections.extend(verdict::next(report, pen));
    sections.extend(cost::section(&costs::hosts(report), pen));
    sections.extend(path::hops(report, pen));
    sections.extend(path::window(report, pen));
    sections.extend(path::limits(report, pen));
    sections.extend(sizes::section(report, pen));
    if detail == Detail::Full {
        sections.extend(tables(report, pen));
    }
    sections.extend(report.wan.as_ref().map(|link| wan::text(link, pen.style, pen.width as u16)));
    sections.push(close(report, pen));
    sections.join("\n\n") + "\n"
}

/// Facts and limits, host beside host.
fn tables(report: &ExplainReport, pen: Pen) -> Vec<String> {
    let names: Vec<String> = report.hosts.iter().enumerate().map(|(i, h)| words::host(&h.name, i)).collect();
    let shown = |what: &'static str, rows: Vec<parts::Row>| {
        let mut headers = vec![what];
        headers.extend(names.iter().map(String::as_str));
        let cells: Vec<Vec<String>> =
            rows.into_iter().map(|row| std::iter::once(row.name).chain(row.values).collect()).collect();
        (!cells.is_empty()).then(|| trimmed(&table(&headers, &cells, pen.width as u16)))
    };
    [shown("limits", parts::limits(report)), shown("hosts", parts::facts(report))]
        .into_iter()
        .flatten()
        .collect()
}

fn trimmed(table: &str) -> String {
    table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What could not be seen, what a reader should know, and how to run it again.
fn close(report: &ExplainReport, pen: Pen) -> String {
    let unseen = parts::unseen(report);
    let most = pen.most(1);
    let dim = |text: String| pen.style.paint(Tone::Dim, &pen.line(&text));
    let told = |place: &str, line: &str| match place {
        "verdict" => format!("not judged: {line}"),
        host => format!("not seen on {host}: {line}"),
    };
    let mut lines: Vec<String> =
        unseen.iter().take(most).map(|(place, line)| dim(told(place, line))).collect();
    let left = unseen.len().saturating_sub(most);
    lines.extend(
        (left > 0).then(|| dim(format!("not seen: {left} more, which the page and the JSON document list"))),
    );
    let absent = parts::absent(report);
    lines.extend((!absent.is_empty()).then(|| dim(format!("not measured: {}", absent.join(", ")))));
    lines.extend(report.notes.iter().take(pen.most(0)).map(|note| dim(format!("note: {}", safe(note)))));
    if let Some(e) = report.tracer_effect.filter(plausible) {
        lines.push(dim(format!("the tracer's effect on bytes per CPU-second: {}", estimate(&e))));
    }
    lines.push(format!("again      {}", safe(&report.command)));
    lines.join("\n")
}
