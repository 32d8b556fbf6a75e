//! Hops, the window and the limits in words.

use landspeed_record::ExplainReport;
use landspeed_units::{BitRate, Bytes};

use super::super::hops::{self, HopRow};
use super::super::rules;
use super::super::stairs::{self, Stair, Stairs};
use super::super::window::{self, Bound, Track, Window};
use super::super::words::{self, percent};
use super::bars::{bar, curve};
use super::{Detail, Pen};
use crate::chart::frame::short;
use crate::output::Tone;
use crate::words::times;

/// Most columns of a curve over time.
const CURVE: usize = 60;

/// A line a hop: percentiles, and the histogram as a curve over powers of two.
pub(super) fn hops(report: &ExplainReport, pen: Pen) -> Option<String> {
    let rows = hops::rows(report);
    let edges = || rows.iter().flat_map(|row| &row.bins).map(|bin| bin.0.ilog2());
    let (low, high) = (edges().min()?, edges().max()?);
    let mut lines = vec![pen.heading("where packets wait (p50 / p90 / p99, rounded up to powers of two)")];
    let named = rows.iter().map(|row| row.host.chars().count()).max().unwrap_or(0).min(16);
    for row in rows.iter().take(pen.most(8)) {
        let drawn = if pen.blocks { histogram(row, low, high) } else { String::new() };
        let drawn: String = drawn.chars().take(pen.width.saturating_sub(60 + named)).collect();
        let host = short(&row.host, named);
        let line = format!("  {host:named$}  {:22} {:32} {drawn}", words::hop(row.hop), row.told());
        lines.push(line.trim_end().to_owned());
    }
    lines.extend(counts(report, pen));
    if pen.detail == Detail::Full {
        lines.extend(hops::traced(report).iter().map(|line| dim(line, pen)));
    }
    Some(lines.join("\n"))
}

fn dim(line: &str, pen: Pen) -> String {
    pen.style.paint(Tone::Dim, &pen.line(&format!("  {line}")))
}

/// A line a host: how many packets took which path.
fn counts(report: &ExplainReport, pen: Pen) -> Vec<String> {
    let counts = hops::counts(report);
    let mut lines = Vec::new();
    for (column, host) in counts.hosts.iter().enumerate() {
        let told = |(name, row): &(String, Vec<Option<u64>>)| {
            Some(format!("{name} {}", words::grouped(row[column]?)))
        };
        let told: Vec<String> = counts.rows.iter().filter_map(told).collect();
        if !told.is_empty() {
            lines.push(dim(&format!("{host}: {}", told.join(", ")), pen));
        }
    }
    lines
}

fn histogram(row: &HopRow, low: u32, high: u32) -> String {
    let most = row.bins.iter().map(|b| b.1).max().unwrap_or(1) as f64;
    let height = |power: u32| {
        let packets = row.bins.iter().filter(|b| b.0.ilog2() == power).map(|b| b.1).max()?;
        Some(packets as f64 / most)
    };
    curve(&(low..=high).map(height).collect::<Vec<_>>())
}

/// A line a window: where it stood at the end, and its curve.
pub(super) fn window(report: &ExplainReport, pen: Pen) -> Option<String> {
    let window = window::window(report)?;
    let mut lines = vec![pen.heading(&pen.line(&format!("window of {}", window.flow)))];
    // What the receiver offers is what the sender hears of, a round trip later.
    let told = |track: &&Track| pen.detail == Detail::Full || track.bound != Bound::Receive;
    lines.extend(window.tracks.iter().filter(told).map(|track| tracked(track, &window, pen)));
    if let Some((rwnd, sndbuf)) = window.limited {
        let again: f64 = window.retransmits.iter().map(|r| r.1 as f64).sum();
        let told = format!(
            "limited by the peer's window {} of its busy time, by the send buffer {}; {again} segments sent again",
            percent(rwnd),
            percent(sndbuf)
        );
        lines.push(dim(&told, pen));
    }
    lines.extend(model(report, pen));
    if window.others > 0 {
        lines.push(format!("  {} more ends of flows were watched", window.others));
    }
    Some(lines.join("\n"))
}

/// The window model against what was seen: a line, or all of its rules where all was asked for.
fn model(report: &ExplainReport, pen: Pen) -> Vec<String> {
    let flows = rules::checked(report);
    if pen.detail == Detail::Brief {
        return flows.first().map(|flow| dim(&flow.summary(), pen)).into_iter().collect();
    }
    let mut lines = Vec::new();
    for flow in &flows {
        lines.push(pen.line(&format!("  the window model against {}", flow.flow)));
        for row in &flow.rows {
            let mark = if row.holds { "-" } else { "!" };
            lines.push(dim(&format!("{mark} {} ({})", row.figures(), row.told), pen));
        }
    }
    lines
}

fn tracked(track: &Track, window: &Window, pen: Pen) -> String {
    let mut sizes: Vec<f64> = track.points.iter().map(|p| p.1).collect();
    sizes.sort_by(f64::total_cmp);
    let size = |index: usize| Bytes(sizes[index] as u64).to_string();
    let told = format!("{} to {}", size(0), size(sizes.len() - 1));
    let columns = if pen.blocks { pen.width.saturating_sub(64).min(CURVE) } else { 0 };
    let drawn = sampled(track, window, columns);
    let line = format!("  {:18} median {:10} {told:24} {drawn}", track.bound.name(), size(sizes.len() / 2));
    line.trim_end().to_owned()
}

/// The curve of a track over the whole time, on the scale of all.
fn sampled(track: &Track, window: &Window, columns: usize) -> String {
    let all = || window.tracks.iter().flat_map(|t| &t.points);
    let (end, most) = (all().map(|p| p.0).fold(0.0, f64::max), all().map(|p| p.1).fold(1.0, f64::max));
    let least = all().map(|p| p.1).fold(most, f64::min);
    let height = |bytes: f64| {
        if window.wide() { (bytes / least).ln() / (most / least).ln() } else { bytes / most }
    };
    let column = |index: usize| {
        let until = (index as f64 + 1.0) / columns as f64 * end;
        track.points.iter().rev().find(|p| p.0 <= until).map(|p| height(p.1))
    };
    curve(&(0..columns).map(column).collect::<Vec<_>>())
}

/// A line a limit, highest first; of many those nearest to the flow.
pub(super) fn limits(report: &ExplainReport, pen: Pen) -> Option<String> {
    let stairs = stairs::stairs(report)?;
    let skipped = stairs.steps.len().saturating_sub(pen.most(4));
    let flow = stairs.flow.map(|rate| format!(" (the flow: {})", BitRate(rate))).unwrap_or_default();
    let higher = if skipped > 0 { format!("; {skipped} higher ones left out") } else { String::new() };
    let mut lines = vec![pen.heading(&format!("what each part could do{flow}{higher}"))];
    lines.extend(stairs.steps.iter().skip(skipped).map(|step| stair(step, &stairs, pen)));
    Some(lines.join("\n"))
}

fn stair(step: &Stair, stairs: &Stairs, pen: Pen) -> String {
    let mark = if step.ceiling { "> " } else { "  " };
    let name = short(&step.name, 34);
    let over = step.over.map(times).unwrap_or_default();
    let mut line = format!("{mark}{name:34} {:>10} {over:>7}", BitRate(step.rate).to_string());
    if pen.blocks {
        // Lengths are true, so what is left out on top must not set their scale.
        let most = stairs.steps.iter().rev().take(pen.most(4)).map(|s| s.rate).fold(step.rate, f64::max);
        line += &format!("  {}", bar(step.rate / most, pen.width.saturating_sub(60).min(40)));
    }
    let line = line.trim_end();
    if step.ceiling { pen.style.paint(Tone::Open, line) } else { line.to_owned() }
}
