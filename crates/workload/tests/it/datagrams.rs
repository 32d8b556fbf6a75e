//! Workloads over UDP, on loopback.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{DatagramCounts, EndpointOutcome, SweepDatagrams, SweepPoint, ZeroCopyCounts};
use landspeed_workload::{stream, sweep};

use crate::common::{V4, V6, outcomes, set, udp};

/// Length of a trial. A sender of datagrams does not wait for its receiver, which on a busy machine may not run for a
/// long time.
const QUARTER: Nanos = Nanos::millis(250);
/// Every way to send with every compatible way to receive.
const WAYS: [(&str, &str); 6] = [
    ("plain", "plain"),
    ("batch", "batch"),
    ("uring", "batch"),
    ("gso", "plain"),
    ("gso", "gro"),
    ("plain", "gro"),
];

/// Checks the counts of one flow that has only this sender and this receiver.
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
            let mut spec = udp(stream::spec(QUARTER));
            set(&mut spec, &[("datagram-send", send), ("datagram-receive", receive)]);
            let (client, server) = outcomes(&spec, at);
            check(&client, &server);
            assert!(server.received_bytes > Bytes(0), "{send}: {server:?}");
            assert_eq!((client.received_bytes, server.sent_bytes), (Bytes(0), Bytes(0)));
        }
    }
}

#[test]
fn a_stream_from_lent_memory_is_copied_on_loopback_and_says_so() {
    for (send, receive) in WAYS {
        let mut spec = udp(stream::spec(QUARTER));
        set(&mut spec, &[("datagram-send", send), ("datagram-receive", receive), ("zerocopy-send", "on")]);
        let (client, server) = outcomes(&spec, V4);
        check(&client, &server);
        let ZeroCopyCounts { completions, copied, .. } = *client.get();
        assert!(completions > 0 && copied == completions, "{send}: {copied} of {completions}");
    }
}

#[test]
fn flows_go_both_ways_and_backwards() {
    let mut two = udp(stream::spec(QUARTER).with("bidir", "on"));
    set(&mut two, &[("flows", "2")]);
    let (client, server) = outcomes(&two, V4);
    check(&client, &server);
    check(&server, &client);
    assert_eq!(server.flow_bytes.len(), 2);
    let (client, server) = outcomes(&udp(stream::spec(QUARTER).with("reverse", "on")), V6);
    check(&server, &client);
    assert_eq!(server.received_bytes, Bytes(0));
}

#[test]
fn what_a_small_buffer_drops_is_counted_as_lost() {
    let mut small = udp(stream::spec(QUARTER));
    // There is room for a few datagrams only, and the receiver shares the sender's core.
    set(&mut small, &[("write-size", "16"), ("rcvbuf", "1024")]);
    small.cores = vec![0];
    let (_, server) = outcomes(&small, V4);
    let came = &server.get::<Vec<DatagramCounts>>()[0];
    assert!(came.lost > 0 && came.loss() > 0.0, "{came:?}");
}

#[test]
fn a_paced_stream_keeps_its_rate() {
    let mut paced = udp(stream::spec(QUARTER));
    set(&mut paced, &[("pacing-rate", "20000000")]);
    let (client, server) = outcomes(&paced, V4);
    check(&client, &server);
    // On a busy machine the rate is lower, and the window's edges are less exact; without pacing the rate would be 100
    // times as high.
    let rate =
        client.get::<Vec<DatagramCounts>>()[0].sent as f64 * 1472.0 * 8.0 / client.window_ns.as_secs_f64();
    assert!(rate < 20e6 * 3.0, "{rate}");
}

#[test]
fn a_sweep_counts_each_size_above_the_mtu_too() {
    let sizes_bytes: Vec<_> = [32, 1472, 32_768, 65_507].map(Bytes).to_vec();
    for (at, way) in [(V4, "plain"), (V6, "batch")] {
        let mut sweep = udp(sweep::spec(300, &sizes_bytes));
        // The buffer has room for all 300 datagrams, so that none is lost.
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
        // Silence does not count as time in which data arrived.
        assert!(point.took_ns < Nanos::secs(9), "{point:?}");
    }
    assert!(server.get::<SweepDatagrams>().0[0].lost > 0, "{server:?}");
}

#[test]
fn the_largest_datagram_is_sent_alone() {
    // With loopback's MTU of 65536 the datagram is one segment. Datagrams that do not fit the path are tested in a
    // namespace.
    let mut spec = udp(stream::spec(QUARTER));
    set(&mut spec, &[("write-size", "65507"), ("datagram-send", "gso")]);
    let (client, server) = outcomes(&spec, V4);
    assert!(
        client.get::<Vec<DatagramCounts>>()[0].sent > 0
            && server.get::<Vec<DatagramCounts>>()[0].received > 0
    );
}

#[test]
fn a_window_without_warm_up_counts_from_the_first_arrival() {
    let mut spec = udp(stream::spec(QUARTER));
    spec.warm_up_ns = Nanos(0);
    let (_, server) = outcomes(&spec, V4);
    let came = &server.get::<Vec<DatagramCounts>>()[0];
    assert!(came.arrivals_ns > Nanos(0) && came.received > 0, "{came:?}");
}
