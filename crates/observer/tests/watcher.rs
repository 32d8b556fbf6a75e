//! Tests of several observers that run together, as an agent runs them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use landspeed_observer::{Error, Observer, RunPolicy, Watch, WatchSubject, Watcher, observer};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{
    CostProfile, CpuUsage, LinkCounters, Observations, SnmpCounts, SoftnetCounts, TcpSample,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Sends `bytes` over loopback and waits for one byte in return, which acknowledges them all.
fn exchange(client: &mut TcpStream, server: &mut TcpStream, bytes: usize) {
    let sender = client.try_clone().map(|mut client| {
        std::thread::spawn(move || client.write_all(&vec![7; bytes]).expect("send over loopback"))
    });
    server.read_exact(&mut vec![0; bytes]).expect("receive over loopback");
    sender.expect("clone a socket").join().expect("sender thread");
    server.write_all(b"k").expect("send over loopback");
    client.read_exact(&mut [0]).expect("receive over loopback");
}

/// Returns the lines of `unseen`, except those with reasons outside the test: another network namespace of this machine
/// may use RPS, and a container's PID namespace hides kernel threads.
fn notes(seen: &Observations) -> Vec<&str> {
    let of_the_machine = |line: &&str| line.contains("RPS woke") || line.contains("from this PID namespace");
    seen.unseen.iter().map(String::as_str).filter(|line| !of_the_machine(line)).collect()
}

#[test]
fn a_window_over_loopback_shows_in_every_observer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let mut watcher = Watcher::new("lo");

    let (threads, sockets) = ([own_thread()], [(0, client.as_fd()), (1, server.as_fd())]);
    watcher.open(&WatchSubject { threads: &threads, sockets: &sockets, ..WatchSubject::default() });
    watcher.sample(Nanos(0));
    exchange(&mut client, &mut server, 1_000_000);
    watcher.sample(Nanos::millis(1));
    let seen = watcher.close();

    assert!(
        seen.get::<CpuUsage>().window_ns > Nanos(0) && seen.get::<CpuUsage>().workload_ns.0 > 0,
        "{seen:?}"
    );
    let [before, _, sent, received] = seen.get::<Vec<TcpSample>>().as_slice() else { panic!("{seen:?}") };
    assert_eq!((sent.flow, received.flow, sent.at_ns), (0, 1, Nanos::millis(1)));
    assert_eq!(sent.acked_bytes.0 - before.acked_bytes.0, 1_000_000);
    assert_eq!((sent.received_bytes, received.received_bytes), (Bytes(1), Bytes(1_000_000)));
    assert!(sent.rtt_ns > Nanos(0) && sent.min_rtt_ns.is_some() && sent.mss_bytes > Bytes(500), "{sent:?}");
    assert!(sent.cwnd_segments >= 2 && sent.peer_window_bytes > Bytes(0), "{sent:?}");
    assert!(seen.get::<Vec<LinkCounters>>()[0].tx_bytes >= Bytes(1_000_000), "{seen:?}");
    assert!(seen.get::<SoftnetCounts>().0["processed"] > 0, "{seen:?}");
    assert!(seen.get::<SnmpCounts>().0["Tcp.OutSegs"] > 0, "{seen:?}");
    assert_eq!(notes(&seen), [""; 0]);

    let after = watcher.close();
    assert_eq!(after, Observations::default(), "no window is open");
}

#[test]
fn a_link_that_is_gone_costs_its_own_figures_only() {
    let mut watcher = Watcher::new("no-such0");
    watcher.open(&WatchSubject { threads: &[own_thread()], ..WatchSubject::default() });
    let seen = watcher.close();
    assert!(seen.get::<Vec<LinkCounters>>().is_empty() && seen.get::<CpuUsage>().window_ns > Nanos(0));
    assert!(seen.unseen.iter().any(|line| line.contains("no-such0")), "{:?}", seen.unseen);
}

/// An observer that fails at every sample, and when a window closes.
const BROKEN: Observer = Observer {
    name: "broken",
    about: "nothing",
    cannot_see: &["anything"],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: &[],
    can_run: || Ok(()),
    watch: |_| Box::new(BrokenWatch),
};

struct BrokenWatch;

impl Watch for BrokenWatch {
    fn open(&mut self, _scene: &WatchSubject<'_>) -> Result<(), Error> {
        Ok(())
    }
    fn sample(&mut self, _at: Nanos) -> Result<(), Error> {
        Err(Error::Gone { object: "sample".into(), why: "test".into() })
    }
    fn close(&mut self, _seen: &mut Observations) -> Result<(), Error> {
        Err(Error::Gone { object: "close".into(), why: "test".into() })
    }
}

#[test]
fn a_failing_observer_is_named_once_and_stops_no_other() {
    static FAILS: Observer = BROKEN;
    static CANNOT_RUN: Observer = Observer { can_run: || Err("this kernel lacks it".into()), ..BROKEN };
    let cpu = observer("cpu").unwrap();
    let mut watcher = Watcher::with(&[&FAILS, &CANNOT_RUN, cpu], "lo");
    for window in 0..2 {
        watcher.open(&WatchSubject { threads: &[own_thread()], ..WatchSubject::default() });
        (0..100).for_each(|i| watcher.sample(Nanos(i)));
        let seen = watcher.close();
        assert_eq!(
            notes(&seen),
            ["broken: this kernel lacks it", "broken: sample is gone: test", "broken: close is gone: test"],
            "window {window}"
        );
        assert!(seen.get::<CpuUsage>().window_ns > Nanos(0));
    }
}

#[test]
fn without_capabilities_an_observer_gives_its_reason_and_the_others_run() {
    // Capabilities belong to a thread: the rest of this program keeps its own.
    let seen = std::thread::spawn(|| {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).expect("anyone may drop capabilities");
        let rows = ["path", "cost", "cpu"].map(|name| observer(name).expect("it is in the table"));
        let mut watcher = Watcher::with(&rows, "lo");
        watcher.open(&WatchSubject { threads: &[own_thread()], ..WatchSubject::default() });
        watcher.close()
    });
    let seen = seen.join().expect("no panic");
    assert!(seen.get::<CpuUsage>().window_ns > Nanos(0), "{seen:?}");
    let why = |row: &str| seen.unseen.iter().find(|line| line.starts_with(row)).expect("it says why");
    assert!(why("path: ").contains("CAP_BPF") && why("path: ").contains("run landspeed as root"), "{seen:?}");
    // Some hosts permit sampling to all users (kernel.perf_event_paranoid).
    if seen.get::<Option<CostProfile>>().is_none() {
        let why = why("cost: ");
        assert!(why.contains("perf_event_open(2) is refused") || why.contains("kptr_restrict"), "{why}");
    }
}
