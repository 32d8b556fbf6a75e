//! Any sequence of calls with any numbers: every call returns, the window stays within its bounds.

use landspeed_congestion::{AckSample, CONTROLS, CaState, Event, Native, RateSample, Sock, native};
use proptest::prelude::*;

/// `LS_MAX_CWND` of cc.h: what no control grows beyond. A window that is larger already may stay.
const MOST: u32 = 1 << 24;

#[derive(Debug, Clone)]
enum Call {
    Wait(u64),
    Set { cwnd: u32, ssthresh: u32, clamp: u32, srtt: u32, flight: u32, limited: bool },
    Stamp { tsval: u32, tsecr: u32 },
    Acked { packets: u32, rtt: i32 },
    Avoid { ack: u32, acked: u32 },
    Control { sample: RateSample },
    Enter(CaState),
    Tell(Event),
    Lose,
    Undo,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        prop_oneof![0..10_000_u64, 0..10_000_000_u64, any::<u32>().prop_map(u64::from)].prop_map(Call::Wait),
        (1..=MOST, any::<u32>(), 1..=u32::MAX, any::<u32>(), any::<u32>(), any::<bool>()).prop_map(
            |(cwnd, ssthresh, clamp, srtt, flight, limited)| Call::Set {
                cwnd,
                ssthresh,
                clamp,
                srtt,
                flight,
                limited
            }
        ),
        (any::<u32>(), any::<u32>()).prop_map(|(tsval, tsecr)| Call::Stamp { tsval, tsecr }),
        (0..100_000_u32, prop_oneof![-1..1_000_000_i32, any::<i32>()])
            .prop_map(|(packets, rtt)| Call::Acked { packets, rtt }),
        (any::<u32>(), prop_oneof![0..100_u32, 0..1_000_000_u32])
            .prop_map(|(ack, acked)| Call::Avoid { ack, acked }),
        sample().prop_map(|sample| Call::Control { sample }),
        (0..5_usize).prop_map(|which| Call::Enter(
            [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss][which]
        )),
        (0..4_usize).prop_map(|which| Call::Tell(
            [Event::TxStart, Event::CwndRestart, Event::CompleteCwr, Event::Loss][which]
        )),
        Just(Call::Lose),
        Just(Call::Undo),
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

fn play(control: Native, sk: &mut Sock, call: &Call) {
    match *call {
        Call::Wait(micros) => sk.tcp_mstamp += micros,
        Call::Set { cwnd, ssthresh, clamp, srtt, flight, limited } => {
            sk.snd_cwnd_clamp = clamp.min(MOST);
            sk.snd_cwnd = cwnd.min(sk.snd_cwnd_clamp);
            sk.snd_ssthresh = ssthresh;
            sk.srtt_us = srtt;
            sk.packets_out = flight;
            sk.max_packets_out = flight;
            sk.set_cwnd_limited(limited);
        }
        Call::Stamp { tsval, tsecr } => {
            sk.rcv_tsval = tsval;
            sk.rcv_tsecr = tsecr;
        }
        Call::Acked { packets, rtt } => {
            sk.delivered = sk.delivered.wrapping_add(packets);
            sk.delivered_mstamp = sk.tcp_mstamp;
            control.pkts_acked(sk, &AckSample { pkts_acked: packets, rtt_us: rtt, in_flight: packets });
        }
        Call::Avoid { ack, acked } => {
            sk.snd_nxt = ack.wrapping_add(1000);
            control.cong_avoid(sk, ack, acked);
        }
        Call::Control { sample } => control.cong_control(sk, 0, &sample),
        Call::Enter(state) => control.set_state(sk, state),
        Call::Tell(event) => control.cwnd_event(sk, event),
        Call::Lose => {
            sk.prior_cwnd = sk.snd_cwnd;
            sk.snd_ssthresh = control.ssthresh(sk);
            sk.snd_cwnd = sk.snd_cwnd.min(sk.snd_ssthresh).max(1);
        }
        Call::Undo => sk.snd_cwnd = control.undo_cwnd(sk).min(sk.snd_cwnd_clamp),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn windows_stay_within_their_bounds(calls in proptest::collection::vec(call(), 1..200)) {
        for row in CONTROLS {
            let control = native(row.name).expect("a row");
            let mut sk = Sock { snd_cwnd_clamp: MOST, ..Sock::default() };
            control.init(&mut sk).expect("timestamps are on");
            for (step, call) in calls.iter().enumerate() {
                play(control, &mut sk, call);
                prop_assert!(sk.snd_cwnd >= 1, "{} at {step}: {call:?}", row.name);
                prop_assert!(sk.snd_cwnd <= sk.snd_cwnd_clamp, "{} at {step}: {call:?}: {}", row.name, sk.snd_cwnd);
                let is_lost = matches!(call, Call::Lose) && !row.is_rate_based;
                prop_assert!(!is_lost || sk.snd_ssthresh >= 2, "{} at {step}", row.name);
            }
        }
    }

    /// Whatever an earlier control left in the private bytes: every call returns.
    #[test]
    fn another_controls_state_does_no_harm(calls in proptest::collection::vec(call(), 1..50), of in 0..12_usize) {
        for row in CONTROLS {
            let (first, second) = (native(CONTROLS[of].name).expect("a row"), native(row.name).expect("a row"));
            let mut sk = Sock { snd_cwnd_clamp: MOST, ..Sock::default() };
            first.init(&mut sk).expect("timestamps are on");
            for call in &calls {
                play(first, &mut sk, call);
                play(second, &mut sk, call);
                prop_assert!(sk.snd_cwnd <= MOST);
            }
        }
    }
}
