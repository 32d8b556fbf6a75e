//! `lab:switch:N`: hosts on a bridge.

use crate::error::Error;
use crate::lab::{self, LabPlan, parameters};
use crate::registry::{About, Plan, Topology};

const NAME: &str = "lab:switch";
const SYNTAX: &str = "lab:switch:N";
const MOST: u8 = 32;

const DRAWING: &str =
    "   netns ls-ID-h0                     netns ls-ID-sw                     netns ls-ID-h1
   +----------------------+          +----------------+          +----------------------+
   | ls-h0  198.18.0.1/24 |== veth ==| ls-p0    ls-p1 |== veth ==| ls-h1  198.18.0.2/24 |
   |        fd00:18::1/64 |          |     ls-br      |          |        fd00:18::2/64 |
   +----------------------+          | ls-p2 ... p31  |          +----------------------+
                                     +----------------+
                                       || veth
                                     h2 198.18.0.3 ... h31 198.18.0.32
";

#[derive(Debug)]
pub(crate) struct Switch;

impl Topology for Switch {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            syntax: SYNTAX,
            examples: &["lab:switch:4"],
            line: "2 to 32 network namespaces on this machine, each by a veth pair on a bridge in a namespace of its own",
            drawing: DRAWING,
        }
    }

    fn accepts(&self, words: &[String]) -> bool {
        parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<Plan, Error> {
        // Digits only: parse() would take "+4".
        let digits = parameters(words, NAME).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let count = digits.and_then(|text| text.parse().ok()).filter(|count| (2..=MOST).contains(count));
        let count = count.ok_or_else(|| lab::no_lab(words, "lab:switch:N with N from 2 to 32"))?;
        let hosts = (0..count).map(|n| format!("h{n}")).collect();
        Ok(Plan::Lab(LabPlan::bridge(format!("{NAME}:{count}"), "sw", hosts)))
    }

    fn can_run(&self) -> Result<(), String> {
        lab::can_run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_to_thirty_two_hosts_are_a_switch() {
        let plan = |text: &str| Switch.plan(&[text.to_owned()]);
        for text in ["lab:switch:2", "lab:switch:32"] {
            assert_eq!(plan(text).unwrap().label(), text);
        }
        for bad in ["lab:switch", "lab:switch:1", "lab:switch:33", "lab:switch:+4", "lab:switch:4x"] {
            let error = plan(bad).unwrap_err().to_string();
            assert!(error.contains(bad) && error.contains("2 to 32"), "{error}");
        }
    }
}
