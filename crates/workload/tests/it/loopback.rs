//! Every workload over loopback, IPv4 and IPv6.

use std::net::IpAddr;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{ConnectionCount, SweepPoint, ZeroCopyCounts};
use landspeed_workload::{CancelFlag, DataPort, stream, sweep};

use crate::common::{KEY, V4, V6, both, both_on, connect, outcomes, pingpong, set, spec, udp};

/// Length of a trial. On a busy machine a thread may get no processor for 100 ms.
const SHORT: Nanos = Nanos::millis(400);

#[test]
fn a_stream_is_counted_where_it_arrives() {
    for at in [V4, V6] {
        let (client, server) = outcomes(&spec(stream::spec(SHORT)), at);
        assert_eq!(client.received_bytes, Bytes(0));
        assert!(client.sent_bytes > Bytes::mib(1), "{:?}", client.sent_bytes);
        assert!(server.received_bytes > Bytes::mib(1), "{:?}", server.received_bytes);
        assert_eq!(server.sent_bytes, Bytes(0));
        assert_eq!(server.flow_bytes, vec![server.received_bytes]);
        for end in [&client, &server] {
            assert!(end.window_ns >= SHORT, "{}", end.window_ns);
            assert_eq!(end.not_as_asked, Vec::<String>::new());
        }
    }
}

#[test]
fn three_flows_both_ways_all_carry_data() {
    let mut spec = spec(stream::spec(SHORT).with("bidir", "on"));
    set(&mut spec, &[("flows", "3")]);
    let (client, server) = outcomes(&spec, V4);
    for end in [&client, &server] {
        assert_eq!(end.flow_bytes.len(), 3);
        assert!(end.flow_bytes.iter().all(|&bytes| bytes > Bytes(0)), "{:?}", end.flow_bytes);
        assert_eq!(end.flow_bytes.iter().copied().sum::<Bytes>(), end.received_bytes);
        assert!(end.sent_bytes > Bytes(0));
    }
}

#[test]
fn quic_carries_flows_both_ways_and_tells_of_its_connections() {
    // Six flows in user space share the processors with other tests: on a busy machine, one may get none for 100 ms.
    let mut spec = spec(stream::spec(Nanos::millis(500)).with("bidir", "on"));
    set(&mut spec, &[("transport", "quic"), ("flows", "3")]);
    for at in [V4, V6] {
        let (client, server) = outcomes(&spec, at);
        for end in [&client, &server] {
            assert!(end.flow_bytes.iter().all(|&bytes| bytes > Bytes(0)), "{:?}", end.flow_bytes);
            assert_eq!((end.flow_bytes.len(), &end.not_as_asked), (3, &vec![]));
            let details = serde_json::to_value(&end.details).expect("JSON");
            let connections = details["quic"].as_array().expect("one for each flow");
            let sent = |connection: &serde_json::Value| connection["sent_packets"].as_u64();
            assert_eq!(connections.len(), 3, "{details}");
            assert!(connections.iter().all(|connection| sent(connection) > Some(10)), "{details}");
        }
    }
}

#[test]
fn workers_run_on_the_cores_they_are_given() {
    let mut pinned = spec(stream::spec(SHORT));
    pinned.cores = vec![0];
    assert!(outcomes(&pinned, V4).1.received_bytes > Bytes(0));
    pinned.cores = vec![100_000];
    let (client, server) = both(&pinned, V4);
    for end in [client, server] {
        let error = end.expect_err("there is no such core").to_string();
        assert!(error.contains("core 100000") || error.contains("peer"), "{error}");
    }
}

#[test]
fn zero_copy_sends_are_completed_and_copied_on_loopback() {
    let mut spec = spec(stream::spec(SHORT));
    set(&mut spec, &[("zerocopy-send", "on")]);
    let (client, server) = outcomes(&spec, V4);
    assert!(server.received_bytes > Bytes::mib(1));
    let ZeroCopyCounts { completions, copied, .. } = *client.get();
    assert!(completions > 0);
    // The loopback device passes clones to user space, and skb_orphan_frags_rx copies each of them. Sends that still
    // wait in the socket when the flow is torn down, 32 at most, do not get that far.
    assert!(copied + 32 >= completions, "{client:?}");
}

#[test]
fn data_that_cannot_be_mapped_is_copied() {
    let mut spec = spec(stream::spec(SHORT));
    set(&mut spec, &[("zerocopy-receive", "on")]);
    let (_, server) = outcomes(&spec, V4);
    assert!(server.received_bytes > Bytes::mib(1));
    // The loopback device's MSS is not a multiple of a page, so nothing can be mapped.
    assert_eq!(server.get::<ZeroCopyCounts>().mapped_bytes, Bytes(0));
}

#[test]
fn a_sweep_moves_what_it_says() {
    let sizes_bytes = vec![Bytes(128), Bytes(8192), Bytes(1000)];
    for at in [V4, V6] {
        let workload = sweep::spec(500, &sizes_bytes);
        let (client, server) = outcomes(&spec(workload), at);
        let points = server.get::<Vec<SweepPoint>>();
        let moved: Vec<_> = points.iter().map(|p| (p.size_bytes, p.moved_bytes)).collect();
        let wanted: Vec<_> = sizes_bytes.iter().map(|&size| (size, Bytes(size.0 * 500))).collect();
        assert_eq!(moved, wanted);
        assert!(points.iter().all(|p| p.took_ns > Nanos(0)), "{points:?}");
        assert!(client.get::<Vec<SweepPoint>>().is_empty());
        assert_eq!(server.received_bytes, Bytes(500 * (128 + 8192 + 1000)), "the warm-up is not counted");
    }
}

#[test]
fn a_size_of_a_sweep_that_takes_too_long_is_cut() {
    // The limit counts from the first data, so that a sender that begins late moves something too.
    let (limit, count) = (Nanos::millis(1), 1 << 30);
    let sizes_bytes = [Bytes(128), Bytes(8192)].repeat(4);
    let (_, server) = outcomes(&spec(sweep::within(limit, count, &sizes_bytes)), V4);
    let points = server.get::<Vec<SweepPoint>>();
    assert_eq!(points.len(), sizes_bytes.len());
    for point in points {
        assert!(
            point.moved_bytes > Bytes(0) && point.moved_bytes.0 < point.size_bytes.0 * count,
            "{point:?}"
        );
    }
}

#[test]
fn each_size_of_a_ping_pong_is_timed() {
    let waits: [(&str, IpAddr); 3] = [("blocking", V4), ("busy-poll", V6), ("spinning", V4)];
    for ((receiver, at), over_udp) in waits.into_iter().flat_map(|wait| [(wait, false), (wait, true)]) {
        let (least, most) = if over_udp { (32, 20_000) } else { (1, 70_000) };
        let sizes_bytes = [least, most, 64].map(Bytes);
        // Two ends that spin need both cores, and a test that runs beside this one may hold one for a while.
        let workload = pingpong(&sizes_bytes, Nanos::millis(500), receiver);
        let (client, server) = outcomes(&if over_udp { udp(workload) } else { spec(workload) }, at);
        assert_eq!(client.latency.iter().map(|h| h.size_bytes).collect::<Vec<_>>(), sizes_bytes);
        for histogram in &client.latency {
            let median = histogram.percentile(0.5).expect("at least one round");
            assert!(median > Nanos(500), "a round trip takes longer than {median}");
        }
        assert!(client.received_bytes > Bytes(0) && server.received_bytes > Bytes(0));
    }
}

#[test]
fn connections_end_in_order_where_that_is_asked_for() {
    let orderly = spec(connect(Nanos::millis(300)).with("close", "orderly"));
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let (Ok(client), Ok(_)) = both_on(&orderly, &port, (V4, 0), &CancelFlag::new()) else {
        panic!("it runs")
    };
    // State 06 of a socket is TIME_WAIT; after a reset there is none. Those of other tests end meanwhile.
    let own = format!(":{:04X}", port.port());
    let waits = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(3) == Some(&"06") && words[1..3].iter().any(|address| address.ends_with(&own))
    };
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's list");
    let waiting = sockets.lines().filter(waits).count() as u64;
    let ConnectionCount(made) = *client.get();
    assert!(made > 10 && waiting > made / 2, "{made} ends, {waiting} wait");
}

#[test]
fn connections_are_counted_and_timed() {
    for at in [V4, V6] {
        let workload = connect(Nanos::millis(150));
        let (client, server) = outcomes(&spec(workload), at);
        let made = client.get::<ConnectionCount>().0;
        assert!(made > 10, "{made}");
        let timed = client.latency[0].count();
        assert!(timed.abs_diff(made) <= 2, "{timed} of {made}");
        assert_eq!(server.get::<ConnectionCount>().0, 0);
    }
}

#[test]
fn source_ports_can_be_used_again_at_once() {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let cancel = CancelFlag::new();
    let mut short = spec(stream::spec(Nanos::millis(2)));
    short.warm_up_ns = Nanos(0);
    set(&mut short, &[("flows", "2")]);
    for trial in 0..50 {
        let (client, served) = both_on(&short, &port, (V4, 23_456), &cancel);
        client.unwrap_or_else(|e| panic!("trial {trial}, client: {e}"));
        served.unwrap_or_else(|e| panic!("trial {trial}, server: {e}"));
    }
}

#[test]
fn options_that_the_kernel_refuses_are_reported() {
    let mut spec = spec(stream::spec(SHORT));
    set(&mut spec, &[("rcvbuf", "1073741823"), ("socket-congestion", "reno")]);
    let (client, server) = outcomes(&spec, V4);
    for end in [client, server] {
        assert_eq!(end.not_as_asked.len(), 1, "{:?}", end.not_as_asked);
        assert!(end.not_as_asked[0].starts_with("SO_RCVBUF: asked for 1073741823"), "{:?}", end.not_as_asked);
    }
}
