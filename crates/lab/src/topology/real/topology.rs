//! The row of real hosts in the table of topologies.

use super::host_spec::HostSpec;
use crate::topology::error::Error;
use crate::topology::hosts::TopologyHost;
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

/// The topology of real hosts. If a command line names only one host, this machine is the other one.
#[derive(Debug)]
pub(crate) struct RealTopology;

const DRAWING: &str = "   +-----+                                   +-----+
   |  A  |=== whatever network joins them ===|  B  |     A, B: local, netns:NAME, [user@]host, ...
   +-----+                                   +-----+
";

impl Topology for RealTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: "real",
            syntax: "[A] B (each 'local', 'netns:NAME', '[user@]host', or an agent's landspeed:// line)",
            examples: &["local alice@dtn2", "dtn1 dtn2", "dtn2"],
            line: "hosts as they are, reached by ssh or through an agent that was started by hand",
            drawing: DRAWING,
        }
    }

    fn accepts(&self, words: &[String]) -> bool {
        !words.is_empty() && !words.iter().any(|word| word == "lab" || word.starts_with("lab:"))
    }

    fn can_run(&self) -> Result<(), String> {
        Ok(())
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let named: Result<Vec<HostSpec>, Error> = words.iter().map(|word| word.parse()).collect();
        let mut hosts: Vec<TopologyHost> = named?.into_iter().map(TopologyHost::from).collect();
        if hosts.len() == 1 {
            hosts.insert(0, HostSpec::Local.into());
        }
        let twice = hosts
            .iter()
            .enumerate()
            .find(|(nth, host)| hosts[..*nth].iter().any(|other| other.reach == host.reach));
        match twice {
            Some((_, host)) => Err(Error::OneHost { a: host.name.clone(), b: host.name.clone() }),
            None => Ok(TopologyPlan::Real(hosts)),
        }
    }
}
