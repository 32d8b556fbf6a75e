//! All observers together, as an agent uses them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use landspeed_observer::{Error, Observer, Scene, Watch, Watcher};
use landspeed_record::{CpuUsage, LinkCounters, Observations, SnmpCounts, SoftnetCounts, TcpSample};
use landspeed_units::{Bytes, Nanos};

fn own_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Sends `bytes` over loopback and waits for one byte back, which acknowledges them all.
fn exchange(client: &mut TcpStream, server: &mut TcpStream, bytes: usize) {
    let sender = client.try_clone().map(|mut client| {
        std::thread::spawn(move || client.write_all(&vec![7; bytes]).expect("send over loopback"))
    });
    server.read_exact(&mut vec![0; bytes]).expect("receive over loopback");
    sender.expect("clone a socket").join().expect("sender thread");
    server.write_all(b"k").expect("send over loopback");
    client.read_exact(&mut [0]).expect("receive over loopback");
}

/// What the watcher could not see for reasons of its own: another network namespace of this machine
/// may use RPS meanwhile, and a container's PID namespace hides kernel threads.
fn told(seen: &Observations) -> Vec<&str> {
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
    watcher.open(&Scene { threads: &threads, sockets: &sockets, ..Scene::default() });
    watcher.sample(Nanos(0));
    exchange(&mut client, &mut server, 1_000_000);
    watcher.sample(Nanos::millis(1));
    let seen = watcher.close();

    assert!(
        seen.get::<CpuUsage>().window_ns > Nanos(0) && seen.get::<CpuUsage>().workload_ns.0 > 0,
        "{seen:?}"
    );
    assert_eq!(seen.get::<Vec<TcpSample>>().len(), 4, "two flows, two samples");
    assert_eq!(seen.get::<Vec<TcpSample>>()[3].received_bytes, Bytes(1_000_000));
    assert!(seen.get::<Vec<LinkCounters>>()[0].tx_bytes >= Bytes(1_000_000), "{seen:?}");
    assert!(seen.get::<SoftnetCounts>().0["processed"] > 0, "{seen:?}");
    assert!(seen.get::<SnmpCounts>().0["Tcp.OutSegs"] > 0, "{seen:?}");
    assert_eq!(told(&seen), [""; 0]);

    let after = watcher.close();
    assert_eq!(after, Observations::default(), "no window is open");
}

#[test]
fn a_link_that_is_gone_costs_its_own_figures_only() {
    let mut watcher = Watcher::new("no-such0");
    watcher.open(&Scene { threads: &[own_thread()], ..Scene::default() });
    let seen = watcher.close();
    assert!(seen.get::<Vec<LinkCounters>>().is_empty() && seen.get::<CpuUsage>().window_ns > Nanos(0));
    assert!(seen.unseen.iter().any(|line| line.contains("no-such0")), "{:?}", seen.unseen);
}

/// An observer that fails in every way it can.
struct Broken {
    bar: Option<&'static str>,
}

impl Observer for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }
    fn about(&self) -> &'static str {
        "nothing"
    }
    fn cannot_see(&self) -> &'static [&'static str] {
        &["anything"]
    }
    fn can_run(&self) -> Result<(), String> {
        self.bar.map_or(Ok(()), |why| Err(why.into()))
    }
    fn watch(&self, _link: &str) -> Box<dyn Watch> {
        Box::new(BrokenWatch)
    }
}

struct BrokenWatch;

impl Watch for BrokenWatch {
    fn open(&mut self, _scene: &Scene<'_>) -> Result<(), Error> {
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
fn a_failing_observer_is_named_once_and_stops_nobody() {
    static BROKEN: Broken = Broken { bar: None };
    static BARRED: Broken = Broken { bar: Some("this kernel lacks it") };
    let cpu = landspeed_observer::observer("cpu").unwrap();
    let mut watcher = Watcher::with(&[&BROKEN, &BARRED, cpu], "lo");
    for window in 0..2 {
        watcher.open(&Scene { threads: &[own_thread()], ..Scene::default() });
        (0..100).for_each(|i| watcher.sample(Nanos(i)));
        let seen = watcher.close();
        assert_eq!(
            told(&seen),
            ["broken: this kernel lacks it", "broken: sample is gone: test", "broken: close is gone: test"],
            "window {window}"
        );
        assert!(seen.get::<CpuUsage>().window_ns > Nanos(0));
    }
}
