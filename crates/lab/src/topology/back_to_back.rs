//! The topology `lab:back-to-back`: two hosts, joined by a veth pair.

use crate::topology::error::Error;
use crate::topology::lab::{self, LabPlan, parameters};
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

const NAME: &str = "lab:back-to-back";

const DRAWING: &str = "   netns ls-ID-a                                netns ls-ID-b
   +-----------------------+                    +-----------------------+
   | ls-a  198.18.0.1/24   |======= veth =======| ls-b  198.18.0.2/24   |
   |       fd00:18::1/64   |                    |       fd00:18::2/64   |
   +-----------------------+                    +-----------------------+
";

#[derive(Debug)]
pub(crate) struct BackToBackTopology;

impl Topology for BackToBackTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: NAME,
            syntax: NAME,
            examples: &["lab:back-to-back", "lab", ""],
            line: "two network namespaces on this machine, joined by a veth pair with a queue for each core",
            drawing: DRAWING,
        }
    }

    fn accepts(&self, words: &[String]) -> bool {
        words.is_empty() || words == ["lab"] || parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        match parameters(words, NAME) {
            Some(more) if !more.is_empty() => Err(lab::no_lab(words, NAME)),
            _ => Ok(TopologyPlan::Lab(LabPlan::veth(NAME, ["a", "b"]))),
        }
    }

    fn can_run(&self) -> Result<(), String> {
        lab::can_run()
    }
}
