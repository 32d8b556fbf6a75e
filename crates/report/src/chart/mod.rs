//! Charts as SVG text, drawn in Rust: see docs/decisions/0004-charts.md.

mod curve;
pub(crate) mod frame;
mod ladder;
pub(crate) mod lines;
mod marker;
pub(crate) mod rows;
pub(crate) mod scale;
mod staircase;
mod strip;
mod trials;

pub(crate) use curve::{latency_by_size, latency_distribution, sweep};
pub(crate) use ladder::ladder;
pub(crate) use scale::unit_of;
pub(crate) use staircase::staircase;
pub(crate) use strip::strip;
