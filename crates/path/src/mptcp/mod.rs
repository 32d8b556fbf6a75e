//! Puts the kernel's Multipath TCP (RFC 8684) below a program that opens TCP sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use landspeed_record::{KernelNeed, KernelVersion};
use libc::{IPPROTO_MPTCP, c_int};

use crate::kernel_socket::{self, KernelProtocol, KernelSocketCarrier};
use crate::notify::{ArgumentCondition, SyscallRule};
use crate::socket::{DescriptorKind, option};
use crate::{Error, FallbackReason, Options, Path, PathCarrier, SupervisorNotes};

pub(crate) const NEED: KernelNeed =
    KernelNeed { of: "", since: KernelVersion(5, 16), instead: "the kernel's TCP" };

/// The level of Multipath TCP's socket options (linux/mptcp.h).
const SOL_MPTCP: c_int = 284;
const MPTCP_INFO: c_int = 1;

/// Conditions for getsockopt(2) of the options that reveal the protocol.
const REVEALING: &[&[ArgumentCondition]] = &[&kernel_socket::option(libc::SO_PROTOCOL)];
const RULES: &[SyscallRule] = &kernel_socket::rules(REVEALING);

/// The path over Multipath TCP.
pub(crate) struct MptcpPath;

impl Path for MptcpPath {
    fn name(&self) -> &'static str {
        "mptcp"
    }

    fn describe(&self) -> &'static str {
        "Multipath TCP of the kernel: one connection over every path that `ip mptcp endpoint` names"
    }

    fn rules(&self) -> &'static [SyscallRule] {
        RULES
    }

    fn kernel(&self) -> &'static [KernelNeed] {
        &[NEED, crate::bytes::COUNTS]
    }

    fn takes_all(&self) -> Option<&'static str> {
        Some(kernel_socket::TAKES_ALL)
    }

    fn carrier(
        &self,
        _shared: &Arc<SupervisorNotes>,
        options: &Options,
    ) -> Result<Box<dyn PathCarrier>, Error> {
        probe()?;
        Ok(Box::new(KernelSocketCarrier::new(MptcpPath, options)))
    }

    fn alone(&self, _shared: &Arc<SupervisorNotes>) -> Box<dyn PathCarrier> {
        Box::new(KernelSocketCarrier::alone(MptcpPath))
    }
}

impl KernelProtocol for MptcpPath {
    const KIND: DescriptorKind = DescriptorKind::Mptcp;
    const WATCHED: Duration = Duration::from_secs(5);

    fn open(&self, domain: c_int, kind: c_int) -> io::Result<OwnedFd> {
        kernel_socket::socket(domain, kind, IPPROTO_MPTCP)
    }

    /// A socket that has fallen back to TCP has no MPTCP_INFO.
    fn fallback(&self, fd: &OwnedFd) -> Option<FallbackReason> {
        let is_multipath = option(fd, SOL_MPTCP, MPTCP_INFO, &mut [0; 256]).is_ok();
        (!is_multipath).then_some(FallbackReason::PlainPeer)
    }
}

/// Returns an error if this kernel lacks Multipath TCP, or if this network namespace disables it.
fn probe() -> Result<(), Error> {
    let opened = kernel_socket::socket(libc::AF_INET, libc::SOCK_STREAM, IPPROTO_MPTCP);
    opened.map(drop).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOPROTOOPT) => Error::MptcpOff,
        _ => Error::NoMptcp(source),
    })
}
