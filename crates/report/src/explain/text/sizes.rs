//! Cost over sizes in words.

use landspeed_record::{ExplainReport, PerPacketFit};

use super::super::sizes::{self, Sweep, WHOLE};
use super::super::words::whole;
use super::{Detail, Pen, trimmed};
use crate::output::Tone;
use crate::table;

/// Sweeps and lines of an answer that are told unless all was asked for.
const SWEEPS: usize = 2;
const LINES: usize = 6;

/// A line a layer for each sweep, then the answers.
pub(super) fn section(report: &ExplainReport, pen: Pen) -> Option<String> {
    let sweeps = sizes::sweeps(report);
    if sweeps.is_empty() {
        return None;
    }
    let mut parts = vec![lines(&sweeps, pen)];
    if pen.detail == Detail::Full {
        parts.extend(sweeps.iter().filter_map(|sweep| points(sweep, pen)));
    }
    parts.extend(report.answers.iter().map(|answer| {
        let (question, answer) = sizes::answer(answer);
        let told = answer.iter().take(pen.most(LINES)).map(|line| pen.line(&format!("  - {line}")));
        std::iter::once(pen.heading(&pen.line(&question))).chain(told).collect::<Vec<_>>().join("\n")
    }));
    let notes = sizes::notes(report);
    let told = notes.iter().take(pen.most(LINES));
    let told: Vec<String> = told.map(|note| pen.style.paint(Tone::Dim, &pen.line(note))).collect();
    parts.extend((!told.is_empty()).then(|| told.join("\n")));
    Some(parts.join("\n\n"))
}

/// The lines that fit.
fn lines(sweeps: &[Sweep<'_>], pen: Pen) -> String {
    let title = "cost over sizes, ns: a message, a byte, being cut, each further packet";
    let headers = ["", "layer", "message", "byte", "first cut", "packet", "unexplained"];
    let full = pen.detail == Detail::Full;
    let told = |name: &str| full || WHOLE.contains(&name);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for sweep in sweeps.iter().filter(|sweep| full || sweep.plain).take(pen.most(SWEEPS)) {
        let shown: Vec<&(String, PerPacketFit)> = sweep.lines.iter().filter(|(name, _)| told(name)).collect();
        for (index, (name, line)) in shown.into_iter().enumerate() {
            let title = if index == 0 { sweep.title.clone() } else { String::new() };
            let mut row = vec![title, name.clone()];
            row.extend(sizes::terms(line, sweep.cut));
            row.push(whole(line.residual));
            rows.push(row);
        }
    }
    format!("{}\n{}", pen.heading(&pen.line(title)), trimmed(&table(&headers, &rows, pen.width as u16)))
}

/// What was measured.
fn points(sweep: &Sweep<'_>, pen: Pen) -> Option<String> {
    let (headers, rows) = sweep.table();
    (!rows.is_empty()).then(|| {
        let title = format!("{}: ns a message, median (least–most)", sweep.title);
        format!("{}\n{}", pen.heading(&pen.line(&title)), trimmed(&table(&headers, &rows, pen.width as u16)))
    })
}
