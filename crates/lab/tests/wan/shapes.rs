//! Tests of the link's parameters, and of several pairs of hosts on one link.

use std::time::Duration;

use landspeed_lab::topology::{HostSet, Lab, SECOND_RTT_DSCP, with_namespace};
use landspeed_record::units::Nanos;

use super::{
    OTHERS, PATIENCE, lab, move_stream, round_trip, send_numbered, settled, udp, udp_pair, wait_for,
};

#[test]
fn each_direction_has_its_own_parameters() {
    let Some(lab) = lab("rate=1G,rtt=2ms,back.loss=100%,back.rate=10M") else { return };
    let (near, far) = udp_pair(&lab);
    send_numbered(&near, 20, 128);
    assert_eq!(settled(&lab, 20).loss_drops, 0);
    far.send(b"lost").unwrap();
    let stats = wait_for(&lab, |stats| stats.b_to_a.loss_drops > 0);
    assert_eq!((stats.b_to_a.forwarded_segments, stats.rate_bps.0), (0, 1e9));
}

#[test]
fn packets_come_twice_and_late_where_asked() {
    let Some(lab) = lab("rate=1G,rtt=2ms,duplicate=100%,jitter=20ms") else { return };
    let (near, far) = udp_pair(&lab);
    let trips: Vec<Duration> = (0..20)
        .map(|_| {
            let trip = round_trip(&near, &far);
            // Receives the copies.
            far.recv(&mut [0; 8]).unwrap();
            near.recv(&mut [0; 8]).unwrap();
            trip
        })
        .collect();
    let stats = settled(&lab, 20);
    assert_eq!(
        (stats.forwarded_segments, stats.duplicated_segments),
        (2 * stats.arrived_segments, stats.arrived_segments)
    );
    // Each trip has two draws from 0 to 20 ms: among 20 trips some are short and some are long.
    let (least, most) = (trips.iter().min().unwrap(), trips.iter().max().unwrap());
    assert!(*most - *least > Duration::from_millis(5), "{trips:?}");
}

/// Returns the number of packets with the mark "congestion experienced" that a host has received.
fn marked(netns: &str) -> u64 {
    netstat(netns, "IpExt: ", "InCEPkts")
}

/// Returns a counter of /proc/net/netstat in a namespace.
fn netstat(netns: &str, protocol: &str, name: &str) -> u64 {
    let text =
        with_namespace(netns, || std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap()).unwrap();
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let found = names.split(' ').zip(values.split(' ')).find(|(column, _)| *column == name);
    found.unwrap().1.parse().unwrap()
}

#[test]
fn marks_reach_the_receiver_with_true_checksums() {
    let Some(lab) = lab("rate=100M,rtt=1ms,queue=1M,mark-above=1500") else { return };
    let (near, far) = udp_pair(&lab);
    round_trip(&near, &far);
    const ECT_0: u8 = 2;
    rustix::net::sockopt::set_ip_tos(&near, ECT_0).unwrap();
    send_numbered(&near, 200, 1000);
    let stats = settled(&lab, 201);
    for _ in 0..200 {
        far.recv(&mut [0; 1000]).expect("no datagram is refused for its header's checksum");
    }
    assert!(stats.marked_segments > 100, "{stats:?}");
    assert_eq!(marked(&lab.hosts()[1].netns), stats.marked_segments);
}

/// Marks the packets of a socket for the second round trip.
fn mark_far(socket: &std::net::UdpSocket) {
    let class = SECOND_RTT_DSCP << 2;
    match socket.local_addr().unwrap().is_ipv4() {
        true => rustix::net::sockopt::set_ip_tos(socket, class).unwrap(),
        false => rustix::net::sockopt::set_ipv6_tclass(socket, class.into()).unwrap(),
    }
}

#[test]
fn marked_packets_take_the_second_round_trip() {
    let Some(lab) = lab("rate=1G,rtt=2ms,second-rtt=300ms") else { return };
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    for [near, far] in [[a.v4.into(), b.v4.into()], [a.v6.into(), b.v6.into()]] {
        let (near, far) = (udp(a, near), udp(b, far));
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        round_trip(&near, &far);
        let plain = (0..5).map(|_| round_trip(&near, &far)).min();
        assert!(plain < Some(Duration::from_millis(299)), "{plain:?}");
        // Marked packets on the return path are not delayed again.
        mark_far(&far);
        let back = (0..5).map(|_| round_trip(&near, &far)).min();
        assert!(back < Some(Duration::from_millis(299)), "{back:?}");
        mark_far(&near);
        let marked = round_trip(&near, &far);
        assert!(marked >= Duration::from_micros(299_990), "{marked:?}");
    }
    let stats = settled(&lab, 24);
    assert_eq!((stats.reordered_segments, stats.faults()), (0, 0), "{stats:?}");
}

#[test]
fn packets_of_the_first_round_trip_overtake_those_of_the_second() {
    // All are sent within a second, also on a busy machine.
    let Some(lab) = lab("rate=100M,rtt=2ms,second-rtt=2s") else { return };
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let (plain, marked, far) = (udp(a, a.v4.into()), udp(a, a.v4.into()), udp(b, b.v4.into()));
    for socket in [&plain, &marked] {
        socket.connect(far.local_addr().unwrap()).unwrap();
    }
    mark_far(&marked);
    // Host a learns b's hardware address.
    plain.send(b"0").unwrap();
    far.recv(&mut [0; 8]).unwrap();
    (0..10).for_each(|_| _ = marked.send(b"later").unwrap());
    (0..10).for_each(|_| _ = plain.send(b"first").unwrap());
    let came = (0..20).map(|_| {
        let mut buffer = [0; 8];
        let length = far.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    });
    let came: Vec<Vec<u8>> = came.collect();
    assert!(came[..10].iter().all(|one| one == b"first"), "{came:?}");
    assert!(came[10..].iter().all(|one| one == b"later"), "{came:?}");
}

#[test]
fn streams_are_marked_and_not_harmed() {
    // The queue has room for a whole stream, because marks take effect late if other programs use the cores.
    let Some(lab) = lab("rate=500M,rtt=4ms,queue=16M,mark-above=30p") else { return };
    for host in lab.hosts() {
        // By default a host only accepts ECN; here both ends request it.
        with_namespace(&host.netns, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap()).unwrap();
    }
    move_stream(&lab, false, 8_000_000);
    move_stream(&lab, true, 8_000_000);
    let stats = settled(&lab, 16_000_000 / 1460);
    assert!(stats.marked_segments > 0 && stats.queue_drops == 0, "{stats:?}");
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    assert!(marked(&b.netns) > 0, "b takes them in");
    assert!(netstat(&a.netns, "TcpExt: ", "TCPDeliveredCE") > 0, "and tells a");
}

/// Returns a socket on host a of pair number `n`, counted from 0, and the socket on its host b to which it is
/// connected.
fn udp_of(lab: &Lab, n: usize) -> (std::net::UdpSocket, std::net::UdpSocket) {
    let [a, b] = &lab.hosts()[2 * n..2 * n + 2] else { panic!("two hosts") };
    let (near, far) = (udp(a, a.v4.into()), udp(b, b.v4.into()));
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    (near, far)
}

#[test]
fn cross_traffic_takes_its_share_of_the_line_and_the_queue() {
    let Some(lab) = lab("rate=40M,rtt=2ms,queue=60000,cross=60%,cross-on=50ms,cross-off=20ms") else {
        return;
    };
    let (near, _far) = udp_pair(&lab);
    // 8 Mb in packets of 1000 bytes, sent over two seconds: a tenth of the line.
    const SENT: u32 = 1000;
    for _ in 0..SENT {
        near.send(&[0; 972]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let stats = settled(&lab, SENT.into());
    // 60 % of 40 Mb/s are 500 packets of 6000 bytes a second; the times of the sources vary by much, and a busy machine sends for
    // longer than two seconds.
    let expected = 500.0 * lab.link().unwrap().stats().window_ns.as_secs_f64();
    let share = stats.cross_packets as f64 / expected;
    assert!((0.3..3.0).contains(&share), "{share}: {stats:?}");
    assert!(stats.most_queued_bytes.0 > 10_000, "segments wait behind packets of others: {stats:?}");
    assert_eq!(stats.faults(), 0, "{stats:?}");
    assert!(stats.arrived_segments < u64::from(SENT) + OTHERS, "no host sees packets of others: {stats:?}");
}

#[test]
fn pairs_share_one_link() {
    let Some(lab) = lab("rate=1G,rtt=10ms,pairs=3") else { return };
    let names: Vec<_> =
        lab.pairs().iter().map(|pair| pair.ends.map(|host| lab.hosts()[host].name.clone())).collect();
    assert_eq!(names, [["a", "b"], ["a2", "b2"], ["a3", "b3"]].map(|pair| pair.map(String::from)));
    for pair in 0..3 {
        let (near, far) = udp_of(&lab, pair);
        assert!(round_trip(&near, &far) >= Duration::from_micros(9_990));
    }
    let before = settled(&lab, 3);
    assert_eq!(before.arrived_segments, 3, "all of them cross it: {before:?}");
    // Hosts of one side are on one bridge: their traffic to each other does not cross the link.
    let [a, _, other, ..] = lab.hosts() else { panic!("six hosts") };
    let (near, far) = (udp(a, a.v4.into()), udp(other, other.v4.into()));
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    round_trip(&near, &far);
    assert_eq!(lab.link().unwrap().stats().a_to_b.arrived_segments, 3);
}

#[test]
fn a_trace_sets_the_pace() {
    let path = std::env::temp_dir().join(format!("ls-trace-{}", std::process::id()));
    // One packet each 2 ms is 6 Mb/s.
    std::fs::write(&path, "2\n").unwrap();
    let lab = lab(&format!("trace={},rtt=2ms,queue=1M", path.display()));
    std::fs::remove_file(&path).unwrap();
    let Some(lab) = lab else { return };
    let (near, far) = udp_pair(&lab);
    round_trip(&near, &far);
    let started = std::time::Instant::now();
    send_numbered(&near, 100, 1500);
    (0..100).for_each(|_| _ = far.recv(&mut [0; 1500]).unwrap());
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(198) && took < PATIENCE, "{took:?}");
    let stats = lab.link().unwrap().stats();
    assert_eq!((stats.rate_bps.0, stats.rtt_ns), (6e6, Nanos::millis(2)));
}
