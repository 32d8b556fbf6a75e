//! Both ends of a comparison: the source asks what the target has of its entries. Neither end changes anything.
//!
//! Each flow carries one question at a time, and its answer: how do these entries differ? Where content is compared,
//! both ends read pieces of a file at the same time, the source sends its digests, and the target answers whether they
//! are equal to its own. So no digest leaves the target, and between two questions it keeps only its own digests.

#[cfg(test)]
mod fuzz;
mod lane;
mod links;
mod listing;
mod message;
mod queue;
mod source;
mod target;

use std::collections::BTreeSet;

use landspeed_record::CopyDifference;

pub(crate) use listing::CopyListing;
pub use source::compare;
pub use target::show;

use crate::wire::Failure;

/// The difference between the target's entry and the source's, as far as it shows without reading content; or the
/// reason why it is not known.
type Seen = Result<BTreeSet<CopyDifference>, Failure>;
