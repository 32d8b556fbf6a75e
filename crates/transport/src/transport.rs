//! The traits that a transport implements.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use landspeed_proof::ProofKey;
use landspeed_record::factor::Factor;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{DetailRow, Details, EndpointOutcome, Headline, SettingMismatch, Settings};

use crate::{DatagramTotals, Error, Patience};

/// The properties of a transport that do not depend on the settings of its flows.
#[derive(Debug)]
pub struct TransportProperties {
    /// The name on the command line and in records.
    pub name: &'static str,
    /// A description of one line.
    pub line: &'static str,
    /// How flows of this transport deliver messages.
    pub delivery: Delivery,
    /// The protocol whose settings change these flows, and whose port numbers they use: "tcp", "udp", another one of
    /// the kernel, or empty for none. Transports of one protocol cannot listen on the same port: they have successive
    /// ones, in the order of the table. Another protocol needs strangers of its own in `tests/conformance/flood.rs`.
    pub protocol: &'static str,
    /// Settings (name, value) of a flow that carries one message at a time. They override requested settings, so that
    /// no message waits to be merged with a later one.
    pub single_messages: &'static [(&'static str, &'static str)],
    /// The figures to print for each end, from the details that the flows add ([`Flow::add_details`]).
    pub headlines: &'static [Headline<EndpointOutcome>],
    /// The details that the transport's flows add.
    pub details: &'static [DetailRow],
}

/// A way to get bytes from one process to another.
pub trait Transport: Sync {
    /// Returns the properties that do not depend on the settings of a flow.
    fn about(&self) -> &'static TransportProperties;

    /// Returns the factors of this transport's flows, without those of every flow ([`crate::settings::EVERY_FLOW`]).
    fn factors(&self) -> Vec<&'static Factor>;

    /// Returns the name on the command line and in records ([`TransportProperties::name`]).
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Checks that this host can run flows with `settings`, whose values are valid for their factors.
    ///
    /// # Errors
    /// Returns the reason why this host cannot, and a remedy.
    fn can_run(&self, _settings: &Settings) -> Result<(), String> {
        Ok(())
    }

    /// Reserves a port of an address without listening on it yet. Port zero lets the kernel choose.
    ///
    /// # Errors
    /// Returns an error if the port cannot be had.
    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error>;

    /// Opens one flow and proves it both ways. Keeps trying a server that does not listen yet, because the two ends of
    /// a trial start only at about the same time.
    ///
    /// # Errors
    /// Returns an error if no server with the key answers before `patience` ends, or if the kernel refuses.
    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;
}

/// How a flow delivers what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A byte stream: all bytes arrive, in order, without the boundaries between writes.
    Stream,
    /// Datagrams: each message arrives whole, possibly late or twice, or never.
    Datagrams,
}

/// The arguments of [`Transport::connect`].
#[derive(Debug, Clone, Copy)]
pub struct ConnectRequest<'a> {
    /// The server's address.
    pub server: SocketAddr,
    /// The number of the flow. The flows of a trial that are open before its window have numbers of their own;
    /// connections that a workload opens during its run are all number 0.
    pub number: u32,
    /// The source port; zero lets the kernel choose.
    pub source_port: u16,
    /// The settings of the flow.
    pub settings: &'a Settings,
    /// The session's key.
    pub key: &'a ProofKey,
}

/// A port that is reserved but not listened on: between trials, connections are refused and not queued, so that
/// nothing of one trial can reach the next.
pub trait ReservedPort: Send + Sync {
    /// Returns the address and the port number.
    fn address(&self) -> SocketAddr;

    /// Starts to listen. First sets the options that a flow inherits from its listener: the receive buffer, for
    /// example, decides the window scale of the SYN-ACK (RFC 7323 section 2).
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error>;
}

/// A listening port. Dropping it stops listening.
pub trait Listener: Send {
    /// Waits for the next flow that proves the key. Meanwhile turns strangers away: connections that fail the proof
    /// or exceed its time limit (`admission.rs`), and the oldest where too many are at their proof. No stranger holds
    /// up the others.
    ///
    /// # Errors
    /// Returns an error if no flow proves the key before `patience` ends, or if the kernel refuses.
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;

    /// Returns how many strangers were turned away so far: connections, or datagrams.
    fn strangers(&self) -> u64;
}

/// One proven flow. Dropping it ends it abruptly and leaves nothing that could keep its ports from the next trial.
/// [`Flow::finish`] ends it in order.
pub trait Flow: Send + Sync {
    /// Returns the number that the client gave the flow.
    fn number(&self) -> u32;

    /// Returns the flow's sockets for observers: none, one, several, or one that it shares with other flows.
    fn sockets(&self) -> Vec<BorrowedFd<'_>>;

    /// Returns how long the transport's own set-up took, without the proof; zero on the accepting end.
    fn set_up(&self) -> Nanos;

    /// Returns the settings that differ from what was requested, as the sockets report them now.
    fn not_as_asked(&self) -> Vec<SettingMismatch>;

    /// Applies this flow's own settings at the accepting end, where the flow began with its listener's. Buffer sizes
    /// stay, because they only count before connecting.
    fn adopt(&mut self, settings: &Settings);

    /// Returns the sending half, as the flow's settings require. There may be one at a time.
    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error>;

    /// Returns the receiving half, as the flow's settings require. There may be one at a time.
    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error>;

    /// Returns how far the peer has acknowledged. A transport that runs in the program also processes acknowledgements
    /// here, so the sending end must call it several times a second.
    fn progress(&self) -> io::Result<AckProgress>;

    /// Returns the counts of datagrams so far; `None` if the transport carries a stream.
    fn datagrams(&self) -> Option<DatagramTotals> {
        None
    }

    /// Adds to `details` what only this transport can report of the flow, under its own key. Called for each flow of a
    /// trial, in their order, when the trial's window closes.
    fn add_details(&self, _details: &mut Details) {}

    /// Wakes the thread that waits in a receive, which then returns zero. Sends nothing to the peer.
    fn wake_receiver(&self);

    /// Ends the flow in order: announces that nothing more follows, then waits until the peer has announced the same.
    /// On a stream, also waits until the peer has acknowledged everything; with datagrams, until it has reported what
    /// arrived. The peer's receiver returns zero once it has taken everything. Each end calls this once it has
    /// received what it wants, because one end's call answers the other's. The costs are the protocol's own: TCP
    /// keeps the ports of the end that finishes first in TIME_WAIT.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] if the peer sends more, ends the flow in another way, or does not answer before
    /// `patience` ends, and if [`Flow::wake_receiver`] was called before.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error>;

    /// Ends the flow abruptly at both ends and drops what waits to be sent. Threads that wait in a send or a receive
    /// return.
    fn abort(&self) -> io::Result<()>;
}

/// The sending half of a flow.
pub trait Sender {
    /// Hands a message over, waiting for room, and returns how many bytes were taken. A stream takes any part of the
    /// message. A transport that hands over many datagrams in one call sends the message up to `times` times, and
    /// returns the total of their bytes. The message must not change while [`Sender::completions`] counts sends as
    /// pending, because the kernel may still read it (MSG_ZEROCOPY).
    fn send(&mut self, message: &[u8], times: u64) -> io::Result<usize>;

    /// Makes sends that find no room return [`io::ErrorKind::WouldBlock`] after `wait`. Without this call they wait
    /// without limit, or return that error from time to time.
    fn give_up_after(&mut self, wait: Duration) -> io::Result<()>;

    /// Limits the payload sent from now on to `rate`, by this end's own clock. At that rate, each call sends for at
    /// most a millisecond. After a stall the sender makes up for at most a millisecond, so that there is no burst.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::Unsupported`] if the transport sends by a window.
    fn pace(&mut self, _rate: BitRate) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns counts of the sends whose memory the kernel reads after the call. Collects notifications that are
    /// ready, without waiting. All counts are zero where every call copies.
    fn completions(&mut self) -> ZeroCopyCompletions {
        ZeroCopyCompletions::default()
    }
}

/// The receiving half of a flow.
pub trait Receiver {
    /// Waits for bytes and takes them; returns zero when the flow has ended. Datagrams are taken whole, so `into`
    /// must have room for the largest.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Takes bytes that have arrived; returns [`io::ErrorKind::WouldBlock`] if there are none.
    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Returns true if what arrived last answers this end's latest message: the peer had received that message when it
    /// sent the answer. Always true in a stream.
    fn is_answer(&self) -> bool {
        true
    }

    /// Returns how many bytes were mapped rather than copied, so far.
    fn mapped(&self) -> Bytes {
        Bytes(0)
    }
}

/// How far the peer has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckProgress {
    /// Bytes acknowledged since the flow began.
    pub acked: Bytes,
    /// Packets that the peer has acknowledged, in order or not: this grows while `acked` waits for a lost packet.
    /// Zero if the transport does not report it.
    pub delivered: u64,
    /// Packets sent again since the flow began. Zero if the transport sends nothing again.
    pub resent: u64,
    /// True if bytes that were handed over are not yet acknowledged.
    pub outstanding: bool,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// How long the transport waits for an acknowledgement before it sends again (RTO): the first timeout, which
    /// doubles each time that it expires in a row. Zero if the transport does not report it.
    pub timeout: Nanos,
    /// The number of consecutive times that this timeout has expired.
    pub timeouts: u32,
}

/// Counts of the sends whose memory the kernel reads after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ZeroCopyCompletions {
    /// Sends whose memory the kernel has released.
    pub done: u64,
    /// Sends, included in `done`, whose data the kernel copied after all.
    pub copied: u64,
    /// Sends whose memory the kernel may still read.
    pub pending: u64,
}
