//! The window over time.

use maud::{Markup, html};

use super::super::window::{Bound, Track, Window};
use super::super::words::percent;
use crate::chart::frame::{Frame, Shape, n, text, x_axis, y_axis};
use crate::chart::scale::{Scale, label};

const WIDTH: f64 = 912.0;
const LEFT: f64 = 56.0;
/// Leaves room for the names of the lines at their ends.
const RIGHT: f64 = 745.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 300.0;
const HEIGHT: f64 = 352.0;
/// Least distance between two names.
const APART: f64 = 22.0;

/// The chart.
pub(crate) fn window(window: &Window) -> Markup {
    let values = || window.tracks.iter().flat_map(|t| &t.points);
    let end = values().map(|p| p.0).fold(0.0, f64::max);
    let (per, unit) = size_of(values().map(|p| p.1).fold(0.0, f64::max));
    let x = Scale::linear(0.0, end, LEFT, RIGHT);
    let bytes = values().map(|p| p.1 / per);
    let y = if window.wide() { Scale::log(bytes, BOTTOM, TOP) } else { Scale::from_zero(bytes, BOTTOM, TOP) };
    let frame = Frame {
        name: "window",
        title: "The window over time",
        description: description(window, per, unit),
        caption: caption(window),
        shape: Shape::Fixed(WIDTH, HEIGHT),
        points: values().count(),
    };
    let how = if window.wide() { " (log scale)" } else { "" };
    let named = apart(&window.tracks, &|v| y.at(v / per));
    frame.figure(&html! {
        (text("axis", "start", (0.0, TOP - 22.0), &format!("{unit}{how}")))
        (x_axis(&x, &x.ticks(7), (TOP, BOTTOM)))
        (y_axis(&y, &y.ticks(6), (LEFT, RIGHT)))
        (text("axis", "middle", (f64::midpoint(LEFT, RIGHT), BOTTOM + 40.0), "seconds"))
        @for (track, at) in window.tracks.iter().zip(named) {
            g class={ "track " (track.bound.class()) } {
                path class="curve" d=(path(track, &|(s, v)| (x.at(s), y.at(v / per)))) { title { (track.bound.name()) } }
                (text("series-name", "start", (RIGHT + 8.0, at + 4.0), track.bound.name()))
            }
        }
        @for &(seconds, segments) in &window.retransmits { (retransmit(x.at(seconds), seconds, segments)) }
    })
}

/// The unit that suits sizes up to `largest`.
fn size_of(largest: f64) -> (f64, &'static str) {
    const STEPS: [(f64, &str); 4] =
        [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "bytes")];
    *STEPS.iter().find(|(per, _)| largest >= 2.0 * per).unwrap_or(&STEPS[3])
}

/// Level between samples: what was read stood until it was read again.
fn path(track: &Track, place: &dyn Fn((f64, f64)) -> (f64, f64)) -> String {
    let mut path = String::new();
    for (index, &point) in track.points.iter().enumerate() {
        let (x, y) = place(point);
        path += &if index == 0 { format!("M{} {}", n(x), n(y)) } else { format!("H{}V{}", n(x), n(y)) };
    }
    path
}

/// Where the names of the lines go: at their ends, but none on another.
fn apart(tracks: &[Track], at: &dyn Fn(f64) -> f64) -> Vec<f64> {
    let end = |t: &Track| t.points.last().map_or(BOTTOM, |p| at(p.1));
    let mut order: Vec<(usize, f64)> = tracks.iter().map(end).enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut places = vec![0.0; tracks.len()];
    let mut free = TOP;
    let room = BOTTOM - APART * (tracks.len() as f64 - 1.0);
    for (rank, (index, y)) in order.into_iter().enumerate() {
        places[index] = y.max(free).min(room + APART * rank as f64);
        free = places[index] + APART;
    }
    places
}

fn retransmit(x: f64, seconds: f64, segments: u64) -> Markup {
    let d = format!("M{} {}l-5 9h10z", n(x), n(BOTTOM - 9.0));
    html! { path class="retransmit" d=(d) { title { (segments) " segments sent again by " (label(seconds)) " s" } } }
}

fn description(window: &Window, per: f64, unit: &str) -> String {
    let told = |track: &Track| {
        let last = track.points.last().map_or(0.0, |p| p.1 / per);
        format!("{} ends at {} {unit}", track.bound.name(), label(last))
    };
    let lines: Vec<String> = window.tracks.iter().map(told).collect();
    format!("{}: {}.", window.flow, lines.join(", "))
}

fn caption(window: &Window) -> Markup {
    let again: f64 = window.retransmits.iter().map(|r| r.1 as f64).sum();
    let tight = window.tracks.iter().any(|t| t.bound == Bound::InFlight);
    html! {
        // A phone shows the names at the ends of the lines only after scrolling.
        ul class="legend narrow" {
            @for track in &window.tracks {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { g class={ "track " (track.bound.class()) } { path class="curve" d="M0 8h16" {} } } (track.bound.name()) }
            }
        }
        p {
            "The flow " (window.flow) "."
            @if tight { " What is in flight presses against the window that holds it back; where it stays below all of them, the sender had nothing to send or no time to." }
            @if let Some((rwnd, sndbuf)) = window.limited {
                " By the kernel's own account the peer's window limited it " (percent(rwnd)) " of its busy time, the send buffer " (percent(sndbuf)) "."
            }
            @if again > 0.0 { " Triangles are retransmissions, " (again) " segments in all." } @else if window.limited.is_some() { " Nothing was sent again." }
            @if window.others > 0 { " " (window.others) " more ends of flows were watched and are not drawn; this one moved most." }
        }
    }
}
