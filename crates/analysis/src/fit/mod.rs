//! Computes the costs of a byte, a packet and a fragment, and the slowest stage of a datagram's path, as Jin & Yoo
//! report them (jin-yoo-2007 sections 3 and 4).

mod answers;
mod bit;
mod cost;
mod draft;
mod fragments;
mod line;
mod message;
mod sweep;

pub use answers::{AnswerInputs, OffloadBlock, OffloadStudy, answers, size_claims};
pub(crate) use cost::samples_of_flow;
pub use cost::{CostOwners, cost_figures, cost_owners, share_of_links};
pub use fragments::{IpVersion, largest};
pub use message::{BOTH, HOST_A, HOST_B, LINK, MessageCost, SHARED};
pub use sweep::SizeSweep;
