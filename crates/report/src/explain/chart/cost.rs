//! Cost by layer: a row a class, a panel a host, stolen time apart.

use landspeed_record::CostClass;
use maud::{Markup, html};

use super::super::cost::{HostCost, present};
use super::super::words::percent;
use crate::chart::frame::{Frame, Shape};
use crate::chart::rows::{at, place, span};

/// Where the panels of two hosts begin, and how wide one is, as shares of the plot; what is left is for
/// the figures at the ends of the bars.
const STARTS: [f64; 2] = [0.0, 0.53];
const PANEL: f64 = 0.36;
/// One host has all of it.
const ALONE: f64 = 0.86;

/// The chart; `hosts` is not empty.
pub(crate) fn cost(hosts: &[HostCost<'_>]) -> Markup {
    let hosts = &hosts[..hosts.len().min(STARTS.len())];
    let classes = present(hosts);
    let bars = hosts.iter().map(|host| host.classes.len()).sum();
    let frame = Frame {
        name: "cost",
        title: "Processor time by layer",
        description: description(hosts),
        caption: caption(),
        shape: Shape::Rows(classes.len() + 1),
        points: bars,
    };
    let panels = Panels::of(hosts);
    let inside = html! {
        g class="ground" {
            @for (index, host) in hosts.iter().enumerate() {
                rect class="upright base" style=(at(STARTS[index])) {}
                g class="at" style=(at(STARTS[index])) { text class="panel" y="-10" { (host.name) } }
            }
        }
        @for (index, class) in classes.iter().enumerate() { (row(index, *class, hosts, &panels)) }
        (steal(classes.len(), hosts, &panels))
    };
    frame.figure(&inside)
}

/// How shares become widths: alike on both hosts.
struct Panels {
    most: f64,
    wide: f64,
}

impl Panels {
    fn of(hosts: &[HostCost<'_>]) -> Self {
        let shares = hosts.iter().flat_map(|h| h.classes.iter().map(|c| c.figure.share).chain(h.steal()));
        let wide = if hosts.len() == 1 { ALONE } else { PANEL };
        Panels { most: shares.fold(1e-9, f64::max), wide }
    }

    /// Right end of a bar in the panel of host `index`.
    fn end(&self, index: usize, share: f64) -> f64 {
        STARTS[index] + share / self.most * self.wide
    }
}

fn row(index: usize, class: CostClass, hosts: &[HostCost<'_>], panels: &Panels) -> Markup {
    html! {
        g class={ "row c-" (class.name()) } style=(place(index)) {
            rect class="hit" width="100%" {}
            text class="name" x="0" y="17.5" { (class.name()) }
            g class="in-row" {
                @for (column, host) in hosts.iter().enumerate() {
                    @if let Some(cost) = host.of_class(class) {
                        @let end = panels.end(column, cost.figure.share);
                        rect class="bar" data-class=(class.name()) style=(span(STARTS[column], end)) y="6" height="15" {
                            title { (host.name) ": " (class.name()) " " (percent(cost.figure.share)) }
                        }
                        g class="at" style=(at(end)) { text class="amount" x="6" y="17.5" { (percent(cost.figure.share)) } }
                    }
                }
            }
        }
    }
}

/// Below the classes and apart from them: it is of the window, not of the samples.
fn steal(index: usize, hosts: &[HostCost<'_>], panels: &Panels) -> Markup {
    html! {
        g class="row steal" style=(place(index)) {
            line class="rule" x1="0" x2="100%" y1="2" y2="2" {}
            text class="name" x="0" y="19.5" { "stolen (apart)" }
            g class="in-row" {
                @for (column, steal) in hosts.iter().enumerate().filter_map(|(i, h)| Some((i, h.steal()?))) {
                    @let end = panels.end(column, steal);
                    rect class="stolen" style=(span(STARTS[column], end)) y="8" height="15" {}
                    g class="at" style=(at(end)) { text class="amount" x="6" y="19.5" { (percent(steal)) } }
                }
            }
        }
    }
}

fn description(hosts: &[HostCost<'_>]) -> String {
    let told = |host: &HostCost<'_>| {
        let shares: Vec<String> =
            host.classes.iter().map(|c| format!("{} {}", c.class.name(), percent(c.figure.share))).collect();
        format!("{}: {}.", host.name, shares.join(", "))
    };
    hosts.iter().map(told).collect::<Vec<_>>().join(" ")
}

fn caption() -> Markup {
    html! {
        p {
            "Shares of each host's sampled processor time, from the application down to the wire and up again; they sum "
            "to 100 %. Stolen time is what the hypervisor gave to others: a share of the window over all processors, "
            "never sampled and not part of the sum."
        }
    }
}
