//! Counts the connections that a path carried, and the reasons why others stayed on TCP.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bytes::ByteCounter;

/// The reason why a TCP connection stayed on TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FallbackReason {
    /// No program that runs over this path listens at the address.
    NoPeer,
    /// The listening program did not accept the connection in time.
    NotAccepted,
    /// The socket was in an epoll set before it was connected.
    InEpoll,
    /// The process had another descriptor of the socket before the socket was connected.
    Duplicated,
    /// The connection took too long to establish.
    NotConnected,
    /// The connecting program does not run over this path.
    Stranger,
    /// The other end is in another network namespace, which landspeed has no right to inspect.
    OtherNamespace,
    /// The kernel refused a step, or too many connections were being established.
    Refused,
    /// The other end, or a device between the ends, does not support Multipath TCP.
    PlainPeer,
    /// The socket was not opened under landspeed, so it is a plain TCP socket.
    PlainSocket,
    /// landspeed has no right to inspect the program.
    Undumpable,
    /// The process has other rights than landspeed: another user, namespaces or security label, or it has restricted
    /// itself.
    Sandboxed,
    /// Too many system calls waited at the same time, or landspeed had too few descriptors or threads left.
    TooManyAtOnce,
    /// The other end, or a device between the ends, does not support SMC.
    PeerWithoutSmc,
    /// This end has no RDMA device for the connection, or no EID in common with the other end.
    NoDevice,
    /// The other end has no RDMA device for the connection, or no EID in common with this end.
    PeerNoDevice,
    /// The two ends are in different IP subnets, which SMC-R of version 1 does not join.
    OtherSubnet,
    /// The program set an option that SMC lacks, or IPsec protects the connection.
    Unsupported,
    /// The other end declined SMC for another reason.
    PeerDeclined,
    /// The handshake of SMC failed at this end.
    Handshake,
    /// The process has not loaded the library of rsockets.
    NotPreloaded,
    /// The program opened the socket with SOCK_CLOEXEC, which the library of rsockets does not take.
    SocketFlags,
    /// No RDMA connection could be made: the other end does not listen over rsockets, no RDMA device leads to it, or
    /// this end could not make the connection.
    NoRdmaConnection,
}

/// Something that a program did, and that its path lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFeature {
    /// The program added an RDMA socket to an epoll set. The call failed.
    Epoll,
    /// The program accepted a connection by accept4(2) from an RDMA socket. The call failed.
    Accept4,
    /// The program forked while it had RDMA sockets. The child cannot use them.
    Fork,
}

impl MissingFeature {
    /// Returns true if a call of the program failed for it.
    pub fn fails(self) -> bool {
        self != MissingFeature::Fork
    }

    /// Returns the operation as a clause that follows "3 times".
    pub fn words(self) -> &'static str {
        match self {
            MissingFeature::Epoll => {
                "it added an RDMA socket to an epoll set, which failed: librspreload.so supports epoll from rdma-core 65 on"
            }
            MissingFeature::Accept4 => {
                "it called accept4 on an RDMA socket, which failed: librspreload.so supports it from rdma-core 63 on"
            }
            MissingFeature::Fork => "it forked while it had RDMA sockets, which the child cannot use",
        }
    }
}

impl FallbackReason {
    /// Returns the reason as a clause that follows "2 stayed on TCP because".
    pub fn words(self) -> &'static str {
        match self {
            FallbackReason::NoPeer => "no program on this host that runs over this path listens there",
            FallbackReason::NotAccepted => {
                "the other program did not accept in time (`landspeed exec --patience` or `landspeed compare \
                 --accept-patience` waits longer)"
            }
            FallbackReason::InEpoll => "the socket was in an epoll set before it was connected",
            FallbackReason::Duplicated => "another descriptor was the same socket before it was connected",
            FallbackReason::NotConnected => "the connection took too long",
            FallbackReason::Stranger => "a program that does not run over this path connected",
            FallbackReason::OtherNamespace => {
                "the other end is in another network namespace: run landspeed as root"
            }
            FallbackReason::Refused => "the kernel refused something",
            FallbackReason::PlainPeer => {
                "the other end, or something on the way, does not speak Multipath TCP"
            }
            FallbackReason::PlainSocket => {
                "the socket was one of TCP from the start: landspeed did not make it"
            }
            FallbackReason::Undumpable => {
                "landspeed may not look into the program: it is not dumpable, or this host forbids it (kernel.yama.ptrace_scope)"
            }
            FallbackReason::Sandboxed => {
                "the process has other rights than landspeed: it changed its user, its namespaces or its security label, or \
                 restricted itself"
            }
            FallbackReason::TooManyAtOnce => {
                "too many calls waited at once, or landspeed may have no more descriptors or threads"
            }
            FallbackReason::PeerWithoutSmc => "the other end, or something on the way, does not speak SMC",
            FallbackReason::NoDevice => {
                "SMC found no RDMA device for it at this end, or no EID that both ends have"
            }
            FallbackReason::PeerNoDevice => {
                "the other end found no RDMA device for it, or no EID that both ends have"
            }
            FallbackReason::OtherSubnet => "SMC-R of version 1 does not join different IP subnets",
            FallbackReason::Unsupported => {
                "the program set an option that SMC lacks (TCP_FASTOPEN), or IPsec protects it"
            }
            FallbackReason::PeerDeclined => "the other end declined SMC",
            FallbackReason::Handshake => "the handshake of SMC failed: no memory, time-out or another error",
            FallbackReason::NotPreloaded => {
                "the process has not loaded rsockets: it is a static program, or LD_PRELOAD was removed"
            }
            FallbackReason::SocketFlags => {
                "the program opened the socket with SOCK_CLOEXEC, which rsockets take from rdma-core 63 on"
            }
            FallbackReason::NoRdmaConnection => {
                "the other end does not listen over rsockets, no RDMA device leads to it, or this end could not make the \
                 connection (`ulimit -l`, /etc/rdma/rsocket/preload_config)"
            }
        }
    }
}

/// Connections that a program opened and accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConnectionCounts {
    /// Connections that the path carried.
    pub carried: u64,
    /// Connections that stayed on TCP, by reason.
    pub left: BTreeMap<FallbackReason, u64>,
    /// Bytes that carried connections sent and received; `None` if they were not requested or cannot be counted on this
    /// host.
    #[serde(flatten)]
    pub bytes: Option<ByteCounts>,
    /// The reason why bytes could not be counted; `None` if they were counted or not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_bytes: Option<String>,
    /// The operations of the program that the path lacks, by kind, with their numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lacks: BTreeMap<MissingFeature, u64>,
    /// The RDMA devices that could carry connections; empty for a path without RDMA.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rdma: Vec<RdmaDevice>,
}

/// A port of an RDMA device, and the packets that it sent for all programs of the host while this one ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RdmaDevice {
    /// Name of the device, such as "mlx5_0".
    pub device: String,
    /// Name of its network interface.
    pub interface: String,
    /// Its addresses.
    pub addresses: Vec<RdmaAddress>,
    /// True if the device is software (rxe).
    pub soft: bool,
    /// Packets sent; `None` if the driver does not count them.
    pub packets_sent: Option<u64>,
}

/// An address of a port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RdmaAddress {
    /// The address (GID). An IPv4 address has the form "::ffff:10.0.0.1".
    pub gid: String,
    /// The protocol that uses it: "IB/RoCE v1" or "RoCE v2".
    pub kind: String,
}

/// Bytes that a program sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteCounts {
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

impl ConnectionCounts {
    /// Returns the number of all connections.
    pub fn all(&self) -> u64 {
        self.carried + self.left.values().sum::<u64>()
    }
}

/// Counters that several threads update.
#[derive(Default)]
pub(crate) struct ConnectionCounter {
    counts: Mutex<ConnectionCounts>,
    counter: Option<ByteCounter>,
}

impl ConnectionCounter {
    /// Creates counters of connections. If `bytes` is true and this host supports it, they also count the bytes.
    pub(crate) fn new(bytes: bool) -> Self {
        let (counter, no_bytes) = match bytes.then(ByteCounter::new) {
            Some(Ok(counter)) => (Some(counter), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        ConnectionCounter {
            counts: Mutex::new(ConnectionCounts { no_bytes, ..ConnectionCounts::default() }),
            counter,
        }
    }

    /// Counts the connection of this socket as carried.
    pub(crate) fn carried(&self, fd: impl AsFd) {
        self.expect(fd);
        self.counts.lock().carried += 1;
    }

    /// Begins to count the bytes of a socket whose connection the path may soon carry.
    pub(crate) fn expect(&self, fd: impl AsFd) {
        self.counter.iter().for_each(|counter| counter.mark(&fd));
    }

    /// Stops counting the bytes of a socket whose connection is not carried.
    pub(crate) fn forget(&self, fd: impl AsFd) {
        self.counter.iter().for_each(|counter| counter.clear(&fd));
    }

    pub(crate) fn left(&self, why: FallbackReason) {
        *self.counts.lock().left.entry(why).or_default() += 1;
    }

    /// Returns the counts so far.
    pub(crate) fn so_far(&self) -> ConnectionCounts {
        ConnectionCounts {
            bytes: self.counter.as_ref().map(ByteCounter::so_far),
            ..self.counts.lock().clone()
        }
    }
}
