//! The raw trials: one dot each.

use landspeed_record::{Record, TuneSummary};
use maud::{Markup, html};

use super::frame::{Frame, line, n, short, text, x_axis};
use super::scale::{Scale, label, unit};
use super::trials::{Arms, DRAWN, by_step, median};
use crate::words::{self, Kind, Primary};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 268.0;
const RIGHT: f64 = 884.0;
const TOP: f64 = 12.0;
const ROW: f64 = 27.0;

/// Units of a figure by size, and its name.
pub(super) fn units(figure: Primary) -> &'static [(f64, &'static str)] {
    match figure {
        Primary::Rate => &[(1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")],
        Primary::Cost => &[
            (1e9, "GB per CPU-second"),
            (1e6, "MB per CPU-second"),
            (1e3, "kB per CPU-second"),
            (1.0, "B per CPU-second"),
        ],
        Primary::Latency => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
    }
}

struct Row<'a> {
    number: usize,
    name: String,
    id: &'a str,
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
            Some(Row { number, name: words::step_words(step), id: &step.id, kind: Kind::of(step), arms })
        })
        .collect();
    let all = || rows.iter().flat_map(|r| r.arms.incumbent.iter().chain(&r.arms.candidate).copied());
    let (per, name) = unit(all().fold(0.0, f64::max), units(primary));
    let count = all().count();
    if count == 0 {
        return None;
    }
    let bottom = TOP + ROW * rows.len() as f64;
    let scale = Scale::log(all().map(|v| v / per), LEFT, RIGHT);
    let frame = Frame {
        name: "trials",
        title: "Every trial",
        description: format!("{count} trials of {} steps, incumbent and candidate, in {name}.", rows.len()),
        caption: caption(&rows),
        width: WIDTH,
        height: bottom + 48.0,
        points: count,
    };
    let axis = format!("{} of one trial, {name} (log scale)", primary.phrase());
    let inside = html! {
        (x_axis(&scale, &scale.ticks(9), (TOP, bottom)))
        (text("axis", "middle", (f64::midpoint(LEFT, RIGHT), bottom + 38.0), &axis))
        @for (index, row) in rows.iter().enumerate() {
            (lanes(TOP + ROW * index as f64, row, &scale, per))
        }
    };
    Some(frame.figure(&inside))
}

/// One step: the incumbent's trials in the upper lane, the candidate's in the lower.
fn lanes(top: f64, row: &Row<'_>, scale: &Scale, per: f64) -> Markup {
    html! {
        g class={ "row " (row.kind.class()) } data-step=(crate::safe(row.id)) {
            title { (told(row, per)) }
            (line("rule", (0.0, top), (RIGHT, top)))
            (text("ordinal", "end", (20.0, top + ROW / 2.0 + 4.0), &row.number.to_string()))
            (text("name", "start", (30.0, top + ROW / 2.0 + 4.0), &short(&row.name, 36)))
            (dots("incumbent", &row.arms.incumbent, top + 8.5, &|v| scale.at(v / per)))
            (dots("candidate", &row.arms.candidate, top + 18.5, &|v| scale.at(v / per)))
        }
    }
}

fn told(row: &Row<'_>, per: f64) -> String {
    let middle = |values: &[f64]| median(values).map_or_else(|| "-".to_owned(), |m| label(m / per));
    format!(
        "{}. {}: median {} with the incumbent ({} trials), {} with the candidate ({} trials)",
        row.number,
        row.name,
        middle(&row.arms.incumbent),
        row.arms.incumbent.len(),
        middle(&row.arms.candidate),
        row.arms.candidate.len()
    )
}

fn dots(class: &str, values: &[f64], y: f64, at: &dyn Fn(f64) -> f64) -> Markup {
    html! {
        g class=(class) {
            @for value in values.iter().take(DRAWN) {
                circle cx=(n(at(*value))) cy=(n(y)) r="2.6" {}
            }
            @if let Some(middle) = median(values) {
                (line("median", (at(middle), y - 5.0), (at(middle), y + 5.0)))
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
            li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { line class="median" x1="8" y1="2" x2="8" y2="14" {} } "median" }
        }
        p {
            "One dot is one trial. The two lanes of a row were measured in interleaved order; their spread is the machine's noise, "
            "and what lies between rows is its drift."
            @if cut { " Of steps with more than " (DRAWN) " trials an arm, the first " (DRAWN) " are drawn." }
        }
    }
}
