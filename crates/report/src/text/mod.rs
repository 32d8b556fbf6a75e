//! The report of a tuning run on a terminal.

mod expected;
mod steps;

use landspeed_record::{Figures, Gain, TuneSummary};

use crate::output::{Style, Tone};
use crate::words::{self, Primary};
use crate::{safe, table};

/// The report of a tuning run: headline, figures, steps, what was not tried, and how to go on. `width`
/// is in columns; ends with a line break.
pub fn summary(summary: &TuneSummary, width: u16, color: bool) -> String {
    let style = Style { color };
    let width = width.clamp(60, 160);
    let mut parts = vec![head(summary, style), figures(summary, width)];
    parts.extend(summary.against.as_ref().map(|gain| against(gain, Primary::of(&summary.goal))));
    parts.extend(confirmation(summary, style));
    parts.push(steps::table(summary, width, style));
    parts.extend(expected::section(summary, width, style));
    parts.extend(noise_floor(summary, style));
    parts.extend(steps::unmeasured(summary, width, style));
    parts.push(close(summary));
    parts.join("\n\n") + "\n"
}

/// The outcome in one line.
pub fn headline(summary: &TuneSummary) -> String {
    let said = Primary::of(&summary.goal).order();
    let mut parts: Vec<String> =
        said.iter().take(2).filter_map(|p| p.of_gain(&summary.gain).map(|e| gain_words(*p, &e))).collect();
    if parts.is_empty() {
        parts.push("no final figures".to_owned());
    }
    parts.push(words::restored(summary).to_owned());
    parts.join(", ")
}

fn gain_words(primary: Primary, e: &landspeed_record::Estimate) -> String {
    format!("{} the {} {}", words::times(e.ratio), primary.phrase(), words::interval(e))
}

fn head(summary: &TuneSummary, style: Style) -> String {
    let mut lines = Vec::new();
    if let Some(void) = &summary.void {
        lines.push(style.paint(Tone::Bad, &format!("VOID: {}", safe(void))));
    }
    let doubts =
        summary.doubts.iter().map(|doubt| style.paint(Tone::Bad, &format!("in doubt: {}", safe(doubt))));
    lines.extend(doubts);
    lines.push(style.paint(Tone::Strong, &headline(summary)));
    let about = format!(
        "{}, for {}, from {}, {}, in {}",
        safe(&summary.topology),
        safe(&summary.goal),
        safe(&summary.baseline),
        words::kept(summary),
        words::duration(summary.took_ns),
    );
    lines.push(style.paint(Tone::Dim, &about));
    // What went well was seen as it happened and is in the record.
    for note in summary.restored_notes.iter().filter(|_| !summary.restored) {
        lines.push(style.paint(Tone::Bad, &format!("  restoring: {}", safe(note))));
    }
    lines.join("\n")
}

fn figures(summary: &TuneSummary, width: u16) -> String {
    let rows: Vec<Vec<String>> = Primary::of(&summary.goal)
        .order()
        .into_iter()
        .map(|p| {
            let ratio = p.of_gain(&summary.gain).map_or_else(|| "-".to_owned(), |e| words::estimate(&e));
            vec![p.phrase().to_owned(), shown(p, &summary.start), shown(p, &summary.final_), ratio]
        })
        .collect();
    let rows = rows.into_iter().chain(loaded(summary)).collect::<Vec<_>>();
    table(&["", "start", "final", "final over start"], &rows, width)
}

/// The round trip while the stream runs, where it was sampled: medians, which have no interval of their own.
fn loaded(summary: &TuneSummary) -> Option<Vec<String>> {
    let (start, last) = words::loaded(summary)?;
    let ratio = last.0 as f64 / start.0 as f64;
    Some(vec!["round trip under load".into(), start.to_string(), last.to_string(), words::times(ratio)])
}

/// A figure with its unit; zero means that it was not measured.
fn shown(primary: Primary, figures: &Figures) -> String {
    let (value, text) = match primary {
        Primary::Rate => (figures.rate_bps.0, figures.rate_bps.to_string()),
        Primary::Cost => (figures.bytes_per_cpu_s.0, figures.bytes_per_cpu_s.to_string()),
        Primary::Latency => (figures.latency_ns.0 as f64, figures.latency_ns.to_string()),
    };
    if value > 0.0 && value.is_finite() { text } else { "-".to_owned() }
}

fn against(gain: &Gain, primary: Primary) -> String {
    let parts: Vec<String> =
        primary.order().iter().filter_map(|p| p.of_gain(gain).map(|e| gain_words(*p, &e))).collect();
    format!("Final over the setting given with --against: {}", parts.join(", "))
}

/// What `--confirm-for` found.
fn confirmation(summary: &TuneSummary, style: Style) -> Option<String> {
    let found = summary.confirmation.as_ref()?;
    let tone = if found.holds { Tone::Good } else { Tone::Bad };
    Some(style.paint(tone, &words::confirmation(found, Primary::of(&summary.goal))))
}

fn noise_floor(summary: &TuneSummary, style: Style) -> Option<String> {
    let placebos: Vec<String> = words::measured(summary)
        .iter()
        .filter(|(step, _)| step.placebo)
        .map(|(_, e)| words::estimate(e))
        .collect();
    let said = "the noise floor: placebos toggle a setting between two equivalent values, and came out at";
    (!placebos.is_empty()).then(|| style.paint(Tone::Dim, &format!("~ {said} {}", placebos.join(" and "))))
}

fn close(summary: &TuneSummary) -> String {
    let record = words::quoted(&summary.record);
    [
        format!("record     {}", safe(&summary.record)),
        format!("again      {}", safe(&summary.command)),
        format!("as a page  landspeed show {record} --html report.html"),
        format!("to keep    landspeed persist {record}"),
    ]
    .join("\n")
}
