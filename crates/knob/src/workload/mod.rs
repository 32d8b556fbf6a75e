//! What the flow itself does: sizes, number, and where its threads run.

use landspeed_record::Placement;
use landspeed_units::Bytes;

use crate::flow::number;
use crate::socket::FLOW;
use crate::{Domain, Error, Knob, Proposal, Row, Turn, View};

/// Larger buffers only leave the caches.
const LARGEST: u64 = 64 << 20;

/// All knobs of the family.
pub(crate) const KNOBS: &[&[Knob]] = &[&[
    Knob {
        row: Row {
            name: "placement",
            about: "where sender and receiver run: wherever the scheduler likes, on the core that takes the \
                    packets, or on its neighbour",
            domain: Domain::OneOf(&["free", "same-core", "neighbours"]),
            interacts: &["rps", "rfs", "irq-affinity", "threaded-napi", "tso", "tcp-rmem", "write-size"],
            source: "feng-2003 3.3.1 (the uniprocessor kernel: 10 % at MTU 9000, 25 % at 1500); lab: 1.9x",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| word(flow.placement).into(),
            set: |flow, value| {
                flow.placement = placement(value)?;
                Ok(())
            },
        },
        propose: |view| {
            let one = view.sender.cpus < 2 && view.receiver.cpus < 2;
            let ranked = [("same-core", 5), ("neighbours", 105), ("free", 128)];
            let reason = "one processor: there is one place";
            ranked.map(|(place, rank)| Proposal::new(place, rank).pointless_if(one, reason)).into()
        },
    },
    Knob {
        row: Row {
            name: "write-size",
            about: "bytes handed to each send call",
            domain: Domain::Int(1, LARGEST),
            interacts: &["tso", "tcp-wmem", "nodelay", "zerocopy-send", "placement", "mtu"],
            source: "feng-2003 3.2, 3.3 (NTTCP's sweep of 128 B to 16 KB); \
                     lab: 8 KB 15, 64 KB 26, 1 MB 51 Gb/s",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.write_bytes.0.to_string(),
            set: |flow, value| {
                flow.write_bytes = Bytes(number("write-size", value)?);
                Ok(())
            },
        },
        propose: |view| larger(view, &[(65_536, 10), (1_048_576, 33), (262_144, 126)]),
    },
    Knob {
        row: Row {
            name: "read-size",
            about: "bytes that each receive call has room for",
            domain: Domain::Int(1, LARGEST),
            interacts: &["gro", "tcp-rmem", "zerocopy-receive"],
            source: "feng-2003 3.2",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.read_bytes.0.to_string(),
            set: |flow, value| {
                flow.read_bytes = Bytes(number("read-size", value)?);
                Ok(())
            },
        },
        propose: |view| larger(view, &[(1_048_576, 76), (262_144, 77)]),
    },
    Knob {
        row: Row {
            name: "flows",
            about: "parallel TCP connections",
            domain: Domain::Int(1, 1024),
            interacts: &["channels", "rps", "xps", "congestion-control", "pacing-rate", "placement"],
            source: "cottrell-2005 IV.A, IV.B.2 (more streams: more rate, more processor time); \
                     feng-2003 3.5.2",
            ..FLOW
        },
        turn: Turn::Flow {
            get: |flow| flow.flows.to_string(),
            set: |flow, value| {
                flow.flows = number("flows", value)?;
                Ok(())
            },
        },
        propose: |view| larger(view, &[(2, 78), (4, 79), (8, 82)]),
    },
]];

/// Those of `values` that are larger than what stands.
fn larger(view: &View, values: &[(u64, u32)]) -> Vec<Proposal> {
    let current = view.current.parse::<u64>().unwrap_or(0);
    let above = values.iter().filter(|(value, _)| *value > current);
    above.map(|(value, rank)| Proposal::new(value.to_string(), *rank)).collect()
}

fn word(placement: Placement) -> &'static str {
    match placement {
        Placement::Free => "free",
        Placement::SameCore => "same-core",
        Placement::Neighbours => "neighbours",
    }
}

fn placement(value: &str) -> Result<Placement, Error> {
    match value {
        "free" => Ok(Placement::Free),
        "same-core" => Ok(Placement::SameCore),
        "neighbours" => Ok(Placement::Neighbours),
        other => Err(Error::Value {
            knob: "placement".into(),
            value: other.into(),
            expected: "free, same-core, neighbours".into(),
        }),
    }
}
