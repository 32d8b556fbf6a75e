//! Opens a lab by its name on a command line.

use super::{Lab, no_lab};
use crate::topology::choose::find;
use crate::topology::error::Error;
use crate::topology::registry::TopologyPlan;

impl Lab {
    /// Creates the lab that a word of a command line names, such as "lab:switch:4".
    pub fn open(word: &str) -> Result<Self, Error> {
        let words = [word.to_owned()];
        match find(&words)?.plan(&words)? {
            TopologyPlan::Lab(plan) => Self::make(plan),
            TopologyPlan::Real(_) => Err(no_lab(&words, "a lab")),
        }
    }
}
