//! The figures before and after, and their change, from the trials of the final check.

use landspeed_analysis::{LadderRules, Metric, guard_margin};
use landspeed_record::units::Nanos;
use landspeed_record::{Estimate, ProgramMetric, TrialFigures, TuneSummary};

use crate::block::{
    Card, ColumnKind, Quantity, ReportBlock, ReportTable, StyledText, TableCell, TableColumn, TableRow,
    TextStyle,
};
use crate::chart;
use crate::output::Tone;
use crate::words;

pub(super) fn cards(summary: &TuneSummary) -> ReportBlock {
    let order = Metric::of_goal(&summary.goal).order();
    ReportBlock::Cards("Figures before and after", order.map(|figure| card(figure, summary)).into())
}

pub(super) fn table(summary: &TuneSummary) -> ReportTable {
    let columns = vec![
        TableColumn::words(""),
        TableColumn::number("before"),
        TableColumn::number("after"),
        TableColumn::of(ColumnKind::Estimate, "change"),
        TableColumn::words(""),
    ];
    let [first, second, third] = Metric::of_goal(&summary.goal).order();
    let program = summary.program.as_ref();
    let rows = [(first, false), (second, true), (third, true)].map(|(figure, is_guard)| {
        let change = figure.of_gain(&summary.gain);
        let margin = is_guard.then(|| margin(summary));
        let label = match (verdict(change.map(|e| figure.oriented(e)), margin, summary), margin) {
            (ALLOWED, Some(margin)) => format!("{ALLOWED}: {}", edge(figure, margin)),
            (label, _) => label.to_owned(),
        };
        let ends = [&summary.start, &summary.final_].map(|of| shown(figure, of, program).into());
        row(&words::row(figure, summary), ends, change, &label)
    });
    ReportTable::new("Before and after", "stacked", columns)
        .rows(rows)
        .rows(loaded(summary))
        .rows(lost(summary))
}

/// Returns the share that a guarded figure may lose, given the proven gain of the run.
fn margin(summary: &TuneSummary) -> f64 {
    let goal = Metric::of_goal(&summary.goal);
    let gain = goal.of_gain(&summary.gain).map_or(1.0, |gain| goal.oriented(gain).low);
    guard_margin(&LadderRules::default(), gain)
}

/// Returns the ratio to which a figure may get worse if it may lose the share `margin`: "up to 1.45×".
fn edge(figure: Metric, margin: f64) -> String {
    match figure.row().less_is_better {
        true => format!("up to {}", words::times(1.0 + margin)),
        false => format!("down to {}", words::times(1.0 / (1.0 + margin))),
    }
}

/// The word for a guarded figure that is worse than usually allowed, by no more than the run's gain allows.
const ALLOWED: &str = "allowed";

/// Returns the word for the change of a figure, such as "better", by its ratio (above 1 is better). A guarded figure
/// that is worse by no more than its guard usually allows is "within its limit". `margin` is the share that a guarded
/// figure may lose beside the run's gain; `None` for the goal's figure.
fn word(better: Option<Estimate>, margin: Option<f64>) -> &'static str {
    let rules = LadderRules::default();
    let (least, limit) = (1.0 + rules.least_effect, 1.0 + rules.guard);
    match better.filter(words::has_ends) {
        None => "not known",
        Some(e) if e.low > 1.0 && e.ratio >= least => "better",
        Some(e) if e.high < 1.0 && e.ratio <= 1.0 / least => match margin {
            Some(_) if e.low > 1.0 / limit => "within its limit",
            Some(margin) if margin > rules.guard && e.ratio >= 1.0 / (1.0 + margin) => ALLOWED,
            _ => "worse",
        },
        Some(e) if e.low > 1.0 / limit && e.high < limit => "same",
        Some(_) => "not clear",
    }
}

/// Returns the verdict of a change; an empty text if what differs is noise. `margin` is as for [`word`].
fn verdict(better: Option<Estimate>, margin: Option<f64>, summary: &TuneSummary) -> &'static str {
    if is_noise(summary) { "" } else { word(better, margin) }
}

/// Returns true if the final check compared a setting with itself, because the run kept nothing.
fn is_noise(summary: &TuneSummary) -> bool {
    let is_measured = Metric::of_goal(&summary.goal).of_gain(&summary.gain).is_some();
    is_measured && summary.start_cell == summary.final_cell
}

/// Returns the remark on a table whose changes are noise.
pub(super) fn remark(summary: &TuneSummary) -> Option<ReportBlock> {
    let said = "nothing was kept: the settings before and after are equal, and the changes noise";
    is_noise(summary).then(|| ReportBlock::aside(said))
}

fn row(name: &str, [before, after]: [TableCell; 2], change: Option<Estimate>, label: &str) -> TableRow {
    let tone = match label {
        "better" => Some(Tone::Good),
        "worse" => Some(Tone::Bad),
        _ => None,
    };
    let label = StyledText::default().with(TextStyle::Toned, label);
    TableRow { tone, ..TableRow::from([name.into(), before, after, TableCell::from(change), label.into()]) }
}

/// Returns the row of the round trip under load, or `None` if it was not measured both before and after. It counts as
/// worse only if it more than doubles and also grows by more than 5 ms.
fn loaded(summary: &TuneSummary) -> Option<TableRow> {
    let known = |figures: &TrialFigures| figures.loaded_latency_ns.filter(|ns| ns.0 > 0);
    let (before, after): (Nanos, Nanos) = (known(&summary.start)?, known(&summary.final_)?);
    let change = summary.gain.loaded_latency.filter(Estimate::is_plausible);
    let usual = Some(LadderRules::default().guard);
    let label = match verdict(change.map(|e| Metric::Latency.oriented(e)), usual, summary) {
        "worse" if !landspeed_analysis::too_long_under_load(before, after) => "within its limit",
        label => label,
    };
    Some(row("RTT under load", [before.into(), after.into()], change, label))
}

/// Returns the row of the share of datagrams that did not arrive, or `None` if the run sent no datagrams.
fn lost(summary: &TuneSummary) -> Option<TableRow> {
    let [before, after] = [summary.start.lost?, summary.final_.lost?];
    let label = match before - after {
        _ if is_noise(summary) => "",
        less if less > WORTH_TELLING => "better",
        less if less < -WORTH_TELLING => "worse",
        _ => "same",
    };
    Some(row("datagrams lost", [before, after].map(|share| percent_lost(share).into()), None, label))
}

/// Least difference between shares of lost datagrams that is rated better or worse.
pub(super) const WORTH_TELLING: f64 = 0.001;

pub(super) fn percent_lost(share: f64) -> String {
    match 100.0 * share {
        some if share > 0.0 && some < 0.01 => "< 0.01 %".to_owned(),
        some => format!("{some:.2} %"),
    }
}

/// Returns the cell of a figure with its unit, or `None` if it was not measured.
fn shown(figure: Metric, of: &TrialFigures, program: Option<&ProgramMetric>) -> Option<TableCell> {
    let value = figure.of_figures(of)?;
    Some(match (figure, program) {
        (Metric::Rate, Some(program)) => TableCell::in_unit(value, &program.unit),
        (Metric::Cost, Some(_)) => TableCell::in_unit(value, ""),
        (Metric::Rate, None) => of.rate_bps.into(),
        (Metric::Cost, None) => {
            // The row's name has the rest of the unit.
            let shown = of.bytes_per_cpu_s.to_string().trim_end_matches("/cpu-s").to_owned();
            Quantity { value, unit: "B/cpu-s".into(), shown }.into()
        }
        (Metric::Latency, _) => of.latency_ns.into(),
    })
}

/// Returns a figure before and after, both in the same unit, and that unit.
fn both(figure: Metric, summary: &TuneSummary) -> ([String; 2], String) {
    let values = [&summary.start, &summary.final_].map(|of| figure.of_figures(of));
    let (per, unit) = chart::unit_in(figure, values.into_iter().flatten().fold(0.0, f64::max), summary);
    let number = if summary.program.is_some() { words::amount } else { words::number };
    let said = |v: Option<f64>| v.map_or_else(|| "–".to_owned(), |v| number(v / per));
    (values.map(said), unit.replace(" per ", "/"))
}

/// Returns a figure before and after, "13.5 -> 13.1 Gb/s", or `None` if one of them was not measured.
pub(super) fn span(figure: Metric, summary: &TuneSummary) -> Option<String> {
    let _measured = (figure.of_figures(&summary.start)?, figure.of_figures(&summary.final_)?);
    let ([before, after], unit) = both(figure, summary);
    Some(format!("{before} -> {after} {unit}"))
}

fn card(figure: Metric, summary: &TuneSummary) -> Card {
    let ([before, after], unit) = both(figure, summary);
    let under = StyledText::default()
        .with(TextStyle::Quiet, before)
        .and(" → ")
        .with(TextStyle::Strong, format!("{after} {unit}"));
    Card { name: figure.row().card, figure: ratio(figure.of_gain(&summary.gain)), under }
}

fn ratio(e: Option<Estimate>) -> StyledText {
    match e {
        Some(e) => StyledText::default()
            .with(TextStyle::Strong, words::times(e.ratio))
            .and(" ")
            .with(TextStyle::Quiet, words::interval(&e)),
        None => StyledText::default().with(TextStyle::Quiet, "not measured"),
    }
}
