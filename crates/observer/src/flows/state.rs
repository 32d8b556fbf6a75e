//! A socket's state from what sock_diag told.

use std::mem::{offset_of, size_of};

use landspeed_record::{Protocol, SocketState, TcpState};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::sockets::Found;
use crate::tcp_info::raw::{Answer, TcpInfo};

/// The value of a field of TCP_INFO by its name, zero where the kernel does not tell it.
macro_rules! field {
    ($info:expr, $name:ident : u8) => {
        $info.u8(offset_of!(TcpInfo, $name))
    };
    ($info:expr, $name:ident : u32) => {
        $info.u32(offset_of!(TcpInfo, $name))
    };
    ($info:expr, $name:ident : u64) => {
        $info.u64(offset_of!(TcpInfo, $name))
    };
}

/// The moment `at` of a socket.
pub(super) fn socket(found: &Found, at: Nanos) -> SocketState {
    let socket = &found.socket;
    let memory = socket.memory.unwrap_or_default();
    // TCP holds its whole send queue against the limit (`sk_stream_memory_free`); UDP has none, and what counts is
    // what the link has not sent yet (`sock_alloc_send_pskb`).
    let sending = match found.protocol {
        Protocol::TCP => memory.send_queued,
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
        tcp: (!socket.tcp_info.is_empty()).then(|| Box::new(tcp(Answer(&socket.tcp_info)))),
    }
}

/// What this kernel does not have of TCP_INFO, given how many bytes it tells; by the release that brought it.
pub(super) fn untold(told: usize) -> Option<String> {
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
    let lacks: Vec<&str> = SINCE.iter().filter(|(at, _)| *at >= told).map(|(_, what)| *what).collect();
    (!lacks.is_empty()).then(|| format!("this kernel's TCP_INFO lacks, shown as zero: {}", lacks.join("; ")))
}

/// Bytes that all of [`TcpState`] needs.
pub(super) const WHOLE: usize = size_of::<TcpInfo>();

fn micros(us: u64) -> Nanos {
    Nanos(us.saturating_mul(1_000))
}

fn millis(ms: u32) -> Nanos {
    Nanos::millis(ms.into())
}

/// Bits per second of a rate in bytes per second.
fn bits(rate: u64) -> BitRate {
    BitRate(rate as f64 * 8.0)
}

fn tcp(info: Answer<'_>) -> TcpState {
    let scales = field!(info, wscale: u8);
    TcpState {
        ca_state: field!(info, ca_state: u8),
        retransmit_timeouts: field!(info, retransmits: u8),
        options: field!(info, options: u8),
        // Bit fields: the first one lies in the low bits on a little-endian machine, in the high ones else.
        peer_window_scale: if cfg!(target_endian = "little") { scales & 15 } else { scales >> 4 },
        window_scale: if cfg!(target_endian = "little") { scales >> 4 } else { scales & 15 },
        app_limited: field!(info, flags: u8) & if cfg!(target_endian = "little") { 1 } else { 0x80 } != 0,
        unacked_segments: field!(info, unacked: u32),
        lost_segments: field!(info, lost: u32),
        retransmitted_segments: field!(info, total_retrans: u32).into(),
        ssthresh_segments: field!(info, snd_ssthresh: u32),
        cwnd_segments: field!(info, snd_cwnd: u32),
        reordering_segments: field!(info, reordering: u32),
        reorderings_seen: field!(info, reord_seen: u32).into(),
        duplicates_reported: field!(info, dsack_dups: u32).into(),
        out_of_order_segments: field!(info, rcv_ooopack: u32).into(),
        segments_sent: field!(info, segs_out: u32).into(),
        segments_received: field!(info, segs_in: u32).into(),
        data_segments_sent: field!(info, data_segs_out: u32).into(),
        data_segments_received: field!(info, data_segs_in: u32).into(),
        delivered_segments: field!(info, delivered: u32).into(),
        delivered_ce_segments: field!(info, delivered_ce: u32).into(),
        ..in_time(info, in_bytes(info))
    }
}

fn in_bytes(info: Answer<'_>) -> TcpState {
    TcpState {
        send_mss_bytes: Bytes(field!(info, snd_mss: u32).into()),
        receive_mss_bytes: Bytes(field!(info, rcv_mss: u32).into()),
        advertised_mss_bytes: Bytes(field!(info, advmss: u32).into()),
        path_mtu_bytes: Bytes(field!(info, pmtu: u32).into()),
        receive_space_bytes: Bytes(field!(info, rcv_space: u32).into()),
        peer_window_bytes: Bytes(field!(info, snd_wnd: u32).into()),
        receive_window_bytes: Bytes(field!(info, rcv_wnd: u32).into()),
        // "Unlimited", or none told.
        pacing_rate_bps: Some(field!(info, pacing_rate: u64))
            .filter(|rate| !matches!(*rate, 0 | u64::MAX))
            .map(bits),
        delivery_rate_bps: bits(field!(info, delivery_rate: u64)),
        sent_bytes: Bytes(field!(info, bytes_sent: u64)),
        retransmitted_bytes: Bytes(field!(info, bytes_retrans: u64)),
        acked_bytes: Bytes(field!(info, bytes_acked: u64)),
        received_bytes: Bytes(field!(info, bytes_received: u64)),
        not_sent_bytes: Bytes(field!(info, notsent_bytes: u32).into()),
        ..TcpState::default()
    }
}

fn in_time(info: Answer<'_>, rest: TcpState) -> TcpState {
    // The kernel's word for "no round trip measured yet".
    let min_rtt = Some(field!(info, min_rtt_us: u32)).filter(|us| *us != u32::MAX).unwrap_or(0);
    TcpState {
        rto_ns: micros(field!(info, rto_us: u32).into()),
        ato_ns: micros(field!(info, ato_us: u32).into()),
        last_sent_ago_ns: millis(field!(info, last_data_sent_ms: u32)),
        last_received_ago_ns: millis(field!(info, last_data_recv_ms: u32)),
        rtt_ns: micros(field!(info, rtt_us: u32).into()),
        rtt_variation_ns: micros(field!(info, rttvar_us: u32).into()),
        min_rtt_ns: micros(min_rtt.into()),
        receive_rtt_ns: micros(field!(info, rcv_rtt_us: u32).into()),
        busy_ns: micros(field!(info, busy_us: u64)),
        rwnd_limited_ns: micros(field!(info, rwnd_limited_us: u64)),
        sndbuf_limited_ns: micros(field!(info, sndbuf_limited_us: u64)),
        ..rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Each four bytes hold their own number.
    fn numbered() -> Vec<u8> {
        (0..WHOLE as u32 / 4).flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn fields_are_taken_from_where_the_kernel_puts_them() {
        let bytes = numbered();
        let state = tcp(Answer(&bytes));
        assert_eq!((state.rto_ns, state.rtt_ns, state.cwnd_segments), (micros(2), micros(17), 20));
        assert_eq!((state.retransmitted_segments, state.segments_sent), (25, 34));
        assert_eq!((state.peer_window_bytes, state.receive_window_bytes), (Bytes(57), Bytes(58)));
        assert_eq!(state.last_received_ago_ns, Nanos::millis(13));
        assert_eq!(state.sent_bytes, Bytes(50 | 51 << 32));
    }

    #[test]
    fn bits_and_unlimited_values_mean_what_the_kernel_means() {
        let mut bytes = vec![0; WHOLE];
        (bytes[5], bytes[6], bytes[7]) = (0b0111, 0x7a, 1);
        bytes[offset_of!(TcpInfo, pacing_rate)..][..8].fill(0xff);
        bytes[offset_of!(TcpInfo, min_rtt_us)..][..4].fill(0xff);
        let state = tcp(Answer(&bytes));
        assert_eq!(state.options, 7);
        assert_eq!(state.pacing_rate_bps, None);
        assert_eq!(state.min_rtt_ns, Nanos(0), "no round trip yet is not an hour");
        if cfg!(target_endian = "little") {
            assert_eq!((state.peer_window_scale, state.window_scale, state.app_limited), (10, 7, true));
        }
    }

    #[test]
    fn an_older_kernel_tells_less_and_that_is_said() {
        let bytes = numbered();
        let old = tcp(Answer(&bytes[..offset_of!(TcpInfo, snd_wnd) + 4]));
        assert_eq!((old.peer_window_bytes, old.receive_window_bytes), (Bytes(57), Bytes(0)));
        let said = untold(offset_of!(TcpInfo, snd_wnd) + 4).unwrap();
        assert!(said.ends_with("zero: the own receive window (6.2)"), "{said}");
        assert_eq!(untold(WHOLE), None);
        assert_eq!(untold(0).unwrap().matches(';').count(), 9);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = tcp(Answer(&bytes));
            let _ = untold(bytes.len());
        }
    }
}
