//! The result of a sweep.

use serde::{Deserialize, Serialize};

use super::{Failure, few};
use crate::name::RelativeName;

/// The largest number of failures of a sweep that are named. Further ones are counted.
const MOST_FAILURES: usize = 64;

/// The result of a sweep of folders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Swept {
    /// The extras that were found, or that were removed.
    pub(crate) extras: u64,
    pub(crate) failed: u64,
    /// The first failures.
    #[serde(deserialize_with = "few")]
    pub(crate) failures: Vec<(RelativeName, Failure)>,
}

impl Swept {
    /// Adds the result of further folders.
    pub(crate) fn add(&mut self, other: Swept) {
        let Swept { extras, failed, failures } = other;
        self.extras += extras;
        self.failed += failed;
        let room = MOST_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(failures.into_iter().take(room));
    }

    /// Adds an entry that could not be removed, or a folder that could not be read.
    pub(crate) fn fail(&mut self, name: RelativeName, failure: Failure) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            self.failures.push((name, failure));
        }
    }
}
