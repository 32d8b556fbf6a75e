//! The chart of TCP's windows over time.

use maud::{Markup, html};

use super::super::window::{WindowBound, WindowCurve, WindowHistory};
use super::super::words::percent;
use crate::chart::lines::{ChartAxis, ChartSeries, ChartSize, LineChart, MarkerShape};
use crate::chart::scale::{label, size_of};

const SIZE: ChartSize = ChartSize { width: 912.0, names: 167.0, bottom: 300.0 };

pub(crate) fn window(window: &WindowHistory) -> Option<Markup> {
    let most = window.tracks.iter().flat_map(|t| &t.points).map(|p| p.1).fold(0.0, f64::max);
    let (per, unit) = size_of(most);
    let event = |&(seconds, segments): &(f64, u64)| {
        (seconds, format!("{segments} segments sent again by {} s", label(seconds)))
    };
    let series = |track: &WindowCurve| ChartSeries {
        name: track.bound.name_and_class().0.to_owned(),
        class: format!("track {}", track.bound.name_and_class().1),
        line: track.points.iter().map(|(seconds, bytes)| (*seconds, bytes / per)).collect(),
        is_level: true,
        mark: MarkerShape::None,
        points: Vec::new(),
        ..ChartSeries::default()
    };
    LineChart {
        name: "window".into(),
        title: "The window over time",
        description: description(window, per, unit),
        caption: caption(window),
        size: SIZE,
        x: ChartAxis::from_zero("seconds"),
        y: if window.wide() { ChartAxis::log(unit) } else { ChartAxis::from_zero(unit) },
        series: window.tracks.iter().map(series).collect(),
        uprights: Vec::new(),
        events: window.retransmits.iter().map(event).collect(),
    }
    .figure()
}

fn description(window: &WindowHistory, per: f64, unit: &str) -> String {
    let text = |track: &WindowCurve| {
        let last = track.points.last().map_or(0.0, |p| p.1 / per);
        format!("{} ends at {} {unit}", track.bound.name_and_class().0, label(last))
    };
    let lines: Vec<String> = window.tracks.iter().map(text).collect();
    format!("{}: {}.", window.flow, lines.join(", "))
}

fn caption(window: &WindowHistory) -> Markup {
    let again: f64 = window.retransmits.iter().map(|r| r.1 as f64).sum();
    let tight = window.tracks.iter().any(|t| t.bound == WindowBound::InFlight);
    html! {
        // On a phone, the names at the ends of the lines are off the screen, so a legend repeats them.
        ul class="legend narrow" {
            @for track in &window.tracks {
                li { svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" { g class={ "track " (track.bound.name_and_class().1) } { path class="curve" d="M0 8h16" {} } } (track.bound.name_and_class().0) }
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
