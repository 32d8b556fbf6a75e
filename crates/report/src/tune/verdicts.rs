//! The section on what held the path back during the run, and on the steps that verdicts advised.

use landspeed_analysis::Metric;
use landspeed_analysis::verdict::cannot_tell;
use landspeed_record::{Line, Record, StepPrediction, StepSummary, TuneSummary, VerdictLine};

use super::steps::{answer, moment, toned};
use crate::block::{
    ColumnKind, ReportBlock, ReportSection, ReportTable, TableCell, TableColumn, TableRow, code,
};
use crate::expected::{advised, because, expected, sums, weighed};
use crate::words;

const SHOWN: usize = 4;

/// Returns the section of the run's verdicts and of the steps that they moved forward. It is empty if the run has no
/// expectations.
pub(super) fn section(summary: &TuneSummary, record: &Record) -> ReportSection {
    let section = ReportSection::new("verdicts", "What held the path back on the way");
    let Some(of) = &summary.expectations else { return section };
    let verdicts = lines_of!(record, Line::Verdict(line) => &**line);
    let about = "Before the first step and after each kept one a stream was watched for what holds it back, and what would relieve \
                 that was tried first. It changes the order alone: each step is judged like any other.";
    let looks = looks(verdicts, summary).non_empty();
    let outcomes = outcomes(summary).non_empty();
    let outcomes =
        outcomes.into_iter().flat_map(|table| [ReportBlock::heading("Expected and measured"), table.into()]);
    section
        .with(ReportBlock::text(about))
        .all(looks)
        .all(outcomes)
        .with(ReportBlock::aside(format!("{}.", sums(of))))
}

fn looks<'a>(verdicts: impl Iterator<Item = &'a VerdictLine>, summary: &TuneSummary) -> ReportTable {
    let columns =
        vec![TableColumn::words("At"), TableColumn::number("Rate"), TableColumn::words("Held back by")];
    let row = |line: &VerdictLine| {
        let causes = line.verdict.findings.iter().take(SHOWN).map(|f| weighed(f.cause, f.weight));
        let causes = match line.verdict.cannot_tell {
            Some(why) => format!("cannot tell: {}", cannot_tell(why)),
            None => causes.collect::<Vec<_>>().join("; "),
        };
        [moment(&line.after, summary).into(), line.verdict.goodput_bps.into(), TableCell::from(causes)]
    };
    ReportTable::new("Verdicts on the way", "", columns)
        .captioned(
            "What explain found, first cause first; a share is that of the flow's time that the cause costs.",
        )
        .rows(verdicts.map(row))
}

fn outcomes(summary: &TuneSummary) -> ReportTable {
    let columns = vec![
        TableColumn::words("Step"),
        TableColumn::words("Because of"),
        TableColumn::number("Expected"),
        TableColumn::of(ColumnKind::Estimate, "Measured"),
        TableColumn::words("Answer"),
    ];
    ReportTable::new("Expected and measured", "steps", columns)
        .captioned(
            "Steps that a verdict brought forward: the rate that it expected, candidate over incumbent, and the one that was \
             measured.",
        )
        .rows(advised(summary).into_iter().map(|(step, said)| outcome(step, said)))
}

fn outcome(step: &StepSummary, said: &StepPrediction) -> TableRow {
    let promised = TableCell::from(expected(said).map(|ratio| TableCell::number(ratio, words::times(ratio))));
    let measured = Metric::Rate.of_step(step).into();
    toned(
        step,
        vec![
            code(words::setting(step)).into(),
            because(said).into(),
            promised,
            measured,
            answer(step).into(),
        ],
    )
}
