//! Two runs side by side.

use landspeed_analysis::{Diff, FiguresDiff, StepDiff};
use landspeed_record::{Estimate, StepSummary};
use serde::Serialize;

use crate::block::{Block, Cell, Column, ColumnKind, Document, Head, Section, Table};
use crate::safe;
use crate::words;

/// Two records compared, as `landspeed diff` shows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DiffReport {
    /// Of this document.
    pub format: u32,
    /// What the first record is called (its path, or its start).
    #[serde(rename = "a")]
    pub name_a: String,
    /// What the second record is called.
    #[serde(rename = "b")]
    pub name_b: String,
    /// One line that says what came out.
    pub headline: String,
    /// Figures, settings and host facts, in the order to show.
    pub rows: Vec<DiffRow>,
    /// What limits the comparison: another kernel, another goal, one line each.
    pub notes: Vec<String>,
}

/// One thing that two runs share or differ in.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
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
        DiffReport { format: 1, name_a, name_b, headline, rows, notes: vec![diff.caveat.clone()] }
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
            format!("{}{}", words::Outcome::of(step).told().brief, ratio.unwrap_or_default())
        }
        None => "not in it".to_owned(),
    };
    DiffRow { what: format!("step {}", of.step), a: came_out(&of.a), b: came_out(&of.b), ratio: None }
}

/// The comparison, ready to be printed.
pub fn diff(diff: &DiffReport) -> Document {
    let columns = vec![
        Column::words(""),
        Column::words("A"),
        Column::words("B"),
        Column::of(ColumnKind::Estimate, "B over A"),
    ];
    let row = |row: &DiffRow| {
        let words = [&row.what, &row.a, &row.b].map(|words| Cell::from(safe(words)));
        words.into_iter().chain([row.ratio.map_or_else(|| "".into(), Cell::from)]).collect::<Vec<_>>()
    };
    let table = Table::new("What differs", "", columns).rows(diff.rows.iter().map(row));
    let head = Head {
        kind: "two runs",
        title: safe(&diff.headline).into(),
        facts: vec![format!("A {}", safe(&diff.name_a)).into(), format!("B {}", safe(&diff.name_b)).into()],
        ..Head::default()
    };
    let notes = diff.notes.iter().map(|note| format!("note: {}", safe(note)));
    let section = Section::new("rows", "").all(table.some()).all(Block::asides(notes));
    Document { head, sections: vec![section], ..Document::default() }
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
        assert_eq!(report.headline, "the second's final rate is 0.50× the first's [0.40, 0.60]");
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
        let text = super::diff(&diff).text(crate::Output::plain(80), crate::Detail::Brief);
        assert!(text.contains("final rate") && text.contains("1.31x [1.20, 1.40]"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&crate::json(&diff)).unwrap();
        assert_eq!(json["rows"][0]["ratio"]["low"], 1.2);
    }
}
