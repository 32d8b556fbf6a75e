//! The sections on all steps, measured or not, and on the changed settings.

use landspeed_record::{Settings, StepSummary, TuneSummary};

use crate::block::{Block, Cell, Column, ColumnKind, Look, Row, Section, Table, Text, code};
use crate::safe;
use crate::words::{self, Outcome, Primary};

/// Least terminal widths with a column for the blocks, and with one for the reasons.
const BLOCKS: usize = 96;
const REASONS: usize = 132;

pub(super) fn section(summary: &TuneSummary) -> Section {
    let order = Primary::of(&summary.goal).order();
    let tried =
        summary.steps.iter().filter(|s| !matches!(Outcome::of(s), Outcome::Skipped | Outcome::NotTried));
    let [first, second, third] = order.map(|figure| figure.called().heading);
    let columns = vec![
        Column::words("Step"),
        Column::words("Answer"),
        Column::of(ColumnKind::Estimate, first),
        Column::of(ColumnKind::Ratio, second),
        Column::of(ColumnKind::Ratio, third),
        Column::of(ColumnKind::Ratio, "Left out"),
        Column::number("Blocks").above_width(BLOCKS),
        Column::of(ColumnKind::Why, "Why").above_width(REASONS),
    ];
    let table = Table::new("All steps", "steps stacked", columns)
        .captioned(
            "Ratios of candidate over incumbent with their intervals; above one is more, for the round trip slower. “Left out” is \
             the final setting over the final setting without the step.",
        )
        .rows(tried.map(|step| row(step, order)));
    Section::new("steps", "All steps").all(table.some()).all(unmeasured(summary))
}

fn row(step: &StepSummary, order: [Primary; 3]) -> Row {
    let mut cells = vec![name(step).into(), answer(step).into()];
    cells.extend(order.map(|figure| Cell::from(figure.of_step(step))));
    cells.push(step.left_out.into());
    let all = u64::from(step.blocks) + u64::from(step.discarded);
    let blocks = if step.discarded == 0 { all.to_string() } else { format!("{} of {all}", step.blocks) };
    cells.push(Cell::number(f64::from(step.blocks), blocks));
    cells.push(safe(&step.reason).into());
    toned(step, cells)
}

pub(super) fn toned(step: &StepSummary, cells: Vec<Cell>) -> Row {
    let outcome = Outcome::of(step);
    Row { class: outcome.told().class.into(), tone: Some(outcome.told().tone), ..Row::from(cells) }
}

pub(super) fn answer(step: &StepSummary) -> Text {
    let outcome = Outcome::of(step);
    Text::default().with(Look::Toned, format!("{} {}", outcome.told().symbol, outcome.told().brief))
}

fn name(step: &StepSummary) -> Text {
    let mut name = code(words::setting(step));
    if !step.from.is_empty() {
        name = name.with(Look::Beside, format!(" from {}", safe(&step.from)));
    }
    if !step.with.is_empty() {
        name = name.with(Look::Quiet, format!(" with {}", safe(&step.with.join(", "))));
    }
    name.with(Look::Quiet, if step.reopened { " (tried again)" } else { "" })
}

fn unmeasured(summary: &TuneSummary) -> Vec<Block> {
    let groups = words::unmeasured(summary);
    let of = |(outcome, heading): (Outcome, &str)| {
        let pairs: Vec<(Text, Text)> = groups
            .iter()
            .filter(|(k, ..)| *k == outcome)
            .map(|(_, reason, names)| (reason.into(), named(names)))
            .collect();
        (!pairs.is_empty()).then(|| [Block::heading(heading), Block::Pairs("reasons", pairs)])
    };
    let outcomes = [
        (Outcome::Skipped, "Skipped: cannot be turned here"),
        (Outcome::NotTried, "Not tried: no room or no point"),
    ];
    outcomes.into_iter().filter_map(of).flatten().collect()
}

fn named(names: &[String]) -> Text {
    let first = names.first().map(code).unwrap_or_default();
    names.iter().skip(1).fold(first, |text, name| text.and(", ").with(Look::Code, name))
}

/// A setting that the run changed: place, knob, start, final.
type Changed<'a> = (&'static str, &'a str, &'a str, &'a str);

fn differing<'a>(place: &'static str, from: &'a Settings, to: &'a Settings) -> Vec<Changed<'a>> {
    let before = |knob: &String| from.get(knob).map_or("", String::as_str);
    to.iter()
        .filter(|(knob, value)| before(knob) != value.as_str())
        .map(|(knob, value)| (place, knob.as_str(), before(knob), value.as_str()))
        .collect()
}

/// Returns the settings that differ between start and end; a change on both hosts is one row.
pub(super) fn changed(summary: &TuneSummary) -> Section {
    let (start, last) = (&summary.start_cell, &summary.final_cell);
    let mut rows = differing("host A", &start.a, &last.a);
    for other in differing("host B", &start.b, &last.b) {
        match rows.iter_mut().find(|row| (row.1, row.2, row.3) == (other.1, other.2, other.3)) {
            Some(row) => row.0 = "both hosts",
            None => rows.push(other),
        }
    }
    rows.extend(differing("flow", &start.flow, &last.flow));
    let columns = ["Knob", "Where", "Start", "Final"].map(Column::words).into();
    let table = Table::new("The setting that won", "", columns)
        .captioned(
            "What differs between the first and the last setting. All of it was put back after the run unless the head of this \
             report says otherwise.",
        )
        .rows(rows.into_iter().map(|(place, knob, before, value)| {
            [code(safe(knob)), place.into(), safe(before).into(), Text::default().with(Look::Strong, safe(value))]
        }));
    Section::new("setting", "The setting that won").all(table.some())
}
