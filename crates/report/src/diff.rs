//! The comparison of two runs.

use landspeed_analysis::{FiguresDiff, RunDiff, StepDiff};
use landspeed_record::units::{BitRate, BytesPerCpuSecond, Nanos};
use landspeed_record::{Estimate, ProgramMetric, StepSummary};
use serde::Serialize;

use crate::block::{
    ColumnKind, Document, DocumentHead, ReportBlock, ReportSection, ReportTable, TableCell, TableColumn,
};
use crate::safe;
use crate::words;

/// The comparison of two records by `landspeed diff`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct DiffReport {
    /// Format version of this document.
    pub format: u32,
    /// Path of the first record.
    #[serde(rename = "a")]
    pub name_a: String,
    /// Path of the second record.
    #[serde(rename = "b")]
    pub name_b: String,
    /// True if both records were made on the same path. If not, the ratios do not show what a setting did.
    pub same_path: bool,
    /// The result in one line.
    pub headline: String,
    /// Figures, settings and host facts, in display order.
    pub rows: Vec<DiffRow>,
    /// Limits of the comparison, one line each, such as steps in only one record, different kernels or different goals.
    pub notes: Vec<String>,
}

/// One item of the comparison of two runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct DiffRow {
    /// Name of the item ("final rate", "A tso", "kernel").
    pub what: String,
    /// Value in the first record, with its unit.
    pub a: String,
    /// Value in the second record, with its unit.
    pub b: String,
    /// Second value over the first, if both were measured.
    pub ratio: Option<Estimate>,
}

impl DiffReport {
    /// Returns the report of the comparison `diff` of the records `name_a` and `name_b`. Steps with equal results are
    /// left out.
    pub fn of(diff: &RunDiff, name_a: &str, name_b: &str) -> Self {
        let program = diff.program.as_ref();
        let mut rows = figures("start", &diff.start, program);
        rows.extend(figures("final", &diff.final_, program));
        rows.extend(diff.settings.iter().map(setting));
        rows.extend(diff.steps.iter().filter(|step| step.differs).map(step));
        let unlike = diff.unlike.iter().map(|(what, a, b)| format!("{what}: {a} in A, {b} in B"));
        let notes = [diff.caveat.clone()].into_iter().chain(of_one(diff)).chain(unlike).collect();
        let (name_a, name_b) = (name_a.to_owned(), name_b.to_owned());
        let same_path = diff.paths.is_none();
        DiffReport { format: 1, name_a, name_b, same_path, headline: headline(diff), rows, notes }
    }
}

/// Returns the sentence that names the faster run. The runs were not interleaved, so an interval that excludes 1 is no
/// proof.
fn headline(diff: &RunDiff) -> String {
    if let Some([a, b]) = &diff.paths {
        return format!("DIFFERENT PATHS: A is {a}, B is {b}; no ratio below says what a setting did");
    }
    let Some(e) = diff.final_.rate.filter(Estimate::is_plausible) else {
        return "one of the records has no final rate to compare".to_owned();
    };
    let which = match (e.low > 1.0, e.high < 1.0) {
        (true, _) => "B is faster",
        (_, true) => "B is slower",
        _ => "no difference seen",
    };
    format!("{which}: its final rate is {} that of A (no proof: not interleaved)", words::estimate(&e))
}

/// Returns the line with the numbers of steps and settings that only one of the records has.
fn of_one(diff: &RunDiff) -> Option<String> {
    let said = |[a, b]: [usize; 2], what: &str| {
        (a + b > 0).then(|| format!("{a} {what} only in A and {b} only in B"))
    };
    let parts = [said(diff.steps_of_one, "measured steps are"), said(diff.settings_of_one, "settings are")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn figures(cell: &str, of: &FiguresDiff, program: Option<&ProgramMetric>) -> Vec<DiffRow> {
    let unit = program.map_or("", |program| program.unit.as_str());
    let rate =
        |value: f64| program.map_or_else(|| BitRate(value).to_string(), |_| words::amount_in(value, unit));
    let cost = |value: f64| {
        program.map_or_else(|| BytesPerCpuSecond(value).to_string(), |_| words::amount_in(value, ""))
    };
    let (rate_name, cost_name) = match program {
        Some(program) => (program.figure.as_str(), "work per CPU-second"),
        None => ("rate", "bytes per CPU-second"),
    };
    let row =
        |name: &str, values: [Option<f64>; 2], ratio: Option<Estimate>, shown: &dyn Fn(f64) -> String| {
            let [a, b] = values.map(|value| value.map(shown).unwrap_or_default());
            DiffRow { what: format!("{cell} {name}"), a, b, ratio }
        };
    let [a, b] = of.of;
    let rows = [
        row(rate_name, [a.rate, b.rate], of.rate, &rate),
        row(cost_name, [a.cost, b.cost], of.cost, &cost),
        row("idle round trip", [a.latency, b.latency], of.latency, &|ns| Nanos(ns as u64).to_string()),
    ];
    rows.into_iter().filter(|row| !(row.a.is_empty() && row.b.is_empty())).collect()
}

fn setting((knob, a, b): &(String, String, String)) -> DiffRow {
    DiffRow { what: format!("final setting {knob}"), a: a.clone(), b: b.clone(), ratio: None }
}

fn step(of: &StepDiff) -> DiffRow {
    let came_out = |step: &StepSummary| {
        let ratio = step.rate.filter(Estimate::is_plausible).map(|e| format!(" {}", words::estimate(&e)));
        format!("{}{}", words::StepOutcome::of(step).labels().brief, ratio.unwrap_or_default())
    };
    DiffRow { what: format!("step {}", of.step), a: came_out(&of.a), b: came_out(&of.b), ratio: None }
}

/// Returns the comparison as a document.
pub fn diff(diff: &DiffReport) -> Document {
    let columns = vec![
        TableColumn::words(""),
        TableColumn::words("A"),
        TableColumn::words("B"),
        TableColumn::of(ColumnKind::Estimate, "B over A"),
    ];
    let row = |row: &DiffRow| {
        let words = [&row.what, &row.a, &row.b].map(|words| TableCell::from(safe(words)));
        words.into_iter().chain([row.ratio.map_or_else(|| "".into(), TableCell::from)]).collect::<Vec<_>>()
    };
    let table = ReportTable::new("What differs", "", columns).rows(diff.rows.iter().map(row));
    let head = DocumentHead {
        kind: "two runs",
        title: safe(&diff.headline).into(),
        facts: vec![format!("A {}", safe(&diff.name_a)).into(), format!("B {}", safe(&diff.name_b)).into()],
        ..DocumentHead::default()
    };
    let notes = diff.notes.iter().map(|note| format!("note: {}", safe(note)));
    let section = ReportSection::new("rows", "").all(table.non_empty()).all(ReportBlock::asides(notes));
    Document { head, sections: vec![section], ..Document::default() }
}

#[cfg(test)]
mod tests {
    use landspeed_analysis::FigureMeans;

    use super::*;

    fn came_out(confirmed: bool) -> StepSummary {
        let text = format!(
            r#"{{"id":"1-tso","knob":"tso","value":"on","from":"off","with":[],"answer":"helps","kept":true,
            "placebo":false,"reopened":false,"rate":null,"cost":null,"latency":null,"left_out":null,
            "confirmed":{confirmed},"blocks":5,"discarded":0,"reason":"helps"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn diff_of(rate: Estimate) -> RunDiff {
        let step = |name: &str, differs| StepDiff {
            step: name.into(),
            a: came_out(true),
            b: came_out(true),
            differs,
        };
        let means =
            |rate| FigureMeans { rate: Some(rate), latency: Some(34_100.0), ..FigureMeans::default() };
        RunDiff {
            paths: None,
            program: None,
            start: FiguresDiff::default(),
            final_: FiguresDiff { rate: Some(rate), of: [means(2e9), means(1e9)], ..FiguresDiff::default() },
            steps: vec![step("tso=on", true), step("gro=on", false)],
            steps_of_one: [37, 12],
            settings: vec![("A mtu".into(), "1500".into(), "9000".into())],
            settings_of_one: [0, 0],
            caveat: "not interleaved".into(),
            unlike: vec![("goal".into(), "rate".into(), "cpu".into())],
        }
    }

    #[test]
    fn the_answer_comes_first_and_only_what_differs_is_listed() {
        let of =
            |ratio, low, high| DiffReport::of(&diff_of(Estimate { ratio, low, high }), "a.jsonl", "b.jsonl");
        let report = of(0.5, 0.4, 0.6);
        let rows: Vec<&str> = report.rows.iter().map(|r| r.what.as_str()).collect();
        assert_eq!(rows, ["final rate", "final idle round trip", "final setting A mtu", "step tso=on"]);
        let cells: Vec<[&str; 2]> = report.rows.iter().map(|r| [r.a.as_str(), r.b.as_str()]).collect();
        assert_eq!(cells[..2], [["2 Gb/s", "1 Gb/s"], ["34.1 µs", "34.1 µs"]]);
        let said = "its final rate is 0.50× [0.40, 0.60] that of A (no proof: not interleaved)";
        assert_eq!(report.headline, format!("B is slower: {said}"));
        let notes = [
            "not interleaved",
            "37 measured steps are only in A and 12 only in B",
            "goal: rate in A, cpu in B",
        ];
        assert_eq!(report.notes, notes);
        assert!(of(1.5, 1.4, 1.6).headline.starts_with("B is faster: "));
        assert!(of(1.5, 0.9, 1.6).headline.starts_with("no difference seen: "));
    }

    #[test]
    fn different_paths_are_noted_first_and_have_no_winner() {
        let paths = Some(["dtn1 dtn2 (x to y)", "dtn1 dtn3 (x to z)"].map(String::from));
        let diff = RunDiff { paths, ..diff_of(Estimate { ratio: 0.5, low: 0.4, high: 0.6 }) };
        let report = DiffReport::of(&diff, "a.jsonl", "b.jsonl");
        let is_noted =
            report.headline.starts_with("DIFFERENT PATHS: A is dtn1 dtn2 (x to y), B is dtn1 dtn3 (x to z)");
        assert!(is_noted && !report.same_path, "{}", report.headline);
        assert!(!report.headline.contains("slower"), "{}", report.headline);
    }

    #[test]
    fn a_step_that_was_not_confirmed_is_no_step_that_was() {
        let row = super::step(&StepDiff {
            step: "tso=on".into(),
            a: came_out(true),
            b: came_out(false),
            differs: true,
        });
        assert_eq!((row.a.as_str(), row.b.as_str()), ("kept", "not confirmed"));
    }

    #[test]
    fn both_forms_carry_every_row() {
        let ratio = Some(Estimate { ratio: 1.31, low: 1.2, high: 1.4 });
        let row = DiffRow { what: "final rate".into(), a: "34 Gb/s".into(), b: "44.5 Gb/s".into(), ratio };
        let diff = DiffReport { name_a: "a".into(), rows: vec![row], ..DiffReport::default() };
        let text = super::diff(&diff).text(crate::OutputCapabilities::plain(80), crate::DetailLevel::Brief);
        assert!(text.contains("final rate") && text.contains("1.31x [1.20, 1.40]"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&crate::json(&diff)).unwrap();
        assert_eq!(json["rows"][0]["ratio"]["low"], 1.2);
    }
}
