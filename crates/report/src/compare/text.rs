//! The study on a terminal.

use landspeed_record::{CompareReport, PaperFinding, Ranking};

use super::matrix::{self, Matrix, Met};
use super::tables::{self, Sheet};
use super::words;
use crate::output::{Output, Style, Tone};
use crate::words::wrapped;
use crate::{safe, table};

/// What all parts of a text are made with.
#[derive(Debug, Clone, Copy)]
struct Pen {
    style: Style,
    width: u16,
}

impl Pen {
    /// `text` broken to the width, later lines indented by four.
    fn line(self, text: &str) -> String {
        wrapped(text, usize::from(self.width).saturating_sub(4))
    }

    fn heading(self, text: &str) -> String {
        self.style.paint(Tone::Strong, text)
    }

    /// A table under a heading, or nothing where it has no rows.
    fn sheet(self, heading: &str, sheet: &Sheet) -> Option<String> {
        let headers: Vec<&str> = sheet.headers.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = sheet
            .rows
            .iter()
            .map(|row| std::iter::once(row.name.clone()).chain(row.cells.iter().cloned()).collect())
            .collect();
        let shown = table(&headers, &rows, self.width);
        let shown = shown.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        (!rows.is_empty()).then(|| format!("{}\n{shown}", self.heading(heading)))
    }
}

/// The study for `output`: first whether it stands, then what it says in words, then the tables. Ends with a line break.
pub fn compare_text(report: &CompareReport, output: Output) -> String {
    let pen = Pen { style: Style { color: output.color }, width: output.width.clamp(72, 160) };
    let mut parts = vec![head(report, pen)];
    parts.extend(pen.sheet("table 1: all regions, throughput in Mb/s", &tables::overall(report)));
    parts.extend(pen.sheet("table 2: stability (S) and fairness (F) by region", &tables::by_region(report)));
    if report.study.independent_repeats() > 1 {
        let heading = "over repeats: mean ± half of its 95 % interval";
        parts.extend(pen.sheet(heading, &tables::intervals(report)));
    }
    parts.extend(rankings(report, pen));
    parts.extend(matrix::matrix(report).and_then(|matrix| meetings(&matrix, pen)));
    parts.extend(pen.sheet("two round trips on one path", &tables::round_trips(report)));
    parts.extend(pen.sheet("short flows beside a long one", &tables::short_flows(report)));
    parts.extend(pen.sheet("processor cost by parallel streams", &tables::streams(report)));
    parts.extend(findings(report, pen));
    parts.push(close(report, pen));
    parts.join("\n\n") + "\n"
}

fn head(report: &CompareReport, pen: Pen) -> String {
    let mut lines = Vec::new();
    if let Some(why) = &report.void {
        let told = pen.line(&format!("VOID: this study does not stand: {}", safe(why)));
        lines.push(pen.style.paint(Tone::Bad, &told));
    }
    lines.push(pen.heading(&words::headline(report)));
    lines.extend(words::conclusions(report).iter().map(|line| pen.line(line)));
    lines.push(pen.style.paint(Tone::Dim, &pen.line(&words::setting(report).join(", "))));
    lines.join("\n")
}

fn rankings(report: &CompareReport, pen: Pen) -> Option<String> {
    if report.rankings.is_empty() {
        return None;
    }
    let mut lines =
        vec![pen.heading(
            "who is better: beyond a > some difference is real, between commas none can be called so",
        )];
    let told = |r: &Ranking| pen.line(&format!("{}: {}", safe(&r.by), words::groups(r).join(" > ")));
    lines.extend(report.rankings.iter().map(told));
    let notes = words::ranking_notes(report);
    lines.extend(notes.iter().map(|note| pen.style.paint(Tone::Dim, &pen.line(note))));
    Some(lines.join("\n"))
}

fn meetings(matrix: &Matrix, pen: Pen) -> Option<String> {
    let headers: Vec<String> = std::iter::once("row/column".to_owned()).chain(matrix.sides.clone()).collect();
    let rows = matrix.sides.iter().zip(&matrix.cells).map(|(name, cells)| tables::Row {
        name: name.clone(),
        cells: cells.iter().map(|met| met.map(ratio).unwrap_or_default()).collect(),
        is_papers: false,
    });
    let heading =
        "meetings: goodput of two protocols on one path (in brackets: no difference can be called real)";
    pen.sheet(heading, &Sheet { headers, rows: rows.collect() })
}

fn ratio(met: Met) -> String {
    let share = matrix::share(met.ratio);
    if met.is_open() { format!("({share})") } else { share }
}

/// Those that the study can tell; the page and the document have the others, with what they lack.
fn findings(report: &CompareReport, pen: Pen) -> Option<String> {
    if report.findings.is_empty() {
        return None;
    }
    let count = |shows: Option<bool>| report.findings.iter().filter(|f| f.reproduces == shows).count();
    let heading = format!(
        "the paper's findings: {} show here, {} do not, {} this study cannot tell",
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    let mut lines = vec![pen.heading(&heading)];
    let told_ones = report.findings.iter().filter(|finding| finding.reproduces.is_some());
    lines.extend(told_ones.map(|finding| told(finding, pen)));
    Some(lines.join("\n"))
}

fn told(finding: &PaperFinding, pen: Pen) -> String {
    let tone = match finding.reproduces {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Dim,
    };
    let mut text =
        format!("{} ({}): {}", safe(&finding.claim), safe(&finding.place), safe(&finding.evidence));
    if let Some(reason) = &finding.reason {
        text += &format!(". Likely: {}", safe(reason));
    }
    let sign = pen.style.paint(tone, words::shows(finding.reproduces).0);
    format!("{sign} {}", pen.line(&text))
}

/// Runs that do not count, what a reader must know, and how to run it again.
fn close(report: &CompareReport, pen: Pen) -> String {
    let mut lines = Vec::new();
    if report.invalid_runs > 0 {
        let by: Vec<String> = report
            .protocols
            .iter()
            .filter(|p| p.invalid > 0)
            .map(|p| format!("{} {}", words::name(&p.protocol), p.invalid))
            .collect();
        let of = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
        let verb = if report.invalid_runs == 1 { "does" } else { "do" };
        let told =
            format!("{} of {} runs {verb} not count{of}: in no figure", report.invalid_runs, report.runs);
        lines.push(pen.style.paint(Tone::Bad, &pen.line(&told)));
    }
    let dim = |text: String| pen.style.paint(Tone::Dim, &pen.line(&text));
    lines.extend(report.notes.iter().map(|note| dim(format!("note: {}", safe(note)))));
    lines.push(format!("again   {}", safe(&report.command)));
    lines.extend(report.record.as_ref().map(|path| format!("record  {}", safe(path))));
    lines.join("\n")
}
