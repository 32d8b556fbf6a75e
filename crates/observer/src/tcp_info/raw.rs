//! `struct tcp_info` of include/uapi/linux/tcp.h, as far as it is used or lies before what is used.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The kernel's answer. A kernel that knows fewer fields fills fewer and says so by the length; one that
/// knows more stops at the length asked for. Fields only ever came at the end, so the layout of Linux 6.18
/// reads every older kernel's answer too.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TcpInfo {
    pub(super) state: u8,
    pub(super) ca_state: u8,
    pub(super) retransmits: u8,
    pub(super) probes: u8,
    pub(super) backoff: u8,
    pub(super) options: u8,
    /// snd_wscale:4, rcv_wscale:4.
    pub(super) wscale: u8,
    /// delivery_rate_app_limited:1, fastopen_client_fail:2.
    pub(super) flags: u8,
    pub(super) rto_us: u32,
    pub(super) ato_us: u32,
    pub(super) snd_mss: u32,
    pub(super) rcv_mss: u32,
    pub(super) unacked: u32,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) retrans: u32,
    pub(super) fackets: u32,
    pub(super) last_data_sent_ms: u32,
    pub(super) last_ack_sent_ms: u32,
    pub(super) last_data_recv_ms: u32,
    pub(super) last_ack_recv_ms: u32,
    pub(super) pmtu: u32,
    pub(super) rcv_ssthresh: u32,
    pub(super) rtt_us: u32,
    pub(super) rttvar_us: u32,
    pub(super) snd_ssthresh: u32,
    pub(super) snd_cwnd: u32,
    pub(super) advmss: u32,
    pub(super) reordering: u32,
    pub(super) rcv_rtt_us: u32,
    pub(super) rcv_space: u32,
    pub(super) total_retrans: u32,
    pub(super) pacing_rate: u64,
    pub(super) max_pacing_rate: u64,
    pub(super) bytes_acked: u64,
    pub(super) bytes_received: u64,
    pub(super) segs_out: u32,
    pub(super) segs_in: u32,
    pub(super) notsent_bytes: u32,
    pub(super) min_rtt_us: u32,
    pub(super) data_segs_in: u32,
    pub(super) data_segs_out: u32,
    /// Bytes per second.
    pub(super) delivery_rate: u64,
    pub(super) busy_us: u64,
    pub(super) rwnd_limited_us: u64,
    pub(super) sndbuf_limited_us: u64,
    pub(super) delivered: u32,
    pub(super) delivered_ce: u32,
    pub(super) bytes_sent: u64,
    pub(super) bytes_retrans: u64,
    pub(super) dsack_dups: u32,
    pub(super) reord_seen: u32,
    pub(super) rcv_ooopack: u32,
    /// Linux 5.4 with the peer's window, bytes.
    pub(super) snd_wnd: u32,
    /// Linux 6.2.
    pub(super) rcv_wnd: u32,
    pub(super) rehash: u32,
    /// Linux 6.7.
    pub(super) total_rto: u16,
    pub(super) total_rto_recoveries: u16,
    pub(super) total_rto_time_ms: u32,
}

/// Asks for it; also how many bytes of it the kernel filled.
pub(super) fn get(socket: BorrowedFd<'_>) -> io::Result<(TcpInfo, usize)> {
    let mut info = TcpInfo::default();
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, a plain struct of integers in which any
    // bytes are valid; both outlive the call.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((info, length as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Offsets as include/uapi/linux/tcp.h of Linux 6.18 gives them on every 64-bit machine.
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
