//! The parts that all topologies share: their trait, their description and their plan.

use crate::emulator::Parameter;
use crate::topology::error::Error;
use crate::topology::hosts::{HostSet, TopologyHost};
use crate::topology::lab::{Lab, LabPlan};
use crate::topology::path::PlannedPath;
use crate::topology::real::RealHosts;

/// The description of a topology, for any parameters.
#[derive(Debug)]
pub struct TopologyDescription {
    /// Its name in records and help, such as "lab:back-to-back".
    pub name: &'static str,
    /// Its syntax on a command line, such as "lab:switch:N" or "A B".
    pub syntax: &'static str,
    /// Examples. Each holds the words of one command line, separated by spaces.
    pub examples: &'static [&'static str],
    /// One line that describes it.
    pub line: &'static str,
    /// A drawing of it in plain text, with lines of at most 100 characters.
    pub drawing: &'static str,
}

/// A kind of topology. Implementations are registered in [`TOPOLOGIES`](crate::topology::TOPOLOGIES).
///
/// The two hosts "near", this machine, and "far", reached by ssh:
///
/// ```
/// use landspeed_lab::topology::{Error, ReachMethod, Topology, TopologyDescription, TopologyHost, TopologyPlan};
///
/// struct NearAndFar;
///
/// impl Topology for NearAndFar {
///     fn about(&self) -> &'static TopologyDescription {
///         &TopologyDescription {
///             name: "near-and-far",
///             syntax: "far:HOST",
///             examples: &["far:dtn1"],
///             line: "this machine and a host that ssh reaches",
///             drawing: "local ------ HOST",
///         }
///     }
///
///     fn accepts(&self, words: &[String]) -> bool {
///         matches!(words, [word] if word.starts_with("far:"))
///     }
///
///     fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
///         let far = words[0].trim_start_matches("far:");
///         let host = |name: &str, reach| TopologyHost { name: name.into(), reach, device: None, v4: None, v6: None };
///         let hosts = vec![host("local", ReachMethod::Local), host(far, ReachMethod::Ssh(far.into()))];
///         Ok(TopologyPlan::Real(hosts))
///     }
///
///     fn can_run(&self) -> Result<(), String> {
///         Ok(())
///     }
/// }
///
/// let words = ["far:dtn1".to_owned()];
/// assert!(NearAndFar.accepts(&words));
/// assert_eq!(NearAndFar.plan(&words)?.label(), "local dtn1");
/// # Ok::<(), Error>(())
/// ```
pub trait Topology: Sync {
    fn about(&self) -> &'static TopologyDescription;

    /// Returns a caveat about all figures from such hosts: their kind, a colon, and the consequence. The kind also
    /// marks every answer. `None` if the figures need no caveat.
    fn caveat(&self) -> Option<&'static str> {
        None
    }

    /// Returns its parameters for help, in groups with a heading each.
    fn parameters(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        Vec::new()
    }

    /// Returns true if these words of a command line name this topology.
    fn accepts(&self, words: &[String]) -> bool;

    /// Returns the plan of the hosts that the words name. Pure: it creates nothing and contacts no host.
    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error>;

    /// Checks words that this topology accepts. Returns an error if they are not valid. Contacts no host.
    fn check(&self, words: &[String]) -> Result<(), Error> {
        self.plan(words).map(drop)
    }

    /// Checks that this user can open the topology on this machine. Otherwise returns the reason and the remedy as an
    /// error. Changes nothing.
    fn can_run(&self) -> Result<(), String>;

    /// Creates the hosts that the words name, or refers to existing ones. Created hosts are removed when the result is
    /// dropped.
    fn open(&self, words: &[String]) -> Result<Box<dyn HostSet>, Error> {
        let plan = self.plan(words)?;
        let label = plan.label();
        Ok(match plan {
            TopologyPlan::Lab(plan) => Box::new(Lab::make(plan)?),
            TopologyPlan::Real(hosts) => Box::new(RealHosts { hosts, label }),
        })
    }

    /// Returns the planned path between the hosts; `None` if landspeed does not emulate it.
    fn path(&self, _words: &[String]) -> Result<Option<Box<dyn PlannedPath>>, Error> {
        Ok(None)
    }
}

/// The plan of a topology's hosts, before they are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyPlan {
    /// A lab, whose hosts landspeed creates on this machine.
    Lab(LabPlan),
    /// Existing hosts.
    Real(Vec<TopologyHost>),
}

impl TopologyPlan {
    /// Returns the words that name the hosts, for records.
    pub fn label(&self) -> String {
        match self {
            TopologyPlan::Lab(plan) => plan.label().to_owned(),
            TopologyPlan::Real(hosts) => {
                hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Returns true if landspeed makes the hosts on this machine.
    pub fn is_lab(&self) -> bool {
        matches!(self, TopologyPlan::Lab(_))
    }

    /// Returns true if landspeed makes the hosts, and they share the kernel of this machine.
    pub fn shares_kernel(&self) -> bool {
        self.is_lab() && !self.has_guests()
    }

    /// Returns true if the hosts are virtual machines that landspeed boots.
    pub fn has_guests(&self) -> bool {
        matches!(self, TopologyPlan::Lab(plan) if plan.has_guests())
    }
}
