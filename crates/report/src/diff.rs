//! Two runs side by side.

use landspeed_analysis::{Diff, FiguresDiff, StepDiff};
use landspeed_record::{Estimate, StepSummary};

use crate::output::{Style, Tone};
use crate::words;
use crate::{safe, table};

/// Two records compared, as `landspeed diff` shows it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiffReport {
    /// What the first record is called (its path, or its start).
    pub name_a: String,
    /// What the second record is called.
    pub name_b: String,
    /// One line that says what came out.
    pub headline: String,
    /// Figures, settings and host facts, in the order to show.
    pub rows: Vec<DiffRow>,
    /// What limits the comparison: another kernel, another goal, one line each.
    pub notes: Vec<String>,
}

/// One thing that two runs share or differ in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiffRow {
    /// What is compared ("final rate", "A tso", "kernel").
    pub what: String,
    /// In the first record, with its unit.
    pub a: String,
    /// In the second record, with its unit.
    pub b: String,
    /// Second over first, where both were measured.
    pub ratio: Option<Estimate>,
}

impl DiffReport {
    /// What the analysis found of two records that are called `name_a` and `name_b`. Steps that came out
    /// alike are left out.
    pub fn of(diff: &Diff, name_a: &str, name_b: &str) -> Self {
        let mut rows = figures("start", &diff.start);
        rows.extend(figures("final", &diff.final_));
        rows.extend(diff.settings.iter().map(setting));
        rows.extend(diff.steps.iter().filter(|step| step.differs).map(step));
        let headline = match diff.final_.rate.filter(words::plausible) {
            Some(e) => format!(
                "the second's final rate is {} the first's {}",
                words::times(e.ratio),
                words::interval(&e)
            ),
            None => "one of the records has no final rate to compare".to_owned(),
        };
        let (name_a, name_b) = (name_a.to_owned(), name_b.to_owned());
        DiffReport { name_a, name_b, headline, rows, notes: vec![diff.caveat.clone()] }
    }
}

fn figures(cell: &str, of: &FiguresDiff) -> Vec<DiffRow> {
    [("rate", of.rate), ("bytes per CPU-second", of.cost), ("idle round trip", of.latency)]
        .into_iter()
        .filter(|(_, ratio)| ratio.is_some())
        .map(|(name, ratio)| DiffRow { what: format!("{cell} {name}"), ratio, ..DiffRow::default() })
        .collect()
}

fn setting((knob, a, b): &(String, String, String)) -> DiffRow {
    DiffRow { what: format!("final setting {knob}"), a: a.clone(), b: b.clone(), ratio: None }
}

fn step(of: &StepDiff) -> DiffRow {
    let came_out = |step: &Option<StepSummary>| match step {
        Some(step) => {
            let ratio = step.rate.filter(words::plausible).map(|e| format!(" {}", words::estimate(&e)));
            format!("{}{}", words::Kind::of(step).brief(), ratio.unwrap_or_default())
        }
        None => "not in it".to_owned(),
    };
    DiffRow { what: format!("step {}", of.step), a: came_out(&of.a), b: came_out(&of.b), ratio: None }
}

/// The comparison for a terminal; ends with a line break.
pub fn diff_text(diff: &DiffReport, width: u16, color: bool) -> String {
    let style = Style { color };
    let rows: Vec<Vec<String>> = diff.rows.iter().map(cells).collect();
    let (name_a, name_b) = (safe(&diff.name_a), safe(&diff.name_b));
    let mut parts = vec![
        style.paint(Tone::Strong, &safe(&diff.headline)),
        format!("A  {name_a}\nB  {name_b}"),
        table(&["", "A", "B", "B over A"], &rows, width.clamp(60, 160)),
    ];
    parts.extend(diff.notes.iter().map(|note| style.paint(Tone::Dim, &format!("note: {}", safe(note)))));
    parts.join("\n\n") + "\n"
}

fn cells(row: &DiffRow) -> Vec<String> {
    let ratio = row.ratio.filter(words::plausible).map(|e| words::estimate(&e)).unwrap_or_default();
    vec![row.what.clone(), row.a.clone(), row.b.clone(), ratio]
}

/// The comparison as one JSON document.
pub fn diff_json(diff: &DiffReport) -> String {
    let rows: Vec<_> = diff
        .rows
        .iter()
        .map(|r| serde_json::json!({ "what": r.what, "a": r.a, "b": r.b, "ratio": r.ratio }))
        .collect();
    let document = serde_json::json!({
        "format": 1, "a": diff.name_a, "b": diff.name_b,
        "headline": diff.headline, "rows": rows, "notes": diff.notes,
    });
    format!("{document:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let ratio = Some(Estimate { ratio: 0.5, low: 0.4, high: 0.6 });
        let step = |name: &str, differs| StepDiff { step: name.into(), a: None, b: None, differs };
        let diff = Diff {
            start: FiguresDiff::default(),
            final_: FiguresDiff { rate: ratio, ..FiguresDiff::default() },
            steps: vec![step("tso=on", true), step("gro=on", false)],
            settings: vec![("A mtu".into(), "1500".into(), "9000".into())],
            caveat: "not interleaved".into(),
        };
        let report = DiffReport::of(&diff, "a.jsonl", "b.jsonl");
        let rows: Vec<&str> = report.rows.iter().map(|r| r.what.as_str()).collect();
        assert_eq!(rows, ["final rate", "final setting A mtu", "step tso=on"]);
        assert_eq!(report.headline, "the second's final rate is 0.50x the first's [0.40, 0.60]");
    }

    #[test]
    fn a_step_that_was_not_confirmed_is_no_step_that_was() {
        let step = |confirmed: bool| {
            let text = format!(
                r#"{{"id":"1-tso","knob":"tso","value":"on","from":"off","with":[],"answer":"helps","kept":true,
                "placebo":false,"reopened":false,"rate":null,"cost":null,"latency":null,"left_out":null,
                "confirmed":{confirmed},"blocks":5,"discarded":0,"reason":"helps"}}"#
            );
            Some(serde_json::from_str(&text).unwrap())
        };
        let row =
            super::step(&StepDiff { step: "tso=on".into(), a: step(true), b: step(false), differs: true });
        assert_eq!((row.a.as_str(), row.b.as_str()), ("kept", "not confirmed"));
    }

    #[test]
    fn both_forms_carry_every_row() {
        let ratio = Some(Estimate { ratio: 1.31, low: 1.2, high: 1.4 });
        let row = DiffRow { what: "final rate".into(), a: "34 Gb/s".into(), b: "44.5 Gb/s".into(), ratio };
        let diff = DiffReport { name_a: "a".into(), rows: vec![row], ..DiffReport::default() };
        let text = diff_text(&diff, 80, false);
        assert!(text.contains("final rate") && text.contains("1.31x [1.20, 1.40]"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&diff_json(&diff)).unwrap();
        assert_eq!(json["rows"][0]["ratio"]["low"], 1.2);
    }
}
