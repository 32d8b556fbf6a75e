//! The words of the report, one line each.

use maud::{Markup, html};

const TERMS: [(&str, &str); 17] = [
    ("Rate", "payload that arrived at the receiver, per second (goodput)"),
    (
        "Bytes per CPU-second",
        "payload for one second of one core, over both hosts; the cost figure, higher is better",
    ),
    ("Idle round trip", "median time for one byte to go and come back while nothing else is sent"),
    (
        "Round trip under load",
        "median round trip of the stream's own packets, by the sender's TCP: queues that fill show here",
    ),
    ("Knob", "one setting that can be read, written, read back and put back"),
    ("Cell", "one configuration of both hosts and of the flow"),
    ("Trial", "one short measurement of a cell"),
    (
        "Block",
        "interleaved trials of two cells, mostly eight: ABBABAAB or its mirror image at random, so that drift affects both alike",
    ),
    ("Step", "the question whether one change is kept; it brings its prerequisites along"),
    ("Incumbent, candidate", "the setting that stands, and the same with the change"),
    (
        "Ratio and interval",
        "candidate over incumbent, and the range that holds the true ratio, valid at whatever moment the step stopped",
    ),
    ("Least effect", "2 %: what is proven to be smaller is of no use"),
    (
        "Placebo",
        "a step that toggles a setting between two equivalent values; what it shows is noise, or what toggling does",
    ),
    (
        "Not confirmed",
        "kept, but blocks that were spread over the rest of the run did not show the gain again: good for the seconds in which it was measured",
    ),
    (
        "Expected",
        "the rate, candidate over incumbent, that a verdict promised of a step before the step was measured",
    ),
    ("Left out", "what would be lost without the step at the end, by fresh trials"),
    (
        "Discarded",
        "a block thrown away because the hypervisor took processor time, judged without looking at its result",
    ),
];

/// Words of an explanation.
const EXPLAINED: [(&str, &str); 14] = [
    ("Rate", "payload that arrived at the receiver, per second (goodput)"),
    (
        "Fault, limit",
        "a cause that can be mended; and what is left to hold a flow back when nothing is wrong: a core, the link, memory, the bus",
    ),
    (
        "Confidence",
        "how sure the verdict is of a cause, by how much of its evidence was seen and how little speaks against it",
    ),
    (
        "Sample",
        "one look, by a timer or a counter, at what a processor was doing; idle processors are not sampled",
    ),
    (
        "Layer",
        "what a sampled stack was taken for by its innermost functions, after Cai et al. (SIGCOMM 2021)",
    ),
    ("Stolen time", "time that the hypervisor gave to others while this machine wanted to run"),
    ("Softirq, NAPI", "the kernel's work on packets outside of any process; it polls the device for them"),
    ("Hop", "a stretch of a packet's way between two places where it is traced, after MAGNET"),
    ("Percentile", "the time that so many of a hundred packets stay below"),
    ("Congestion window", "what the sender allows itself to have in flight, by what it believes of the path"),
    ("Peer's window", "what the receiver allows: room in its buffer, as the sender last heard of it"),
    ("In flight", "sent and not yet acknowledged; no more than the least of the windows"),
    ("Staircase", "what each part of the path could carry if it were alone, highest first"),
    ("Residual", "what a line over sizes leaves unexplained, as a share of the mean cost"),
];

/// Words of a study.
const COMPARED: [(&str, &str); 13] = [
    ("Study", "every contest so many times, over one path, under one method: that of Cottrell et al. (2005)"),
    ("Contest", "who meets whom: one protocol's flows, or two protocols'; each repeat of it is a run"),
    (
        "Region",
        "a stretch of a run in which the number of flows stays the same; they enter one after another and leave last in, first out",
    ),
    ("Throughput", "payload that arrived in order at the receiver, per second (goodput), all flows together"),
    ("Stability, S", "standard deviation of the throughput's samples by their mean; smaller is steadier"),
    (
        "Fairness, F",
        "Jain's index of the flows' mean goodputs: 1 where all have the same, one by their number where one has all",
    ),
    ("Effect on RTT", "standard deviation of a probe's round trips while the flows run"),
    (
        "Converges",
        "from a flow's entry until its goodput over five samples stays within 20 % of its fair share; the median over flows",
    ),
    ("Resent", "segments sent again by segments delivered"),
    ("MHz/Mbps, cycles per bit", "clock cycles of the sender's processor for a bit of payload"),
    ("Interval", "the range that holds the mean of endless repeats in 95 of 100 studies (Student's t)"),
    ("Scale", "how long regions are against the paper's 120 s; only at 1 are its own values set beside ours"),
    (
        "A run that does not count",
        "one whose link was not the path it was told to be; nothing of it is in any figure",
    ),
];

/// The glossary of a study.
pub(crate) fn compared() -> Markup {
    words(&COMPARED)
}

/// The glossary of a tuning run.
pub(super) fn section() -> Markup {
    words(&TERMS)
}

/// The glossary of an explanation.
pub(crate) fn explained() -> Markup {
    words(&EXPLAINED)
}

fn words(terms: &[(&str, &str)]) -> Markup {
    html! {
        section id="glossary" {
            h2 { "Words" }
            dl class="pairs" { @for (term, meaning) in terms { dt { (term) } dd { (meaning) } } }
        }
    }
}
