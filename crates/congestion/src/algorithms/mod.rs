//! The registration table: one folder an algorithm.

mod reno;

use crate::Row;

/// Every congestion control there is, those of the study first.
pub static CONTROLS: &[&Row] = &[&reno::ROW];
