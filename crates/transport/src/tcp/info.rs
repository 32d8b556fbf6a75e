//! Reads TCP_INFO, the kernel's report about a connection.

use std::io;
use std::os::fd::AsFd;

use landspeed_record::units::{Bytes, Nanos};
use socket2::Socket;

use crate::raw::{self, PlainOldData};
use crate::transport::AckProgress;

/// Returns what the peer has acknowledged so far, and the state of the retransmission timer.
pub(super) fn progress(socket: &Socket) -> io::Result<AckProgress> {
    let info: TcpInfo = raw::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(AckProgress {
        acked: Bytes(info.bytes_acked),
        delivered: info.delivered.into(),
        resent: info.total_retrans.into(),
        outstanding: info.unacked > 0 || info.notsent_bytes > 0,
        rtt: Nanos::micros(info.rtt_us.into()),
        // tcpi_rto includes the exponential backoff, which the shift removes.
        timeout: Nanos(Nanos::micros(info.times_and_sizes[0].into()).0 >> info.flags[BACKOFF].min(31)),
        timeouts: info.flags[BACKOFF].into(),
    })
}

/// The limits of the sending half of a TCP connection so far, from TCP_INFO (the times came with Linux 4.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpLimits {
    /// Time with data to send or to be acknowledged.
    pub busy: Nanos,
    /// The part of the busy time that was limited by the receiver's window.
    pub window: Nanos,
    /// The part of the busy time that was limited by the send buffer.
    pub buffer: Nanos,
    /// Segments with data that were sent.
    pub sent: u64,
    /// Segments that were sent again.
    pub resent: u64,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// The least round-trip time.
    pub least_rtt: Nanos,
}

/// Returns the limits of the sending half of a TCP connection so far.
///
/// # Errors
/// Returns an error if the socket is not a TCP socket.
pub fn tcp_limits(socket: impl AsFd) -> io::Result<TcpLimits> {
    let info: TcpInfo = raw::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let [_, busy, window, buffer] = info.rate_and_times;
    Ok(TcpLimits {
        busy: Nanos::micros(busy),
        window: Nanos::micros(window),
        buffer: Nanos::micros(buffer),
        sent: info.data_segments[1].into(),
        resent: info.total_retrans.into(),
        rtt: Nanos::micros(info.rtt_us.into()),
        least_rtt: Nanos::micros(info.min_rtt_us.into()),
    })
}

/// The index of `tcpi_backoff` in `flags`.
const BACKOFF: usize = 4;

/// The beginning of `struct tcp_info` (include/uapi/linux/tcp.h), up to the last field used here, which libc's
/// declaration does not contain. Fields that an older kernel does not fill are zero (`delivered` came with Linux
/// 4.18).
#[repr(C)]
#[derive(Clone, Copy)]
struct TcpInfo {
    flags: [u8; 8],
    times_and_sizes: [u32; 4],
    unacked: u32,
    counts_and_ages: [u32; 10],
    rtt_us: u32,
    windows: [u32; 7],
    total_retrans: u32,
    pacing_rate: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    segments: [u32; 2],
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segments: [u32; 2],
    rate_and_times: [u64; 4],
    delivered: u32,
    delivered_ce: u32,
}

// SAFETY: integers only, aligned without gaps: 8 + 24 * 4 + 4 * 8 + 6 * 4 + 4 * 8 + 2 * 4 = 200 bytes (checked
// below).
unsafe impl PlainOldData for TcpInfo {}
const _: () = assert!(size_of::<TcpInfo>() == 200);
const _: () = assert!(std::mem::offset_of!(TcpInfo, rtt_us) == 68);
const _: () = assert!(std::mem::offset_of!(TcpInfo, total_retrans) == 100);
const _: () = assert!(std::mem::offset_of!(TcpInfo, bytes_acked) == 120);
const _: () = assert!(std::mem::offset_of!(TcpInfo, notsent_bytes) == 144);
const _: () = assert!(std::mem::offset_of!(TcpInfo, data_segments) == 152);
const _: () = assert!(std::mem::offset_of!(TcpInfo, rate_and_times) == 160);
const _: () = assert!(std::mem::offset_of!(TcpInfo, delivered) == 192);
