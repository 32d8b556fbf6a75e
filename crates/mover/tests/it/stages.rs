//! The times of a copy's stages, and its bottleneck.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use landspeed_analysis::copy_held;
use landspeed_mover::{CopyProgress, CopyRules, Flows, Opening, Source, Target, receive, send};
use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{CopyEndTimes, CopyHold, CopyStage, CopyTimes};
use landspeed_transport::CancelFlag;

use crate::{Ends, MIB, bytes, flows, is_same, openings, source, target, tree};

/// Copies the entries of a folder into another one, and returns the times of both ends.
fn times(from: &Path, to: &Path, ends: Ends, is_synced: bool) -> CopyTimes {
    let times = times_of(&source(from), &Target { is_synced, ..target(to) }, ends);
    is_same(from, to);
    times
}

fn times_of(source: &Source, target: &Target, ends: Ends) -> CopyTimes {
    times_while_slow(source, target, ends, Duration::ZERO)
}

/// Copies with a source that works more slowly for this time, and returns the times of both ends.
fn times_while_slow(
    source: &Source,
    target: &Target,
    [sending, receiving]: Ends,
    slow: Duration,
) -> CopyTimes {
    let [sent, received] = [CopyProgress::default(), CopyProgress::default()];
    sent.slow(slow);
    let cancel = CancelFlag::default();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(receiving, target, &received, &cancel));
        let outcome = send(sending, source, &sent, &cancel).unwrap();
        assert!(outcome.is_complete(), "{outcome:?}");
        receiver.join().expect("no panic").unwrap();
    });
    CopyTimes { source: sent.times(), target: received.times(), ..CopyTimes::default() }
}

#[test]
fn every_stage_of_both_ends_has_its_time() {
    const FLOWS: u32 = 3;
    for transport in ["tcp", "tls"] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        tree(from.path());
        let begun = Instant::now();
        let times = times(from.path(), to.path(), flows(transport, FLOWS), true);
        let took = Nanos::from(begun.elapsed());
        use CopyStage::{Hash, Install, Metadata, Read, Receive, Send, Sync, Walk, Write};
        let of_source = [Walk, Read, Hash, Send].map(|stage| (stage, times.source.of(stage)));
        let of_target =
            [Receive, Hash, Write, Metadata, Sync, Install].map(|stage| (stage, times.target.of(stage)));
        for (stage, spent) in of_source.into_iter().chain(of_target) {
            assert!(spent.busy() > Nanos(0), "{transport} {stage:?}: {spent:?}");
        }
        // No time is counted twice: two threads a flow, and those that walk, or the one that syncs.
        for (end, others) in [(&times.source, 4), (&times.target, 1)] {
            let all: u64 = end.stages.iter().map(|stage| stage.total().0).sum();
            assert!(all <= took.times(u64::from(2 * FLOWS + others)).0, "{all} in {took}: {end:?}");
            assert_eq!(end.cipher_ns > Nanos(0), transport == "tls", "{transport}: {end:?}");
        }
        assert!(times.source.network.sent > 0, "TCP was asked: {times:?}");
    }
}

/// The least of eight copies each way, alternating: other programs add to the processor time of some.
#[test]
fn a_source_that_is_slowed_uses_more_of_its_processor_for_the_same_copy() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("long"), bytes(16 * MIB, 7)).unwrap();
    let used = |slow: Duration| {
        let to = tempfile::tempdir().unwrap();
        let target = Target { is_synced: false, ..target(to.path()) };
        let times = times_while_slow(&source(from.path()), &target, flows("tls", 1), slow);
        is_same(from.path(), to.path());
        let of = |stage| times.source.of(stage).processor_ns.0;
        Nanos(of(CopyStage::Read) + of(CopyStage::Hash) + of(CopyStage::Send))
    };
    let least_of_both = || {
        let each: Vec<[Nanos; 2]> =
            (0..8).map(|_| [Duration::ZERO, Duration::from_secs(60)].map(&used)).collect();
        [0, 1].map(|way| each.iter().map(|both| both[way]).min().expect("eight copies"))
    };
    // A tenth more is expected; a busy machine hides it at times.
    let mut tries = Vec::<[Nanos; 2]>::new();
    let is_slower = |_| {
        let [usual, slow] = least_of_both();
        tries.push([usual, slow]);
        slow.0 as f64 > 1.03 * usual.0 as f64
    };
    assert!((0..3).any(is_slower), "{tries:?}");
}

/// Passes connections on to a server, and what the clients say far slower than any end of a copy.
fn slow_path(server: SocketAddr, connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().take(connections).flatten() {
            let server = TcpStream::connect(server).unwrap();
            let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || pass(client, server, Duration::from_millis(4)));
            thread::spawn(move || pass(from_server, to_client, Duration::ZERO));
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, pause: Duration) {
    let mut room = vec![0; 64 << 10];
    while let Ok(came @ 1..) = from.read(&mut room) {
        if to.write_all(&room[..came]).is_err() {
            break;
        }
        thread::sleep(pause);
    }
    // The other direction may have ended both.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[test]
fn a_path_that_is_far_slower_than_both_ends_holds_the_copy() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The buffers of both connections take a part of it.
    fs::write(from.path().join("long"), bytes(48 * MIB, 7)).unwrap();
    let (mut caller, listener) = openings("tcp");
    caller.server = slow_path(caller.server, 1);
    let limit = Duration::from_secs(60);
    let of = |opening| Flows { count: 1, opening, patience: limit, give_up_after: limit };
    let ends = [of(Opening::Connect(caller)), of(Opening::Accept(listener))];
    let held = copy_held(&times(from.path(), to.path(), ends, false));
    let first = &held.by[0];
    let of_network =
        [CopyHold::NetworkWindow, CopyHold::SendBuffer, CopyHold::NetworkLoss, CopyHold::NetworkRate];
    assert!(of_network.contains(&first.hold) && first.share > 0.5, "{held:?}");
}

/// A flow that waits for its share of the rate waits for neither end.
#[test]
fn a_limit_holds_the_copy() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(4 * MIB, 7)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(16e6)), ..CopyRules::default() };
    let source = Source { rules, ..source(from.path()) };
    let target = Target { is_synced: false, ..target(to.path()) };
    let held = copy_held(&times_of(&source, &target, flows("tcp", 1)));
    assert_eq!(held.by[0].hold, CopyHold::Limit, "{held:?}");
}

/// A file of two pieces over four flows: one flow waits for its share of the rate, and nothing is left for the others.
#[test]
fn flows_for_which_nothing_is_left_are_idle_at_both_ends() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("short"), bytes(2 * MIB, 7)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(8e6)), ..CopyRules::default() };
    let source = Source { rules, ..source(from.path()) };
    let target = Target { is_synced: false, ..target(to.path()) };
    let times = times_of(&source, &target, flows("tcp", 4));
    let idle = |end: &CopyEndTimes| Nanos(end.stages.iter().map(|stage| stage.idle_ns.0).sum());
    // At least two flows, while the second piece waits for about a second.
    for end in [&times.source, &times.target] {
        assert!(idle(end) > times.source.of(CopyStage::Send).limited_ns, "{times:?}");
    }
    assert_eq!(copy_held(&times).by[0].hold, CopyHold::Limit, "{times:?}");
}
