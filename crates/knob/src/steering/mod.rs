//! Steering: the processor that works on a packet, set in files of the device's queues and of its interrupts.

mod interrupt;
mod queue;

use landspeed_record::units::Nanos;

use crate::{Condition, Domain, Factor, FactorPlacement, FactorScope, Knob};

pub(crate) const KNOBS: &[&[Knob]] = &[queue::KNOBS, interrupt::KNOBS];

const STEERING: Factor = Factor {
    scope: FactorScope::Device,
    on: FactorPlacement::Receiver,
    domain: Domain::Each(&Domain::CpuList),
    toggle: Nanos::millis(20),
    decides: Some(Condition::Placement),
    source: "Documentation/networking/scaling.rst",
    ..Factor::KNOB
};

/// Returns the list of all processors: "0-3" for a host with four.
fn all_cpus(cpus: u32) -> String {
    match cpus {
        0 | 1 => "0".into(),
        n => format!("0-{}", n - 1),
    }
}

/// Returns a value with one processor for each of `members` queues or interrupts, round-robin: "0;1;0;1".
fn spread(members: u32, cpus: u32) -> String {
    (0..members).map(|n| (n % cpus.max(1)).to_string()).collect::<Vec<_>>().join(";")
}
