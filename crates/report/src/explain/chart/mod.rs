//! Charts of an explanation, built from the parts in [`crate::chart`].

mod flame;
mod sizes;
mod window;

pub(super) use flame::flame;
pub(super) use sizes::sizes;
pub(super) use window::window;
