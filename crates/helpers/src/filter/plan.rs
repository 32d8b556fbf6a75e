//! The description of one run of a group: hosts, placement and units. Each host derives its connections from it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use landspeed_proof::Secret;

use crate::filter::application::FilterStage;
use crate::filter::error::PeerHost;
use crate::filter::{Distribution, Error, Placement};

/// The parameters of one host for a run of a filter group.
#[derive(Debug, Clone)]
pub struct FilterJob {
    /// This host's number, from 0. Host 0 starts the query and runs the last filter.
    pub host: usize,
    /// Addresses of all hosts.
    pub hosts: Vec<IpAddr>,
    /// Host n listens at this port + n.
    pub port: u16,
    /// The secret that all hosts share.
    pub token: Secret,
    /// The assignment of all filters to hosts.
    pub placement: Placement,
    /// Number of units of work in the query.
    pub units: u32,
    /// The largest number of units in the pipeline at a time.
    pub ahead: u32,
    /// A text of all other parameters that must be equal on all hosts.
    pub parameters: String,
    /// Time limit for the hosts to join.
    pub join: Duration,
    /// Time limit of the query.
    pub limit: Duration,
}

/// The largest number of hosts in a group.
pub const MOST_HOSTS: usize = 64;

/// The connection of one producer's copy with one consumer's copy. Stream n leads from filter n to filter n + 1,
/// where filter 0 is the one that starts the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StreamLink {
    pub(crate) stream: u8,
    pub(crate) producer: u8,
    pub(crate) consumer: u8,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionPurpose {
    /// Heartbeats, reports and errors between the first host and the host with this number.
    Control(usize),
    Stream(StreamLink),
}

/// The length of a connection's hello, in bytes.
pub(crate) const HELLO: usize = 45;

const VERSION: &[u8; 8] = b"LSFILT02";

impl FilterJob {
    /// Checks that the numbers of the job are in their ranges.
    ///
    /// # Errors
    /// Returns [`Error::Parameter`] if a number is out of its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let hosts = self.hosts.len();
        let highest = usize::from(self.port) + hosts;
        let wrong = match self {
            _ if !(1..=MOST_HOSTS).contains(&hosts) => format!("{hosts} hosts: give 1 to {MOST_HOSTS}"),
            _ if self.host >= hosts => {
                format!("there is no host {}; the hosts are 0 to {}", self.host, hosts - 1)
            }
            _ if self.port == 0 || highest > 1 << 16 => {
                format!("port {}: {hosts} hosts need ports from 1 to 65535", self.port)
            }
            _ if self.units == 0 || self.ahead == 0 => {
                "give at least one unit of work, and one ahead".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Error::Parameter(wrong))
    }

    pub(crate) fn peer(&self, number: usize) -> PeerHost {
        PeerHost { number, address: self.hosts[number] }
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        SocketAddr::new(self.hosts[number], self.port + number as u16)
    }

    /// Returns the host of each copy of filter `n`; filter 0 is the one that starts the units.
    pub(crate) fn copies(&self, n: usize) -> &[usize] {
        match n.checked_sub(1) {
            None => &[0],
            Some(n) => &self.placement.filters[n].hosts,
        }
    }

    /// Returns the rule that distributes buffers to the copies of filter `n`.
    pub(crate) fn distribution(&self, n: usize) -> Distribution {
        n.checked_sub(1).map_or(Distribution::Demand, |n| self.placement.filters[n].distribution)
    }

    /// Returns the size of the largest buffer of stream `n`, in bytes.
    pub(crate) fn largest(stages: &[FilterStage], n: usize) -> usize {
        n.checked_sub(1).map_or(0, |n| stages[n].largest)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = StreamLink> {
        let link = |stream, producer, consumer| StreamLink {
            stream: stream as u8,
            producer: producer as u8,
            consumer: consumer as u8,
        };
        (0..self.placement.filters.len()).flat_map(move |n| {
            let consumers = self.copies(n + 1).len();
            let pairs = (0..self.copies(n).len()).flat_map(move |p| (0..consumers).map(move |c| (p, c)));
            pairs.map(move |(p, c)| link(n, p, c))
        })
    }

    /// Returns the host of a link's producer and that of its consumer.
    pub(crate) fn ends(&self, link: StreamLink) -> (usize, usize) {
        let stream = usize::from(link.stream);
        (self.copies(stream)[usize::from(link.producer)], self.copies(stream + 1)[usize::from(link.consumer)])
    }

    /// Returns the connections that this host opens, each with the host at the other end. A host opens the streams to
    /// its consumers, and a control connection to the first host.
    pub(crate) fn outgoing(&self) -> Vec<(ConnectionPurpose, usize)> {
        let control = (self.host != 0).then_some((ConnectionPurpose::Control(self.host), 0));
        control.into_iter().chain(self.streams(|producer, consumer| (producer, consumer))).collect()
    }

    /// Returns the connections that other hosts open to this one, each with the host at the other end.
    pub(crate) fn incoming(&self) -> Vec<(ConnectionPurpose, usize)> {
        let others = if self.host == 0 { 1..self.hosts.len() } else { 0..0 };
        let control = others.map(|host| (ConnectionPurpose::Control(host), host));
        control.chain(self.streams(|producer, consumer| (consumer, producer))).collect()
    }

    /// Returns the streams between this host and others, each with the other host. `order` gets the hosts of the
    /// producer and of the consumer, and returns the one that must be this host first.
    fn streams(
        &self,
        order: fn(usize, usize) -> (usize, usize),
    ) -> impl Iterator<Item = (ConnectionPurpose, usize)> {
        self.links().filter_map(move |link| {
            let ends = self.ends(link);
            let (own, other) = order(ends.0, ends.1);
            (own == self.host && other != own).then_some((ConnectionPurpose::Stream(link), other))
        })
    }

    /// Returns a digest of everything that must be the same on all hosts.
    fn digest(&self) -> [u8; 32] {
        let same = (&self.hosts, self.port, &self.placement, self.units, self.ahead, &self.parameters);
        *blake3::hash(format!("{same:?}").as_bytes()).as_bytes()
    }

    /// Returns the hello of a connection: a version, the purpose, and a digest of the job.
    pub(crate) fn hello(&self, purpose: ConnectionPurpose) -> [u8; HELLO] {
        let mut hello = [0; HELLO];
        hello[..8].copy_from_slice(VERSION);
        hello[8..13].copy_from_slice(&match purpose {
            ConnectionPurpose::Control(host) => [0, host as u8, 0, 0, 0],
            ConnectionPurpose::Stream(link) => [1, 0, link.stream, link.producer, link.consumer],
        });
        hello[13..].copy_from_slice(&self.digest());
        hello
    }
}
