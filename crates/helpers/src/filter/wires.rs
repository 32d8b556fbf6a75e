//! The connections of one host's filters with each other and with the host's sockets.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::filter::application::FilterStage;
use crate::filter::error::PeerHost;
use crate::filter::plan::FilterJob;
use crate::filter::query::Query;
use crate::filter::stream::{InboxEntry, OutputParts, StreamEndpoint};
use crate::filter::{Error, FilterInput, FilterOutput};

/// Duplicates the handle of a socket.
pub(crate) fn clone(stream: &TcpStream) -> Result<TcpStream, Error> {
    stream.try_clone().map_err(|error| Error::io("share a socket", error))
}

/// The channels by stream and copy. Each receiver is taken out once.
type CopyChannels<T> = HashMap<(usize, usize), (SyncSender<T>, Option<Receiver<T>>)>;

/// The channels and sockets of one host. Stream n leads from filter n to filter n + 1, where filter 0 starts the
/// units.
pub(crate) struct HostWiring<'j> {
    job: &'j FilterJob,
    /// The channels of arrived messages, one for each consumer's copy on this host.
    inboxes: CopyChannels<InboxEntry>,
    /// The channels of returned credits, one for each producer's copy on this host.
    backs: CopyChannels<usize>,
    /// The sockets by stream, producer's copy and consumer's copy, each with the host at the other end.
    sockets: HashMap<(usize, usize, usize), (TcpStream, PeerHost)>,
}

impl<'j> HostWiring<'j> {
    /// Creates the channels. They have room for every credit, so that no send waits.
    pub(crate) fn new(job: &'j FilterJob) -> Self {
        let credits = job.placement.credits as usize;
        let mut wiring =
            HostWiring { job, inboxes: HashMap::new(), backs: HashMap::new(), sockets: HashMap::new() };
        for n in 0..job.placement.filters.len() {
            let (producers, consumers) = (job.copies(n), job.copies(n + 1));
            let own = |hosts: &[usize]| {
                (0..hosts.len()).filter(|copy| hosts[*copy] == job.host).collect::<Vec<_>>()
            };
            for consumer in own(consumers) {
                let (sender, receiver) = sync_channel(producers.len() * credits);
                wiring.inboxes.insert((n, consumer), (sender, Some(receiver)));
            }
            for producer in own(producers) {
                let (sender, receiver) = sync_channel(consumers.len() * credits);
                wiring.backs.insert((n, producer), (sender, Some(receiver)));
            }
        }
        wiring
    }

    pub(crate) fn add(&mut self, link: (usize, usize, usize), stream: TcpStream, peer: PeerHost) {
        self.sockets.insert(link, (stream, peer));
    }

    pub(crate) fn inbox(&self, n: usize, consumer: usize) -> SyncSender<InboxEntry> {
        self.inboxes[&(n, consumer)].0.clone()
    }

    pub(crate) fn back(&self, n: usize, producer: usize) -> SyncSender<usize> {
        self.backs[&(n, producer)].0.clone()
    }

    /// Returns the socket of a link between two hosts, or `local()` for a link within this host.
    fn endpoint<T>(
        &self,
        link: (usize, usize, usize),
        local: impl FnOnce() -> T,
    ) -> Result<StreamEndpoint<T>, Error> {
        Ok(match self.sockets.get(&link) {
            Some((stream, peer)) => StreamEndpoint::Socket(clone(stream)?, *peer),
            None => StreamEndpoint::Local(local()),
        })
    }

    /// Returns the input of copy `consumer` of the filter at the end of stream `n`.
    pub(crate) fn input<'q>(
        &mut self,
        query: &'q Query,
        n: usize,
        consumer: usize,
    ) -> Result<FilterInput<'q>, Error> {
        let producers = 0..self.job.copies(n).len();
        let back = |producer| self.endpoint((n, producer, consumer), || (self.back(n, producer), consumer));
        let backs = producers.map(back).collect::<Result<_, Error>>()?;
        let inbox = self.inboxes.get_mut(&(n, consumer)).and_then(|(_, inbox)| inbox.take());
        let inbox = inbox.expect("each copy takes its own inbox once");
        Ok(FilterInput::new(query, self.job.placement.credits as usize, inbox, backs))
    }

    /// Returns the output of a copy of filter `n`. For the last filter, it is the picture.
    pub(crate) fn output<'q>(
        &mut self,
        query: &'q Query,
        stages: &[FilterStage],
        (n, producer): (usize, usize),
    ) -> Result<FilterOutput<'q>, Error> {
        let largest = FilterJob::largest(stages, n);
        if n == stages.len() {
            return Ok(FilterOutput::picture(query, largest));
        }
        let consumers = 0..self.job.copies(n + 1).len();
        let endpoint = |consumer| self.endpoint((n, producer, consumer), || self.inbox(n, consumer));
        let endpoints = consumers.map(endpoint).collect::<Result<_, Error>>()?;
        let back = self.backs.get_mut(&(n, producer)).and_then(|(_, back)| back.take());
        let back = back.expect("each copy takes its own credits once");
        let (distribution, credits) = (self.job.distribution(n + 1), self.job.placement.credits as usize);
        Ok(FilterOutput::stream(
            query,
            OutputParts { distribution, credits, largest, producer, endpoints, back },
        ))
    }
}
