//! Settings that change while a copy runs.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_mover::{CopyProgress, CopyRules, Flows, Opening, OtherFlows, Source, Target, receive, send};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CopyArm, CopyCount};
use landspeed_transport::CancelFlag;

use crate::{Ends, MIB, bytes, flows, is_same, openings, source, target};

const COUNTED: Duration = Duration::from_millis(300);

fn arm(flows: u32, control: Option<&str>) -> CopyArm {
    CopyArm { flows, control: control.map(str::to_owned), ..CopyArm::default() }
}

/// Two flows over UDT, instead of the copy's own.
fn udt() -> CopyArm {
    CopyArm { transport: Some("udt".to_owned()), ..arm(2, None) }
}

/// Returns what both ends need for flows over UDT beside those of a copy. The end that opens them connects to the
/// address that `through` returns for the server's.
fn over_udt(through: impl FnOnce(SocketAddr) -> SocketAddr) -> [OtherFlows; 2] {
    let (mut caller, listener) = openings("tls-udt");
    caller.server = through(caller.server);
    let of = |opening| OtherFlows { transport: "udt".to_owned(), count: 2, opening };
    [of(Opening::Connect(caller)), of(Opening::Accept(listener))]
}

fn moves(counted: &CopyCount) -> bool {
    counted.is_clean && counted.taken_bytes > Bytes(0)
}

/// Copies so slowly, by a limit, that `steer` can make its turns meanwhile. It gets the progress of the source, and
/// then of the target. Returns that of the source.
fn steered(
    [sending, receiving]: Ends,
    mib: usize,
    steer: impl FnOnce(&CopyProgress, &CopyProgress),
) -> CopyProgress {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(mib * MIB, 11)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(64e6)), ..CopyRules::default() };
    let source = Source { rules, ..source(from.path()) };
    let target = Target { is_synced: false, ..target(to.path()) };
    let [sent, received] = [CopyProgress::default(), CopyProgress::default()];
    [&sent, &received].iter().for_each(|progress| progress.begin_with(2));
    let cancel = CancelFlag::default();
    thread::scope(|scope| {
        scope.spawn(|| receive(receiving, &target, &received, &cancel).unwrap());
        let copied = scope.spawn(|| send(sending, &source, &sent, &cancel).unwrap());
        turn_until(&sent, &arm(2, None), &moves);
        steer(&sent, &received);
        assert!(copied.join().expect("no panic").is_complete());
    });
    is_same(from.path(), to.path());
    sent
}

/// Passes datagrams between callers and a server while `passes` is true, until `is_over`.
fn pass_datagrams(front: &UdpSocket, server: SocketAddr, [passes, is_over]: [&AtomicBool; 2]) {
    let (mut behind, mut room) = (HashMap::<SocketAddr, UdpSocket>::new(), vec![0; 1 << 16]);
    let connected = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).and_then(|()| socket.set_nonblocking(true)).unwrap();
        socket
    };
    front.set_nonblocking(true).unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while !is_over.load(Ordering::Acquire) && Instant::now() < end {
        let mut is_quiet = true;
        while let Ok((length, from)) = front.recv_from(&mut room) {
            is_quiet = false;
            let socket = behind.entry(from).or_insert_with(connected);
            // The other end may be gone.
            let _ = passes.load(Ordering::Acquire).then(|| socket.send(&room[..length]));
        }
        for (to, socket) in &behind {
            while let Ok(length) = socket.recv(&mut room) {
                is_quiet = false;
                let _ = passes.load(Ordering::Acquire).then(|| front.send_to(&room[..length], to));
            }
        }
        if is_quiet {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Makes turns with a setting until one is as wanted.
fn turn_until(progress: &CopyProgress, arm: &CopyArm, is_wanted: &dyn Fn(&CopyCount) -> bool) -> CopyCount {
    let turns = (0..20).map(|_| progress.turn(arm, COUNTED / 4, COUNTED, &CancelFlag::new()));
    let mut seen = Vec::new();
    for counted in turns {
        if is_wanted(&counted) {
            return counted;
        }
        seen.push(counted);
    }
    panic!("no turn is as wanted: {seen:?}");
}

/// A limit makes the copy slow enough for all turns.
#[test]
fn flows_rest_work_again_and_get_another_congestion_control_in_a_copy_that_goes_on() {
    let cancel = CancelFlag::default();
    let sent = steered(flows("tls", 4), 48, |sent, _| {
        let two = turn_until(sent, &arm(4, None), &moves);
        assert_eq!(two.flows, 2, "no others are open: {two:?}");
        assert!(two.counted_ns >= Nanos::from(COUNTED) && two.control.is_some(), "{two:?}");
        sent.widen(4);
        turn_until(sent, &arm(4, None), &|counted| counted.flows == 4 && moves(counted));
        let one = turn_until(sent, &arm(1, Some("reno")), &moves);
        assert_eq!((one.flows, one.control.as_deref(), one.refused.as_str()), (1, Some("reno"), ""));
        let refused = sent.turn(&arm(3, Some("no-such")), COUNTED, COUNTED, &cancel);
        assert!(refused.refused.contains("no-such") && refused.counted_ns == Nanos(0), "{refused:?}");
        // All that the sockets had are kept, also those of before.
        let (used, first) = (sent.controls(), two.control.clone().unwrap_or_default());
        assert!(used.contains(&"reno".to_owned()) && used.contains(&first), "{used:?}");
        assert!(!used.contains(&"no-such".to_owned()), "{used:?}");
    });
    let late = sent.turn(&arm(1, None), Duration::from_secs(60), Duration::from_secs(60), &cancel);
    assert!(!late.is_clean, "{late:?}");
}

/// All bytes arrive, even if the file system refuses such writes.
#[test]
fn pieces_that_go_past_the_page_cache_in_the_middle_of_a_copy_arrive_too() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Its last piece is no whole block.
    fs::write(from.path().join("long"), bytes(48 * MIB + 77, 9)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(64e6)), ..CopyRules::default() };
    let (source, target) = (Source { rules, ..source(from.path()) }, target(to.path()));
    let [sent, received] = [CopyProgress::default(), CopyProgress::default()];
    let cancel = CancelFlag::default();
    let [sending, receiving] = flows("tls", 4);
    assert!(received.write_direct(true).unwrap_err().contains("writes no files"), "it has not begun");
    thread::scope(|scope| {
        scope.spawn(|| receive(receiving, &target, &received, &cancel).unwrap());
        let copied = scope.spawn(|| send(sending, &source, &sent, &cancel).unwrap());
        let moves = |counted: &CopyCount| counted.taken_bytes > Bytes(0);
        turn_until(&sent, &arm(4, None), &moves);
        for is_direct in [true, false, true] {
            if let Err(refused) = received.write_direct(is_direct) {
                assert!(refused.contains("takes no direct writes"), "{refused}");
            }
            turn_until(&sent, &arm(4, None), &moves);
        }
        assert!(copied.join().expect("no panic").is_complete());
    });
    is_same(from.path(), to.path());
    assert!(sent.write_direct(true).is_err(), "the source writes no files");
}

/// Either end may open the flows, and the one that sends them alone turns.
#[test]
fn a_copy_turns_to_flows_of_another_transport_and_back() {
    for is_opened_by_target in [false, true] {
        let (mut ends, mut at) = (flows("tls", 2), None);
        let [opening, accepting] = over_udt(|server| *at.insert(server));
        let at = at.expect("it was called");
        if is_opened_by_target {
            ends.reverse();
        }
        steered(ends, 96, |sent, received| {
            let cancel = CancelFlag::new();
            let early = sent.turn(&udt(), COUNTED, COUNTED, &cancel);
            assert!(early.refused.contains("asked for") && early.counted_ns == Nanos(0), "{early:?}");
            let [caller, server] = if is_opened_by_target { [received, sent] } else { [sent, received] };
            server.add_others(accepting).unwrap();
            caller.add_others(opening).unwrap();
            let by_udt = turn_until(sent, &udt(), &|counted| counted.flows == 2 && moves(counted));
            assert_eq!((by_udt.transport.as_deref(), &by_udt.control), (Some("udt"), &None));
            assert!(by_udt.rtt_ns > Nanos(0), "{by_udt:?}");
            let own = turn_until(sent, &arm(1, Some("reno")), &moves);
            assert_eq!((own.flows, own.transport, own.control.as_deref()), (1, None, Some("reno")));
            turn_until(sent, &udt(), &|counted| counted.flows == 2 && moves(counted));
            caller.leave_others();
            turn_until(sent, &udt(), &|counted| counted.flows == 0 && moves(counted));
            let [again, _] = over_udt(|server| server);
            assert!(caller.add_others(again).unwrap_err().contains("already"));
            server.leave_others();
            turn_until(sent, &arm(1, None), &|counted| moves(counted) && UdpSocket::bind(at).is_ok());
        });
    }
}

/// A silent socket acts as a firewall that lets in TCP alone.
#[test]
fn where_another_transport_is_not_let_in_the_own_flows_go_on() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let [opening, accepting] = over_udt(|_| silent.local_addr().unwrap());
    steered(flows("tls", 2), 32, |sent, received| {
        received.add_others(accepting).unwrap();
        sent.add_others(opening).unwrap();
        let stood_in = turn_until(sent, &udt(), &moves);
        assert_eq!((stood_in.flows, stood_in.transport.as_deref()), (0, Some("udt")), "{stood_in:?}");
    });
}

/// What was on its way there follows over the copy's own transport.
#[test]
fn flows_of_another_transport_that_fall_silent_leave_their_links_to_the_copys_own() {
    let (passes, is_over) = (AtomicBool::new(true), AtomicBool::new(false));
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut behind = None;
    let [opening, accepting] = over_udt(|server| {
        behind = Some(server);
        front.local_addr().unwrap()
    });
    let server = behind.expect("it was called");
    let ends = flows("tls", 2).map(|end| Flows { patience: Duration::from_secs(2), ..end });
    thread::scope(|scope| {
        scope.spawn(|| pass_datagrams(&front, server, [&passes, &is_over]));
        steered(ends, 64, |sent, received| {
            received.add_others(accepting).unwrap();
            sent.add_others(opening).unwrap();
            turn_until(sent, &udt(), &|counted| counted.flows == 2 && moves(counted));
            passes.store(false, Ordering::Release);
            turn_until(sent, &udt(), &|counted| counted.flows == 0 && moves(counted));
        });
        is_over.store(true, Ordering::Release);
    });
}
