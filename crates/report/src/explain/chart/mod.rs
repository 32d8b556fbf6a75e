//! Charts of an explanation, in the manner of [`crate::chart`].

mod flame;
mod sizes;
mod window;

pub(super) use flame::flame;
pub(super) use sizes::sizes;
pub(super) use window::window;
