//! Hosts that exist without landspeed.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::host_spec::HostSpec;
use crate::topology::error::Error;
use crate::topology::hosts::{HostSet, TopologyHost};

/// The named hosts, as they are.
#[derive(Debug)]
pub(crate) struct RealHosts {
    pub(crate) hosts: Vec<TopologyHost>,
    pub(crate) label: String,
}

impl HostSet for RealHosts {
    fn hosts(&self) -> &[TopologyHost] {
        &self.hosts
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn is_lab(&self) -> bool {
        false
    }
}

impl From<HostSpec> for TopologyHost {
    fn from(spec: HostSpec) -> Self {
        TopologyHost { name: spec.to_string(), reach: spec.into_reach(), device: None, v4: None, v6: None }
    }
}

/// Returns one host as both ends, for data that stay within it. The data take loopback, which is no network path, so
/// only commands that measure no path use this.
///
/// # Errors
/// Returns an error if `word` names no host.
pub fn within(word: &str) -> Result<Box<dyn HostSet>, Error> {
    let host = TopologyHost::from(word.parse::<HostSpec>()?);
    let (v4, v6) = (Some(Ipv4Addr::LOCALHOST), Some(Ipv6Addr::LOCALHOST));
    let label = host.name.clone();
    Ok(Box::new(RealHosts { hosts: vec![host.clone(), TopologyHost { v4, v6, ..host }], label }))
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
