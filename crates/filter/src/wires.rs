//! What joins the filters of one host to each other and to its sockets.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::application::Stage;
use crate::error::Peer;
use crate::plan::Job;
use crate::query::Query;
use crate::stream::{Arrival, Outlet, Way};
use crate::{Error, Input, Output};

/// A second handle of a socket.
pub(crate) fn clone(stream: &TcpStream) -> Result<TcpStream, Error> {
    stream.try_clone().map_err(|error| Error::io("share a socket", error))
}

/// Channels by stream and copy. Each receiver is taken once.
type Channels<T> = HashMap<(usize, usize), (SyncSender<T>, Option<Receiver<T>>)>;

/// The channels and sockets of one host. Stream n leads from filter n to filter n + 1, where filter 0 starts
/// the units.
pub(crate) struct Wires<'j> {
    job: &'j Job,
    /// What came, for each own consumer's copy.
    inboxes: Channels<Arrival>,
    /// Credits, for each own producer's copy.
    backs: Channels<usize>,
    /// By stream, producer's and consumer's copy.
    sockets: HashMap<(usize, usize, usize), (TcpStream, Peer)>,
}

impl<'j> Wires<'j> {
    /// Channels with room for every credit, so that no send waits.
    pub(crate) fn new(job: &'j Job) -> Self {
        let credits = job.placement.credits as usize;
        let mut wires =
            Wires { job, inboxes: HashMap::new(), backs: HashMap::new(), sockets: HashMap::new() };
        for n in 0..job.placement.filters.len() {
            let (producers, consumers) = (job.copies(n), job.copies(n + 1));
            let own = |hosts: &[usize]| {
                (0..hosts.len()).filter(|copy| hosts[*copy] == job.host).collect::<Vec<_>>()
            };
            for consumer in own(consumers) {
                let (sender, receiver) = sync_channel(producers.len() * credits);
                wires.inboxes.insert((n, consumer), (sender, Some(receiver)));
            }
            for producer in own(producers) {
                let (sender, receiver) = sync_channel(consumers.len() * credits);
                wires.backs.insert((n, producer), (sender, Some(receiver)));
            }
        }
        wires
    }

    pub(crate) fn add(&mut self, link: (usize, usize, usize), stream: TcpStream, peer: Peer) {
        self.sockets.insert(link, (stream, peer));
    }

    pub(crate) fn inbox(&self, n: usize, consumer: usize) -> SyncSender<Arrival> {
        self.inboxes[&(n, consumer)].0.clone()
    }

    pub(crate) fn back(&self, n: usize, producer: usize) -> SyncSender<usize> {
        self.backs[&(n, producer)].0.clone()
    }

    /// The socket of a link between two hosts; else what joins the two copies within this one.
    fn way<T>(&self, link: (usize, usize, usize), local: impl FnOnce() -> T) -> Result<Way<T>, Error> {
        Ok(match self.sockets.get(&link) {
            Some((stream, peer)) => Way::Socket(clone(stream)?, *peer),
            None => Way::Local(local()),
        })
    }

    /// Of copy `consumer` at the end of stream `n`.
    pub(crate) fn input<'q>(
        &mut self,
        query: &'q Query,
        n: usize,
        consumer: usize,
    ) -> Result<Input<'q>, Error> {
        let producers = 0..self.job.copies(n).len();
        let back = |producer| self.way((n, producer, consumer), || (self.back(n, producer), consumer));
        let backs = producers.map(back).collect::<Result<_, Error>>()?;
        let inbox = self.inboxes.get_mut(&(n, consumer)).and_then(|(_, inbox)| inbox.take());
        let inbox = inbox.expect("each copy takes its own inbox once");
        Ok(Input::new(query, self.job.placement.credits as usize, inbox, backs))
    }

    /// Of a copy of filter `n`. What follows the last filter is the picture.
    pub(crate) fn output<'q>(
        &mut self,
        query: &'q Query,
        stages: &[Stage],
        (n, producer): (usize, usize),
    ) -> Result<Output<'q>, Error> {
        let largest = Job::largest(stages, n);
        if n == stages.len() {
            return Ok(Output::picture(query, largest));
        }
        let consumers = 0..self.job.copies(n + 1).len();
        let way = |consumer| self.way((n, producer, consumer), || self.inbox(n, consumer));
        let ways = consumers.map(way).collect::<Result<_, Error>>()?;
        let back = self.backs.get_mut(&(n, producer)).and_then(|(_, back)| back.take());
        let back = back.expect("each copy takes its own credits once");
        let (distribution, credits) = (self.job.distribution(n + 1), self.job.placement.credits as usize);
        Ok(Output::stream(query, Outlet { distribution, credits, largest, producer, ways, back }))
    }
}
