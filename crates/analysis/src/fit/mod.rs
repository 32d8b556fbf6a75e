//! What a byte, a packet and a fragment cost, and which stage of a pipeline holds the others up: the way
//! in which Jin & Yoo report (jin-yoo-2007 sections 3 and 4).

mod cost;
mod fragments;
mod line;
mod pipeline;

pub use cost::cost_figures;
pub use fragments::fragments;
pub use line::{FitError, SizedCost, fit};
pub use pipeline::{Stage, bottleneck, ttcp};
