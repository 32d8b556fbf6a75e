//! The data of a connection that a congestion control accesses: the structures of `c/native.h`.

/// The slow-start threshold of a connection before its first loss: `TCP_INFINITE_SSTHRESH` of include/net/tcp.h.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The congestion window of a new connection, in packets: `TCP_INIT_CWND` of include/net/tcp.h (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// The fields of a connection that a control may read and write. They have the kernel's names, units and meaning
/// (struct tcp_sock, struct sock, struct inet_connection_sock). The driver of the control must update them before each
/// call, as the kernel's tcp_input.c does.
///
/// A control writes `snd_cwnd`, `snd_cwnd_cnt`, `snd_ssthresh` and its own private bytes; BBR also writes
/// `sk_pacing_rate`, `app_limited` and `random`.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sock {
    /// The current time in µs: the time of the acknowledgement or timer that is handled. Most controls have no other
    /// clock.
    pub tcp_mstamp: u64,
    /// The earliest time at which pacing lets the next packet leave, in ns. Only BBR reads it.
    pub tcp_wstamp_ns: u64,
    /// The current time in ns. Only BBR reads it.
    pub tcp_clock_cache: u64,
    /// The time at which `delivered` last grew, in µs.
    pub delivered_mstamp: u64,
    /// The pacing rate, in bytes per second. A control without pacing leaves it unchanged.
    pub sk_pacing_rate: u64,
    /// The bound on the pacing rate that the application set (`SO_MAX_PACING_RATE`), in bytes per second; `u64::MAX`
    /// for none.
    pub sk_max_pacing_rate: u64,
    /// The congestion window. Like all counts below, it is in packets.
    pub snd_cwnd: u32,
    /// Packets acknowledged since the window last grew by one (Reno, CUBIC).
    pub snd_cwnd_cnt: u32,
    /// The upper bound of the window.
    pub snd_cwnd_clamp: u32,
    /// The slow-start threshold. The connection is in slow start while the window is below it.
    pub snd_ssthresh: u32,
    /// The window before the last reduction, to which an undo returns.
    pub prior_cwnd: u32,
    /// Packets sent and not acknowledged cumulatively. `sacked_out`, `lost_out` and `retrans_out` count some of them.
    pub packets_out: u32,
    /// Packets acknowledged selectively.
    pub sacked_out: u32,
    /// Packets considered lost.
    pub lost_out: u32,
    /// Packets retransmitted and not yet acknowledged.
    pub retrans_out: u32,
    /// The largest number of packets in flight during the last window.
    pub max_packets_out: u32,
    /// The number of packets delivered since the connection began.
    pub delivered: u32,
    /// The number of packets lost since the connection began.
    pub lost: u32,
    /// Not zero if the application, not the window, limits the packets in flight.
    pub app_limited: u32,
    /// The sequence number of the first byte not acknowledged.
    pub snd_una: u32,
    /// The sequence number of the next byte to send.
    pub snd_nxt: u32,
    /// The payload of a full packet, in bytes.
    pub mss_cache: u32,
    /// Eight times the smoothed RTT, in µs.
    pub srtt_us: u32,
    /// Four times the mean deviation of the RTT, in µs.
    pub mdev_us: u32,
    /// The smallest RTT, in µs (in the kernel: within five minutes); `u32::MAX` before the first measurement.
    pub rtt_min: u32,
    /// The peer's timestamp on the last acknowledgement, in the peer's unit (Linux: ms).
    pub rcv_tsval: u32,
    /// Our timestamp that the last acknowledgement echoed, in ms.
    pub rcv_tsecr: u32,
    /// The state of the random generator, for controls that need one (BBR's phase). A fixed seed makes runs
    /// repeatable.
    pub random: u32,
    /// The fields that only methods change.
    pub inner: SockInternals,
}

/// The fields of a [`Sock`] that only methods change: the state of recovery, the flags, and the control's private
/// bytes.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SockInternals {
    icsk_ca_state: u8,
    is_cwnd_limited: u8,
    tstamp_ok: u8,
    pad: u8,
    /// The control's private 104 bytes, `ICSK_CA_PRIV_SIZE`.
    pub(crate) icsk_ca_priv: [u64; 13],
}

// native.h has the same assertions.
const _: () = assert!(size_of::<Sock>() == 248 && std::mem::offset_of!(Sock, inner.icsk_ca_priv) == 144);
const _: () = assert!(size_of::<RateSample>() == 48 && size_of::<AckSample>() == 12);

impl Default for SockInternals {
    fn default() -> Self {
        SockInternals {
            icsk_ca_state: CaState::Open as u8,
            is_cwnd_limited: 0,
            tstamp_ok: 1,
            pad: 0,
            icsk_ca_priv: [0; 13],
        }
    }
}

impl Default for Sock {
    /// Returns the data of a connection just opened: a window of ten packets of 1448 bytes, no measurements,
    /// timestamps on.
    fn default() -> Self {
        Sock {
            tcp_mstamp: 0,
            tcp_wstamp_ns: 0,
            tcp_clock_cache: 0,
            delivered_mstamp: 0,
            sk_pacing_rate: u64::MAX,
            sk_max_pacing_rate: u64::MAX,
            snd_cwnd: INITIAL_WINDOW,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            prior_cwnd: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            delivered: 0,
            lost: 0,
            app_limited: 0,
            snd_una: 0,
            snd_nxt: 0,
            mss_cache: 1448,
            srtt_us: 0,
            mdev_us: 0,
            rtt_min: u32::MAX,
            rcv_tsval: 0,
            rcv_tsecr: 0,
            random: 1,
            inner: SockInternals::default(),
        }
    }
}

impl Sock {
    pub fn ca_state(&self) -> CaState {
        CaState::of(self.inner.icsk_ca_state)
    }

    /// Sets whether the window was used in full. A control increases the window only if it was. In slow start, the
    /// control also increases it while `snd_cwnd < 2 * max_packets_out`, so the driver must update `max_packets_out`
    /// too.
    pub fn set_cwnd_limited(&mut self, limited: bool) {
        self.inner.is_cwnd_limited = u8::from(limited);
    }

    /// Sets whether both ends send TCP timestamps.
    pub fn set_timestamps(&mut self, on: bool) {
        self.inner.tstamp_ok = u8::from(on);
    }

    pub(crate) fn has_timestamps(&self) -> bool {
        self.inner.tstamp_ok != 0
    }

    pub(crate) fn store_ca_state(&mut self, state: CaState) {
        self.inner.icsk_ca_state = state as u8;
    }
}

/// The state of loss recovery: enum tcp_ca_state of include/uapi/linux/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    Open,
    /// Duplicate or selective acknowledgements have arrived, but no loss is declared yet.
    Disorder,
    /// The window is being reduced for a reason other than loss: ECN, or a full local queue.
    Cwr,
    Recovery,
    /// A retransmission timeout has occurred.
    Loss,
}

impl CaState {
    fn of(raw: u8) -> Self {
        match raw {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }
}

/// An event that the driver reports to a control: enum tcp_ca_event of include/net/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CwndEvent {
    /// A packet is sent while none is in flight.
    TxStart,
    /// The window is reset after an idle time.
    CwndRestart,
    /// A reduction of the window has ended.
    CompleteCwr,
    /// The retransmission timer has expired.
    Loss,
}

/// The data of one acknowledgement: struct ack_sample of include/net/tcp.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckSample {
    /// The number of packets acknowledged cumulatively.
    pub pkts_acked: u32,
    /// The RTT of the newest packet acknowledged, in µs; -1 if there is no measurement, because the packet was sent
    /// more than once.
    pub rtt_us: i32,
    /// The number of bytes in flight when the newest acknowledged packet was sent, estimated as the bytes delivered
    /// since.
    pub in_flight: u32,
}

/// The delivery rate sample of one acknowledgement: struct rate_sample of include/net/tcp.h, filled as
/// net/ipv4/tcp_rate.c does (draft-cheng-iccrg-delivery-rate-estimation).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// The start of the interval, in µs: the value that `Sock::delivered_mstamp` had when the acknowledged packet was
    /// sent.
    pub prior_mstamp: u64,
    /// The duration of the interval in which `delivered` packets arrived, in µs; -1 if the sample is invalid.
    pub interval_us: i64,
    /// The RTT from this acknowledgement, in µs; -1 if there is no measurement.
    pub rtt_us: i64,
    /// The value that `Sock::delivered` had when the acknowledged packet was sent.
    pub prior_delivered: u32,
    /// The number of packets delivered in the interval; -1 if the sample is invalid.
    pub delivered: i32,
    /// The number of packets that were marked lost by this acknowledgement.
    pub losses: i32,
    /// Packets newly acknowledged, cumulatively or selectively.
    pub acked_sacked: u32,
    /// Packets in flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Not zero if the application paused during the interval.
    pub is_app_limited: u8,
    /// Not zero if the sample comes from a retransmitted packet.
    pub is_retrans: u8,
    /// Not zero if the receiver has probably delayed this acknowledgement.
    pub is_ack_delayed: u8,
    /// Unused.
    pub pad: u8,
}

impl Default for RateSample {
    /// Returns an invalid sample.
    fn default() -> Self {
        RateSample {
            prior_mstamp: 0,
            interval_us: -1,
            rtt_us: -1,
            prior_delivered: 0,
            delivered: -1,
            losses: 0,
            acked_sacked: 0,
            prior_in_flight: 0,
            is_app_limited: 0,
            is_retrans: 0,
            is_ack_delayed: 0,
            pad: 0,
        }
    }
}
