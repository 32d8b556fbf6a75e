//! Copies over a path that breaks. Between the ends is a relay of TCP connections, which cuts them or falls silent after a
//! number of bytes.

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_mover::{CopyProgress, CopyRules, Error, Flows, Opening, Source, compare, receive, send, show};
use landspeed_record::units::BitRate;
use landspeed_record::{CopyCheck, CopyComparison};
use landspeed_transport::CancelFlag;

use crate::{Ends, MIB, bytes, copy, copy_until, is_same, openings, source, target, tree};

/// What happens to the path.
#[derive(Debug, Clone, Copy)]
enum PathEvent {
    /// All connections are cut, with what is on its way.
    CutAll,
    /// The connection that carried the last bytes is cut.
    CutOne,
    /// No byte passes any more, and no error is reported.
    Silence,
    /// No further connection is passed on.
    Full,
}

/// A relay between the ends of a copy.
struct Relay(Arc<RelayState>);

struct RelayState {
    address: SocketAddr,
    server: SocketAddr,
    /// What happens, and after how many bytes.
    events: Mutex<VecDeque<(u64, PathEvent)>>,
    passed: AtomicU64,
    /// The number of connections that were passed on.
    connections: AtomicUsize,
    sockets: Mutex<Vec<TcpStream>>,
    is_silent: AtomicBool,
    is_full: AtomicBool,
    /// The number of connections that were not passed on.
    refused: AtomicUsize,
    is_over: AtomicBool,
}

impl Relay {
    fn start(server: SocketAddr, events: &[(u64, PathEvent)]) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let state = Arc::new(RelayState {
            address: listener.local_addr().unwrap(),
            server,
            events: Mutex::new(events.iter().copied().collect()),
            passed: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            sockets: Mutex::default(),
            is_silent: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            refused: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let relay = Relay(Arc::clone(&state));
        thread::spawn(move || state.accept(&listener));
        relay
    }

    fn connections(&self) -> usize {
        self.0.connections.load(Ordering::Acquire)
    }

    /// Lets new connections pass again.
    fn end_silence(&self) {
        self.0.is_silent.store(false, Ordering::Release);
        self.0.cut_all();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.cut_all();
    }
}

impl RelayState {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_over.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((client, _)) if self.is_silent.load(Ordering::Acquire) => {
                    self.sockets.lock().unwrap().push(client);
                }
                Ok(_) if self.is_full.load(Ordering::Acquire) => {
                    self.refused.fetch_add(1, Ordering::AcqRel);
                }
                Ok((client, _)) => self.pass(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn pass(self: &Arc<Self>, client: TcpStream) {
        // The server's end may be over.
        let Ok(server) = TcpStream::connect(self.server) else { return };
        self.connections.fetch_add(1, Ordering::AcqRel);
        let ends = [client, server];
        for from in [0, 1] {
            let [own, other] = [from, 1 - from].map(|end| ends[end].try_clone().unwrap());
            let state = Arc::clone(self);
            thread::spawn(move || state.pump(own, other));
        }
        self.sockets.lock().unwrap().extend(ends);
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut room = vec![0; 16 << 10];
        let mut was_silent = false;
        while let Ok(came @ 1..) = from.read(&mut room) {
            let passed = self.passed.fetch_add(came as u64, Ordering::AcqRel) + came as u64;
            self.happen(passed, &from);
            // What was lost once is missing for good.
            was_silent |= self.is_silent.load(Ordering::Acquire);
            if !was_silent && to.write_all(&room[..came]).is_err() {
                break;
            }
        }
        if !self.is_silent.load(Ordering::Acquire) {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    }

    /// Makes happen what is due once `passed` bytes have passed.
    fn happen(&self, passed: u64, from: &TcpStream) {
        let mut events = self.events.lock().unwrap();
        while events.front().is_some_and(|(at, _)| passed >= *at) {
            match events.pop_front() {
                Some((_, PathEvent::CutAll)) => self.cut_all(),
                Some((_, PathEvent::CutOne)) => drop(from.shutdown(Shutdown::Both)),
                Some((_, PathEvent::Silence)) => self.is_silent.store(true, Ordering::Release),
                Some((_, PathEvent::Full)) => self.is_full.store(true, Ordering::Release),
                None => {}
            }
        }
    }

    fn cut_all(&self) {
        let sockets = std::mem::take(&mut *self.sockets.lock().unwrap());
        sockets.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }
}

/// Returns the ends of a copy over a relay on which these events happen. The first end opens the flows.
fn over_relay(
    transport: &str,
    count: u32,
    events: &[(u64, PathEvent)],
    [patience, give_up_after]: [u64; 2],
) -> (Ends, Relay) {
    let (mut caller, listener) = openings(transport);
    let relay = Relay::start(caller.server, events);
    caller.server = relay.0.address;
    let [patience, give_up_after] = [patience, give_up_after].map(Duration::from_secs);
    let of = |opening| Flows { count, opening, patience, give_up_after };
    ([of(Opening::Connect(caller)), of(Opening::Accept(listener))], relay)
}

/// Returns the bytes of `number` MiB.
fn mib(number: u64) -> u64 {
    number * MIB as u64
}

#[test]
fn a_copy_continues_over_flows_that_are_opened_again() {
    for (transport, is_opened_by_target) in [("tcp", false), ("tls", true), ("tls", false)] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        tree(from.path());
        fs::write(from.path().join("longer"), bytes(24 * MIB, 9)).unwrap();
        let events = [2, 9, 17].map(|at| (mib(at), PathEvent::CutAll));
        let (mut ends, relay) = over_relay(transport, 3, &events, [10, 30]);
        if is_opened_by_target {
            ends.reverse();
        }
        let outcome = copy_until(from.path(), to.path(), ends, &CancelFlag::default()).unwrap();
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!((outcome.copied, outcome.failed), (607, 0), "each file once");
        assert!(outcome.sent_bytes >= outcome.copied_bytes, "{outcome:?}");
        assert!(relay.connections() > 3, "{transport}: no flow was opened again");
        is_same(from.path(), to.path());
    }
}

#[test]
fn one_flow_of_several_is_opened_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(32 * MIB, 3)).unwrap();
    let events = [3, 11].map(|at| (mib(at), PathEvent::CutOne));
    let (ends, relay) = over_relay("tcp", 4, &events, [10, 30]);
    let outcome = copy_until(from.path(), to.path(), ends, &CancelFlag::default()).unwrap();
    assert_eq!((outcome.copied, outcome.failed), (1, 0), "{outcome:?}");
    assert!(relay.connections() > 4, "no flow was opened again");
    is_same(from.path(), to.path());
}

/// Wherever the path breaks, also in the first and in the last messages, both ends come to the same end.
#[test]
fn a_break_at_any_moment_does_no_harm() {
    let from = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join("folder")).unwrap();
    for name in ["a", "b", "folder/c"] {
        fs::write(from.path().join(name), bytes(1_000, name.len() as u64)).unwrap();
    }
    let copied_with_cut = |at: u64| {
        let to = tempfile::tempdir().unwrap();
        let (ends, relay) = over_relay("tcp", 1, &[(at, PathEvent::CutAll)], [5, 5]);
        let outcome = copy_until(from.path(), to.path(), ends, &CancelFlag::default());
        let outcome = outcome.unwrap_or_else(|error| panic!("cut after {at} bytes: {error}"));
        assert_eq!((outcome.copied, outcome.made, outcome.failed), (3, 1, 0), "cut after {at} bytes");
        is_same(from.path(), to.path());
        relay
    };
    let all = copied_with_cut(u64::MAX).0.passed.load(Ordering::Acquire);
    // The proof of the key, which the first flow needs, has fewer than 300 bytes.
    let moments = (300..all - 400).step_by(400).chain((all - 400..all).step_by(20));
    let cut = moments.filter(|at| copied_with_cut(*at).connections() > 1).count();
    assert!(cut > 10, "{cut} flows were opened again");
}

#[test]
fn a_path_that_is_silent_for_a_while_is_used_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(24 * MIB, 4)).unwrap();
    let (ends, relay) = over_relay("tls", 2, &[(mib(6), PathEvent::Silence)], [2, 60]);
    let outcome = thread::scope(|scope| {
        let copying = scope.spawn(|| copy_until(from.path(), to.path(), ends, &CancelFlag::default()));
        // Longer than the patience, so that both flows count as broken.
        let end = Instant::now() + Duration::from_secs(4);
        while !copying.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!copying.is_finished(), "the silent path carried the copy");
        relay.end_silence();
        copying.join().expect("no panic")
    });
    assert_eq!(outcome.unwrap().copied, 1);
    assert!(relay.connections() > 2, "no flow was opened again");
    is_same(from.path(), to.path());
}

/// The copy takes longer than it would wait for a flow that has broken.
#[test]
fn a_copy_continues_without_flows_that_it_cannot_open_later() {
    for is_opened_by_target in [false, true] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("long"), bytes(28 * MIB, 6)).unwrap();
        // By the limit, the first flows have long been opened then.
        let (mut ends, relay) = over_relay("tls", 4, &[(mib(4), PathEvent::Full)], [5, 5]);
        if is_opened_by_target {
            ends.reverse();
        }
        let [sending, receiving] = ends;
        let rules = CopyRules { limit: Some(BitRate(32e6)), ..CopyRules::default() };
        let source = &Source { rules, ..source(from.path()) };
        let (target, cancel) = (&target(to.path()), &CancelFlag::default());
        let [sent, received] = &[CopyProgress::default(), CopyProgress::default()];
        [sent, received].into_iter().for_each(|progress| progress.begin_with(2));
        let outcome = thread::scope(|scope| {
            let taken = scope.spawn(move || receive(receiving, target, received, cancel));
            let copying = scope.spawn(move || send(sending, source, sent, cancel));
            while !relay.0.is_full.load(Ordering::Acquire) && !copying.is_finished() {
                thread::sleep(Duration::from_millis(10));
            }
            [sent, received].into_iter().for_each(|progress| progress.widen(4));
            taken.join().expect("no panic").unwrap();
            copying.join().expect("no panic").unwrap()
        });
        assert!(outcome.is_complete(), "{outcome:?}");
        assert_eq!(relay.connections(), 2);
        assert!(relay.0.refused.load(Ordering::Acquire) > 0, "it opened no further flow");
        is_same(from.path(), to.path());
    }
}

/// Both ends give up, say why, and leave what has arrived for the next copy.
#[test]
fn both_ends_give_up_on_a_path_that_stays_silent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(32 * MIB, 5)).unwrap();
    for is_opened_by_target in [false, true] {
        let (mut ends, _relay) = over_relay("tcp", 2, &[(mib(8), PathEvent::Silence)], [2, 4]);
        if is_opened_by_target {
            ends.reverse();
        }
        let begun = Instant::now();
        for error in errors(from.path(), to.path(), ends) {
            assert!(matches!(error, Error::Silent { .. }), "{error}");
            assert!(error.to_string().contains("--patience"), "{error}");
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(60), "{took:?}");
        assert!(!to.path().join("long").exists());
        let left = fs::read_dir(to.path().join(".landspeed-copy")).unwrap();
        assert_eq!(left.count(), 1, "the part stays");
    }
    let outcome = copy(from.path(), to.path(), "tcp").unwrap();
    assert!(outcome.is_complete() && outcome.sent_bytes < outcome.copied_bytes, "{outcome:?}");
    is_same(from.path(), to.path());
}

/// Copies, and returns the errors of both ends.
fn errors(from: &Path, to: &Path, [sending, receiving]: Ends) -> [Error; 2] {
    let (source, target, cancel) = (source(from), &target(to), &CancelFlag::default());
    thread::scope(|scope| {
        let received = scope.spawn(move || receive(receiving, target, &CopyProgress::default(), cancel));
        let sent = send(sending, &source, &CopyProgress::default(), cancel);
        [sent.unwrap_err(), received.join().expect("no panic").unwrap_err()]
    })
}

/// Compares, and returns what each end says.
fn compared(
    from: &Path,
    to: &Path,
    [asking, showing]: Ends,
    progress: &CopyProgress,
) -> (Result<CopyComparison, Error>, Result<(), Error>) {
    let (source, target, cancel) = (&source(from), &target(to), &CancelFlag::default());
    thread::scope(|scope| {
        let shown =
            scope.spawn(move || show(showing, target, CopyCheck::Verify, &CopyProgress::default(), cancel));
        let compared = compare(asking, source, CopyCheck::Verify, progress, cancel);
        (compared, shown.join().expect("no panic"))
    })
}

/// The flows of a comparison are not opened again, and neither end waits for TCP to give up.
#[test]
fn both_ends_of_a_comparison_give_up_on_a_path_that_falls_silent() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree(from.path());
    for is_opened_by_target in [false, true] {
        // The first question has more bytes.
        let (mut ends, _relay) = over_relay("tcp", 2, &[(2_000, PathEvent::Silence)], [1, 3]);
        if is_opened_by_target {
            ends.reverse();
        }
        let begun = Instant::now();
        let (compared, shown) = compared(from.path(), to.path(), ends, &CopyProgress::default());
        for error in [compared.map(drop), shown] {
            let error = error.expect_err("the path is silent");
            assert!(matches!(error, Error::Unheard { .. }), "{error}");
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(60), "{took:?}");
    }
}

/// An end that is busy for longer than the other one would wait sends keep-alives meanwhile.
#[test]
fn a_comparison_waits_for_an_end_that_is_busy() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // More than may wait to be taken, so that the source stops until some are.
    let files: u64 = 9_000;
    (0..files).for_each(|n| fs::write(from.path().join(format!("{n}")), "").unwrap());
    let (ends, _relay) = over_relay("tcp", 2, &[], [2, 3]);
    let progress = CopyProgress::default();
    let (compared, shown) = thread::scope(|scope| {
        let comparing = scope.spawn(|| compared(from.path(), to.path(), ends, &progress));
        thread::sleep(Duration::from_secs(7));
        assert!(!comparing.is_finished(), "it does not wait");
        while !comparing.is_finished() {
            drop(progress.listed());
            thread::sleep(Duration::from_millis(10));
        }
        comparing.join().expect("no panic")
    });
    shown.unwrap();
    assert_eq!(compared.unwrap().differing, files);
}
