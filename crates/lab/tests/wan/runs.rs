//! Tests of runs over one link. Each run has its own statistics and its own numbering of losses.

use std::collections::BTreeSet;
use std::net::UdpSocket;

use landspeed_lab::topology::{HostSet, Lab};
use landspeed_record::WanStats;
use landspeed_record::units::{Bytes, Nanos};

use super::{lab, round_trip, send_numbered, settled, udp_pair};

/// Sends numbered datagrams, waits until none is in flight, and returns the numbers of those that did not arrive.
fn lost(lab: &Lab, near: &UdpSocket, far: &UdpSocket, count: u32) -> BTreeSet<u32> {
    let before = lab.link().unwrap().stats().a_to_b.arrived_segments;
    send_numbered(near, count, 128);
    settled(lab, before + u64::from(count));
    far.set_nonblocking(true).unwrap();
    let mut buffer = [0; 128];
    let mut missing: BTreeSet<u32> = (0..count).collect();
    while far.recv(&mut buffer).is_ok() {
        missing.remove(&u32::from_be_bytes(buffer[..4].try_into().unwrap()));
    }
    far.set_nonblocking(false).unwrap();
    missing
}

fn run(lab: &Lab) -> WanStats {
    lab.link().unwrap().since_mark().0
}

#[test]
fn a_list_is_met_to_the_packet_in_every_run() {
    let Some(lab) = lab("rate=10G,rtt=1ms,queue=32M,drop-list=5+17+300") else { return };
    let (near, far) = udp_pair(&lab);
    // Host a learns b's hardware address here, with a packet that the runs do not count.
    round_trip(&near, &far);
    for _ in 0..2 {
        lab.link().unwrap().mark();
        assert_eq!(lost(&lab, &near, &far, 400), [4, 16, 299].into());
        let run = run(&lab);
        assert_eq!((run.a_to_b.arrived_segments, run.a_to_b.loss_drops), (400, 3), "{run:?}");
        assert_eq!((run.b_to_a.arrived_segments, run.a_to_b.faults()), (0, 0), "{run:?}");
        assert!(run.window_ns < lab.link().unwrap().stats().window_ns);
    }
    assert_eq!(lab.link().unwrap().stats().a_to_b.loss_drops, 6);
    assert_eq!(round_trip_is_free_backwards(&near, &far), 7);
}

/// Sends seven packets back and returns how many arrive. All of them do, because that direction has no list of losses.
fn round_trip_is_free_backwards(near: &UdpSocket, far: &UdpSocket) -> usize {
    (0..7).for_each(|_| _ = far.send(b"back").unwrap());
    (0..7).filter(|_| near.recv(&mut [0; 8]).is_ok()).count()
}

#[test]
fn the_same_seed_loses_the_same_packets() {
    let labs = ["seed=5", "seed=5", "seed=6"];
    let labs = labs.map(|seed| lab(&format!("rate=10G,rtt=1ms,queue=32M,loss=3%,{seed}")));
    let [Some(one), Some(same), Some(other)] = labs else { return };
    let lost = [&one, &same, &other].map(|lab| {
        let (near, far) = udp_pair(lab);
        // The first datagram waits for the ARP reply; the link's random draws for it are the same, too.
        near.send(b"first").unwrap();
        settled(lab, 1);
        lost(lab, &near, &far, 3000)
    });
    assert!((30..200).contains(&lost[0].len()), "3 % of 3000: {}", lost[0].len());
    assert_eq!(lost[0], lost[1]);
    assert_ne!(lost[0], lost[2]);
}

#[test]
fn a_run_does_not_report_the_queue_from_before_it() {
    let Some(lab) = lab("rate=10M,rtt=2ms,queue=1M") else { return };
    let (near, far) = udp_pair(&lab);
    round_trip(&near, &far);
    // A busy machine may take the processor from the sender meanwhile, and the queue then stays short.
    let mut bursts = (1..=5).map(|burst| {
        lab.link().unwrap().mark();
        send_numbered(&near, 400, 1000);
        settled(&lab, 401 * burst);
        // 400 kB at 10 Mb/s take a third of a second; the next packet shows that the queue has drained.
        std::thread::sleep(std::time::Duration::from_millis(150));
        round_trip(&near, &far);
        lab.link().unwrap().since_mark()
    });
    let long = bursts.find(|(stats, _)| stats.a_to_b.most_queued_bytes > Bytes::kib(256));
    let (_, queue) = long.expect("a long queue");
    assert!(queue.len() >= 4 && queue.is_sorted_by_key(|sample| sample.at_ns), "{queue:?}");
    // The first sample may be taken while they are still being sent; a tenth of a second later 275 kB are left.
    let most = queue.iter().map(|sample| sample.waiting_bytes).max().unwrap();
    assert!(most > Bytes::kib(128) && queue.last().unwrap().waiting_bytes == Bytes(0), "{queue:?}");
    lab.link().unwrap().mark();
    round_trip(&near, &far);
    let (stats, queue) = lab.link().unwrap().since_mark();
    assert!(stats.a_to_b.most_queued_bytes < Bytes(200), "{stats:?}");
    assert!(queue.iter().all(|sample| sample.waiting_bytes < Bytes(200)), "{queue:?}");
    assert_eq!((stats.a_to_b.arrived_segments, stats.b_to_a.arrived_segments), (1, 1), "{stats:?}");
    assert!(stats.window_ns < Nanos::secs(60) && stats.a_to_b.late_p50_ns <= stats.a_to_b.late_p99_ns);
}
