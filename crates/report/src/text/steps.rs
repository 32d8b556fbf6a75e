//! The steps of a run as a table, and those that were not measured by reason.

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint};
use landspeed_record::{Estimate, StepSummary, TuneSummary};

use crate::output::{Style, Tone};
use crate::words::{self, Kind, Primary, wrapped};
use crate::{safe, table as tables};

/// What a width has room for.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// The blocks that counted.
    blocks: bool,
    /// The reasons in a column of their own; below the table otherwise.
    reasons: bool,
}

impl Room {
    fn of(width: u16) -> Self {
        Room { blocks: width >= 96, reasons: width >= 132 }
    }
}

/// Steps that were tried in order, one row each.
pub(super) fn table(summary: &TuneSummary, width: u16, style: Style) -> String {
    let primary = Primary::of(&summary.goal);
    let room = Room::of(width);
    let tried: Vec<&StepSummary> =
        summary.steps.iter().filter(|s| !matches!(Kind::of(s), Kind::Skipped | Kind::NotTried)).collect();
    if tried.is_empty() {
        return "No step was measured.".to_owned();
    }
    let rows = tried.iter().map(|step| row(step, primary, room, style));
    let mut table = tables::shown(&headers(primary, room), rows, width);
    for (index, column) in table.column_iter_mut().enumerate() {
        let figures = 2..=if room.blocks { 6 } else { 5 };
        if figures.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if index == 0 {
            column.set_padding((0, 1));
        }
        // Only words may wrap.
        if index != 1 && index != 8 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let text = table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n");
    if room.reasons { text } else { text + &reasons(&tried, width, style) }
}

fn headers(primary: Primary, room: Room) -> Vec<&'static str> {
    let [first, second, third] = primary.order().map(Primary::short);
    let mut headers = vec!["", "step", first, second, third, "left out"];
    headers.extend(room.blocks.then_some("blocks"));
    headers.push("answer");
    headers.extend(room.reasons.then_some("why"));
    headers
}

fn row(step: &StepSummary, primary: Primary, room: Room, style: Style) -> Vec<Cell> {
    let kind = Kind::of(step);
    let paint = |text: &str| {
        let cell = Cell::new(text);
        match color(kind.tone()) {
            Some(color) if style.color => cell.fg(color),
            _ => cell,
        }
    };
    let [first, second, third] = primary.order().map(|p| p.of_step(step));
    let mut cells = vec![
        paint(kind.symbol()),
        Cell::new(words::step_words(step)),
        paint(&full(first)),
        Cell::new(brief(second)),
        Cell::new(brief(third)),
        Cell::new(brief(step.left_out)),
    ];
    cells.extend(room.blocks.then(|| Cell::new(blocks(step))));
    cells.push(paint(kind.brief()));
    cells.extend(room.reasons.then(|| Cell::new(safe(&step.reason))));
    cells
}

/// Why a step was not kept, where more is to be said than the figures do.
fn reasons(tried: &[&StepSummary], width: u16, style: Style) -> String {
    let told = |step: &&&StepSummary| {
        matches!(Kind::of(step), Kind::Unconfirmed | Kind::Harms | Kind::Dropped | Kind::Undecided)
    };
    let lines: String = tried
        .iter()
        .filter(told)
        .map(|step| {
            let kind = Kind::of(step);
            let text = format!("{} {}: {}", kind.symbol(), words::setting(step), safe(&step.reason));
            format!("\n{}", style.paint(Tone::Dim, &wrapped(&text, usize::from(width))))
        })
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn full(e: Option<Estimate>) -> String {
    e.filter(words::plausible).map_or_else(|| "-".to_owned(), |e| words::estimate(&e))
}

fn brief(e: Option<Estimate>) -> String {
    e.filter(words::plausible).map_or_else(|| "-".to_owned(), |e| words::times(e.ratio))
}

/// "8", or "8 of 10" where two were thrown away.
fn blocks(step: &StepSummary) -> String {
    match step.discarded {
        0 => step.blocks.to_string(),
        gone => format!("{} of {}", step.blocks, u64::from(step.blocks) + u64::from(gone)),
    }
}

fn color(tone: Tone) -> Option<Color> {
    match tone {
        Tone::Good => Some(Color::DarkGreen),
        Tone::Bad => Some(Color::DarkRed),
        Tone::Open => Some(Color::DarkYellow),
        Tone::Noise => Some(Color::DarkMagenta),
        Tone::Dim | Tone::Strong => None,
    }
}

/// Skipped and not tried, one paragraph a reason.
pub(super) fn unmeasured(summary: &TuneSummary, width: u16, style: Style) -> Option<String> {
    let groups = words::unmeasured(summary);
    let lines: Vec<String> = groups
        .iter()
        .map(|(kind, reason, names)| {
            let text = format!("{}: {reason}: {}", kind.word(), names.join(", "));
            style.paint(Tone::Dim, &wrapped(&text, usize::from(width)))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
