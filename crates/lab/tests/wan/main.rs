//! Tests of the wide-area link on the running kernel.
//!
//! ```text
//!   a  ==== veth ====  the link  ==== veth ====  b
//! ```

#[path = "../common/mod.rs"]
mod common;
mod runs;
mod shapes;
mod under_way;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{Ethtool, LinkChange, Rtnl, features_called};
use landspeed_lab::topology::lab::{self, LabSelection};
use landspeed_lab::topology::{HostSet, Lab, LabHost, with_namespace};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{DirectionStats, WanStats};
use under_way::under_way_segments;

/// Time limit of all waits. They usually take far less, but a machine may stall.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a lab with these parameters; `None` if there can be none here, with the reason printed.
fn lab(parameters: &str) -> Option<Lab> {
    let kind = format!("lab:wan:{parameters}");
    common::can_run(&kind).then(|| Lab::open(&kind).unwrap())
}

fn udp(host: &LabHost, address: IpAddr) -> UdpSocket {
    let socket =
        with_namespace(&host.netns, || UdpSocket::bind(SocketAddr::new(address, 0)).unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // Room for all that a test sends, as the kernel counts: packets dropped here would look like losses of the link.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).unwrap();
    socket
}

/// Returns a socket on host a, connected to one on host b.
fn udp_pair(lab: &Lab) -> (UdpSocket, UdpSocket) {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let (near, far) = (udp(a, a.v4.into()), udp(b, b.v4.into()));
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    (near, far)
}

/// Waits until the statistics satisfy `reached`.
fn wait_for(lab: &Lab, reached: impl Fn(&WanStats) -> bool) -> WanStats {
    let start = Instant::now();
    loop {
        let stats = lab.link().expect("a link has figures").stats();
        if reached(&stats) {
            return stats;
        }
        assert!(start.elapsed() < PATIENCE, "after {PATIENCE:?}: {stats:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the statistics from a to b once `segments` have arrived and none is in flight.
fn settled(lab: &Lab, segments: u64) -> DirectionStats {
    wait_for(lab, |s| s.a_to_b.arrived_segments >= segments && under_way_segments(&s.a_to_b) == 0).a_to_b
}

/// The largest number of packets that the hosts' kernels may send by themselves.
const OTHERS: u64 = 40;

fn round_trip(near: &UdpSocket, far: &UdpSocket) -> Duration {
    let mut buffer = [0; 16];
    let sent = Instant::now();
    near.send(b"ping").unwrap();
    far.recv(&mut buffer).unwrap();
    far.send(b"pong").unwrap();
    near.recv(&mut buffer).unwrap();
    sent.elapsed()
}

#[test]
fn a_round_trip_takes_its_time() {
    let Some(lab) = lab("rate=1G,rtt=20ms") else { return };
    let (near, far) = udp_pair(&lab);
    // The kernel reports arrivals on another clock than that of this test. The two clocks may drift apart by 10 us.
    let least = Duration::from_millis(20) - Duration::from_micros(10);
    let trips: Vec<Duration> = (0..20).map(|_| round_trip(&near, &far)).collect();
    assert!(trips.iter().all(|trip| *trip >= least), "{trips:?}");
    let stats = settled(&lab, 20);
    assert!((20..20 + OTHERS).contains(&stats.forwarded_segments), "{stats:?}");
    assert!(stats.neighbour_frames > 0, "host a asked for b's hardware address, at once");
    println!("fastest {:?}, {stats:?}", trips.iter().min());
}

#[test]
fn two_links_exist_side_by_side() {
    let (Some(slow), Some(fast)) = (lab("rtt=40ms"), lab("rtt=0ms")) else { return };
    let ((near, far), (close, by)) = (udp_pair(&slow), udp_pair(&fast));
    for _ in 0..3 {
        assert!(round_trip(&near, &far) > Duration::from_micros(39_990));
        round_trip(&close, &by);
    }
    assert!(slow.link().unwrap().stats().a_to_b.forwarded_segments >= 3);
    assert!(fast.link().unwrap().stats().a_to_b.forwarded_segments >= 3);
}

/// Sends `count` numbered datagrams, each an IP packet of `ip_bytes` including headers.
fn send_numbered(socket: &UdpSocket, count: u32, ip_bytes: usize) {
    let mut datagram = vec![0; ip_bytes - 28];
    for number in 0..count {
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        socket.send(&datagram).unwrap();
        if number % 64 == 63 {
            // Paces the sending, so that no buffer on the way overflows.
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn the_line_loses_the_configured_share() {
    let Some(lab) = lab("rate=10G,rtt=1ms,queue=32M,loss=1%") else { return };
    let (near, _far) = udp_pair(&lab);
    const SENT: u32 = 20_000;
    send_numbered(&near, SENT, 128);
    let stats = settled(&lab, SENT.into());
    assert_eq!(stats.faults(), 0, "{stats:?}");
    assert_eq!((stats.queue_drops, stats.size_drops, stats.reordered_segments), (0, 0, 0));
    // Binomial with mean 200: six standard deviations of 14.1, and the few packets of the kernels.
    assert!((115..=285).contains(&stats.loss_drops), "{stats:?}");
    assert_eq!(stats.forwarded_segments + stats.loss_drops, stats.arrived_segments);
}

#[test]
fn bursts_are_lost_in_runs() {
    let Some(lab) = lab("rate=10G,rtt=1ms,queue=32M,loss=2%,loss-burst=10,seed=3") else { return };
    let (near, far) = udp_pair(&lab);
    const SENT: u32 = 10_000;
    send_numbered(&near, SENT, 128);
    let stats = settled(&lab, SENT.into());
    far.set_nonblocking(true).unwrap();
    let mut buffer = [0; 128];
    let mut seen = HashSet::new();
    while let Ok(len) = far.recv(&mut buffer) {
        assert_eq!(len, 100);
        seen.insert(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
    }
    let lost: Vec<bool> = (0..SENT).map(|number| !seen.contains(&number)).collect();
    let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
    let losses = lost.iter().filter(|lost| **lost).count();
    println!("{losses} lost in {runs} runs, {stats:?}");
    assert!((losses as u64..=losses as u64 + OTHERS).contains(&stats.loss_drops), "{losses}, {stats:?}");
    // About 20 runs of 10: a mean below 4 is over three standard errors away.
    assert!(losses > 4 * runs, "{losses} lost in {runs} runs");
}

#[test]
fn a_full_queue_drops_its_tail() {
    let Some(lab) = lab("rate=1M,rtt=2ms,queue=15000") else { return };
    let (near, far) = udp_pair(&lab);
    const SENT: u32 = 60;
    // Until host a knows b's MAC address, it queues the packets that it sends, and may reorder them.
    round_trip(&near, &far);
    send_numbered(&near, SENT, 1000);
    let stats = settled(&lab, SENT.into());
    assert!(stats.queue_drops > 0 && stats.forwarded_segments >= 15, "{stats:?}");
    assert!(stats.most_queued_bytes.0 <= 15_000, "{stats:?}");
    let mut buffer = [0; 1000];
    for expected in 0..10_u32 {
        far.recv(&mut buffer).unwrap();
        assert_eq!(u32::from_be_bytes(buffer[..4].try_into().unwrap()), expected, "the first ones pass");
    }
}

#[test]
fn large_packets_vanish_and_small_ones_pass() {
    let Some(lab) = lab("rtt=1ms,drop-above=1400") else { return };
    let (near, far) = udp_pair(&lab);
    send_numbered(&near, 5, 1401);
    send_numbered(&near, 5, 1400);
    let mut buffer = [0; 2000];
    for _ in 0..5 {
        assert_eq!(far.recv(&mut buffer).unwrap(), 1400 - 28);
    }
    let stats = settled(&lab, 10);
    assert_eq!(stats.size_drops, 5);
}

#[test]
fn packets_overtake_each_other_where_asked() {
    let Some(lab) = lab("rate=1G,rtt=1ms,reorder=5%,reorder-delay=20ms") else { return };
    let (near, far) = udp_pair(&lab);
    const SENT: u32 = 400;
    send_numbered(&near, SENT, 128);
    let stats = settled(&lab, SENT.into());
    assert!((1..200).contains(&stats.reordered_segments), "{stats:?}");
    let mut buffer = [0; 128];
    let order: Vec<u32> = (0..SENT)
        .map(|_| {
            far.recv(&mut buffer).unwrap();
            u32::from_be_bytes(buffer[..4].try_into().unwrap())
        })
        .collect();
    assert!(!order.is_sorted(), "some came before their turn");
    assert_eq!(order.iter().collect::<HashSet<_>>().len(), SENT as usize, "and all came");
}

/// Transfers a known stream from a to b, and compares it there.
fn move_stream(lab: &Lab, v6: bool, bytes: usize) {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let address = if v6 { IpAddr::V6(b.v6) } else { IpAddr::V4(b.v4) };
    let listener =
        with_namespace(&b.netns, || TcpListener::bind(SocketAddr::new(address, 0)).unwrap()).unwrap();
    let at = listener.local_addr().unwrap();
    let mut near = with_namespace(&a.netns, || TcpStream::connect_timeout(&at, PATIENCE).unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.set_write_timeout(Some(PATIENCE)).unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    let stream: Vec<u8> = (0..bytes).map(|n| (n / 7 + n) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            near.write_all(&stream).and_then(|()| near.shutdown(std::net::Shutdown::Write)).unwrap()
        });
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).unwrap();
        assert!(heard == stream, "{} of {bytes} bytes came, or others", heard.len());
    });
}

#[test]
fn streams_survive_the_faults_of_the_link() {
    let Some(lab) = lab("rate=2G,rtt=1ms,queue=1M,loss=0.5%,reorder=0.5%") else { return };
    move_stream(&lab, false, 8_000_000);
    move_stream(&lab, true, 8_000_000);
    let stats = settled(&lab, 16_000_000 / 1460);
    assert!(stats.loss_drops > 10 && stats.reordered_segments > 10, "{stats:?}");
    // Superpackets have one header each: if all had been cut, there would be 52 bytes more per segment.
    assert!(stats.forwarded_bytes.0 < stats.forwarded_segments * 1490, "superpackets pass whole: {stats:?}");
    let whole = lab.link().unwrap().stats();
    println!("{whole:?}");
    assert_eq!((whole.spec.split(',').next(), whole.rtt_ns), (Some("rate=2G"), Nanos::millis(1)));
    assert!(whole.window_ns.0 > 0 && whole.queue_bytes == Some(Bytes::mib(1)), "{whole:?}");
    // Copying two streams of 8 MB takes at least this long; a kernel without schedstat reports nothing.
    assert!(whole.a_to_b.cpu_ns.is_none_or(|time| time.0 > 1_000_000), "{whole:?}");
}

#[test]
fn the_link_names_the_threads_that_carry_it() {
    let Some(lab) = lab("rate=1G,rtt=1ms") else { return };
    let (near, far) = udp_pair(&lab);
    round_trip(&near, &far);
    let name = |tid: i32| std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap();
    let threads = lab.link().unwrap().threads().expect("both have carried a packet");
    assert_eq!(threads.map(name), ["ls-wan-ab\n", "ls-wan-ba\n"]);
}

#[test]
fn packets_above_the_largest_ip_length_are_cut() {
    let Some(lab) = lab("rate=10G,rtt=1ms,queue=8M,loss=0.1%") else { return };
    let a = &lab.hosts()[0];
    let big = with_namespace(&a.netns, || {
        let rtnl = Rtnl::open()?;
        rtnl.set_link(&a.device, LinkChange::GsoMaxSize(185_000))?;
        rtnl.set_link(&a.device, LinkChange::GsoIpv4MaxSize(185_000))
    });
    if let Err(e) = big.unwrap() {
        return println!("SKIP: this kernel has no BIG TCP (Linux 6.3): {e}");
    }
    move_stream(&lab, false, 8_000_000);
    move_stream(&lab, true, 8_000_000);
    assert_eq!(lab.link().unwrap().stats().a_to_b.refused_segments, 0);
}

#[test]
fn checksums_of_pieces_are_true() {
    let Some(lab) = lab("rate=2G,rtt=1ms,queue=1M,loss=0.5%") else { return };
    // The port to host b computes checksums in software, when it cuts superpackets; host b then checks each.
    with_namespace(&format!("ls-{}-wan", lab.id()), || {
        let ethtool = Ethtool::open().unwrap();
        let known = ethtool.features("ls-p1").unwrap();
        let names = features_called("tx", known.hw.iter().map(String::as_str));
        let now = ethtool.set_features("ls-p1", names.iter().map(|name| (*name, false))).unwrap();
        assert!(!now.is_on("tx-checksum-ip-generic"), "{now:?}");
    })
    .unwrap();
    move_stream(&lab, false, 2_000_000);
    move_stream(&lab, true, 2_000_000);
}

#[test]
fn a_link_that_is_taken_from_under_its_owner_says_so() {
    let Some(lab) = lab("rtt=1ms") else { return };
    lab::down(&LabSelection::Id(lab.id().clone())).unwrap();
    let stats = wait_for(&lab, |s| s.notes.iter().filter(|n| n.contains("carries nothing")).count() == 2);
    assert!(stats.notes.iter().any(|note| note.contains("A to B")), "{:?}", stats.notes);
}

#[test]
fn links_that_would_eat_the_memory_are_refused() {
    if !common::can_run("lab:wan") {
        return;
    }
    let error = Lab::open("lab:wan:rate=100G,rtt=10s,queue=16G").unwrap_err().to_string();
    assert!(error.contains("lower rate, rtt or queue"), "{error}");
}
