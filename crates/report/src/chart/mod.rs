//! Charts as SVG text, drawn in Rust: see docs/decisions/0004-charts.md.

mod curve;
pub(crate) mod frame;
mod ladder;
pub(crate) mod lines;
mod marker;
pub(crate) mod scale;
mod trials;

pub(crate) use curve::{latency_by_size, latency_distribution, sweep};
pub(crate) use ladder::ladder;
pub(crate) use scale::unit_of;
