//! What one run of a group is: hosts, placement, how many units. From it each host knows all sockets.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::application::Stage;
use crate::error::Peer;
use crate::token::HELLO;
use crate::{Distribution, Error, Placement, Token};

/// One run of a filter group, as one of its hosts sees it.
#[derive(Debug, Clone)]
pub struct Job {
    /// This host's number. The first host, 0, starts the query and runs the last filter.
    pub host: usize,
    /// Address of each host.
    pub hosts: Vec<IpAddr>,
    /// Host n listens at this port + n.
    pub port: u16,
    /// The secret that all hosts share.
    pub token: Token,
    /// Which host runs what.
    pub placement: Placement,
    /// How many units of work the query has.
    pub units: u32,
    /// How many units may be in the pipeline at a time.
    pub ahead: u32,
    /// What else has to be the same on all hosts, in any spelling.
    pub parameters: String,
    /// How long hosts wait for each other at the start.
    pub join: Duration,
    /// How long the query may take.
    pub limit: Duration,
}

/// Most hosts of a group.
pub const MOST_HOSTS: usize = 64;

/// A producer's copy and a consumer's copy, joined by a stream. Stream n is that of filter n to filter n + 1, where
/// filter 0 is the one that starts the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) stream: u8,
    pub(crate) producer: u8,
    pub(crate) consumer: u8,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Signs of life and errors, between this host and the first one.
    Control(usize),
    Stream(Link),
}

/// The first words on a connection: a version, the purpose and a digest of the job.
pub(crate) type Hello = [u8; HELLO];

const VERSION: &[u8; 8] = b"LSFILT01";

impl Job {
    /// # Errors
    /// [`Error::Parameter`] where a number is out of its range.
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

    pub(crate) fn peer(&self, number: usize) -> Peer {
        Peer { number, address: self.hosts[number] }
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        SocketAddr::new(self.hosts[number], self.port + number as u16)
    }

    /// The host of each copy of filter `n`; the one that starts the units is filter 0.
    pub(crate) fn copies(&self, n: usize) -> &[usize] {
        match n.checked_sub(1) {
            None => &[0],
            Some(n) => &self.placement.filters[n].hosts,
        }
    }

    /// How the buffers to filter `n`'s copies are shared out.
    pub(crate) fn distribution(&self, n: usize) -> Distribution {
        n.checked_sub(1).map_or(Distribution::Demand, |n| self.placement.filters[n].distribution)
    }

    /// Largest buffer of stream `n`, in bytes.
    pub(crate) fn largest(stages: &[Stage], n: usize) -> usize {
        n.checked_sub(1).map_or(0, |n| stages[n].largest)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = Link> {
        let link = |stream, producer, consumer| Link {
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

    /// The hosts at the two ends of a link: the producer's and the consumer's.
    pub(crate) fn ends(&self, link: Link) -> (usize, usize) {
        let stream = usize::from(link.stream);
        (self.copies(stream)[usize::from(link.producer)], self.copies(stream + 1)[usize::from(link.consumer)])
    }

    /// The connections that this host opens, and to which host: streams to their consumers, control to the
    /// first host.
    pub(crate) fn outgoing(&self) -> Vec<(Purpose, usize)> {
        let control = (self.host != 0).then_some((Purpose::Control(self.host), 0));
        control.into_iter().chain(self.streams(|producer, consumer| (producer, consumer))).collect()
    }

    /// The connections that others open to this host, and who.
    pub(crate) fn incoming(&self) -> Vec<(Purpose, usize)> {
        let others = if self.host == 0 { 1..self.hosts.len() } else { 0..0 };
        let control = others.map(|host| (Purpose::Control(host), host));
        control.chain(self.streams(|producer, consumer| (consumer, producer))).collect()
    }

    /// Streams between this host and another; `order` puts the own end first.
    fn streams(&self, order: fn(usize, usize) -> (usize, usize)) -> impl Iterator<Item = (Purpose, usize)> {
        self.links().filter_map(move |link| {
            let ends = self.ends(link);
            let (own, other) = order(ends.0, ends.1);
            (own == self.host && other != own).then_some((Purpose::Stream(link), other))
        })
    }

    /// Of all that has to be the same on all hosts.
    fn digest(&self) -> [u8; 32] {
        let same = (&self.hosts, self.port, &self.placement, self.units, self.ahead, &self.parameters);
        *blake3::hash(format!("{same:?}").as_bytes()).as_bytes()
    }

    pub(crate) fn hello(&self, purpose: Purpose) -> Hello {
        let mut hello = [0; HELLO];
        hello[..8].copy_from_slice(VERSION);
        hello[8..13].copy_from_slice(&match purpose {
            Purpose::Control(host) => [0, host as u8, 0, 0, 0],
            Purpose::Stream(link) => [1, 0, link.stream, link.producer, link.consumer],
        });
        hello[13..].copy_from_slice(&self.digest());
        hello
    }
}
