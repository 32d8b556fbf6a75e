//! The traits of an application: a chain of filters, and the same computation without filters.

use crate::filter::{Error, FilterInput, FilterOutput};

/// The description of one filter of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterStage {
    /// The filter's name in the placement.
    pub name: &'static str,
    /// True if [`QueryOptions::copies`](crate::filter::QueryOptions::copies) sets the number of copies of this
    /// filter.
    pub is_varied: bool,
    /// The size of the largest buffer that the filter sends, in bytes; for the last filter, the size of the picture.
    pub largest: usize,
}

/// The position of one copy of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterCopy {
    /// Index of the filter in the chain, from 0.
    pub stage: usize,
    /// Index of the copy, from 0.
    pub copy: usize,
    /// Number of copies of this filter.
    pub copies: usize,
}

/// A chain of filters that computes one picture for each unit of work.
pub trait FilterApplication: Sync {
    /// Returns the filters of the chain, producer first. The first filter gets no buffers, and its input ends at the
    /// start of each unit.
    fn stages(&self) -> &[FilterStage];

    /// Creates one copy of a filter, with the data that it needs.
    fn filter(&self, place: FilterCopy) -> Box<dyn Filter + '_>;

    /// Returns the picture of a unit, computed in one thread without filters.
    fn plain(&self, unit: u32) -> Vec<u8>;
}

/// One copy of a filter, which runs on its own thread.
pub trait Filter: Send {
    /// Works on one unit: takes buffers until the input ends, and sends buffers to the output. The last filter sends
    /// the unit's picture. When this returns, the runtime sends the end-of-work marker.
    ///
    /// # Errors
    /// Returns the errors of the streams, and [`Error::Buffer`] for a buffer that its producer cannot have made.
    fn work(
        &mut self,
        unit: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error>;
}
