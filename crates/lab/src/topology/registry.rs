//! The traits and types that all topologies share.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use landspeed_record::Settings;
use landspeed_record::units::did_you_mean;

use crate::topology::error::Error;
use crate::topology::lab::{Lab, LabPlan};
use crate::topology::path::{PathLink, PlannedPath};
use crate::topology::real::RealHosts;
use crate::topology::vm::GuestLogin;
use crate::topology::{Parameter, TOPOLOGIES};

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

/// A kind of topology. Implementations are registered in [`TOPOLOGIES`].
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

    /// Returns what a reader must know of all figures from such hosts, in a few words: what they are, a colon, and what
    /// follows from it. What they are also marks every answer. `None` if they are like others.
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

/// The hosts of an open topology. They can be reached until this value is dropped.
pub trait HostSet: fmt::Debug + Send {
    /// Returns the hosts, in the order of the user or of the topology's drawing.
    fn hosts(&self) -> &[TopologyHost];

    /// Returns the words that name the hosts, for records, such as "lab:back-to-back" or "alice@dtn1 dtn2".
    fn label(&self) -> String;

    /// Returns true if landspeed created the hosts on this machine. Knobs of a machine that several of them share must
    /// then not be changed.
    fn is_lab(&self) -> bool;

    /// Returns what a reader must know of all figures from these hosts; `None` if they are like others.
    fn caveat(&self) -> Option<&'static str> {
        None
    }

    /// Returns the emulated link between the hosts; `None` if landspeed does not carry their frames.
    fn link(&self) -> Option<&dyn PathLink> {
        None
    }

    /// Returns the pairs of hosts that exchange data at the same time. All pairs that share a link are listed, and all
    /// links that two hosts share.
    fn pairs(&self) -> Vec<HostPair> {
        if self.hosts().len() < 2 { Vec::new() } else { vec![HostPair::of([0, 1])] }
    }
}

/// Two hosts that exchange data over one link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPair {
    /// Indices of the hosts, the sender first.
    pub ends: [usize; 2],
    /// Addresses of the receiver on the pair's link; empty where the link is the one that [`TopologyHost`] describes.
    pub addresses: Vec<IpAddr>,
}

impl HostPair {
    /// Returns a pair whose hosts have one link.
    pub fn of(ends: [usize; 2]) -> Self {
        HostPair { ends, addresses: Vec::new() }
    }
}

/// One host, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyHost {
    /// Its name, such as "a", "h3", "alice@dtn1" or "local".
    pub name: String,
    /// How to start or find an agent on it.
    pub reach: ReachMethod,
    /// The name of its network device towards the other hosts; `None` if the topology does not determine it.
    pub device: Option<String>,
    /// Its IPv4 address on `device`; `None` if unknown.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 address on `device`; `None` if unknown.
    pub v6: Option<Ipv6Addr>,
}

/// How to start an agent on a host, or reach one that runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachMethod {
    /// Start it as a child of this process, in this named network namespace of this machine.
    Namespace(String),
    /// Start it as a child of this process.
    Local,
    /// Start it by the user's own ssh, with this destination. The destination never starts with '-'.
    Ssh(String),
    /// Start it by ssh in a virtual machine that landspeed booted.
    Guest(GuestLogin),
    /// Connect to an agent that was started by hand, by the line that it printed.
    Invite(InviteLine),
}

/// The line that a hand-started agent printed. It may contain a secret, so `Debug` and `Display` show only its address
/// and port.
#[derive(Clone, PartialEq, Eq)]
pub struct InviteLine(String);

impl InviteLine {
    pub(crate) fn new(line: &str) -> Self {
        InviteLine(line.to_owned())
    }

    /// Returns the whole line, for the crate that connects to the agent.
    pub fn line(&self) -> &str {
        &self.0
    }

    /// Returns the agent's IP address; `None` if the line has none. An IPv6 zone is removed, because it is valid only
    /// on the host that printed the line.
    pub fn address(&self) -> Option<IpAddr> {
        let (address, _) = self.place().rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        address.split('%').next()?.parse().ok()
    }

    /// Returns the address and port in the line, such as "192.0.2.1:4711", without the token before them and the pin
    /// after them.
    fn place(&self) -> &str {
        let rest = self.0.split("://").nth(1).unwrap_or_default();
        rest.rsplit('@').next().unwrap_or_default().split(['/', '#']).next().unwrap_or_default()
    }
}

impl fmt::Debug for InviteLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InviteLine({self})")
    }
}

impl fmt::Display for InviteLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "landspeed://{}", self.place().escape_default())
    }
}

/// Returns the topology that these words of a command line name. Without words, it is a back-to-back lab.
pub fn find(words: &[String]) -> Result<&'static dyn Topology, Error> {
    let topology = TOPOLOGIES.iter().copied().find(|topology| topology.accepts(words)).ok_or_else(|| {
        let known: Vec<_> = TOPOLOGIES.iter().map(|t| t.about().syntax).collect();
        let given = words.join(" ").chars().take(80).collect::<String>();
        // Only the topology's name is compared, because parameters have their own errors.
        let name: Vec<&str> = given.splitn(3, ':').take(2).collect();
        let near = did_you_mean(&name.join(":"), TOPOLOGIES.iter().map(|t| t.about().name));
        Error::Hosts(format!(
            "'{}' names no hosts{near} (expected one of {})",
            given.escape_default(),
            known.join(", ")
        ))
    })?;
    topology.check(words)?;
    Ok(topology)
}

/// Returns the path that these words plan; `None` if landspeed does not emulate the path between the hosts.
pub fn path(words: &[String]) -> Result<Option<Box<dyn PlannedPath>>, Error> {
    find(words)?.path(words)
}

/// Returns the words of the same lab, with the parameters `set` added or replaced.
pub fn with_parameters(words: &[String], set: &Settings) -> Vec<String> {
    let [word] = words else { return words.to_vec() };
    if set.is_empty() {
        return words.to_vec();
    }
    // In "lab:wan:rate=1G,rtt=20ms", parameters follow the second colon.
    let (name, given) = match word.match_indices(':').nth(1) {
        Some((at, _)) => (&word[..at], &word[at + 1..]),
        None => (word.as_str(), ""),
    };
    let named = |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| set.contains_key(name));
    let kept = given.split(',').filter(|pair| !pair.is_empty() && !named(pair)).map(str::to_owned);
    let pairs: Vec<String> = kept.chain(set.iter().map(|(name, value)| format!("{name}={value}"))).collect();
    vec![format!("{name}:{}", pairs.join(","))]
}

/// Opens the topology that these words of a command line name.
pub fn open(words: &[String]) -> Result<Box<dyn HostSet>, Error> {
    let topology = find(words)?;
    topology.can_run().map_err(|why| Error::CannotRun { topology: topology.about().name, why })?;
    topology.open(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_no_topology_are_told_what_does() {
        for words in ["lab:ring:4", "lab:", "lab:wander"] {
            let error = find(&[words.to_owned()]).err().expect("no hosts").to_string();
            assert!(error.contains(words) && error.contains("lab:switch:N"), "{error}");
        }
    }

    #[test]
    fn one_host_is_measured_from_this_machine() {
        for word in ["dtn1", "alice@dtn1", "netns:there", "landspeed://TOKEN@192.0.2.1:4711/#PIN"] {
            let words = [word.to_owned()];
            let plan = find(&words).and_then(|topology| topology.plan(&words)).expect("two hosts");
            let shown = word.replace("TOKEN@", "").replace("/#PIN", "");
            assert_eq!(plan.label(), format!("local {shown}"));
        }
        let alone = find(&["local".to_owned()]).err().expect("one host twice").to_string();
        assert!(alone.contains("local and local are one host"), "{alone}");
    }

    #[test]
    fn parameters_take_the_place_of_those_that_were_given() {
        let set = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
        };
        for (word, pairs, expected) in [
            ("lab:wan", &[("rtt", "5ms")][..], "lab:wan:rtt=5ms"),
            (
                "lab:wan:rate=1G,rtt=20ms",
                &[("rtt", "5ms"), ("loss", "1%")],
                "lab:wan:rate=1G,loss=1%,rtt=5ms",
            ),
            ("lab:wan:rate=1G", &[], "lab:wan:rate=1G"),
            ("lab:switch:4", &[("port", "1G")], "lab:switch:4,port=1G"),
            ("lab:switch:4,port=1G,trunk=2G", &[("trunk", "10G")], "lab:switch:4,port=1G,trunk=10G"),
        ] {
            assert_eq!(with_parameters(&[word.to_owned()], &set(pairs)), [expected]);
        }
    }

    #[test]
    fn an_invitation_keeps_its_secret() {
        let invite = InviteLine::new("landspeed://TOKEN@192.0.2.1:4711/#PIN");
        assert_eq!(
            format!("{invite} {invite:?}"),
            "landspeed://192.0.2.1:4711 InviteLine(landspeed://192.0.2.1:4711)"
        );
        for (line, address) in [
            ("landspeed://TOKEN@192.0.2.1:4711/#PIN", Some("192.0.2.1")),
            ("landspeed://TOKEN@[fe80::1%eth0]:4711/#PIN", Some("fe80::1")),
            ("landspeed://[2001:db8::1]:4711/#PIN", Some("2001:db8::1")),
            ("landspeed://TOKEN@host:4711/#PIN", None),
            ("landspeed://", None),
        ] {
            assert_eq!(InviteLine::new(line).address(), address.map(|ip| ip.parse().unwrap()), "{line}");
        }
    }
}
