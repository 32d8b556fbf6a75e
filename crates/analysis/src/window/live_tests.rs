//! Tests of the model against invented connections.

use landspeed_record::units::Nanos;
use landspeed_record::{FlowWatch, IpProtocol, SocketState, TcpState};

use super::super::levels::SCALED;
use super::*;

fn watch(states: Vec<SocketState>) -> FlowWatch {
    let key = FlowKey {
        protocol: IpProtocol::TCP,
        local: "10.0.0.1:1".parse().unwrap(),
        remote: "10.0.0.2:2".parse().unwrap(),
    };
    FlowWatch { key, pid: None, congestion: String::new(), samples: states }
}

/// Returns three samples, a second apart, at a rate of `per_second` bytes a second.
fn steady(tcp: &TcpState, per_second: u64, of: fn(&mut TcpState, Bytes), buffer: u64) -> FlowWatch {
    let state = |n: u64| {
        let mut tcp = tcp.clone();
        of(&mut tcp, Bytes(n * per_second));
        SocketState {
            at_ns: Nanos::secs(n),
            receive_buffer_bytes: Bytes(buffer),
            tcp: Some(Box::new(tcp)),
            ..SocketState::default()
        }
    };
    watch((0..3).map(state).collect())
}

fn figure(seen: &FlowWindow, rule: WindowRule) -> &WindowFigure {
    seen.rules.iter().find(|figure| figure.rule == rule).expect("the rule was checked")
}

#[test]
fn the_papers_connection_is_explained_rule_by_rule() {
    // Section 3.5.1: MTU 9000, a receiver's MSS of 8948 and a sender's of 8960, no window scaling.
    let sender = TcpState {
        send_mss_bytes: Bytes(8960),
        peer_window_bytes: Bytes(26_844),
        unacked_segments: 2,
        min_rtt_ns: Some(Nanos::micros(38)),
        ..TcpState::default()
    };
    let receiver = TcpState { receive_mss_bytes: Bytes(8948), ..TcpState::default() };
    // 3.5 Gb/s over 38 us.
    let sender = steady(&sender, 437_500_000, |tcp, moved| tcp.acked_bytes = moved, 0);
    let receiver = steady(&receiver, 437_500_000, |tcp, moved| tcp.received_bytes = moved, 66_000);
    let ends = WatchedEnds {
        sender: Some(&sender),
        receiver: Some(&receiver),
        receiver_kernel: "6.18.0",
        idle_rtt: Some(Nanos::micros(60)),
    };
    let seen = check(&ends).unwrap();
    assert_eq!((seen.moved_bytes, seen.rules.len()), (Bytes(875_000_000), 6), "{seen:#?}");
    let of = |rule| {
        let figure = figure(&seen, rule);
        (figure.predicted_bytes.0, figure.seen_bytes.0, figure.holds)
    };
    assert_eq!(of(WindowRule::IdealWindow), (16_625, 17_920, true), "by the lower of the two round trips");
    assert_eq!(of(WindowRule::UsableBuffer), (33_000, 26_844, true), "half of 66,000, near enough");
    assert_eq!(of(WindowRule::ScaleStep), (1, 4, true), "no scaling was agreed on");
    assert_eq!(of(WindowRule::ReceiverRounding), (26_844, 26_844, true), "three segments of 8948");
    assert_eq!(of(WindowRule::SenderRounding), (17_920, 17_920, true), "two of 8960: 33 % are lost");
    assert!(figure(&seen, WindowRule::SenderRounding).told.contains("33 %"), "{seen:#?}");
    assert_eq!(of(WindowRule::SillyWindow), (8948, 26_844, true));
}

#[test]
fn a_window_that_breaks_its_rules_is_found() {
    let sender = TcpState {
        send_mss_bytes: Bytes(1448),
        peer_window_bytes: Bytes(2000),
        unacked_segments: 20,
        min_rtt_ns: Some(Nanos::millis(20)),
        ..TcpState::default()
    };
    let receiver = TcpState { receive_mss_bytes: Bytes(1448), ..TcpState::default() };
    let sender = steady(&sender, 12_500_000, |tcp, moved| tcp.acked_bytes = moved, 0);
    let receiver = steady(&receiver, 0, |_, _| {}, 131_072);
    let ends = WatchedEnds { sender: Some(&sender), receiver: Some(&receiver), ..WatchedEnds::default() };
    let seen = check(&ends).unwrap();
    let broken: Vec<_> = seen.rules.iter().filter(|f| !f.holds).map(|f| f.rule).collect();
    let expected = [
        WindowRule::IdealWindow,
        WindowRule::UsableBuffer,
        WindowRule::ReceiverRounding,
        WindowRule::SenderRounding,
    ];
    assert_eq!(broken, expected, "{seen:#?}");
    assert!(figure(&seen, WindowRule::IdealWindow).told.contains("never offered more than 1.95 KiB"));
}

#[test]
fn a_window_opens_by_a_segment_and_the_rest_of_an_offer_proves_nothing() {
    let silly = |windows: &[u64]| {
        let states = windows.iter().map(|window| SocketState {
            tcp: Some(Box::new(TcpState {
                peer_window_bytes: Bytes(*window),
                send_mss_bytes: Bytes(1448),
                ..TcpState::default()
            })),
            ..SocketState::default()
        });
        let sender = watch(states.collect());
        let seen = check(&WatchedEnds { sender: Some(&sender), ..WatchedEnds::default() }).unwrap();
        let found = seen.rules.into_iter().find(|figure| figure.rule == WindowRule::SillyWindow);
        found.map(|figure| (figure.seen_bytes.0, figure.holds))
    };
    assert_eq!(silly(&[64_000, 0, 2_896, 64_000]), Some((2_896, true)));
    assert_eq!(silly(&[64_000, 0, 100, 64_000]), Some((100, false)));
    assert_eq!(silly(&[64_000, 100, 64_000]), None);
    assert_eq!(silly(&[64_000, 5_000]), Some((5_000, true)));
}

#[test]
fn data_in_the_queue_show_the_overhead() {
    let tcp = TcpState {
        receive_mss_bytes: Bytes(1448),
        receive_window_bytes: Some(Bytes(98_304)),
        options: SCALED,
        window_scale: 7,
        ..TcpState::default()
    };
    let mut receiver = steady(&tcp, 1_000_000, |tcp, moved| tcp.received_bytes = moved, 131_072);
    for state in &mut receiver.samples {
        (state.receive_queue_bytes, state.receive_memory_bytes) = (Bytes(30_000), Bytes(40_000));
    }
    let seen = check(&WatchedEnds { receiver: Some(&receiver), ..WatchedEnds::default() }).unwrap();
    let usable = figure(&seen, WindowRule::UsableBuffer);
    assert_eq!((usable.predicted_bytes, usable.holds), (Bytes(98_304), true), "75 % of 128 KiB");
    assert_eq!(figure(&seen, WindowRule::ScaleStep).predicted_bytes, Bytes(128));
    assert_eq!(figure(&seen, WindowRule::ReceiverRounding).seen_bytes, Bytes(98_304));
    assert!(seen.rules.iter().all(|f| f.rule != WindowRule::SenderRounding), "the sender was not watched");
    assert_eq!(seen.key.local, "10.0.0.2:2".parse().unwrap(), "as the sender sees it");
}

#[test]
fn without_samples_there_is_no_figure() {
    assert_eq!(check(&WatchedEnds::default()), None);
    let datagrams = watch(vec![SocketState::default(); 3]);
    assert_eq!(check(&WatchedEnds { sender: Some(&datagrams), ..WatchedEnds::default() }), None);
    let silent = watch(vec![SocketState { tcp: Some(Box::default()), ..SocketState::default() }]);
    assert_eq!(check(&WatchedEnds { sender: Some(&silent), ..WatchedEnds::default() }).unwrap().rules, []);
}

#[test]
fn forged_figures_overflow_nothing() {
    let most = u64::MAX;
    let tcp = TcpState {
        send_mss_bytes: Bytes(most),
        receive_mss_bytes: Bytes(most),
        peer_window_bytes: Bytes(most),
        receive_window_bytes: Some(Bytes(most)),
        unacked_segments: u32::MAX,
        acked_bytes: Bytes(most),
        min_rtt_ns: Some(Nanos(most)),
        options: SCALED,
        peer_window_scale: u8::MAX,
        window_scale: u8::MAX,
        ..TcpState::default()
    };
    let state = SocketState {
        at_ns: Nanos(most),
        receive_buffer_bytes: Bytes(most),
        receive_queue_bytes: Bytes(most),
        receive_memory_bytes: Bytes(most),
        tcp: Some(Box::new(tcp)),
        ..SocketState::default()
    };
    let forged = watch(vec![SocketState { tcp: Some(Box::default()), ..SocketState::default() }, state]);
    let ends = WatchedEnds { sender: Some(&forged), receiver: Some(&forged), ..WatchedEnds::default() };
    assert!(check(&ends).is_some());
}
