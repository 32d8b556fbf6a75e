//! Converts a socket that sock_diag returned to a [`SocketState`].

use std::mem::{offset_of, size_of};

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{IpProtocol, SocketState, TcpState};

use crate::sockets::ListedSocket;
use crate::tcp_info::raw::TcpInfo;

/// Returns the state of a socket that sock_diag returned at the time `at`.
pub(super) fn socket(found: &ListedSocket, at: Nanos) -> SocketState {
    let socket = &found.socket;
    let memory = socket.memory.unwrap_or_default();
    // TCP compares its whole send queue with the limit (`sk_stream_memory_free`). UDP has no send queue and compares
    // the memory of the packets that the link has not sent yet (`sock_alloc_send_pskb`).
    let sending = match found.protocol {
        IpProtocol::TCP => memory.send_queued,
        _ => memory.in_transmission,
    };
    SocketState {
        at_ns: at,
        receive_queue_bytes: Bytes(socket.receive_queue.into()),
        send_queue_bytes: Bytes(socket.send_queue.into()),
        receive_memory_bytes: Bytes(memory.receive.into()),
        receive_buffer_bytes: Bytes(memory.receive_limit.into()),
        send_memory_bytes: Bytes(sending.into()),
        send_buffer_bytes: Bytes(memory.send_limit.into()),
        drops: memory.drops.into(),
        tcp: (!socket.tcp_info.is_empty()).then(|| Box::new(tcp(&socket.tcp_info))),
    }
}

/// Returns a note on the fields that a TCP_INFO of `filled` bytes does not have, with the Linux release that added each
/// field; `None` if it has all fields.
pub(super) fn missing_fields(filled: usize) -> Option<String> {
    const SINCE: &[(usize, &str)] = &[
        (offset_of!(TcpInfo, pacing_rate), "the pacing rate (Linux 3.15)"),
        (offset_of!(TcpInfo, bytes_acked), "bytes acknowledged and received (4.1)"),
        (offset_of!(TcpInfo, segs_out), "segments sent and received (4.2)"),
        (offset_of!(TcpInfo, notsent_bytes), "bytes not sent and the lowest round trip (4.6)"),
        (offset_of!(TcpInfo, delivery_rate), "the delivery rate (4.9)"),
        (offset_of!(TcpInfo, busy_us), "times busy and limited (4.10)"),
        (offset_of!(TcpInfo, delivered), "segments delivered (4.18)"),
        (offset_of!(TcpInfo, bytes_sent), "bytes sent and retransmitted, duplicates, reorderings (4.19)"),
        (offset_of!(TcpInfo, rcv_ooopack), "segments out of order and the peer's window (5.4)"),
        (offset_of!(TcpInfo, rcv_wnd), "the own receive window (6.2)"),
    ];
    let lacks: Vec<&str> = SINCE.iter().filter(|(at, _)| *at >= filled).map(|(_, what)| *what).collect();
    (!lacks.is_empty()).then(|| format!("this kernel's TCP_INFO does not tell: {}", lacks.join("; ")))
}

/// Size in bytes of a TCP_INFO that has all fields of [`TcpState`].
pub(super) const WHOLE: usize = size_of::<TcpInfo>();

fn micros(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1_000))
}

fn millis(ms: u32) -> Nanos {
    Nanos::millis(ms.into())
}

fn bits(rate: u64) -> BitRate {
    BitRate(rate as f64 * 8.0)
}

/// Converts a time in microseconds; `None` for zero, which means that it was not measured yet.
fn measured(us: u32) -> Option<Nanos> {
    (us > 0).then(|| micros(us.into()))
}

/// Converts the bytes of TCP_INFO that the kernel returned. Fields beyond the end of `bytes` are zero or `None`.
fn tcp(bytes: &[u8]) -> TcpState {
    let (info, filled) = (TcpInfo::from_bytes(bytes), bytes.len());
    let scales = info.wscale;
    // u32::MAX is the kernel's value for "no round trip measured yet".
    let min_rtt = Some(info.min_rtt_us).filter(|us| *us != u32::MAX).unwrap_or(0);
    TcpState {
        ca_state: info.ca_state,
        retransmit_timeouts: info.retransmits,
        options: info.options,
        // The first of two bit fields is in the low bits on a little-endian machine and in the high bits on a
        // big-endian machine.
        peer_window_scale: if cfg!(target_endian = "little") { scales & 15 } else { scales >> 4 },
        window_scale: if cfg!(target_endian = "little") { scales >> 4 } else { scales & 15 },
        app_limited: info.flags & if cfg!(target_endian = "little") { 1 } else { 0x80 } != 0,
        unacked_segments: info.unacked,
        lost_segments: info.lost,
        retransmitted_segments: info.total_retrans.into(),
        ssthresh_segments: info.snd_ssthresh,
        cwnd_segments: info.snd_cwnd,
        reordering_segments: info.reordering,
        reorderings_seen: info.reord_seen.into(),
        duplicates_reported: info.dsack_dups.into(),
        out_of_order_segments: info.rcv_ooopack.into(),
        segments_sent: info.segs_out.into(),
        segments_received: info.segs_in.into(),
        data_segments_sent: info.data_segs_out.into(),
        data_segments_received: info.data_segs_in.into(),
        delivered_segments: info.delivered.into(),
        delivered_ce_segments: info.delivered_ce.into(),
        send_mss_bytes: Bytes(info.snd_mss.into()),
        receive_mss_bytes: Bytes(info.rcv_mss.into()),
        advertised_mss_bytes: Bytes(info.advmss.into()),
        path_mtu_bytes: Bytes(info.pmtu.into()),
        receive_space_bytes: Bytes(info.rcv_space.into()),
        peer_window_bytes: Bytes(info.snd_wnd.into()),
        receive_window_bytes: (filled > offset_of!(TcpInfo, rcv_wnd)).then(|| Bytes(info.rcv_wnd.into())),
        // u64::MAX means "unlimited"; 0 means that the kernel returned none.
        pacing_rate_bps: Some(info.pacing_rate).filter(|rate| !matches!(*rate, 0 | u64::MAX)).map(bits),
        delivery_rate_bps: bits(info.delivery_rate),
        sent_bytes: Bytes(info.bytes_sent),
        retransmitted_bytes: Bytes(info.bytes_retrans),
        acked_bytes: Bytes(info.bytes_acked),
        received_bytes: Bytes(info.bytes_received),
        not_sent_bytes: Bytes(info.notsent_bytes.into()),
        rto_ns: micros(info.rto_us.into()),
        ato_ns: micros(info.ato_us.into()),
        last_sent_ago_ns: millis(info.last_data_sent_ms),
        last_received_ago_ns: millis(info.last_data_recv_ms),
        rtt_ns: micros(info.rtt_us.into()),
        rtt_variation_ns: micros(info.rttvar_us.into()),
        min_rtt_ns: measured(min_rtt),
        receive_rtt_ns: measured(info.rcv_rtt_us),
        busy_ns: micros(info.busy_us),
        rwnd_limited_ns: micros(info.rwnd_limited_us),
        sndbuf_limited_ns: micros(info.sndbuf_limited_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes in which each word of four bytes contains its own index.
    fn numbered() -> Vec<u8> {
        (0..WHOLE as u32 / 4).flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn fields_are_taken_from_where_the_kernel_puts_them() {
        let bytes = numbered();
        let state = tcp(&bytes);
        assert_eq!((state.rto_ns, state.rtt_ns, state.cwnd_segments), (micros(2), micros(17), 20));
        assert_eq!((state.retransmitted_segments, state.segments_sent), (25, 34));
        assert_eq!((state.peer_window_bytes, state.receive_window_bytes), (Bytes(57), Some(Bytes(58))));
        assert_eq!(state.last_received_ago_ns, Nanos::millis(13));
        assert_eq!(state.sent_bytes, Bytes(50 | 51 << 32));
    }

    #[test]
    fn bits_and_unlimited_values_have_the_kernels_meaning() {
        let mut bytes = vec![0; WHOLE];
        (bytes[5], bytes[6], bytes[7]) = (0b0111, 0x7a, 1);
        bytes[offset_of!(TcpInfo, pacing_rate)..][..8].fill(0xff);
        bytes[offset_of!(TcpInfo, min_rtt_us)..][..4].fill(0xff);
        let state = tcp(&bytes);
        assert_eq!(state.options, 7);
        assert_eq!(state.pacing_rate_bps, None);
        assert_eq!(state.min_rtt_ns, None, "no round trip yet is not an hour");
        if cfg!(target_endian = "little") {
            assert_eq!((state.peer_window_scale, state.window_scale, state.app_limited), (10, 7, true));
        }
    }

    #[test]
    fn missing_fields_of_an_older_kernel_are_noted() {
        let bytes = numbered();
        let old = tcp(&bytes[..offset_of!(TcpInfo, snd_wnd) + 4]);
        assert_eq!((old.peer_window_bytes, old.receive_window_bytes), (Bytes(57), None));
        let said = missing_fields(offset_of!(TcpInfo, snd_wnd) + 4).unwrap();
        assert!(said.ends_with("tell: the own receive window (6.2)"), "{said}");
        assert_eq!(missing_fields(WHOLE), None);
        assert_eq!(missing_fields(0).unwrap().matches(';').count(), 9);
    }
}
