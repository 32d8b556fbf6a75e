//! The topology of hosts that landspeed did not create: this machine, hosts reached by ssh, and hosts with an agent
//! that was started by hand.

mod host_spec;
mod hosts;

pub use host_spec::{HostSpec, SshTarget};
pub(crate) use hosts::RealHosts;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::topology::error::Error;
use crate::topology::hosts::{HostSet, TopologyHost};
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

/// Returns one host in the place of both, for data that stay within it. They take loopback, which is no network path: for
/// commands that measure none.
///
/// # Errors
/// Returns an error if `word` names no host.
pub fn within(word: &str) -> Result<Box<dyn HostSet>, Error> {
    let host = TopologyHost::from(word.parse::<HostSpec>()?);
    let (v4, v6) = (Some(Ipv4Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST));
    let label = host.name.clone();
    Ok(Box::new(RealHosts { hosts: vec![host.clone(), TopologyHost { v4, v6, ..host }], label }))
}

impl From<HostSpec> for TopologyHost {
    fn from(spec: HostSpec) -> Self {
        TopologyHost { name: spec.to_string(), reach: spec.into_reach(), device: None, v4: None, v6: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_takes_both_places_and_its_data_loopback() {
        for word in ["local", "netns:there", "alice@dtn1"] {
            let hosts = within(word).expect("a host");
            let [from, to] = hosts.hosts() else { panic!("{word}: two places") };
            assert_eq!((from.name.as_str(), &from.reach), (word, &to.reach));
            assert_eq!((to.v4, to.v6), (Some(Ipv4Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST)), "{word}");
        }
        assert!(within("-oProxyCommand=sh").is_err());
    }
}
