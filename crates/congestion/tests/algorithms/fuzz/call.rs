//! A call of a control, or a change of its connection between two calls.

use landspeed_congestion::{AckSample, CaState, CwndEvent, NativeControl, RateSample, Sock};
use proptest::prelude::*;

/// The largest window to which a control may grow: `LS_MAX_CWND` of cc.h. A window that is already larger may stay.
pub(super) const MOST: u32 = 1 << 24;

#[derive(Debug, Clone)]
pub(super) enum FuzzCall {
    Init,
    Wait(u64),
    Set { cwnd: u32, ssthresh: u32, clamp: u32, flight: u32, limited: bool },
    Measure { srtt: u32, mdev: u32, least: u32, mss: u32 },
    Stamp { tsval: u32, tsecr: u32 },
    Acked { packets: u32, rtt: i32 },
    Avoid { ack: u32, acked: u32 },
    Control { sample: RateSample },
    Enter(CaState),
    Tell(CwndEvent),
    Lose,
    TimeOut,
    Undo,
    Burst,
}

/// Returns a strategy for any call. Usual and unusual values are equally frequent, because bugs are likely where the
/// two meet.
pub(super) fn any_call() -> impl Strategy<Value = FuzzCall> {
    prop_oneof![
        1 => Just(FuzzCall::Init),
        8 => wait(),
        8 => state(),
        8 => acknowledgement(),
        8 => recovery(),
        1 => Just(FuzzCall::Burst),
    ]
}

/// Returns a strategy for a wait, in which the clock does not advance, advances, or leaps.
fn wait() -> impl Strategy<Value = FuzzCall> {
    let micros = prop_oneof![Just(0), 0..10_000_u64, 0..10_000_000_u64, 0..1_u64 << 40, any::<u64>()];
    micros.prop_map(FuzzCall::Wait)
}

fn state() -> impl Strategy<Value = FuzzCall> {
    let set = (1..=MOST, any::<u32>(), 1..=u32::MAX, any::<u32>(), any::<bool>());
    let micros = || prop_oneof![Just(0), Just(u32::MAX), 1..1_000_000_u32, any::<u32>()];
    prop_oneof![
        set.prop_map(|(cwnd, ssthresh, clamp, flight, limited)| FuzzCall::Set {
            cwnd,
            ssthresh,
            clamp,
            flight,
            limited
        }),
        (1..200_u32, 1..200_u32).prop_map(|(cwnd, ssthresh)| FuzzCall::Set {
            cwnd,
            ssthresh,
            clamp: MOST,
            flight: cwnd,
            limited: true
        }),
        (micros(), micros(), micros(), prop_oneof![Just(0), Just(1448), any::<u32>()])
            .prop_map(|(srtt, mdev, least, mss)| FuzzCall::Measure { srtt, mdev, least, mss }),
        (any::<u32>(), any::<u32>()).prop_map(|(tsval, tsecr)| FuzzCall::Stamp { tsval, tsecr }),
    ]
}

fn acknowledgement() -> impl Strategy<Value = FuzzCall> {
    let packets = || prop_oneof![0..4_u32, 0..100_000_u32, any::<u32>()];
    prop_oneof![
        (packets(), prop_oneof![-1..1_000_000_i32, any::<i32>()])
            .prop_map(|(packets, rtt)| FuzzCall::Acked { packets, rtt }),
        (any::<u32>(), packets()).prop_map(|(ack, acked)| FuzzCall::Avoid { ack, acked }),
        sample().prop_map(|sample| FuzzCall::Control { sample }),
    ]
}

fn recovery() -> impl Strategy<Value = FuzzCall> {
    use {CaState as C, CwndEvent as E};
    let states =
        prop_oneof![Just(C::Open), Just(C::Disorder), Just(C::Cwr), Just(C::Recovery), Just(C::Loss)];
    let events = prop_oneof![Just(E::TxStart), Just(E::CwndRestart), Just(E::CompleteCwr), Just(E::Loss)];
    prop_oneof![
        states.prop_map(FuzzCall::Enter),
        events.prop_map(FuzzCall::Tell),
        Just(FuzzCall::Lose),
        Just(FuzzCall::TimeOut),
        Just(FuzzCall::Undo),
    ]
}

fn sample() -> impl Strategy<Value = RateSample> {
    let times = (prop_oneof![-1..1_000_000_i64, any::<i64>()], prop_oneof![-1..1_000_000_i64, any::<i64>()]);
    let counts = (any::<u32>(), -1..1_000_000_i32, -1..100_000_i32, 0..1_000_000_u32, any::<u32>());
    (times, counts, any::<(bool, bool)>()).prop_map(|((interval_us, rtt_us), counts, (limited, delayed))| {
        let (prior_delivered, delivered, losses, acked_sacked, prior_in_flight) = counts;
        RateSample {
            interval_us,
            rtt_us,
            prior_delivered,
            delivered,
            losses,
            acked_sacked,
            prior_in_flight,
            is_app_limited: u8::from(limited),
            is_ack_delayed: u8::from(delayed),
            ..RateSample::default()
        }
    })
}

impl FuzzCall {
    /// Applies the call to `sk` as the kernel would.
    pub(super) fn play(&self, control: NativeControl, sk: &mut Sock) {
        match *self {
            FuzzCall::Init => control.init(sk).expect("timestamps are on"),
            FuzzCall::Acked { packets, rtt } => {
                sk.delivered = sk.delivered.wrapping_add(packets);
                sk.delivered_mstamp = sk.tcp_mstamp;
                control.pkts_acked(sk, &AckSample { pkts_acked: packets, rtt_us: rtt, in_flight: packets });
            }
            FuzzCall::Avoid { ack, acked } => {
                sk.snd_nxt = ack.wrapping_add(1000);
                control.cong_avoid(sk, ack, acked);
            }
            FuzzCall::Control { sample } => control.cong_control(sk, 0, &sample),
            FuzzCall::Enter(state) => control.set_state(sk, state),
            FuzzCall::Tell(event) => control.cwnd_event(sk, event),
            FuzzCall::Lose | FuzzCall::TimeOut => self.lose(control, sk),
            FuzzCall::Undo => sk.snd_cwnd = control.undo_cwnd(sk).min(sk.snd_cwnd_clamp),
            FuzzCall::Burst => assert!(control.min_tso_segs(sk) > 0, "a burst of nothing"),
            _ => self.happen(sk),
        }
    }

    /// Changes the connection `sk` without calling the control.
    fn happen(&self, sk: &mut Sock) {
        match *self {
            FuzzCall::Wait(micros) => {
                sk.tcp_mstamp = sk.tcp_mstamp.wrapping_add(micros);
                sk.tcp_clock_cache = sk.tcp_mstamp.wrapping_mul(1000);
                sk.tcp_wstamp_ns = sk.tcp_clock_cache;
            }
            FuzzCall::Set { cwnd, ssthresh, clamp, flight, limited } => {
                sk.snd_cwnd_clamp = clamp.min(MOST);
                sk.snd_cwnd = cwnd.min(sk.snd_cwnd_clamp);
                sk.snd_ssthresh = ssthresh;
                sk.packets_out = flight;
                sk.max_packets_out = flight;
                sk.set_cwnd_limited(limited);
            }
            FuzzCall::Measure { srtt, mdev, least, mss } => {
                sk.srtt_us = srtt;
                sk.mdev_us = mdev;
                sk.rtt_min = least;
                sk.mss_cache = mss;
            }
            FuzzCall::Stamp { tsval, tsecr } => {
                sk.rcv_tsval = tsval;
                sk.rcv_tsecr = tsecr;
            }
            _ => unreachable!("the rest are calls"),
        }
    }

    /// Simulates a loss (tcp_init_cwnd_reduction) or a timeout (tcp_enter_loss).
    fn lose(&self, control: NativeControl, sk: &mut Sock) {
        sk.prior_cwnd = sk.snd_cwnd;
        sk.snd_ssthresh = control.ssthresh(sk);
        if matches!(self, FuzzCall::TimeOut) {
            control.cwnd_event(sk, CwndEvent::Loss);
            sk.snd_cwnd = 1;
            sk.snd_cwnd_cnt = 0;
            control.set_state(sk, CaState::Loss);
        } else {
            sk.snd_cwnd = sk.snd_cwnd.min(sk.snd_ssthresh).max(1);
        }
    }
}
