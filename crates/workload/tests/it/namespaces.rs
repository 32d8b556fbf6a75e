//! Trials between two network namespaces:
//!
//! ```text
//!   client's thread                    server's thread
//!   (own namespace)                    (own namespace)
//!   ls-c 10.9.0.1/24 ---- veth ---- ls-s 10.9.0.2/24
//!        fd09::1/64                      fd09::2/64
//! ```
//!
//! The namespaces have no name and belong to the two threads: they vanish with them, whatever happens.

use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::{Direction, End, KEY, connect, pingpong, set, spec, stream};
use landspeed_record::{
    Connections, DatagramCounts, Observations, SweepDatagrams, TrialSpec, Workload, ZeroCopied,
};
use landspeed_transport::settings::TRANSPORT;
use landspeed_units::{Bytes, Nanos};
use landspeed_workload::staggered::{self, Seen, StaggeredFlow};
use landspeed_workload::{
    Cancel, ClientPlan, DataPort, Ends, Error, Unwatched, Watch, run_client, run_server, sweep,
};

/// Runs the two closures, each in a namespace of its own, joined by a veth pair.
fn joined<A: Send, B: Send>(client: impl FnOnce() -> A + Send, server: impl FnOnce() -> B + Send) -> (A, B) {
    let (tell_tid, tid) = mpsc::channel();
    let (tell_linked, linked) = mpsc::channel();
    let (tell_ready, ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            enter_own_namespace();
            tell_tid.send(rustix::thread::gettid()).expect("the client's thread listens");
            linked.recv().expect("the link is made");
            configure("ls-s", 2);
            tell_ready.send(()).expect("the client's thread listens");
            server()
        });
        let calling = scope.spawn(move || {
            enter_own_namespace();
            let peer = tid.recv().expect("the server's thread is there").as_raw_nonzero().to_string();
            ip(&["link", "add", "ls-c", "type", "veth", "peer", "name", "ls-s", "netns", &peer]);
            configure("ls-c", 1);
            tell_linked.send(()).expect("the server's thread listens");
            ready.recv().expect("the other end is configured");
            client()
        });
        (calling.join().expect("no panic"), serving.join().expect("no panic"))
    })
}

fn enter_own_namespace() {
    let flags = rustix::thread::UnshareFlags::NEWNET;
    // SAFETY: only the network namespace is unshared; no memory or file descriptor is.
    unsafe { rustix::thread::unshare_unsafe(flags) }.expect("root may make a network namespace");
}

/// A child process is in its parent thread's namespace.
fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {arguments:?}");
}

fn configure(device: &str, host: u8) {
    ip(&["addr", "add", &format!("10.9.0.{host}/24"), "dev", device]);
    ip(&["addr", "add", &format!("fd09::{host}/64"), "dev", device, "nodad"]);
    // The MSS is then 4096 (less 20 bytes of IP, 20 of TCP, 12 of timestamps): whole pages of payload.
    ip(&["link", "set", device, "mtu", "4148", "up"]);
}

fn can_run() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: network namespaces need root");
        return false;
    }
    if Command::new("ip").arg("-V").output().is_err() {
        println!("SKIP: iproute2 is not installed");
        return false;
    }
    true
}

/// Runs both ends of each trial, in order.
fn trials(specs: &[(TrialSpec, IpAddr)]) -> Vec<(End, End)> {
    let (tell, ports) = mpsc::channel();
    let cancel = &Cancel::new();
    let (clients, servers): (Vec<End>, Vec<End>) = joined(
        move || {
            let run = |(spec, at): &(TrialSpec, IpAddr)| {
                let port = ports.recv().expect("the server opens a port");
                let plan = ClientPlan { server: (*at, port).into(), source_port: 23_000, key: KEY };
                run_client(spec, &plan, &mut Unwatched, cancel)
            };
            specs.iter().map(run).collect()
        },
        move || {
            let run = |(spec, at): &(TrialSpec, IpAddr)| {
                let port = DataPort::open(*at, &[TRANSPORT.of(&spec.flow)], KEY).expect("a data port");
                tell.send(port.port()).expect("the client listens");
                run_server(spec, &port, &mut Unwatched, cancel)
            };
            specs.iter().map(run).collect()
        },
    );
    clients.into_iter().zip(servers).collect()
}

#[test]
fn every_workload_crosses_a_link() {
    if !can_run() {
        return;
    }
    let duration_ns = Nanos::millis(100);
    let sizes_bytes = vec![Bytes(1), Bytes(8192)];
    let workloads = [
        stream(duration_ns, Direction::Both),
        sweep::spec(200, &sizes_bytes),
        pingpong(&sizes_bytes, duration_ns, "blocking"),
        connect(duration_ns),
        planned(100, [(0, 100), (50, 80)]),
    ];
    let ends = ends();
    let specs: Vec<_> = workloads.iter().flat_map(|w| ends.map(|at| (spec(w.clone()), at))).collect();
    for ((spec, at), (client, server)) in specs.iter().zip(trials(&specs)) {
        let (client, server) = (client.expect("client"), server.expect("server"));
        match spec.workload.name.as_str() {
            "stream" => {
                assert!(client.received_bytes > Bytes(0) && server.received_bytes > Bytes(0), "{at}");
            }
            "sweep" => assert_eq!(server.received_bytes, Bytes(200 * 8193), "{at}"),
            "pingpong" => assert!(client.latency.iter().all(|h| h.count() > 0), "{at}"),
            "connect" => assert!(client.get::<Connections>().0 > 0, "{at}"),
            _ => {
                assert!(server.flow_bytes.iter().all(|&bytes| bytes > Bytes(0)), "{at}: {server:?}");
                assert!(!client.get::<Seen>().probes.is_empty(), "{at}: {client:?}");
            }
        }
    }
}

/// Flows of Reno and of the host's default, with these times in ms.
fn planned(millis: u64, times: [(u64, u64); 2]) -> Workload {
    let controls = [StaggeredFlow::controlled("reno"), StaggeredFlow::default()];
    let flows = times.into_iter().zip(controls).map(|((enters, leaves), flow)| StaggeredFlow {
        enters_ns: Nanos::millis(enters),
        leaves_ns: Nanos::millis(leaves),
        ..flow
    });
    staggered::spec(&flows.collect::<Vec<_>>(), Nanos::millis(millis), Nanos::millis(10))
}

fn ends() -> [IpAddr; 2] {
    ["10.9.0.2".parse().expect("IPv4"), "fd09::2".parse().expect("IPv6")]
}

/// Over UDP, with datagrams of 1472 bytes.
fn udp(workload: Workload, (send, receive): (&str, &str)) -> TrialSpec {
    let mut spec = spec(workload);
    let way = [("datagram-send", send), ("datagram-receive", receive)];
    set(&mut spec, &[("transport", "udp"), ("write-size", "1472")]);
    set(&mut spec, &way);
    spec
}

#[test]
fn datagrams_cross_a_link_by_every_way() {
    if !can_run() {
        return;
    }
    // A sender of datagrams waits for nobody: on a busy machine its receiver may not run for long.
    let duration_ns = Nanos::millis(400);
    let ways = [("plain", "plain"), ("batch", "batch"), ("gso", "plain"), ("gso", "gro")];
    let stream = |way| udp(stream(duration_ns, Direction::Forward), way);
    let specs: Vec<_> = ways.iter().flat_map(|&way| ends().map(|at| (stream(way), at))).collect();
    for ((spec, at), (client, server)) in specs.iter().zip(trials(&specs)) {
        let (client, server) = (client.expect("client"), server.expect("server"));
        let (sent, came) = (&client.get::<Vec<DatagramCounts>>()[0], &server.get::<Vec<DatagramCounts>>()[0]);
        println!(
            "{at} {:?} to {:?}: {} sent, {} received, {} lost, {}",
            spec.flow["datagram-send"],
            spec.flow["datagram-receive"],
            sent.sent,
            came.received,
            came.lost,
            came.rate()
        );
        assert!(sent.sent > 0 && came.received > 0, "{came:?}");
        assert_eq!((came.received_bytes.0, came.malformed), (came.received * 1472, 0), "{came:?}");
    }
}

#[test]
fn large_datagrams_are_cut_into_fragments_and_small_ones_played_with() {
    if !can_run() {
        return;
    }
    let plain = ("plain", "plain");
    let sizes_bytes = [32, 4068, 4120, 32_768].map(Bytes).to_vec();
    let sweep = udp(sweep::spec(100, &sizes_bytes), plain);
    let duration_ns = Nanos::millis(250);
    let play = pingpong(&sizes_bytes, duration_ns, "blocking");
    let specs: Vec<_> =
        [sweep, udp(play, plain)].iter().flat_map(|spec| ends().map(|at| (spec.clone(), at))).collect();
    for ((_, at), (client, server)) in specs.iter().zip(trials(&specs)) {
        let (client, server) = (client.expect("client"), server.expect("server"));
        for counts in &server.get::<SweepDatagrams>().0 {
            assert_eq!((counts.sent, counts.received + counts.lost), (100, 100), "{at}");
            assert!(counts.received > 0, "{at}: {counts:?}");
        }
        assert!(client.latency.iter().all(|histogram| histogram.count() > 0), "{at}");
        assert_eq!(server.get::<SweepDatagrams>().0.len() + client.latency.len(), 4);
    }
}

#[test]
fn segments_that_the_path_would_have_to_cut_are_refused_in_words() {
    if !can_run() {
        return;
    }
    let stream = stream(Nanos::millis(100), Direction::Forward);
    let mut spec = udp(stream, ("gso", "plain"));
    set(&mut spec, &[("write-size", "4121")]);
    for (client, _) in trials(&ends().map(|at| (spec.clone(), at))) {
        let told = client.expect_err("4148 less 28 or 48 is the most").to_string();
        assert!(told.contains("do not fit the path") && told.contains("batch"), "{told}");
    }
}

#[test]
fn payload_that_fills_pages_is_mapped() {
    if !can_run() {
        return;
    }
    let at: IpAddr = "10.9.0.2".parse().expect("IPv4");
    let mut spec = spec(stream(Nanos::millis(200), Direction::Forward));
    // What a veth copies of a zero-copy send lies in single pages; a plain send fills larger ones.
    set(&mut spec, &[("zerocopy-send", "on"), ("zerocopy-receive", "on")]);
    for (client, server) in trials(&[(spec, at)]) {
        client.expect("client");
        let server = server.expect("server");
        assert!(server.get::<ZeroCopied>().mapped_bytes > Bytes(0), "{server:?}");
    }
}

#[test]
fn a_sender_whose_path_is_cut_stops() {
    if !can_run() {
        return;
    }
    let at: IpAddr = "10.9.0.2".parse().expect("IPv4");
    let stream = stream(Nanos::secs(120), Direction::Forward);
    cut(at, &spec(stream.clone()), &["link", "set", "ls-c", "down"]);
    // A flow that has not entered yet, and a probe without an answer, do not hide it.
    let idle = planned(120_000, [(0, 120_000), (60_000, 120_000)]);
    cut(at, &spec(idle), &["link", "set", "ls-c", "down"]);
    // UDP would be told that its own link is down: a black hole tells nobody.
    let nobody =
        ["neigh", "replace", "10.9.0.2", "lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev", "ls-c"];
    cut(at, &udp(stream, ("plain", "plain")), &nobody);
}

/// Tells when the window opens.
struct Tell(mpsc::Sender<()>);

impl Tell {
    fn new() -> (Self, mpsc::Receiver<()>) {
        let (tell, told) = mpsc::channel();
        (Tell(tell), told)
    }
}

impl Watch for Tell {
    fn open(&mut self, _: &Ends<'_>) {
        self.0.send(()).expect("somebody waits for it");
    }

    fn sample(&mut self, _: Nanos) {}

    fn close(&mut self) -> Observations {
        Observations::default()
    }
}

/// Cuts the path by the arguments of ip(8) while the client sends.
fn cut(at: IpAddr, spec: &TrialSpec, arguments: &[&str]) {
    let (tell, port) = mpsc::channel();
    let cancel = &Cancel::new();
    let ((client, took), server) = joined(
        move || {
            let plan =
                ClientPlan { server: (at, port.recv().expect("a port")).into(), source_port: 0, key: KEY };
            let (client, cut) = std::thread::scope(|scope| {
                let (mut watch, opened) = Tell::new();
                let cut = scope.spawn(move || {
                    if opened.recv().is_ok() {
                        ip(arguments);
                    }
                    Instant::now()
                });
                let client = run_client(spec, &plan, &mut watch, &Cancel::new());
                // Nobody shall wait for a window that never opened.
                drop(watch);
                (client, cut.join().expect("no panic"))
            });
            cancel.cancel();
            (client, cut.elapsed())
        },
        move || {
            let data = DataPort::open(at, &[TRANSPORT.of(&spec.flow)], KEY).expect("a data port");
            tell.send(data.port()).expect("the client listens");
            run_server(spec, &data, &mut Unwatched, cancel)
        },
    );
    assert!(matches!(client, Err(Error::FeedbackLost { .. })), "{client:?}");
    assert!(took < Duration::from_secs(10), "within about a second of the cut: {took:?}");
    assert!(matches!(server, Err(Error::Cancelled)), "{server:?}");
}
