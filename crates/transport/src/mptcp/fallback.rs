//! Detects a connection that fell back to TCP (RFC 8684 section 3.7).

use socket2::Socket;

use crate::raw::{self, PlainOldData};

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
/// MPTCP_INFO_FLAG_FALLBACK, include/uapi/linux/mptcp.h.
const FALLBACK: u32 = 1;

/// Returns true if the connection fell back to TCP. The kernel then either sets the flag, or passes the query to the
/// TCP socket below, which does not support options of the level SOL_MPTCP.
pub(super) fn is_tcp(socket: &Socket) -> bool {
    match raw::get::<MptcpInfo>(socket, SOL_MPTCP, MPTCP_INFO) {
        Ok(info) => info.flags & FALLBACK != 0,
        Err(error) => matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)),
    }
}

/// The beginning of `struct mptcp_info`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MptcpInfo {
    counts: [u8; 8],
    flags: u32,
}

// SAFETY: integers only, without padding.
unsafe impl PlainOldData for MptcpInfo {}
