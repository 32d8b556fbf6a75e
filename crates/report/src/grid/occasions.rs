//! The report of `landspeed show R1 R2 ...`: one grid over several occasions.

use landspeed_record::{
    ExpectationAgreement, Occasion, OccasionCell, OccasionCurves, OccasionExpectation, OccasionsReport,
};

use super::words;
use crate::block::{
    ColumnKind, Document, DocumentHead, ReportBlock, ReportSection, ReportTable, StyledText, TableCell,
    TableColumn, TableRow, TextStyle,
};
use crate::safe;
use crate::words::{counted, number, times};

/// Returns the report of a grid over several occasions as a document.
pub fn occasions(report: &OccasionsReport) -> Document {
    let figures = report.figures.iter().map(|curves| figure(report, curves));
    let notes = report.notes.iter().chain(&report.deviating).map(|note| format!("note: {}", safe(note)));
    let sections = [expected(report)]
        .into_iter()
        .chain(figures)
        .chain([made(report), ReportSection::new("notes", "").all(ReportBlock::asides(notes))]);
    Document {
        head: head(report),
        sections: sections.filter_map(ReportSection::non_empty).collect(),
        version: report.landspeed.clone(),
        ..Document::default()
    }
}

fn head(report: &OccasionsReport) -> DocumentHead {
    let started = |occasion: Option<&Occasion>| occasion.map(|one| safe(&one.started)).unwrap_or_default();
    let (first, last) = (started(report.occasions.first()), started(report.occasions.last()));
    let facts = [
        counted(report.occasions.len(), "occasion"),
        counted(report.boots as usize, "boot"),
        format!("{first} to {last}"),
    ];
    DocumentHead {
        kind: "occasions",
        title: headline(report).into(),
        lead:
            "A mean is over occasions like these; another occasion's ratio is expected within the last range."
                .to_owned()
                .into(),
        facts: facts.map(StyledText::from).into(),
        remarks: report.control.iter().map(|one| format!("control: {}", safe(&one.told())).into()).collect(),
        ..DocumentHead::default()
    }
}

fn headline(report: &OccasionsReport) -> String {
    let title = safe(&report.title);
    if report.expected.is_empty() {
        return format!("{title}, over {}", counted(report.occasions.len(), "occasion"));
    }
    let count = |agreement| report.expected.iter().filter(|one| one.agreement == agreement).count();
    let firm = report.expected.iter().filter(|one| one.is_firm).count();
    format!(
        "{title}: {} of {} reproduce, {} differ; {firm} firm",
        count(ExpectationAgreement::Reproduces),
        report.expected.len(),
        count(ExpectationAgreement::Differs)
    )
}

fn expected(report: &OccasionsReport) -> ReportSection {
    let columns = vec![
        TableColumn::words("expected"),
        TableColumn::words("came out"),
        TableColumn::number("published"),
        TableColumn::of(ColumnKind::Estimate, "mean of the occasions"),
        TableColumn::of(ColumnKind::Estimate, "another occasion"),
        TableColumn::words("each occasion"),
    ];
    let row = |one: &OccasionExpectation| {
        let (word, tone, class) = words::agreement(one.agreement);
        let manner = match (one.is_firm, one.is_today) {
            (true, _) => ", firm",
            (_, true) => ", today",
            _ => "",
        };
        let cells = vec![
            TableCell::from(safe(&one.claim)),
            StyledText::default().with(TextStyle::Toned, format!("{word}{manner}")).into(),
            one.published.map(|ratio| TableCell::number(ratio, times(ratio))).into(),
            one.ratio.mean.map(TableCell::from).into(),
            one.ratio.another.map(TableCell::from).into(),
            alone(one).into(),
        ];
        TableRow { cells, class: class.to_owned(), tone: Some(tone), ..TableRow::default() }
    };
    ReportSection::new("expected", "Beside what was published").all(
        ReportTable::new("Beside what was published", "stacked", columns)
            .rows(report.expected.iter().map(row))
            .non_empty(),
    )
}

/// Returns the ratios of the occasions, or their answers for a direction.
fn alone(of: &OccasionExpectation) -> String {
    if !of.ratio.ratios.is_empty() {
        return of.ratio.ratios.iter().map(|ratio| times(*ratio)).collect::<Vec<_>>().join(" ");
    }
    let count = |agreement| of.alone.iter().filter(|one| **one == agreement).count();
    let kinds = [
        (ExpectationAgreement::Reproduces, "reproduce"),
        (ExpectationAgreement::Differs, "differ"),
        (ExpectationAgreement::Undecided, "undecided"),
        (ExpectationAgreement::NotHere, "not here"),
    ];
    let told = kinds.into_iter().filter(|(kind, _)| count(*kind) > 0);
    told.map(|(kind, word)| format!("{} {word}", count(kind))).collect::<Vec<_>>().join(", ")
}

fn figure(report: &OccasionsReport, curves: &OccasionCurves) -> ReportSection {
    let columns = vec![
        TableColumn::words("cell"),
        TableColumn::of(ColumnKind::Estimate, "mean of the occasions"),
        TableColumn::of(ColumnKind::Estimate, "another occasion"),
        TableColumn::words("between occasions"),
        TableColumn::words("each occasion").above_width(100),
    ];
    let row = |cell: &OccasionCell| {
        let deviation = cell.deviation_ln.map(|ln| format!("{} %", number(100.0 * ln))).unwrap_or_default();
        let ratios = cell.ratios.iter().map(|ratio| times(*ratio)).collect::<Vec<_>>().join(" ");
        TableRow::from(vec![
            TableCell::from(cell.values.iter().map(|value| safe(value)).collect::<Vec<_>>().join(" ")),
            cell.mean.map(TableCell::from).into(),
            cell.another.map(TableCell::from).into(),
            deviation.into(),
            ratios.into(),
        ])
    };
    let name = curves
        .program
        .as_ref()
        .map_or_else(|| curves.figure.title.to_owned(), |program| safe(&program.figure));
    let table = ReportTable::new(format!("{name}, to the first cell"), "cells", columns)
        .rows(curves.cells.iter().map(row))
        .non_empty();
    let section = ReportSection::new(curves.figure.name, name).minor().all(table);
    let is_first = report.figures.first().is_some_and(|first| std::ptr::eq(first, curves));
    if is_first { section } else { section.in_full() }
}

fn made(report: &OccasionsReport) -> ReportSection {
    let columns =
        ["began", "kernel", "processor", "controls of the sockets", "record"].map(TableColumn::words).into();
    let row = |one: &Occasion| {
        [&one.started, &one.kernel, &one.processor, &one.controls.join(", "), &one.record]
            .map(|text| safe(text))
    };
    ReportSection::new("occasions", "The occasions").minor().all(
        ReportTable::new("The occasions", "", columns).rows(report.occasions.iter().map(row)).non_empty(),
    )
}
