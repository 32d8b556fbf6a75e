//! Puts the kernel's Multipath TCP (RFC 8684) below a program that opens TCP sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use landspeed_record::{KernelNeed, KernelVersion};
use libc::{IPPROTO_MPTCP, c_int};

use crate::kernel_socket::{self, KernelProtocol, KernelSocketPath, ProtocolRow};
use crate::notify::{ArgumentCondition, NotifiedCall, SyscallRule};
use crate::socket::{DescriptorKind, option};
use crate::{Error, FallbackReason};

pub(crate) const NEED: KernelNeed =
    KernelNeed { of: "", since: KernelVersion(5, 16), instead: "the kernel's TCP" };

/// The level of Multipath TCP's socket options (linux/mptcp.h).
const SOL_MPTCP: c_int = 284;
const MPTCP_INFO: c_int = 1;

/// Conditions for getsockopt(2) of the options that reveal the protocol.
const REVEALING: &[&[ArgumentCondition]] = &[&kernel_socket::option(libc::SO_PROTOCOL)];

/// The path over Multipath TCP.
pub(crate) const PATH: KernelSocketPath<Mptcp> = KernelSocketPath::new();

/// Multipath TCP as a protocol below programs.
#[derive(Default)]
pub(crate) struct Mptcp;

impl ProtocolRow for Mptcp {
    const NAME: &'static str = "mptcp";
    const ABOUT: &'static str =
        "Multipath TCP of the kernel: one connection over every path that `ip mptcp endpoint` names";
    const RULES: &'static [SyscallRule] = &kernel_socket::rules(REVEALING);
    const NEEDS: &'static [KernelNeed] = &[NEED, crate::bytes::COUNTS];

    /// Returns an error if this kernel lacks Multipath TCP, or if this network namespace disables it.
    fn probe() -> Result<Self, Error> {
        let opened = kernel_socket::socket(libc::AF_INET, libc::SOCK_STREAM, IPPROTO_MPTCP);
        opened.map(|_| Mptcp).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Error::MptcpOff,
            _ => Error::NoMptcp(source),
        })
    }
}

impl KernelProtocol for Mptcp {
    const KIND: DescriptorKind = DescriptorKind::Mptcp;
    const WATCHED: Duration = Duration::from_secs(5);

    fn open(&self, domain: c_int, kind: c_int) -> io::Result<OwnedFd> {
        kernel_socket::socket(domain, kind, IPPROTO_MPTCP)
    }

    /// A socket that has fallen back to TCP has no MPTCP_INFO.
    fn fallback(&self, fd: &OwnedFd, _call: &NotifiedCall<'_>) -> Option<FallbackReason> {
        let is_multipath = option(fd, SOL_MPTCP, MPTCP_INFO, &mut [0; 256]).is_ok();
        (!is_multipath).then_some(FallbackReason::PlainPeer)
    }
}
