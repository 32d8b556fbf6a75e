//! Both ends of a comparison: the source asks what the target has of its entries. Neither end changes anything.
//!
//! Each flow carries one question at a time, and its answer. A question is a list of entries, an answer says of each how
//! the target's differs. So the target keeps nothing between two questions.

mod listing;
mod queue;
mod source;
mod target;

use std::collections::BTreeSet;

use landspeed_record::CopyDifference;

pub(crate) use listing::CopyListing;
pub use source::compare;
pub use target::show;

use crate::wire::Failure;

/// How the target's entry differs from the source's, or why it cannot be copied.
type Seen = Result<BTreeSet<CopyDifference>, Failure>;
