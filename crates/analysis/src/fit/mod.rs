//! What a byte, a packet and a fragment cost, and which stage of a pipeline holds the others up: the way
//! in which Jin & Yoo report (jin-yoo-2007 sections 3 and 4).

mod answers;
mod caches;
mod cost;
mod fragments;
mod line;
mod message;
mod squares;
mod sweep;

pub use answers::{Asked, answers};
pub use caches::{OffloadBlock, OffloadStudy};
pub use cost::cost_figures;
pub use fragments::{Ip, fragments, largest};
pub use line::{FitError, SizedCost, fit};
pub use message::{BOTH, BothEnds, HOST_A, HOST_B, LINK, MessageCost, SHARED};
pub use sweep::SweepOf;
