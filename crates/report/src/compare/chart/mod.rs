//! Charts of a study, in the manner of [`crate::chart`].

mod axes;
mod course;
mod parallel;

pub(super) use course::{Ground, course};
pub(super) use parallel::parallel;
