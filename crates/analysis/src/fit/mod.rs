//! What a byte, a packet and a fragment cost, and which stage of a pipeline holds the others up: the way
//! in which Jin & Yoo report (jin-yoo-2007 sections 3 and 4).

mod answers;
mod cost;
mod fragments;
mod line;
mod message;
mod sweep;

pub use answers::{Asked, OffloadBlock, OffloadStudy, answers};
pub use cost::cost_figures;
pub use fragments::{Ip, largest};
pub use message::{BOTH, BothEnds, HOST_A, HOST_B, LINK, MessageCost, SHARED};
pub use sweep::SweepOf;
