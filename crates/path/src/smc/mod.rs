//! Puts the kernel's SMC-R (Shared Memory Communications over RDMA, RFC 7609) below a program that opens TCP sockets.
//!
//! The two kernels connect over TCP, agree in a handshake, and then exchange the program's bytes by RDMA. If they do
//! not agree, the connection stays on TCP.

mod reason;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landspeed_kernel::netlink::{SockDiag, smc_eid_count};
use landspeed_kernel::rdma::{self, RdmaPort};
use landspeed_record::{KernelNeed, KernelVersion};
use libc::{AF_INET, AF_INET6, SOCK_STREAM, c_int};

use crate::kernel_socket::{self, KernelProtocol, KernelSocketPath, ProtocolRow, socket};
use crate::notify::{ArgumentCondition, NotifiedCall, SyscallRule};
use crate::rdma::CountedPorts;
use crate::socket::{AF_SMC, DescriptorKind, IPPROTO_SMC, kind};
use crate::{ConnectionCounts, Error, FallbackReason};

/// The requirement of SMC-R version 2, which RoCE v2 needs.
pub(crate) const ROCE_V2: KernelNeed =
    KernelNeed { of: "RoCE v2", since: KernelVersion(5, 16), instead: "RoCE v1" };

/// The protocols of the family AF_SMC (net/smc/smc.h), for IPv4 and for IPv6.
const SMCPROTO_SMC: c_int = 0;
const SMCPROTO_SMC6: c_int = 1;

/// Conditions for getsockopt(2) of the options that reveal the protocol. An accepted socket has the family AF_SMC even
/// where its listener has another (smc_clcsock_accept() in af_smc.c).
const REVEALING: &[&[ArgumentCondition]] =
    &[&kernel_socket::option(libc::SO_DOMAIN), &kernel_socket::option(libc::SO_PROTOCOL)];

/// The path over SMC.
pub(crate) const PATH: KernelSocketPath<Smc> = KernelSocketPath::new();

/// SMC as this kernel offers it.
#[derive(Default)]
pub(crate) struct Smc {
    /// True if a socket of AF_INET and AF_INET6 can have the protocol SMC (Linux 6.11); false if SMC is only a family
    /// of its own.
    is_protocol: bool,
    ports: CountedPorts,
}

impl ProtocolRow for Smc {
    const NAME: &'static str = "smc";
    const ABOUT: &'static str =
        "SMC-R of the kernel: RDMA between two hosts with RDMA devices, below the sockets of TCP";
    const RULES: &'static [SyscallRule] = &kernel_socket::rules(REVEALING);
    const NEEDS: &'static [KernelNeed] = &[crate::ANSWERS_CALLS, ROCE_V2, crate::bytes::COUNTS];
    const IS_RDMA: bool = true;

    /// Returns an error if the kernel lacks SMC, or if no RDMA device can carry its connections.
    fn probe() -> Result<Self, Error> {
        let is_protocol = socket(AF_INET, SOCK_STREAM, IPPROTO_SMC).is_ok();
        if !is_protocol {
            socket(AF_SMC, SOCK_STREAM, SMCPROTO_SMC).map(drop).map_err(without_smc)?;
        }
        let tells = SockDiag::open().and_then(|diag| diag.smc_fallback(0));
        tells.map_err(|error| Error::NoSmcDiag(error.to_string()))?;
        let mut ports = rdma::ports();
        ports.retain(|port| port.is_roce);
        let first = ports.first().ok_or(Error::NoRdmaDevice)?;
        if !ports.iter().any(RdmaPort::has_roce_v1) && smc_eid_count().unwrap_or(0) == 0 {
            return Err(Error::NoSmcEid { device: first.device.clone() });
        }
        Ok(Smc { is_protocol, ports: CountedPorts::new(ports) })
    }
}

/// Returns the error of a kernel that opens no socket of SMC. It also opens none if the module exists but cannot be
/// loaded on demand.
fn without_smc(source: io::Error) -> Error {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let modules = fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default();
    if modules.contains("/smc.ko") { Error::SmcNotLoaded } else { Error::NoSmc(source) }
}

impl KernelProtocol for Smc {
    const KIND: DescriptorKind = DescriptorKind::Smc;
    /// The handshake takes up to 6 s (CLC_WAIT_TIME), and waits for that of other connections between the same hosts.
    const WATCHED: Duration = Duration::from_secs(30);

    fn open(&self, domain: c_int, kind: c_int) -> io::Result<OwnedFd> {
        match domain {
            _ if self.is_protocol => socket(domain, kind, IPPROTO_SMC),
            AF_INET6 => socket(AF_SMC, kind, SMCPROTO_SMC6),
            _ => socket(AF_SMC, kind, SMCPROTO_SMC),
        }
    }

    /// A socket that has fallen back is the TCP socket of its handshake (smc_switch_to_fallback() in af_smc.c).
    fn fallback(&self, fd: &OwnedFd, _call: &NotifiedCall<'_>) -> Option<FallbackReason> {
        let is_carried = kind(fd) == DescriptorKind::Smc;
        (!is_carried).then(|| reason::of(fd).unwrap_or(FallbackReason::Refused))
    }

    /// A TCP option may have turned an SMC socket into a TCP socket before it is connected.
    fn why_tcp(&self, fd: &OwnedFd) -> FallbackReason {
        reason::of(fd).unwrap_or(FallbackReason::PlainSocket)
    }

    fn complete(&self, counts: ConnectionCounts) -> ConnectionCounts {
        ConnectionCounts { rdma: self.ports.meanwhile(), ..counts }
    }
}
