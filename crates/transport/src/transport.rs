//! The traits of a transport.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use landspeed_factor::Factor;
use landspeed_record::{Details, EndpointOutcome, Headline, NotAsAsked, Settings};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::{Datagrams, Error, Patience};

/// The session's key, which both ends of every flow prove to hold.
pub type Key = [u8; 32];

/// What a transport is, whatever its flows are set to.
#[derive(Debug)]
pub struct About {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// What it is, one line.
    pub line: &'static str,
    /// How its flows deliver what is sent.
    pub delivery: Delivery,
    /// The protocol whose settings change its flows, and whose port numbers they take: "tcp", "udp"; empty where there is
    /// none. Two transports of one protocol cannot listen on the same port.
    pub protocol: &'static str,
    /// What flows that carry one message at a time are set to, whatever else is asked of them: nothing waits to be joined
    /// with what comes later.
    pub single_messages: &'static [(&'static str, &'static str)],
    /// What it prints of each end, of the details that its flows add ([`Flow::tell`]).
    pub headlines: &'static [Headline<EndpointOutcome>],
}

/// A way to get bytes from one process to another.
pub trait Transport: Sync {
    /// What it is, whatever its flows are set to.
    fn about(&self) -> &'static About;

    /// What its flows can be set to, beside what every flow can ([`crate::settings::EVERY_FLOW`]).
    fn factors(&self) -> Vec<&'static Factor>;

    /// [`About::name`].
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Whether this host can run it with `settings`, each of which lies in its factor's domain; otherwise why not, and
    /// what would help.
    fn can_run(&self, _settings: &Settings) -> Result<(), String> {
        Ok(())
    }

    /// Takes a port of an address without listening on it yet; port zero lets the kernel choose.
    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn Port>, Error>;

    /// Opens one flow and proves it, both ways. A server that does not listen yet is tried again
    /// until `patience` ends: the two ends of a trial are started at about the same time only.
    fn connect(&self, call: &Call<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;
}

/// How a flow delivers what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// All bytes come, in order; where one write ends and the next begins is not seen.
    Stream,
    /// Each message comes whole, or late, or never, or twice.
    Datagrams,
}

/// What a client asks of [`Transport::connect`].
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Who to call.
    pub server: SocketAddr,
    /// Number of the flow, unique in its trial.
    pub number: u32,
    /// Source port; zero lets the kernel choose.
    pub source_port: u16,
    /// Socket options.
    pub settings: &'a Settings,
    /// The session's key.
    pub key: &'a Key,
}

/// A port that is held but not listened on: between trials a connection is refused, not queued, so
/// that nothing of one trial can reach the next.
pub trait Port: Send + Sync {
    /// Address and port.
    fn address(&self) -> SocketAddr;

    /// Starts to listen. Options that a flow inherits from its listener (the receive buffer decides
    /// the window scale of the SYN-ACK, RFC 7323 section 2) are set before.
    fn listen(&self, settings: &Settings, key: &Key) -> Result<Box<dyn Listener>, Error>;
}

/// A listening port; dropping it stops listening.
pub trait Listener: Send {
    /// The next flow that proves the key. Others are turned away meanwhile, each after one second at
    /// most where it says nothing that needs the key, and none of them holds up the rest.
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;

    /// How many were turned away so far: connections, or datagrams.
    fn strangers(&self) -> u64;
}

/// One proven flow. Dropping it ends it abruptly: nothing lingers that could keep its ports from the
/// next trial. [`Flow::finish`] ends it in order.
pub trait Flow: Send + Sync {
    /// The client's number for it.
    fn number(&self) -> u32;

    /// Its sockets, for observers: none, one, several, or one that it shares with other flows.
    fn sockets(&self) -> Vec<BorrowedFd<'_>>;

    /// How long the transport's own set-up took, proof left out; zero on the accepting end.
    fn set_up(&self) -> Nanos;

    /// Settings that are not as asked, as its sockets tell now.
    fn not_as_asked(&self) -> Vec<NotAsAsked>;

    /// Takes on settings of its own, at the accepting end, where it began with its listener's. Buffer sizes stay: they
    /// count before connecting.
    fn adopt(&mut self, settings: &Settings);

    /// The sending half as the flow's settings want it; one at a time.
    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error>;

    /// The receiving half as the flow's settings want it; one at a time.
    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error>;

    /// How far the peer has acknowledged. Also takes acknowledgements in, where the transport leaves
    /// that to the program: whoever sends must ask several times a second.
    fn progress(&self) -> io::Result<Progress>;

    /// The datagrams so far; `None` where the transport carries a stream.
    fn datagrams(&self) -> Option<Datagrams> {
        None
    }

    /// Adds what only this transport knows of the flow, under a name of its own: asked of each flow of a trial, in their
    /// order, when its window closes.
    fn tell(&self, _details: &mut Details) {}

    /// Wakes the thread that waits in a receive, which then returns zero; sends nothing to the peer.
    fn wake_receiver(&self);

    /// Ends the flow in order: says that nothing more comes, and waits until the peer has said the same and has
    /// acknowledged everything (a stream), or has told what it got of all datagrams. The peer's receiver returns zero once it has
    /// taken everything; its own `finish` is the answer to this one, so each end calls it once it has received what it
    /// wants. What it costs is the protocol's own: TCP keeps the ports of the end that finishes first in TIME_WAIT.
    ///
    /// # Errors
    /// [`Error::Refused`] where the peer sends more, ends otherwise, or says nothing while `patience` lasts, and where
    /// [`Flow::wake_receiver`] was called before.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error>;

    /// Ends the flow at once, at both ends: what waits to be sent is dropped. Threads that wait in a send or a receive leave.
    fn abort(&self) -> io::Result<()>;
}

/// The sending half of a flow.
pub trait Sender {
    /// Hands a message over, waiting for room; returns how many bytes were taken. A stream takes any
    /// part of the message. A transport that hands over many datagrams in one call sends the message up
    /// to `times` times, and returns the bytes of all. The message must stay as it is while
    /// [`Sender::completions`] counts sends as pending: the kernel may still read it (MSG_ZEROCOPY).
    fn send(&mut self, message: &[u8], times: u64) -> io::Result<usize>;

    /// Lets sends that find no room return [`io::ErrorKind::WouldBlock`] after `wait`. Without it they wait for as long as it
    /// takes, or return the same now and then.
    fn give_up_after(&mut self, wait: Duration) -> io::Result<()>;

    /// From now on hands over this much payload in a second at most, in calls that take a millisecond at most at that rate, by
    /// this end's own clock. After a stall it catches up for a millisecond, so that what was missed is no burst.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the transport sends by a window.
    fn pace(&mut self, _rate: BitRate) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What became of sends whose memory the kernel reads after the call; collects what is ready, without waiting. All zero
    /// where every call copies.
    fn completions(&mut self) -> Completions {
        Completions::default()
    }
}

/// The receiving half of a flow.
pub trait Receiver {
    /// Waits for bytes and takes them; zero when the flow has ended. Datagrams are taken whole: `into`
    /// has room for the largest.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Takes bytes that are there; [`io::ErrorKind::WouldBlock`] when there are none.
    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Whether what came last was sent by a peer that had the latest message from here: an answer to it,
    /// and not a late one to an earlier message. Always so in a stream.
    fn is_answer(&self) -> bool {
        true
    }

    /// Bytes that were mapped in place of being copied, so far.
    fn mapped(&self) -> Bytes {
        Bytes(0)
    }
}

/// How far the peer has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes acknowledged since the flow's start.
    pub acked: Bytes,
    /// Packets that the peer said it has, in order or not: it grows while `acked` waits for one that was lost. Zero
    /// where the transport does not tell.
    pub delivered: u64,
    /// Packets sent again since the flow's start. Zero where the transport sends nothing again.
    pub resent: u64,
    /// Whether anything that was handed over is not acknowledged yet.
    pub outstanding: bool,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// How long the transport waits for an acknowledgement before it sends again. It waits twice as long after each
    /// time in a row; this is the first one. Zero where the transport does not tell.
    pub timeout: Nanos,
    /// How often that time has run out in a row.
    pub timeouts: u32,
}

/// What became of sends whose memory the kernel reads after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completions {
    /// Sends that the kernel is done with.
    pub done: u64,
    /// Those of them that it had copied after all.
    pub copied: u64,
    /// Sends whose memory it may still read.
    pub pending: u64,
}
