//! A connection as a congestion control sees it: the structures of `c/native.h`.

/// `TCP_INFINITE_SSTHRESH` of include/net/tcp.h: no slow-start threshold is known yet.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// `TCP_INIT_CWND` of include/net/tcp.h: the window of a new connection (RFC 6928).
const INITIAL_WINDOW: u32 = 10;

/// What a control may read and write of a connection. The fields have the kernel's names, units and meaning
/// (struct tcp_sock, struct sock, struct inet_connection_sock); whoever drives the control keeps them true,
/// as the kernel's tcp_input.c does, before each call.
///
/// A control writes `snd_cwnd`, `snd_cwnd_cnt`, `snd_ssthresh` and, where it paces, `sk_pacing_rate`; nothing
/// else changes but its own private bytes.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sock {
    /// Now, in µs: the time of the acknowledgement or timer being handled. The only clock of most controls.
    pub tcp_mstamp: u64,
    /// The earliest time at which pacing lets the next packet go, in ns. BBR only.
    pub tcp_wstamp_ns: u64,
    /// Now, in ns. BBR only.
    pub tcp_clock_cache: u64,
    /// When `delivered` last grew, in µs.
    pub delivered_mstamp: u64,
    /// Bytes per second at which the connection may send; a control without pacing leaves it alone.
    pub sk_pacing_rate: u64,
    /// The bound that the application set (`SO_MAX_PACING_RATE`), bytes per second; `u64::MAX` for none.
    pub sk_max_pacing_rate: u64,
    /// The congestion window, in packets, as all counts below.
    pub snd_cwnd: u32,
    /// Packets acknowledged towards the next packet of window (Reno, CUBIC).
    pub snd_cwnd_cnt: u32,
    /// The window never exceeds this.
    pub snd_cwnd_clamp: u32,
    /// Below it the connection is in slow start.
    pub snd_ssthresh: u32,
    /// The window before the last reduction, for its undoing.
    pub prior_cwnd: u32,
    /// Sent and not acknowledged cumulatively; `sacked_out`, `lost_out`, `retrans_out` count among them.
    pub packets_out: u32,
    /// Acknowledged selectively.
    pub sacked_out: u32,
    /// Thought lost.
    pub lost_out: u32,
    /// Sent again and not yet acknowledged.
    pub retrans_out: u32,
    /// The most that was in flight during the last window.
    pub max_packets_out: u32,
    /// Delivered over the connection's life.
    pub delivered: u32,
    /// Lost over the connection's life.
    pub lost: u32,
    /// Not zero while the application, not the window, limits what is in flight.
    pub app_limited: u32,
    /// The first byte not acknowledged.
    pub snd_una: u32,
    /// The next byte to send.
    pub snd_nxt: u32,
    /// Payload bytes of a packet.
    pub mss_cache: u32,
    /// Eight times the smoothed round trip, in µs.
    pub srtt_us: u32,
    /// Four times its mean deviation, in µs.
    pub mdev_us: u32,
    /// The least round trip seen (the kernel: within five minutes), in µs; `u32::MAX` before the first.
    pub rtt_min: u32,
    /// The peer's timestamp on the last acknowledgement, in the peer's unit (Linux: ms).
    pub rcv_tsval: u32,
    /// Our timestamp that it echoed, in ms.
    pub rcv_tsecr: u32,
    /// State of the generator for controls that throw dice (BBR's phase): seed it to repeat a run.
    pub random: u32,
    /// What changes by calls only.
    pub inner: Inner,
}

/// The part of a [`Sock`] that changes by calls only: the state of recovery, the flags, the control's own bytes.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    icsk_ca_state: u8,
    is_cwnd_limited: u8,
    tstamp_ok: u8,
    pad: u8,
    /// The control's own: 104 bytes, `ICSK_CA_PRIV_SIZE`.
    pub(crate) icsk_ca_priv: [u64; 13],
}

// native.h asserts the same of its structures.
const _: () = assert!(size_of::<Sock>() == 248 && std::mem::offset_of!(Sock, inner.icsk_ca_priv) == 144);
const _: () = assert!(size_of::<RateSample>() == 48 && size_of::<AckSample>() == 12);

impl Default for Inner {
    fn default() -> Self {
        Inner {
            icsk_ca_state: CaState::Open as u8,
            is_cwnd_limited: 0,
            tstamp_ok: 1,
            pad: 0,
            icsk_ca_priv: [0; 13],
        }
    }
}

impl Default for Sock {
    /// A connection just opened: ten packets of 1448 bytes, nothing measured, timestamps on.
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
            inner: Inner::default(),
        }
    }
}

impl Sock {
    pub fn ca_state(&self) -> CaState {
        CaState::of(self.inner.icsk_ca_state)
    }

    /// The window was (or was not) used in full: `is_cwnd_limited`. Controls grow only then. Where it was
    /// not, slow start still goes on while `snd_cwnd < 2 * max_packets_out`, so keep that field too.
    pub fn set_cwnd_limited(&mut self, limited: bool) {
        self.inner.is_cwnd_limited = u8::from(limited);
    }

    /// Both ends send timestamps, or not.
    pub fn set_timestamps(&mut self, on: bool) {
        self.inner.tstamp_ok = u8::from(on);
    }

    pub fn has_timestamps(&self) -> bool {
        self.inner.tstamp_ok != 0
    }

    pub(crate) fn store_ca_state(&mut self, state: CaState) {
        self.inner.icsk_ca_state = state as u8;
    }
}

/// Where loss recovery is: enum tcp_ca_state of include/uapi/linux/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum CaState {
    Open,
    /// Duplicate acknowledgements or selective ones, and no loss declared yet.
    Disorder,
    /// The window is being reduced for another reason than loss: ECN, or a full local queue.
    Cwr,
    Recovery,
    /// After a retransmission timeout.
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

/// What else a control is told of: enum tcp_ca_event of include/net/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// First packet sent while none was in flight.
    TxStart,
    /// The window starts anew after an idle time.
    CwndRestart,
    /// A reduction without loss has ended.
    CompleteCwr,
    /// The retransmission timer fired.
    Loss,
}

/// One acknowledgement's news: struct ack_sample of include/net/tcp.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckSample {
    /// Packets acknowledged, cumulatively or selectively.
    pub pkts_acked: u32,
    /// The round trip of the newest of them, in µs; -1 where it gives none (sent more than once).
    pub rtt_us: i32,
    /// In flight when that packet was sent.
    pub in_flight: u32,
}

/// The delivery rate that one acknowledgement gives: struct rate_sample of include/net/tcp.h, filled as
/// net/ipv4/tcp_rate.c does (draft-cheng-iccrg-delivery-rate-estimation).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// When the packet was sent before whose delivery the interval begins, in µs.
    pub prior_mstamp: u64,
    /// In which `delivered` arrived, in µs; -1 where the sample is invalid.
    pub interval_us: i64,
    /// This acknowledgement's round trip, in µs; -1 where it gives none.
    pub rtt_us: i64,
    /// `Sock::delivered` when the packet now acknowledged was sent.
    pub prior_delivered: u32,
    /// Packets delivered over the interval; -1 where the sample is invalid.
    pub delivered: i32,
    /// Packets marked lost by this acknowledgement.
    pub losses: i32,
    /// Packets newly acknowledged, cumulatively or selectively.
    pub acked_sacked: u32,
    /// In flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Not zero where the interval had a pause of the application in it.
    pub is_app_limited: u8,
    /// Not zero where the sample is from a retransmitted packet.
    pub is_retrans: u8,
    /// Not zero where the receiver is likely to have delayed this acknowledgement.
    pub is_ack_delayed: u8,
    /// Not used.
    pub pad: u8,
}

impl Default for RateSample {
    /// No valid sample.
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
