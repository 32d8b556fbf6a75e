//! Tests of the path tracer with real packets over a veth pair between two namespaces. They are skipped without root,
//! BTF or BPF.

mod cost;
mod lab;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::Duration;

use lab::{ObservedHost, RepeatingThread, TestLab, Transfer, held, tun};
use landspeed_observer::{Watch, WatchSubject, observer};
use landspeed_record::{Observations, PathTrace, StackHop, WatchTarget};

/// Opens a watch over the link of `host`.
fn watch(host: &ObservedHost) -> Box<dyn Watch> {
    watch_link(host, host.device())
}

fn watch_link(host: &ObservedHost, link: &str) -> Box<dyn Watch> {
    host.run(|| observer("path").expect("it is in the table").watch(link))
}

fn close(watch: &mut dyn Watch) -> PathTrace {
    let mut seen = Observations::default();
    watch.close(&mut seen).expect("close");
    seen.get::<Option<PathTrace>>().clone().expect("a trace")
}

/// Opens windows over `subject`, each longer than the previous one, until one satisfies `enough`. On a busy machine
/// attaching takes long, so the budget rarely permits it, and the programs see little.
fn watch_until(
    watch: &mut dyn Watch,
    subject: &WatchSubject<'_>,
    enough: impl Fn(&PathTrace) -> bool,
) -> PathTrace {
    let mut trace = PathTrace::default();
    let mut length = Duration::from_millis(600);
    while length < Duration::from_secs(90) {
        watch.open(subject).expect("open");
        std::thread::sleep(length);
        trace = close(watch);
        if enough(&trace) {
            return trace;
        }
        length = length.mul_f64(1.3);
    }
    panic!("not seen in minutes; the last window: {trace:#?}");
}

fn hops(trace: &PathTrace) -> BTreeSet<StackHop> {
    trace.hops.iter().map(|hop| hop.hop).collect()
}

fn has(trace: &PathTrace, wanted: &[StackHop], counted: &[&str]) -> bool {
    let hops = hops(trace);
    wanted.iter().all(|hop| hops.contains(hop)) && counted.iter().all(|what| trace.counts.contains_key(*what))
}

fn flow(at: SocketAddr) -> WatchSubject<'static> {
    WatchSubject { target: WatchTarget::Flow { at }, ..WatchSubject::default() }
}

/// Returns a UDP socket at A, one at B whose reads time out, and the address of the one at B. They are not connected.
fn datagrams(lab: &TestLab) -> (UdpSocket, UdpSocket, SocketAddr) {
    let reader = lab.b.run(|| UdpSocket::bind((lab.b.address(), 0)).expect("bind"));
    reader.set_read_timeout(Some(Duration::from_millis(50))).expect("timeout");
    let to = reader.local_addr().expect("bound");
    (lab.a.run(|| UdpSocket::bind((lab.a.address(), 0)).expect("bind")), reader, to)
}

const DOWN: [StackHop; 3] = [StackHop::SendToQueue, StackHop::QueueToDriver, StackHop::DriverToWire];
const UP: [StackHop; 3] =
    [StackHop::DeviceToTransport, StackHop::DeviceToSocket, StackHop::SocketToApplication];

#[test]
fn a_transfer_shows_every_hop() {
    let Some(lab) = TestLab::new() else { return };
    let (mut on_a, mut on_b) = (watch(&lab.a), watch(&lab.b));
    let transfer = Transfer::start(&lab, 8192);
    let own = [(0, transfer.client.as_fd())];
    let subject = WatchSubject { sockets: &own, ..WatchSubject::default() };
    let sent = watch_until(&mut *on_a, &subject, |trace| has(trace, &DOWN, &["sent", "received"]));
    assert_eq!(hops(&sent), DOWN.into(), "A sends only");
    let received = watch_until(&mut *on_b, &flow(transfer.server_address()), |trace| {
        has(trace, &UP, &["sent", "received"])
    });
    assert_eq!(hops(&received), UP.into(), "B receives only");
    for trace in [&sent, &received] {
        assert!(
            trace.one_in > 1 && trace.attached_ns.0 > 0 && trace.attached_ns < trace.window_ns,
            "{trace:?}"
        );
        for hop in &trace.hops {
            assert!(hop.bins.iter().all(|(edge, count)| edge.is_power_of_two() && *count > 0), "{hop:?}");
            assert!(hop.bins.is_sorted(), "{hop:?}");
        }
    }
}

#[test]
fn messages_of_one_byte_are_followed_too() {
    let Some(lab) = TestLab::new() else { return };
    let (mut client, mut server) = lab.connection();
    client.set_nodelay(true).expect("nodelay");
    let own = client.try_clone().expect("dup");
    let answering = std::thread::spawn(move || {
        let mut byte = [0];
        while server.read_exact(&mut byte).is_ok() && server.write_all(&byte).is_ok() {}
    });
    let asking = RepeatingThread::start(move || {
        client.write_all(b"x").and_then(|()| client.read_exact(&mut [0])).expect("a round trip");
    });
    let own_sockets = [(0, own.as_fd())];
    let subject = WatchSubject { sockets: &own_sockets, ..WatchSubject::default() };
    let all: Vec<_> = DOWN.into_iter().chain(UP).collect();
    watch_until(&mut *watch(&lab.a), &subject, |trace| has(trace, &all, &["sent", "received"]));
    drop(asking);
    own.shutdown(std::net::Shutdown::Both).expect("shutdown");
    answering.join().expect("the answering thread");
}

#[test]
fn other_flows_are_not_counted() {
    let Some(lab) = TestLab::new() else { return };
    let mut on_a = watch(&lab.a);
    let idle = lab.connection();
    let busy = Transfer::start(&lab, 8192);
    let counted =
        watch_until(&mut *on_a, &WatchSubject::default(), |trace| trace.counts.contains_key("sent"));
    assert!(counted.counts["sent"] > 0, "all flows are seen without sockets");
    let own = [(0, idle.0.as_fd())];
    let of_idle = WatchSubject { sockets: &own, ..WatchSubject::default() };
    for (whose, subject) in [("another flow", of_idle), ("another port", flow((lab.a.address(), 9).into()))] {
        let none = watch_until(&mut *on_a, &subject, |trace| trace.attached_ns.0 > 0);
        assert!(none.counts.is_empty() && none.hops.is_empty(), "{whose}: {none:?}");
    }
    drop(busy);
}

#[test]
fn segments_merged_by_gro_are_counted() {
    let Some(lab) = TestLab::new() else { return };
    lab.a.tool("ethtool -K LINK tso off gso off");
    lab.b.tool("ethtool -K LINK gro on");
    let transfer = Transfer::start(&lab, 65536);
    let subject = flow(transfer.server_address());
    let trace =
        watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &UP, &["received", "gro-merged"]));
    assert!(trace.counts["gro-merged"] < trace.counts["received"], "{trace:?}");
}

#[test]
fn segments_on_the_fast_path_are_counted() {
    let Some(lab) = TestLab::new() else { return };
    let transfer = Transfer::start(&lab, 65536);
    let subject = flow(transfer.server_address());
    let counts = ["received", "tcp-segments", "header-predicted", "checksum-done"];
    let trace = watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &UP, &counts));
    assert!(trace.counts["header-predicted"] <= trace.counts["tcp-segments"], "{trace:?}");
    assert!(trace.counts["checksum-done"] <= trace.counts["received"], "{trace:?}");
}

#[test]
fn a_checksum_that_the_device_has_not_verified_is_not_counted_as_done() {
    let Some(lab) = TestLab::new() else { return };
    lab.a.tool("ethtool -K LINK tx off");
    lab.b.tool("ethtool -K LINK rx off");
    let transfer = Transfer::start(&lab, 65536);
    let subject = flow(transfer.server_address());
    let trace = watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &UP, &["received"]));
    assert!(!trace.counts.contains_key("checksum-done"), "{trace:?}");
}

#[test]
fn datagrams_are_followed_to_their_reader() {
    let Some(lab) = TestLab::new() else { return };
    let (writer, reader, to) = datagrams(&lab);
    let own = [writer.try_clone().expect("dup"), reader.try_clone().expect("dup")];
    let _both = RepeatingThread::start(move || {
        drop(writer.send_to(&[7; 1000], to));
        drop(reader.recv(&mut [0; 2000]));
    });
    let sending = [(0, own[0].as_fd())];
    let subject = WatchSubject { sockets: &sending, ..WatchSubject::default() };
    let down = [StackHop::QueueToDriver, StackHop::DriverToWire];
    watch_until(&mut *watch(&lab.a), &subject, |trace| has(trace, &down, &["sent"]));
    let reading = [(0, own[1].as_fd())];
    let subject = WatchSubject { sockets: &reading, ..WatchSubject::default() };
    let up = [StackHop::DeviceToSocket, StackHop::SocketToApplication];
    watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &up, &["received"]));
}

/// The kernel wakes the reader only for the first datagram, but the waiting times of the others are measured too.
#[test]
fn datagrams_that_wait_in_a_queue_are_seen() {
    let Some(lab) = TestLab::new() else { return };
    let (writer, reader, to) = datagrams(&lab);
    let own = reader.try_clone().expect("dup");
    let _both = RepeatingThread::start(move || {
        (0..20).for_each(|_| drop(writer.send_to(&[7; 1000], to)));
        std::thread::sleep(Duration::from_millis(2));
        (0..20).for_each(|_| drop(reader.recv(&mut [0; 2000])));
    });
    let reading = [(0, own.as_fd())];
    let subject = WatchSubject { sockets: &reading, ..WatchSubject::default() };
    let trace =
        watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &[StackHop::SocketToApplication], &[]));
    let wait = trace.hops.iter().find(|hop| hop.hop == StackHop::SocketToApplication).expect("just seen");
    assert!(wait.bins.iter().all(|(edge, _)| *edge > 1_000_000), "{wait:?}");
}

/// Like a NIC, a tun device frees a packet when the packet has left. Here that is when the test reads it, at least 5 ms
/// later.
#[test]
fn a_device_that_frees_sent_packets_is_waited_for() {
    let Some(lab) = TestLab::new() else { return };
    let device = tun(&lab.a, "tn", "10.9.1.1/24");
    let _reading = RepeatingThread::start(move || {
        std::thread::sleep(Duration::from_millis(5));
        let mut packet = [0; 2000];
        // Reads the whole burst, so that no longer backlog builds up in the device's queue.
        (0..20).for_each(|_| drop((&device).read(&mut packet)));
    });
    let writer = lab.a.run(|| UdpSocket::bind("10.9.1.1:0").expect("bind"));
    let _writing = RepeatingThread::start(move || {
        drop(writer.send_to(&[7; 1000], "10.9.1.2:9"));
        std::thread::sleep(Duration::from_micros(200));
    });
    let subject = flow("10.9.1.2:9".parse().expect("an address"));
    let trace = watch_until(&mut *watch_link(&lab.a, "tn"), &subject, |trace| {
        has(trace, &[StackHop::DriverToWire], &["sent"])
    });
    let wire = trace.hops.iter().find(|hop| hop.hop == StackHop::DriverToWire).expect("just seen");
    assert!(wire.bins.iter().any(|(edge, _)| *edge > 1_000_000), "{wire:?}");
    assert!(!trace.notes.iter().any(|note| note.contains("virtual")), "{:?}", trace.notes);
}

#[test]
fn fragments_are_counted() {
    let Some(lab) = TestLab::new() else { return };
    let writer = lab.a.run(|| UdpSocket::bind((lab.a.address(), 0)).expect("bind"));
    writer.connect((lab.b.address(), 9)).expect("connect");
    let own = writer.try_clone().expect("dup");
    let _writing = RepeatingThread::start(move || drop(writer.send(&[7; 8000])));
    let own = [(0, own.as_fd())];
    let subject = WatchSubject { sockets: &own, ..WatchSubject::default() };
    watch_until(&mut *watch(&lab.a), &subject, |trace| has(trace, &[], &["sent", "fragments"]));
}

#[test]
fn a_drop_names_the_kernels_reason() {
    let Some(lab) = TestLab::new() else { return };
    let writer = lab.a.run(|| UdpSocket::bind((lab.a.address(), 0)).expect("bind"));
    // Nothing listens on port 9 of B; A learns this by ICMP, and the next call fails.
    let to = (lab.b.address(), 9);
    let _writing = RepeatingThread::start(move || drop(writer.send_to(&[7; 1000], to)));
    let subject = flow((lab.b.address(), 9).into());
    watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &[], &["dropped: NO_SOCKET"]));

    lab.a.tool("tc qdisc replace dev LINK root tbf rate 1mbit burst 3000 limit 6000");
    let trace = watch_until(&mut *watch(&lab.a), &subject, |trace| {
        trace.counts.keys().any(|what| what.starts_with("dropped: QDISC"))
    });
    assert!(trace.counts.values().all(|count| *count > 0), "{trace:?}");
}

#[test]
fn losses_show_as_retransmissions() {
    let Some(lab) = TestLab::new() else { return };
    // A queue of a dozen segments: a loss every few milliseconds.
    lab.a.tool("ethtool -K LINK tso off gso off");
    lab.a.tool("tc qdisc replace dev LINK root tbf rate 200mbit burst 10000 limit 20000");
    let transfer = Transfer::start(&lab, 65536);
    let own = [(0, transfer.client.as_fd())];
    let subject = WatchSubject { sockets: &own, ..WatchSubject::default() };
    watch_until(&mut *watch(&lab.a), &subject, |trace| has(trace, &[], &["retransmitted"]));
    let subject = flow(transfer.server_address());
    watch_until(&mut *watch(&lab.b), &subject, |trace| has(trace, &[], &["out-of-order"]));
}

/// Returns the number of links once most are there: more than a few, and the same in two looks. They are there for
/// 30 ms at a time, and on a busy machine this thread may miss that. `None` if it misses every time.
fn all_attached() -> Option<usize> {
    let mut last = 0;
    (0..10_000).find_map(|_| {
        let now = held().0;
        let are_all = now > 5 && now == last;
        last = now;
        std::thread::sleep(Duration::from_millis(1));
        are_all.then_some(now)
    })
}

#[test]
fn nothing_is_attached_but_for_moments_and_nothing_stays() {
    let Some(lab) = TestLab::new() else { return };
    assert_eq!(held(), (0, 0));
    let mut on_a = watch(&lab.a);
    let (links, programs) = held();
    assert!(links == 0 && programs > 5, "loaded, not attached: {links} links, {programs} programs");
    on_a.open(&WatchSubject::default()).expect("open");
    let attached = all_attached().expect("attached in an open window");
    let becomes = |links: RangeInclusive<usize>| {
        let mut moments = (0..10_000).map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            held().0
        });
        moments.any(|held| links.contains(&held))
    };
    assert!(becomes(0..=0), "detached in an open window");
    assert!(becomes(attached..=usize::MAX), "and attached again");
    close(&mut *on_a);
    assert_eq!(held(), (0, programs), "closed");
    on_a.open(&WatchSubject::default()).expect("open");
    assert!(becomes(attached..=usize::MAX), "in the next window");
    drop(on_a);
    assert_eq!(held(), (0, 0), "dropped in an open window");
}

#[test]
fn a_panic_leaves_nothing() {
    let Some(lab) = TestLab::new() else { return };
    let panicked = std::panic::catch_unwind(|| {
        let mut on_a = watch(&lab.a);
        on_a.open(&WatchSubject::default()).expect("open");
        assert_eq!(all_attached(), None, "panics: programs are attached");
    });
    assert!(panicked.is_err() && held() == (0, 0), "{:?}", held());
}

#[test]
fn windows_follow_each_other_and_a_link_that_is_gone_is_named() {
    let Some(lab) = TestLab::new() else { return };
    let mut on_a = watch(&lab.a);
    on_a.open(&WatchSubject::default()).expect("open");
    on_a.open(&WatchSubject::default()).expect("open once more");
    close(&mut *on_a);
    let mut seen = Observations::default();
    assert!(on_a.close(&mut seen).is_err() && seen.get::<Option<PathTrace>>().is_none(), "closed twice");
    let gone = watch_link(&lab.a, "no-such0").open(&WatchSubject::default()).unwrap_err().to_string();
    assert!(gone.contains("no-such0"), "{gone}");
}
