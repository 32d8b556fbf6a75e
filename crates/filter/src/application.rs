//! What an application is to the runtime: a chain of filters, and the same computation without them.

use crate::{Error, Input, Output};

/// One filter of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// As the placement names it.
    pub name: &'static str,
    /// Whether [`Args::copies`](crate::Args::copies) sets its number of copies.
    pub is_varied: bool,
    /// Largest buffer that it sends, in bytes. Of the last filter: the picture's size.
    pub largest: usize,
}

/// Which copy of which filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Place in the chain, from 0.
    pub stage: usize,
    /// From 0.
    pub copy: usize,
    /// How many copies of this filter there are.
    pub copies: usize,
}

/// A chain of filters that computes one picture for each unit of work.
pub trait Application: Sync {
    /// The chain, producer first. The first filter gets no buffers: its input ends at once where a unit begins.
    fn stages(&self) -> &[Stage];

    /// Makes one copy of a filter, with the data that it keeps.
    fn filter(&self, place: Place) -> Box<dyn Filter + '_>;

    /// The picture of a unit, computed by one thread without filters.
    fn plain(&self, unit: u32) -> Vec<u8>;
}

/// One copy of a filter. It runs on a thread of its own.
pub trait Filter: Send {
    /// Works on one unit: takes buffers until the input ends, and sends its own. The runtime sends the
    /// end-of-work marker when it returns. What the last filter sends is the unit's picture.
    ///
    /// # Errors
    /// What the streams return, or a buffer that its producer cannot have made.
    fn work(&mut self, unit: u32, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<(), Error>;
}
