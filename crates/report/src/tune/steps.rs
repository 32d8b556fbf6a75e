//! The sections on all steps, measured or not, and on the changed settings.

use landspeed_analysis::Metric;
use landspeed_record::{Settings, StepSummary, TuneSummary};

use crate::block::{
    ColumnKind, ReportBlock, ReportSection, ReportTable, StyledText, TableCell, TableColumn, TableRow,
    TextStyle, code,
};
use crate::safe;
use crate::words::{self, StepOutcome};

/// Least width of a terminal, in characters, that shows the column of blocks.
const BLOCKS: usize = 96;
/// Least width of a terminal, in characters, that shows the column of reasons.
const REASONS: usize = 132;

pub(super) fn section(summary: &TuneSummary) -> ReportSection {
    let order = Metric::of_goal(&summary.goal).order();
    let tried = summary
        .steps
        .iter()
        .filter(|s| !matches!(StepOutcome::of(s), StepOutcome::Skipped | StepOutcome::NotTried));
    let [first, second, third] = order.map(|figure| figure.row().heading);
    let columns = vec![
        TableColumn::words("Step"),
        TableColumn::words("Answer"),
        TableColumn::of(ColumnKind::Estimate, first),
        TableColumn::of(ColumnKind::Ratio, second),
        TableColumn::of(ColumnKind::Ratio, third),
        TableColumn::of(ColumnKind::Ratio, "Worth at the end"),
        TableColumn::number("Blocks").above_width(BLOCKS),
        TableColumn::of(ColumnKind::Why, "Why").above_width(REASONS),
    ];
    let table = ReportTable::new("All steps", "steps stacked", columns)
        .captioned(
            "How many times as much the setting with the change gives as the one without, with the range of each ratio; for the \
             round trip, above one is slower. “Worth at the end” is the final setting over the final setting without the step.",
        )
        .rows(tried.map(|step| row(step, order)));
    ReportSection::new("steps", "All steps").all(table.non_empty()).all(unmeasured(summary))
}

fn row(step: &StepSummary, order: [Metric; 3]) -> TableRow {
    let mut cells = vec![name(step).into(), answer(step).into()];
    cells.extend(order.map(|figure| TableCell::from(figure.of_step(step))));
    cells.push(step.left_out.into());
    let all = u64::from(step.blocks) + u64::from(step.discarded);
    let blocks = if step.discarded == 0 { all.to_string() } else { format!("{} of {all}", step.blocks) };
    cells.push(TableCell::number(f64::from(step.blocks), blocks));
    cells.push(safe(&step.reason).into());
    toned(step, cells)
}

pub(super) fn toned(step: &StepSummary, cells: Vec<TableCell>) -> TableRow {
    let outcome = StepOutcome::of(step);
    TableRow {
        class: outcome.labels().class.into(),
        tone: Some(outcome.labels().tone),
        ..TableRow::from(cells)
    }
}

pub(super) fn answer(step: &StepSummary) -> StyledText {
    let outcome = StepOutcome::of(step);
    StyledText::default()
        .with(TextStyle::Toned, format!("{} {}", outcome.labels().symbol, outcome.labels().brief))
}

/// Returns the words for a time in the run: "the start", or "after tso=on" for the kept step whose id is `after`.
pub(super) fn moment(after: &str, summary: &TuneSummary) -> StyledText {
    let step = summary.steps.iter().find(|step| step.id == after);
    step.map_or_else(
        || "the start".into(),
        |step| StyledText::from("after ").with(TextStyle::Code, words::setting(step)),
    )
}

fn name(step: &StepSummary) -> StyledText {
    let mut name = code(words::setting(step));
    if !step.from.is_empty() {
        name = name.with(TextStyle::Beside, format!(" from {}", safe(&step.from)));
    }
    if !step.with.is_empty() {
        name = name.with(TextStyle::Quiet, format!(" with {}", safe(&step.with.join(", "))));
    }
    name.with(TextStyle::Quiet, if step.reopened { " (tried again)" } else { "" })
}

fn unmeasured(summary: &TuneSummary) -> Vec<ReportBlock> {
    let groups = words::unmeasured(summary);
    let of = |(outcome, heading): (StepOutcome, &str)| {
        let pairs: Vec<(StyledText, StyledText)> = groups
            .iter()
            .filter(|(k, ..)| *k == outcome)
            .map(|(_, reason, names)| (reason.into(), named(names)))
            .collect();
        (!pairs.is_empty()).then(|| [ReportBlock::heading(heading), ReportBlock::Pairs("reasons", pairs)])
    };
    let outcomes = [
        (StepOutcome::Skipped, "Skipped: cannot be turned here"),
        (StepOutcome::NotTried, "Not tried: no room or no point"),
    ];
    outcomes.into_iter().filter_map(of).flatten().collect()
}

fn named(names: &[String]) -> StyledText {
    let first = names.first().map(code).unwrap_or_default();
    names.iter().skip(1).fold(first, |text, name| text.and(", ").with(TextStyle::Code, name))
}

/// A setting that the run changed, as (place, knob, value at the start, final value).
type SettingChange<'a> = (&'static str, &'a str, &'a str, &'a str);

fn differing<'a>(place: &'static str, from: &'a Settings, to: &'a Settings) -> Vec<SettingChange<'a>> {
    let before = |knob: &String| from.get(knob).map_or("", String::as_str);
    to.iter()
        .filter(|(knob, value)| before(knob) != value.as_str())
        .map(|(knob, value)| (place, knob.as_str(), before(knob), value.as_str()))
        .collect()
}

/// Returns the section on the settings that differ between start and end. A change on both hosts is one row.
pub(super) fn changed(summary: &TuneSummary) -> ReportSection {
    let (start, last) = (&summary.start_cell, &summary.final_cell);
    let mut rows = differing("host A", &start.a, &last.a);
    for other in differing("host B", &start.b, &last.b) {
        match rows.iter_mut().find(|row| (row.1, row.2, row.3) == (other.1, other.2, other.3)) {
            Some(row) => row.0 = "both hosts",
            None => rows.push(other),
        }
    }
    rows.extend(differing("flow", &start.flow, &last.flow));
    let columns = ["Knob", "Where", "Start", "Final"].map(TableColumn::words).into();
    let table = ReportTable::new("The setting that won", "", columns)
        .captioned(
            "What differs between the first and the last setting. All of it was put back after the run unless the head of this \
             report says otherwise.",
        )
        .rows(rows.into_iter().map(|(place, knob, before, value)| {
            [code(safe(knob)), place.into(), safe(before).into(), StyledText::default().with(TextStyle::Strong, safe(value))]
        }));
    ReportSection::new("setting", "The setting that won").all(table.non_empty())
}
