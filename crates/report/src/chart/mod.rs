//! Charts as SVG text, drawn in Rust; docs/decisions/0004-charts.md gives the reasons.

mod curve;
pub(crate) mod frame;
mod ladder;
mod levels;
pub(crate) mod lines;
mod marker;
mod rows;
pub(crate) mod scale;
mod strip;
mod trials;

pub(crate) use curve::{latency_by_size, latency_distribution, sweep};
pub(crate) use ladder::ladder;
pub(crate) use levels::level;
pub(crate) use scale::unit_in;
pub(crate) use strip::strip;
