//! Workloads over UDP, on loopback.

use std::net::IpAddr;

use crate::common::{Direction, KEY, V4, V6, both, connect, outcomes, pingpong, set, spec, stream};
use landspeed_record::{DatagramCounts, EndpointOutcome, SweepDatagrams, SweepPoint, TrialSpec, Workload};
use landspeed_units::{BitRate, Bytes, Nanos};
use landspeed_workload::{Cancel, DataPort, Error, Unwatched, run_server, sweep};

/// Every way to send with every way to receive that goes with it.
const WAYS: [(&str, &str); 5] =
    [("plain", "plain"), ("batch", "batch"), ("gso", "plain"), ("gso", "gro"), ("plain", "gro")];

fn udp(workload: Workload) -> TrialSpec {
    let mut spec = spec(workload);
    set(&mut spec, &[("transport", "udp"), ("write-size", "1472")]);
    spec
}

fn quarter(direction: Direction) -> Workload {
    // A sender of datagrams waits for nobody: on a busy machine its receiver may not run for long.
    stream(Nanos::millis(250), direction)
}

/// What must hold of the counts of one flow whose only sender and receiver these are.
fn check(sender: &EndpointOutcome, receiver: &EndpointOutcome) {
    for (sent, came) in sender.get::<Vec<DatagramCounts>>().iter().zip(receiver.get::<Vec<DatagramCounts>>())
    {
        assert!(sent.sent > 0 && came.received > 0, "{sent:?} {came:?}");
        assert_eq!(came.received_bytes.0, came.received * 1472, "{came:?}");
        assert_eq!((came.duplicated, came.malformed), (0, 0), "{came:?}");
        assert!(came.arrivals_ns > Nanos(0) && came.rate() > BitRate(0.0), "{came:?}");
    }
    assert_eq!(sender.get::<Vec<DatagramCounts>>().len(), receiver.get::<Vec<DatagramCounts>>().len());
}

#[test]
fn a_stream_crosses_by_every_way() {
    for (send, receive) in WAYS {
        for at in [V4, V6] {
            let mut spec = udp(quarter(Direction::Forward));
            set(&mut spec, &[("datagram-send", send), ("datagram-receive", receive)]);
            let (client, server) = outcomes(&spec, at);
            check(&client, &server);
            assert!(server.received_bytes > Bytes(0), "{send}: {server:?}");
            assert_eq!((client.received_bytes, server.sent_bytes), (Bytes(0), Bytes(0)));
        }
    }
}

#[test]
fn flows_go_both_ways_and_backwards() {
    let mut two = udp(quarter(Direction::Both));
    set(&mut two, &[("flows", "2")]);
    let (client, server) = outcomes(&two, V4);
    check(&client, &server);
    check(&server, &client);
    assert_eq!(server.flow_bytes.len(), 2);
    let (client, server) = outcomes(&udp(quarter(Direction::Reverse)), V6);
    check(&server, &client);
    assert_eq!(server.received_bytes, Bytes(0));
}

#[test]
fn what_a_small_buffer_drops_is_counted_as_lost() {
    let mut small = udp(quarter(Direction::Forward));
    // Room for a few datagrams only; the receiver's core is the sender's.
    set(&mut small, &[("write-size", "16"), ("rcvbuf", "1024")]);
    small.cores = vec![0];
    let (_, server) = outcomes(&small, V4);
    let came = &server.get::<Vec<DatagramCounts>>()[0];
    assert!(came.lost > 0 && came.loss() > 0.0, "{came:?}");
}

#[test]
fn a_paced_stream_keeps_its_rate() {
    let mut paced = udp(quarter(Direction::Forward));
    set(&mut paced, &[("pacing-rate", "20000000")]);
    let (client, server) = outcomes(&paced, V4);
    check(&client, &server);
    // A busy machine makes it slower, and the window's edges blurred; without pacing it is 100 times as much.
    let rate =
        client.get::<Vec<DatagramCounts>>()[0].sent as f64 * 1472.0 * 8.0 / client.window_ns.as_secs_f64();
    assert!(rate < 20e6 * 3.0, "{rate}");
}

#[test]
fn a_sweep_counts_each_size_above_the_mtu_too() {
    let sizes_bytes: Vec<_> = [32, 1472, 32_768, 65_507].map(Bytes).to_vec();
    for (at, way) in [(V4, "plain"), (V6, "batch")] {
        let mut sweep = udp(sweep::spec(300, &sizes_bytes));
        // Nothing of 300 datagrams is lost for want of room.
        set(&mut sweep, &[("datagram-send", way), ("rcvbuf", "4194304")]);
        let (client, server) = outcomes(&sweep, at);
        assert_eq!(client.sent_bytes, Bytes(sizes_bytes.iter().map(|size| size.0 * 300).sum()));
        assert_eq!((server.get::<Vec<SweepPoint>>().len(), server.get::<SweepDatagrams>().0.len()), (4, 4));
        for (point, counts) in server.get::<Vec<SweepPoint>>().iter().zip(&server.get::<SweepDatagrams>().0) {
            assert_eq!((counts.sent, counts.received + counts.lost), (300, 300), "{counts:?}");
            assert_eq!(point.moved_bytes.0, counts.received * point.size_bytes.0, "{point:?} {counts:?}");
            assert!(counts.received > 0 && point.took_ns < Nanos::secs(10), "{point:?}");
        }
    }
}

#[test]
fn a_sweep_that_loses_its_end_comes_to_an_end() {
    let mut sweep = udp(sweep::spec(3000, &[Bytes(8192), Bytes(32)]));
    set(&mut sweep, &[("rcvbuf", "1024")]);
    sweep.cores = vec![0];
    let (_, server) = outcomes(&sweep, V4);
    for (point, counts) in server.get::<Vec<SweepPoint>>().iter().zip(&server.get::<SweepDatagrams>().0) {
        assert_eq!(counts.sent, 3000);
        assert_eq!(counts.received + counts.lost, 3000);
        // Silence is not counted as time that data took.
        assert!(point.took_ns < Nanos::secs(9), "{point:?}");
    }
    assert!(server.get::<SweepDatagrams>().0[0].lost > 0, "{server:?}");
}

#[test]
fn every_way_to_wait_plays_ping_pong_with_datagrams() {
    let waits: [(&str, IpAddr); 3] = [("blocking", V4), ("busy-poll", V6), ("spinning", V4)];
    for (receiver, at) in waits {
        let sizes_bytes = vec![Bytes(32), Bytes(20_000), Bytes(64)];
        let workload = pingpong(&sizes_bytes, Nanos::millis(200), receiver);
        let (client, server) = outcomes(&udp(workload), at);
        assert_eq!(client.latency.iter().map(|h| h.size_bytes).collect::<Vec<_>>(), sizes_bytes);
        for histogram in &client.latency {
            assert!(histogram.percentile(0.5).expect("a round") > Nanos(500), "{receiver}");
        }
        assert!(
            client.get::<Vec<DatagramCounts>>()[0].received > 0
                && server.get::<Vec<DatagramCounts>>()[0].received > 0
        );
    }
}

#[test]
fn what_udp_cannot_do_is_refused_before_anything_is_opened() {
    let refusal = |spec: &TrialSpec| match both(spec, V4) {
        (Err(Error::Spec { why, .. }), Err(Error::Spec { .. })) => why,
        other => panic!("{other:?}"),
    };
    let mut spec = udp(quarter(Direction::Forward));
    set(&mut spec, &[("write-size", "131072")]);
    assert!(refusal(&spec).contains("65507"), "{}", refusal(&spec));
    let connections = udp(connect(Nanos::millis(50)));
    assert!(refusal(&connections).contains("no connections"), "{}", refusal(&connections));
}

#[test]
fn a_trial_of_no_transport_or_another_one_is_refused() {
    let port = DataPort::open(V4, &["tcp"], KEY).expect("a data port");
    let mut spec = spec(quarter(Direction::Forward));
    for (name, refusal) in [("pigeon", "tcp, udp"), ("udp", "no data port of udp is open")] {
        set(&mut spec, &[("transport", name), ("write-size", "1472")]);
        let refused = run_server(&spec, &port, &mut Unwatched, &Cancel::new()).expect_err(name).to_string();
        assert!(refused.contains(refusal), "{refused}");
    }
}

#[test]
fn the_largest_datagram_there_is_goes_out_alone() {
    // Loopback's MTU is 65536: it is one segment. What does not fit a path is tried in a namespace.
    let mut spec = udp(quarter(Direction::Forward));
    set(&mut spec, &[("write-size", "65507"), ("datagram-send", "gso")]);
    let (client, server) = outcomes(&spec, V4);
    assert!(
        client.get::<Vec<DatagramCounts>>()[0].sent > 0
            && server.get::<Vec<DatagramCounts>>()[0].received > 0
    );
}

#[test]
fn a_window_without_warm_up_counts_from_the_first_arrival() {
    let mut spec = udp(quarter(Direction::Forward));
    spec.warm_up_ns = Nanos(0);
    let (_, server) = outcomes(&spec, V4);
    let came = &server.get::<Vec<DatagramCounts>>()[0];
    assert!(came.arrivals_ns > Nanos(0) && came.received > 0, "{came:?}");
}
