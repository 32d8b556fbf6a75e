//! Charts of an explanation, in the manner of [`crate::chart`].

mod cost;
mod flame;
mod hops;
mod sizes;
mod stairs;
mod window;

pub(super) use cost::cost;
pub(super) use flame::flame;
pub(super) use hops::hops;
pub(super) use sizes::sizes;
pub(super) use stairs::stairs;
pub(super) use window::window;
