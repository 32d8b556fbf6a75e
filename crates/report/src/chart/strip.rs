//! The chart of the raw trials, one dot each.

use landspeed_analysis::Metric;
use landspeed_record::{Record, StepSummary, TuneSummary};
use landspeed_stats::median;
use maud::{Markup, html};

use super::frame::{ChartFrame, ChartShape, n};
use super::rows::{at, ground, name, place};
use super::scale::{Scale, label, unit_in};
use super::trials::by_step;
use crate::words::{self, StepOutcome};

/// Largest number of trials that are drawn per step and arm.
const DRAWN: usize = 200;

struct StripRow<'a> {
    number: usize,
    step: &'a StepSummary,
    /// The incumbent's trials, then the candidate's.
    arms: [Vec<f64>; 2],
}

/// Draws the chart. Returns `None` if the record has no trials of a measured step.
pub(crate) fn strip(summary: &TuneSummary, record: &Record) -> Option<Markup> {
    let primary = Metric::of_goal(&summary.goal);
    let mut trials = by_step(record, primary);
    let rows: Vec<StripRow<'_>> = words::measured(summary)
        .into_iter()
        .zip(1..)
        .filter_map(|((step, _), number)| {
            Some(StripRow { number, step, arms: trials.remove(step.id.as_str())? })
        })
        .collect();
    let all = || rows.iter().flat_map(|row| row.arms.iter().flatten().copied());
    let (per, unit) = unit_in(primary, all().fold(0.0, f64::max), summary);
    let count = all().count();
    if count == 0 {
        return None;
    }
    let scale = Scale::log(all().map(|v| v / per), 0.0, 1.0);
    let is_cut = rows.iter().any(|row| row.arms.iter().any(|arm| arm.len() > DRAWN));
    let frame = ChartFrame {
        name: "trials",
        title: "Every trial",
        description: format!("{count} trials of {} steps, incumbent and candidate, in {unit}.", rows.len()),
        caption: html! { p {
            "One dot is one trial: the incumbent's above as rings, the candidate's below in the colour of its answer; an upright "
            "mark is their median. The two lanes of a row were measured in turns; their spread is the machine's noise. A shift "
            "from one row to the next is how the machine changed meanwhile."
            @if is_cut { " Of steps with more than " (DRAWN) " trials a lane, the first " (DRAWN) " are drawn." }
        } },
        shape: ChartShape::Rows(rows.len()),
        points: rows.iter().flat_map(|row| &row.arms).map(|arm| arm.len().min(DRAWN)).sum(),
    };
    let axis = format!("{} of one trial, {unit} (log scale)", primary.row().axis);
    Some(frame.figure(&html! {
        (ground(&scale, &axis, &html! {}))
        @for (index, row) in rows.iter().enumerate() { (row.draw(index, &scale, per)) }
    }))
}

impl StripRow<'_> {
    fn draw(&self, index: usize, scale: &Scale, per: f64) -> Markup {
        let across = |value: f64| at(scale.at(value / per));
        html! {
            g class={ "row " (StepOutcome::of(self.step).labels().class) } style=(place(index)) data-step=(crate::safe(&self.step.id)) {
                title { (self.tooltip(per)) }
                rect class="hit" width="100%" {}
                line class="rule" x1="0" x2="100%" y1="0" y2="0" {}
                (name(self.number, self.step))
                g class="in-row" {
                    @for (arm, class, y) in [(&self.arms[0], "incumbent", 8.5), (&self.arms[1], "candidate", 18.5)] {
                        g class=(class) {
                            @for value in arm.iter().take(DRAWN) { circle style=(across(*value)) cy=(n(y)) r="2.6" {} }
                            @if let Some(middle) = median(arm) { rect class="median" style=(across(middle)) y=(n(y - 5.0)) height="10" {} }
                        }
                    }
                }
            }
        }
    }

    fn tooltip(&self, per: f64) -> String {
        let [incumbent, candidate] = self.arms.each_ref().map(|arm| {
            let middle = median(arm).map_or_else(|| "-".to_owned(), |middle| label(middle / per));
            (middle, arm.len())
        });
        format!(
            "{}. {}: median {} with the incumbent ({} trials), {} with the candidate ({} trials)",
            self.number,
            words::step_words(self.step),
            incumbent.0,
            incumbent.1,
            candidate.0,
            candidate.1
        )
    }
}
