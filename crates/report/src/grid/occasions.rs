//! The report of `landspeed show R1 R2 ...`: one grid over several occasions.

use landspeed_record::{
    ExpectationAgreement, Occasion, OccasionCell, OccasionCurves, OccasionExpectation, OccasionsReport,
};

use super::words;
use crate::block::{
    ColumnKind, Document, DocumentHead, ReportBlock, ReportSection, ReportTable, StyledText, TableCell,
    TableColumn, TableRow, TextStyle,
};
use crate::conditions::{self, NamedHost};
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
    let control =
        report.control.iter().map(|one| StyledText::from(format!("control: {}", safe(&one.description()))));
    DocumentHead {
        kind: "occasions",
        title: headline(report).into(),
        lead:
            "A mean is over occasions like these; another occasion's ratio is expected within the last range."
                .to_owned()
                .into(),
        facts: facts.map(StyledText::from).into(),
        remarks: control.chain(condition_lines(report)).collect(),
        ..DocumentHead::default()
    }
}

/// Returns the lines on the conditions of all occasions, each once. A line that does not hold for all of them names the
/// occasions for which it holds.
fn condition_lines(report: &OccasionsReport) -> Vec<StyledText> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for one in &report.occasions {
        for line in conditions_of(one) {
            match lines.iter_mut().find(|(other, _)| *other == line) {
                Some((_, began)) => began.push(safe(&one.started)),
                None => lines.push((line, vec![safe(&one.started)])),
            }
        }
    }
    let everywhere = report.occasions.len();
    let line = |(line, began): (String, Vec<String>)| match began.len() == everywhere {
        true => StyledText::from(line),
        false => StyledText::from(format!("{line} ({})", began.join(", "))),
    };
    lines.into_iter().map(line).collect()
}

fn conditions_of(one: &Occasion) -> Vec<String> {
    let hosts: Vec<NamedHost<'_>> = ["A", "B"].into_iter().zip(&one.hosts).collect();
    let used = one.controls.iter().cloned().collect();
    conditions::lines(&hosts, &used).iter().map(StyledText::words).collect()
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
    let present = kinds.into_iter().filter(|(kind, _)| count(*kind) > 0);
    present.map(|(kind, word)| format!("{} {word}", count(kind))).collect::<Vec<_>>().join(", ")
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

#[cfg(test)]
mod tests {
    use landspeed_record::{HostFacts, Settings};

    use super::*;
    use crate::DetailLevel;

    fn occasion(started: &str, mtu: &str, used: &str) -> Occasion {
        let mtu = Settings::from([("mtu".to_owned(), mtu.to_owned())]);
        let host = HostFacts { conditions: [("mtu".to_owned(), mtu)].into(), ..HostFacts::default() };
        let (started, controls, hosts) =
            (started.to_owned(), vec![used.to_owned()], vec![host.clone(), host]);
        Occasion { started, controls, hosts, ..Occasion::default() }
    }

    #[test]
    fn conditions_are_listed_once_and_changed_ones_name_their_occasions() {
        let text = |all: Vec<Occasion>| {
            let report = OccasionsReport { occasions: all, ..OccasionsReport::default() };
            occasions(&report).markdown(DetailLevel::Brief)
        };
        let alike = text(vec![occasion("day 1", "1500", "bbr"), occasion("day 2", "1500", "bbr")]);
        assert_eq!(alike.matches("conditions found on both hosts: MTU 1500").count(), 1, "{alike}");
        assert!(alike.contains("; the flows used bbr\n"), "{alike}");
        let other = occasion("day 3", "9000", "reno");
        let changed = text(vec![occasion("day 1", "1500", "bbr"), occasion("day 2", "1500", "bbr"), other]);
        for line in ["; the flows used bbr (day 1, day 2)\n", "; the flows used reno (day 3)\n"] {
            assert!(changed.contains(line), "{changed}");
        }
        let older = text(vec![Occasion::default(), Occasion::default()]);
        assert!(!older.contains("conditions"), "{older}");
    }
}
