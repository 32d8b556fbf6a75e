//! The raw trials: one dot each.

use landspeed_record::{Record, StepSummary, TuneSummary};
use landspeed_stats::median;
use maud::{Markup, html};

use super::frame::{Frame, n};
use super::rows;
use super::scale::{Scale, label, unit_of};
use super::trials::{Arms, DRAWN, by_step};
use crate::words::{self, Kind, Primary};

struct Row<'a> {
    number: usize,
    step: &'a StepSummary,
    kind: Kind,
    arms: Arms,
}

/// The chart, or nothing where the record has no trials of a measured step.
pub(crate) fn strip(summary: &TuneSummary, record: &Record) -> Option<Markup> {
    let primary = Primary::of(&summary.goal);
    let mut trials = by_step(record, primary);
    let rows: Vec<Row> = words::measured(summary)
        .into_iter()
        .zip(1..)
        .filter_map(|((step, _), number)| {
            let arms = trials.remove(step.id.as_str())?;
            Some(Row { number, step, kind: Kind::of(step), arms })
        })
        .collect();
    let all = || rows.iter().flat_map(|r| r.arms.incumbent.iter().chain(&r.arms.candidate).copied());
    let (per, name) = unit_of(primary, all().fold(0.0, f64::max));
    let count = all().count();
    if count == 0 {
        return None;
    }
    let scale = Scale::log(all().map(|v| v / per), 0.0, 1.0);
    let frame = Frame {
        name: "trials",
        title: "Every trial",
        description: format!("{count} trials of {} steps, incumbent and candidate, in {name}.", rows.len()),
        caption: caption(&rows),
        shape: rows::shape(rows.len()),
        points: count,
    };
    let axis = format!("{} of one trial, {name} (log scale)", primary.axis());
    let inside = html! {
        (rows::ground(&scale, &axis, &html! {}))
        @for (index, row) in rows.iter().enumerate() { (lanes(index, row, &scale, per)) }
    };
    Some(frame.figure(&inside))
}

/// One step: the incumbent's trials in the upper lane, the candidate's in the lower.
fn lanes(index: usize, row: &Row<'_>, scale: &Scale, per: f64) -> Markup {
    let at = |value: f64| rows::at(scale.at(value / per));
    html! {
        g class={ "row " (row.kind.class()) } style=(rows::place(index)) data-step=(crate::safe(&row.step.id)) {
            title { (told(row, per)) }
            rect class="hit" width="100%" {}
            line class="rule" x1="0" x2="100%" y1="0" y2="0" {}
            (rows::name(row.number, row.step))
            g class="in-row" {
                (dots("incumbent", &row.arms.incumbent, 8.5, &at))
                (dots("candidate", &row.arms.candidate, 18.5, &at))
            }
        }
    }
}

fn told(row: &Row<'_>, per: f64) -> String {
    let middle = |values: &[f64]| median(values).map_or_else(|| "-".to_owned(), |m| label(m / per));
    format!(
        "{}. {}: median {} with the incumbent ({} trials), {} with the candidate ({} trials)",
        row.number,
        words::step_words(row.step),
        middle(&row.arms.incumbent),
        row.arms.incumbent.len(),
        middle(&row.arms.candidate),
        row.arms.candidate.len()
    )
}

fn dots(class: &str, values: &[f64], y: f64, at: &dyn Fn(f64) -> String) -> Markup {
    html! {
        g class=(class) {
            @for value in values.iter().take(DRAWN) { circle style=(at(*value)) cy=(n(y)) r="2.6" {} }
            @if let Some(x) = median(values).map(at) {
                rect class="median" style=(x) y=(n(y - 5.0)) height="10" {}
            }
        }
    }
}

fn caption(rows: &[Row<'_>]) -> Markup {
    let cut = rows.iter().any(|r| r.arms.incumbent.len().max(r.arms.candidate.len()) > DRAWN);
    html! {
        ul class="legend" {
            li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { g class="incumbent" { circle cx="8" cy="8" r="3.4" {} } } "incumbent (upper lane)" }
            li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { g class="row kept" { g class="candidate" { circle cx="8" cy="8" r="3.4" {} } } } "candidate (lower lane, colour of its answer)" }
            li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { rect class="median" x="7" y="2" height="12" {} } "median" }
        }
        p {
            "One dot is one trial. The two lanes of a row were measured in interleaved order; their spread is the machine's noise, "
            "and what lies between rows is its drift."
            @if cut { " Of steps with more than " (DRAWN) " trials an arm, the first " (DRAWN) " are drawn." }
        }
    }
}
