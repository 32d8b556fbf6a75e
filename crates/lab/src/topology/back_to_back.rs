//! The topology `lab:back-to-back`: two hosts, joined by one or more veth pairs.

use crate::emulator::Parameter;
use crate::topology::error::Error;
use crate::topology::lab::{self, LabPlan, parameters};
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

const NAME: &str = "lab:back-to-back";
const SYNTAX: &str = "lab:back-to-back:links=N";
const LINKS: &str = "links";
/// The largest number of links: enough for the papers' two, and for a link for each core of most machines.
const MOST: u8 = 16;

const DRAWING: &str = "   netns ls-ID-a                                netns ls-ID-b
   +-----------------------+                    +-----------------------+
   | ls-a  198.18.0.1/24   |======= veth =======| ls-b  198.18.0.2/24   |
   |       fd00:18::1/64   |                    |       fd00:18::2/64   |
   +-----------------------+                    +-----------------------+
   links=2: also ls-a-2 198.18.1.1 and ls-b-2 198.18.1.2
";

#[derive(Debug)]
pub(crate) struct BackToBackTopology;

impl Topology for BackToBackTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: NAME,
            syntax: SYNTAX,
            examples: &["lab:back-to-back", "lab:back-to-back:links=2", "lab", ""],
            line: "two network namespaces on this machine, joined by veth pairs with a queue for each core",
            drawing: DRAWING,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        let links = Parameter {
            name: LINKS,
            values: "a number from 1 to 16",
            default: "1",
            about: "how many veth pairs join the hosts, each with a subnet of its own. `measure` and `--vary` use all of them at \
                    once, each with the flows that are asked for; other commands use the first",
        };
        vec![("Of the links", vec![links])]
    }

    fn accepts(&self, words: &[String]) -> bool {
        words.is_empty() || words == ["lab"] || parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let links = match parameters(words, NAME).unwrap_or_default() {
            "" => 1,
            text => links(text)
                .ok_or_else(|| lab::no_lab(words, "lab:back-to-back:links=N with N from 1 to 16"))?,
        };
        let label = if links == 1 { NAME.to_owned() } else { format!("{NAME}:{LINKS}={links}") };
        Ok(TopologyPlan::Lab(LabPlan::veth(label, ["a", "b"], links)))
    }

    fn can_run(&self) -> Result<(), String> {
        lab::can_run()
    }
}

/// Returns the number of links in "links=2".
fn links(text: &str) -> Option<u8> {
    let digits = text.strip_prefix(LINKS)?.strip_prefix('=')?;
    // parse() would also accept "+2".
    let number = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    number.filter(|links| (1..=MOST).contains(links))
}
