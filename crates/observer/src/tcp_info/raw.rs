//! `struct tcp_info` of include/uapi/linux/tcp.h, up to the last field that is used.

use std::io;
use std::os::fd::BorrowedFd;

use landspeed_kernel::sockopt::get_option;

/// The TCP_INFO of a socket, with the layout of Linux 6.18. An older kernel fills fewer fields and returns their
/// length; a newer kernel fills no more than the requested length. The layout is right for all of them, because the
/// kernel adds fields only at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TcpInfo {
    pub(crate) state: u8,
    pub(crate) ca_state: u8,
    pub(crate) retransmits: u8,
    pub(crate) probes: u8,
    pub(crate) backoff: u8,
    pub(crate) options: u8,
    /// Bit fields: snd_wscale:4, rcv_wscale:4.
    pub(crate) wscale: u8,
    /// Bit fields: delivery_rate_app_limited:1, fastopen_client_fail:2.
    pub(crate) flags: u8,
    pub(crate) rto_us: u32,
    pub(crate) ato_us: u32,
    pub(crate) snd_mss: u32,
    pub(crate) rcv_mss: u32,
    pub(crate) unacked: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    pub(crate) fackets: u32,
    pub(crate) last_data_sent_ms: u32,
    pub(crate) last_ack_sent_ms: u32,
    pub(crate) last_data_recv_ms: u32,
    pub(crate) last_ack_recv_ms: u32,
    pub(crate) pmtu: u32,
    pub(crate) rcv_ssthresh: u32,
    pub(crate) rtt_us: u32,
    pub(crate) rttvar_us: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    pub(crate) advmss: u32,
    pub(crate) reordering: u32,
    pub(crate) rcv_rtt_us: u32,
    pub(crate) rcv_space: u32,
    pub(crate) total_retrans: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) segs_out: u32,
    pub(crate) segs_in: u32,
    pub(crate) notsent_bytes: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) data_segs_out: u32,
    /// Bytes per second.
    pub(crate) delivery_rate: u64,
    pub(crate) busy_us: u64,
    pub(crate) rwnd_limited_us: u64,
    pub(crate) sndbuf_limited_us: u64,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retrans: u64,
    pub(crate) dsack_dups: u32,
    pub(crate) reord_seen: u32,
    pub(crate) rcv_ooopack: u32,
    /// Since Linux 5.4: the peer's window, bytes.
    pub(crate) snd_wnd: u32,
    /// Since Linux 6.2: this host's own receive window, bytes.
    pub(crate) rcv_wnd: u32,
    pub(crate) rehash: u32,
    /// The number of retransmission timeouts. This field and the two after it exist since Linux 6.7.
    pub(crate) total_rto: u16,
    pub(crate) total_rto_recoveries: u16,
    pub(crate) total_rto_time_ms: u32,
}

impl TcpInfo {
    /// Converts the bytes that the kernel returned. Fields beyond the end of `bytes`, which this kernel does not have,
    /// are zero.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut info = TcpInfo::default();
        let length = bytes.len().min(size_of::<TcpInfo>());
        // SAFETY: source and destination are at least `length` bytes long and do not overlap. Any bytes are valid in a
        // plain struct of integers.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast(), length) };
        info
    }
}

/// Returns true if the socket is a TCP socket or a Multipath TCP socket, whose TCP_INFO is that of its first subflow.
pub(super) fn is_tcp(socket: BorrowedFd<'_>) -> bool {
    let protocol = rustix::net::sockopt::socket_protocol(socket).ok().flatten();
    protocol.is_some_and(|protocol| {
        [libc::IPPROTO_TCP, libc::IPPROTO_MPTCP].contains(&(protocol.as_raw().get() as i32))
    })
}

/// Reads the TCP_INFO of a socket. Also returns the number of bytes that the kernel filled.
pub(crate) fn get(socket: BorrowedFd<'_>) -> io::Result<(TcpInfo, usize)> {
    let mut bytes = [0; size_of::<TcpInfo>()];
    let filled = get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    Ok((TcpInfo::from_bytes(&bytes), filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The offsets are those of include/uapi/linux/tcp.h of Linux 6.18 on every 64-bit machine.
    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(offset_of!(TcpInfo, rto_us), 8);
        assert_eq!(offset_of!(TcpInfo, rtt_us), 68);
        assert_eq!(offset_of!(TcpInfo, pacing_rate), 104);
        assert_eq!(offset_of!(TcpInfo, delivery_rate), 160);
        assert_eq!(offset_of!(TcpInfo, bytes_sent), 200);
        assert_eq!(offset_of!(TcpInfo, snd_wnd), 228);
        assert_eq!(offset_of!(TcpInfo, rcv_wnd), 232);
        assert_eq!(size_of::<TcpInfo>(), 248);
    }
}
