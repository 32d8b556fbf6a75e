//! When a socket sends, and how it waits.

use landspeed_units::BitRate;

use super::{FLOW, NO_QUEUE, bytes_or_none, switch};
use crate::flow::number;
use crate::propose::{each, flip, next_to, unless};
use crate::sysctl::congestion::algorithms;
use crate::{Domain, Knob, Proposal, Row, Turn, View};

/// The value of a congestion control that is left to the system.
const SYSTEM: &str = "default";
/// More unsent bytes than any socket holds: the kernel takes an int.
const UNLIMITED: u64 = i32::MAX as u64;
/// 2^53: rates are carried as doubles.
const FASTEST: u64 = 1 << 53;

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        row: Row {
            name: "nodelay",
            about: "TCP_NODELAY: send small segments at once (no Nagle)",
            interacts: &["write-size", "autocorking"],
            source: "RFC 896; lab: 128 B writes 1.3 Gb/s with Nagle, 0.2 without",
            ..FLOW
        },
        turn: switch!(nodelay),
        propose: |view| {
            let large = view.number("write-size").is_some_and(|bytes| bytes >= 65_536);
            let reason = "writes fill whole segments: Nagle never waits";
            unless(large, reason, flip(view, 450))
        },
    },
    Knob {
        row: Row {
            name: "busy-poll",
            about: "SO_BUSY_POLL: microseconds that a receive call spins on the device; 0 is off",
            domain: Domain::Int(0, 10_000),
            interacts: &[
                "net-busy-poll",
                "net-busy-read",
                "napi-defer-hard-irqs",
                "gro-flush-timeout",
                "rx-usecs",
            ],
            source: "Documentation/networking/napi.rst (busy polling); lab: no effect on veth",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.busy_poll_us.to_string(),
            set: |flow, value| {
                flow.busy_poll_us = number("busy-poll", value)?;
                Ok(())
            },
        },
        propose: |view| {
            let veth = view.driver("veth");
            unless(veth, NO_QUEUE, each(&["50"], 610))
        },
    },
    Knob {
        row: Row {
            name: "socket-congestion",
            about: "TCP_CONGESTION: congestion control of this flow; 'default' leaves it to the system",
            domain: Domain::Name,
            interacts: &["congestion-control", "pacing-rate"],
            source: "tcp(7); cottrell-2005 IV.A",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.congestion.clone().unwrap_or_else(|| SYSTEM.into()),
            set: |flow, value| {
                flow.congestion = (value != SYSTEM).then(|| value.to_owned());
                Ok(())
            },
        },
        propose: congestion,
    },
    Knob {
        row: Row {
            name: "pacing-rate",
            about: "SO_MAX_PACING_RATE of each flow in bit/s; 0 is unlimited",
            domain: Domain::Int(0, FASTEST),
            interacts: &["qdisc", "congestion-control", "flows", "gso"],
            source: "ESnet fasterdata (paced flows, 2016 on); tc-fq(8)",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.pacing_rate_bps.map_or_else(|| "0".into(), |rate| format!("{:.0}", rate.0)),
            set: |flow, value| {
                let bits = number::<u64>("pacing-rate", value)?;
                flow.pacing_rate_bps = (bits > 0).then_some(BitRate(bits as f64));
                Ok(())
            },
        },
        propose: pace,
    },
    Knob {
        row: Row {
            name: "socket-notsent-lowat",
            about: "TCP_NOTSENT_LOWAT of each flow in bytes; 0 leaves it to the system",
            domain: Domain::Int(0, UNLIMITED),
            placebo: Some(unlimited),
            interacts: &["notsent-lowat", "write-size", "tcp-wmem"],
            source: "tcp(7); Cheshire, WWDC 2015 session 719",
            ..FLOW
        },
        turn: bytes_or_none!("socket-notsent-lowat", notsent_lowat_bytes),
        propose: |_| each(&["131072"], 425),
    },
];

/// The same choice as congestion-control, for algorithms that a network namespace may not default to.
fn congestion(view: &View) -> Vec<Proposal> {
    if !view.stands("socket-congestion", SYSTEM) {
        return vec![Proposal::new(SYSTEM, 108)];
    }
    let system = view.settings.get("congestion-control").map_or("", String::as_str);
    let reason = "congestion-control tries the same for all flows";
    algorithms(view, system).map(|(default, proposal)| proposal.pointless_if(default, reason)).collect()
}

/// No limit of the flow's own says the same as none of the system's; where there is one, a byte more does.
fn unlimited(view: &View) -> Option<String> {
    match view.current {
        "0" => (view.number("notsent-lowat")? >= UNLIMITED).then(|| UNLIMITED.to_string()),
        limit => next_to(limit, UNLIMITED),
    }
}

/// A little under an even share of the slower link: a burst then never overruns the path's buffers.
fn pace(view: &View) -> Vec<Proposal> {
    let mbps = [view.sender_link.speed_mbps, view.receiver_link.speed_mbps].into_iter().flatten().min();
    let Some(mbps) = mbps else {
        let unlimited = Proposal::new("0", 415).pointless_if(true, "no device states a speed to pace to");
        return vec![unlimited];
    };
    let flows = view.number("flows").unwrap_or(1).max(1);
    vec![Proposal::new((mbps.saturating_mul(900_000) / flows).min(FASTEST).to_string(), 415)]
}
