//! The traits that a transport implements.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use landspeed_proof::ProofKey;
use landspeed_record::factor::Factor;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    DetailRow, Details, EndpointOutcome, Headline, KernelNeed, SettingMismatch, Settings,
};

use crate::{DatagramTotals, Error, Patience};

/// The properties of a transport that do not depend on the settings of its flows.
#[derive(Debug)]
pub struct TransportProperties {
    /// The name on the command line and in records.
    pub name: &'static str,
    /// A description of one line.
    pub line: &'static str,
    /// The kind of delivery: a byte stream, or datagrams.
    pub delivery: Delivery,
    /// The protocol whose port numbers these flows use, and whose host settings affect them: "tcp", "udp", another
    /// protocol of the kernel, or empty for none. Transports of one protocol cannot listen on the same port, so they
    /// use successive ports, in the order of the table. A new protocol needs its own strangers in
    /// `tests/conformance/flood.rs`.
    pub protocol: &'static str,
    /// The settings, as (name, value), that workloads with one message at a time set on their flows, whatever the
    /// user requests. With these settings, no message waits to be merged with a later one.
    pub single_messages: &'static [(&'static str, &'static str)],
    /// The figures to print for each end, from the details that the flows add ([`Flow::add_details`]).
    pub headlines: &'static [Headline<EndpointOutcome>],
    /// The details that the transport's flows add.
    pub details: &'static [DetailRow],
}

/// A way to get bytes from one process to another.
///
/// # Examples
/// A flow between two threads. The name is all that differs from one transport to another:
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use landspeed_transport::{CancelFlag, ConnectRequest, Patience, find, settings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let transport = find("tcp").expect("a transport");
/// let (settings, key) = (settings::defaults(transport), [7; 32]);
/// let cancel = CancelFlag::default();
/// let patience = Patience { until: Instant::now() + Duration::from_secs(5), cancel: &cancel };
///
/// let port = transport.reserve("127.0.0.1:0".parse()?)?;
/// let mut listener = port.listen(&settings, &key)?;
/// let call =
///     ConnectRequest { server: port.address(), number: 0, source_port: 0, settings: &settings, key: &key };
/// // Each end proves the key to the other, so both must run.
/// let (flow, peer) = std::thread::scope(|scope| {
///     let accepted = scope.spawn(|| listener.accept(&patience));
///     (transport.connect(&call, &patience), accepted.join().expect("no panic"))
/// });
/// let (flow, peer) = (flow?, peer?);
/// flow.sender()?.send(b"hello", 1)?;
/// let mut message = [0; 16];
/// let length = peer.receiver()?.receive(&mut message)?;
/// assert_eq!(&message[..length], b"hello");
/// # Ok(())
/// # }
/// ```
pub trait Transport: Sync {
    /// Returns the properties that do not depend on the settings of a flow.
    fn about(&self) -> &'static TransportProperties;

    /// Returns the factors that only flows of this transport have. [`crate::settings::EVERY_FLOW`] lists the factors of
    /// all flows.
    fn factors(&self) -> Vec<&'static Factor>;

    /// Returns the name on the command line and in records ([`TransportProperties::name`]).
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Returns the name of the transport whose stream this one carries encrypted; `None` if this transport does not
    /// encrypt. A transport that encrypts by itself returns its own name.
    fn encrypts(&self) -> Option<&'static str> {
        None
    }

    /// Returns what the transport needs of the kernel; empty if every supported kernel has it.
    fn kernel(&self) -> &'static [KernelNeed] {
        &[]
    }

    /// Checks that this host can run flows with `settings`, whose values are valid for their factors.
    ///
    /// # Errors
    /// Returns an error message with the reason and a remedy if this host cannot run such flows.
    fn can_run(&self, _settings: &Settings) -> Result<(), String> {
        Ok(())
    }

    /// Reserves the port `at` without listening on it yet. With port zero, the kernel chooses the port.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the port.
    fn reserve(&self, at: SocketAddr) -> Result<Box<dyn ReservedPort>, Error>;

    /// Opens one flow, on which both ends prove the key. Keeps trying while the server does not listen yet, because
    /// the two ends of a trial do not start at exactly the same time.
    ///
    /// # Errors
    /// Returns an error if no server with the key answers before `patience` ends, or if the kernel refuses.
    fn connect(&self, call: &ConnectRequest<'_>, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;
}

/// The way in which a flow delivers sent data.
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
    /// The number of the flow. Flows that a trial opens before its run have distinct numbers. Connections that a
    /// workload opens during its run all have number 0.
    pub number: u32,
    /// The source port; zero lets the kernel choose.
    pub source_port: u16,
    /// The settings of the flow.
    pub settings: &'a Settings,
    /// The session's key, which both ends prove.
    pub key: &'a ProofKey,
}

/// A port that is reserved but does not listen. Between trials, the kernel refuses connections to it and does not
/// queue them, so that nothing of one trial can reach the next.
pub trait ReservedPort: Send + Sync {
    /// Returns the address and the port number.
    fn address(&self) -> SocketAddr;

    /// Starts to listen for flows with `settings`, which must prove `key`. First sets the socket options that a flow
    /// inherits from its listener. The receive buffer, for example, determines the window scale of the SYN-ACK (RFC
    /// 7323 section 2).
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    fn listen(&self, settings: &Settings, key: &ProofKey) -> Result<Box<dyn Listener>, Error>;
}

/// A listening port. Dropping it stops listening.
pub trait Listener: Send {
    /// Waits for the next flow that proves the key, and returns it. During the wait, turns strangers away: connections
    /// that fail the proof or exceed its time limit (`admission.rs`). If the proofs of too many connections are under
    /// way, also turns the oldest connections away. A stranger never delays other connections.
    ///
    /// # Errors
    /// Returns an error if no flow proves the key before `patience` ends, or if the kernel refuses.
    fn accept(&mut self, patience: &Patience<'_>) -> Result<Box<dyn Flow>, Error>;

    /// Returns the number of strangers turned away so far: connections or, for transports without them, datagrams.
    fn strangers(&self) -> u64;
}

/// One proven flow. Dropping it ends the flow abruptly, after which the next trial can use its ports.
/// [`Flow::finish`] ends the flow in order.
pub trait Flow: Send + Sync {
    /// Returns the number that the client gave the flow.
    fn number(&self) -> u32;

    /// Returns the flow's sockets, for observers: none, one or several. A flow may share its socket with other flows.
    fn sockets(&self) -> Vec<BorrowedFd<'_>>;

    /// Returns true if the transport runs in user space, so that the flow advances only in calls on it. The holder of a
    /// flow that neither sends nor receives for a while then calls [`Flow::progress`] several times a second.
    fn runs_in_calls(&self) -> bool {
        false
    }

    /// Returns the duration of the connection's set-up, without the proof of the key; zero at the accepting end.
    fn set_up(&self) -> Nanos;

    /// Returns the settings whose current values on the flow's sockets differ from the requested ones.
    fn not_as_asked(&self) -> Vec<SettingMismatch>;

    /// Returns the name of the cipher that both ends agreed on; `None` if the flow encrypts nothing, or does not know it.
    fn cipher(&self) -> Option<&'static str> {
        None
    }

    /// Applies `settings` to an accepted flow in place of its listener's settings. Buffer sizes stay those of the
    /// listener, because TCP's window scale is fixed when a connection is opened.
    fn adopt(&mut self, settings: &Settings);

    /// Returns the sending half, as the flow's settings require. Only one sending half may exist at a time.
    fn sender(&self) -> Result<Box<dyn Sender + '_>, Error>;

    /// Returns the receiving half, as the flow's settings require. Only one receiving half may exist at a time.
    fn receiver(&self) -> Result<Box<dyn Receiver + '_>, Error>;

    /// Returns what the peer has acknowledged so far. A user-space transport also processes acknowledgements in this
    /// call, so the sending end must call it several times a second.
    fn progress(&self) -> io::Result<AckProgress>;

    /// Returns the counts of datagrams so far; `None` if the transport carries a stream.
    fn datagrams(&self) -> Option<DatagramTotals> {
        None
    }

    /// Adds to `details` what only this transport records of the flow. Called for each flow of a trial, in the order of
    /// the flows' numbers, when the trial's window closes.
    fn add_details(&self, _details: &mut Details) {}

    /// Wakes the thread that waits in a receive call. The call then returns zero. Sends nothing to the peer.
    fn wake_receiver(&self);

    /// Ends the flow in order: announces to the peer that this end sends no more, then waits for the same
    /// announcement of the peer. Also waits until the peer has acknowledged all bytes of a stream, or has reported
    /// how many datagrams arrived. The peer's receiver returns zero once it has received everything. Both ends must
    /// call this, each once it has received what it wants, because one end's call answers the other's. TCP keeps the
    /// ports of the end that finishes first in TIME_WAIT.
    ///
    /// # Errors
    /// Returns [`Error::Refused`] if the peer sends more, ends the flow in another way, or does not answer before
    /// `patience` ends, and if [`Flow::wake_receiver`] was called before.
    fn finish(&self, patience: &Patience<'_>) -> Result<(), Error>;

    /// Marks both ends of the stream as ended in order, as the protocol above the flow has shown. Dropping the flow is
    /// then not abrupt.
    fn has_ended_in_order(&self) {}

    /// Ends the flow abruptly at both ends, and drops data that waits to be sent. Send and receive calls that wait
    /// return.
    fn abort(&self) -> io::Result<()>;
}

/// The sending half of a flow.
pub trait Sender {
    /// Sends a message, and returns the number of bytes sent. Waits while the send buffer is full. A stream may send
    /// only a part of the message. A transport that sends many datagrams in one call sends the message up to `times`
    /// times, and returns the total of the bytes. The message must not change while [`Sender::completions`] counts
    /// sends as pending, because the kernel may still read it (MSG_ZEROCOPY).
    fn send(&mut self, message: &[u8], times: u64) -> io::Result<usize>;

    /// Sends a part of a message of a stream without waiting, and returns the number of bytes sent. Returns
    /// [`io::ErrorKind::WouldBlock`] if the send buffer is full.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::Unsupported`] if the transport has no such call.
    fn try_send(&mut self, _message: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Limits the wait for space in the send buffer: a send call that waits longer than `wait` returns
    /// [`io::ErrorKind::WouldBlock`]. Without this limit, a send call waits until there is space, or returns this
    /// error from time to time.
    fn give_up_after(&mut self, wait: Duration) -> io::Result<()>;

    /// Limits the rate of payload sent from now on to `rate`, by this end's clock. Each call sends no more than
    /// `rate` carries in a millisecond, but at least one message. After a stall, the sender makes up for at most a
    /// millisecond, so that there is no burst.
    ///
    /// # Errors
    /// Returns [`io::ErrorKind::Unsupported`] if the transport's own window determines the rate.
    fn pace(&mut self, _rate: BitRate) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the counts of zero-copy sends, whose memory the kernel reads after the send call. First collects the
    /// notifications that are ready, without waiting. All counts are zero if the sender copies.
    fn completions(&mut self) -> ZeroCopyCompletions {
        ZeroCopyCompletions::default()
    }
}

/// The receiving half of a flow.
pub trait Receiver {
    /// Waits for data, writes it into `into`, and returns the number of bytes; zero if the flow has ended. Datagrams
    /// are received whole, so `into` must be as long as the largest datagram.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Receives data that has already arrived, without waiting. Returns [`io::ErrorKind::WouldBlock`] if there is
    /// none.
    fn try_receive(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Returns true if the peer sent the last received message after it had received this end's latest message.
    /// Always true over a stream.
    fn is_answer(&self) -> bool {
        true
    }

    /// Returns the number of bytes received so far by mapping pages, not by copying.
    fn mapped(&self) -> Bytes {
        Bytes(0)
    }
}

/// The state of the peer's acknowledgements on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckProgress {
    /// Bytes acknowledged since the flow began.
    pub acked: Bytes,
    /// Packets that the peer has acknowledged, in order or not. This count grows even while `acked` waits for a lost
    /// packet. Zero if the transport does not report it.
    pub delivered: u64,
    /// Packets sent again since the flow began. Zero if the transport sends nothing again.
    pub resent: u64,
    /// True if bytes that were handed over are not yet acknowledged.
    pub outstanding: bool,
    /// Smoothed round-trip time; zero if the transport does not report it.
    pub rtt: Nanos,
    /// The retransmission timeout (RTO) before any backoff: the time that the transport waits for an acknowledgement
    /// before it sends again. It doubles each time that it expires in a row. Zero if the transport does not report
    /// it.
    pub timeout: Nanos,
    /// The number of times in a row that the retransmission timeout has expired.
    pub timeouts: u32,
}

/// Counts of zero-copy sends, whose memory the kernel reads after the send call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ZeroCopyCompletions {
    /// Sends whose memory the kernel has released.
    pub done: u64,
    /// Sends, included in `done`, whose data the kernel copied after all.
    pub copied: u64,
    /// Sends whose memory the kernel may still read.
    pub pending: u64,
}
