//! Tests of one direction, without sockets and clocks.

#[path = "../../tests/wan/under_way.rs"]
mod under_way;

use landspeed_record::DirectionStats;
use proptest::prelude::*;

use super::super::WanSpec;
use super::super::frame::ETHERNET;
use super::super::spec::SECOND_RTT_DSCP;
use super::super::stats::DirectionSnapshot;
use super::super::virtio::{SegmentKind, VirtioHeader};
use super::*;
use under_way::under_way_segments;

const HEADERS: usize = ETHERNET + 40;

/// Builds a TCP superpacket over IPv4, whose payload bytes count up from `from`. It is a plain packet if one segment
/// holds the payload.
fn tcp(from: u32, payload: usize, segment: u16) -> Vec<u8> {
    let mut frame = vec![0; HEADERS];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[38..42].copy_from_slice(&from.to_be_bytes());
    frame[46] = 5 << 4;
    frame.extend((0..payload).map(|n| (from as usize + n) as u8));
    let virtio = match payload > segment.into() {
        true => VirtioHeader::super_packet(SegmentKind::Tcp, false, segment, 34),
        false => VirtioHeader::plain(),
    };
    [&virtio.bytes()[..], &frame].concat()
}

fn direction(spec: &str) -> LinkDirection {
    LinkDirection::new(&spec.parse::<WanSpec>().unwrap().plan().unwrap()[0], Arc::default())
}

fn stats(direction: &LinkDirection) -> DirectionStats {
    direction.counters.read().total()
}

/// Releases all frames that leave by `now`. Returns their times, their places in the stream, and their payloads.
fn release(direction: &mut LinkDirection, now: Nanos) -> Vec<(Nanos, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((lane, until)) = direction.turn(now) {
        let due = direction.due(lane, until).map(|due| {
            let frame = &due.frame[VIRTIO_LEN..];
            let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
            (due.leaves, sequence, frame[HEADERS..].to_vec())
        });
        let due: Vec<_> = due.collect();
        direction.sent(lane, SendOutcome { done: due.len(), refused: false }, now);
        all.extend(due);
    }
    all
}

fn whole_and_true(frames: &[(Nanos, u32, Vec<u8>)]) -> bool {
    let mut at = frames.iter().flat_map(|(_, sequence, payload)| (*sequence..).zip(payload));
    at.all(|(place, byte)| place as u8 == *byte)
}

proptest! {
    #[test]
    fn nothing_is_made_or_unmade(
        packets in prop::collection::vec((0..2_000_000_u64, 1..40_000_usize), 1..60),
        seed in any::<u64>(),
    ) {
        let spec = format!(
            "rate=200M,rtt=4ms,queue=100K,loss=3%,reorder=3%,drop-above=1480,jitter=3ms,duplicate=3%,\
             mark-above=20K,loss-nth=50,seed={seed}"
        );
        let mut direction = direction(&spec);
        let (mut now, mut from, mut segments) = (Nanos(0), 0_u32, 0);
        let mut out = Vec::new();
        for (gap, payload) in packets {
            now += Nanos(gap);
            out.extend(release(&mut direction, now));
            direction.take(now, &tcp(from, payload, 1440));
            from += u32::try_from(payload).unwrap();
            segments += payload.div_ceil(1440) as u64;
            let stats = stats(&direction);
            prop_assert_eq!(stats.arrived_segments, segments);
            prop_assert_eq!(stats.faults(), 0);
        }
        out.extend(release(&mut direction, Nanos(u64::MAX)));
        let stats = stats(&direction);
        prop_assert_eq!(under_way_segments(&stats), 0, "copies with them");
        prop_assert!(whole_and_true(&out), "every byte is where it belongs");
        prop_assert!(out.is_sorted_by_key(|(leaves, ..)| *leaves));
        let carried: u64 = out.iter().map(|(_, _, payload)| payload.len().div_ceil(1440) as u64).sum();
        prop_assert_eq!(carried, stats.forwarded_segments);
    }

    #[test]
    fn order_is_kept_unless_it_is_to_be_broken(
        packets in prop::collection::vec((0..500_000_u64, 1..60_000_usize), 1..40),
    ) {
        let mut direction = direction("rate=1G,rtt=10ms,queue=10M,loss=2%");
        let (mut now, mut from) = (Nanos(0), 0_u32);
        for (gap, payload) in packets {
            now += Nanos(gap);
            direction.take(now, &tcp(from, payload, 1440));
            from += u32::try_from(payload).unwrap();
        }
        let out = release(&mut direction, Nanos(u64::MAX));
        prop_assert!(out.is_sorted_by_key(|(_, sequence, _)| *sequence));
    }

    #[test]
    fn each_round_trip_keeps_its_order(
        packets in prop::collection::vec((0..500_000_u64, 1..40_000_usize, any::<bool>()), 1..40),
    ) {
        let mut direction =
            direction("rate=200M,rtt=4ms,second-rtt=9ms,queue=10M,loss=3%,jitter=3ms,duplicate=3%");
        let (mut now, mut from, mut sent) = (Nanos(0), 0_u32, Vec::new());
        for (gap, payload, is_far) in packets {
            now += Nanos(gap);
            let class = if is_far { SECOND_RTT_DSCP << 2 } else { 0 };
            direction.take(now, &ecn_tcp(from, payload, 1440, class));
            sent.push((from, is_far));
            from += u32::try_from(payload).unwrap();
        }
        let out = release(&mut direction, Nanos(u64::MAX));
        prop_assert!(whole_and_true(&out) && out.is_sorted_by_key(|(leaves, ..)| *leaves));
        let is_far = |sequence: u32| sent[sent.partition_point(|(first, _)| *first <= sequence) - 1].1;
        let (far, near): (Vec<_>, Vec<_>) = out.iter().partition(|(_, sequence, _)| is_far(*sequence));
        prop_assert!(far.is_sorted_by_key(|(_, sequence, _)| *sequence));
        prop_assert!(near.is_sorted_by_key(|(_, sequence, _)| *sequence));
        let stats = stats(&direction);
        prop_assert_eq!((stats.faults(), under_way_segments(&stats)), (0, 0));
    }
}

#[test]
fn superpackets_stay_whole_where_nothing_happens_to_them() {
    let mut fast = direction("rate=10G,rtt=2ms");
    let given = tcp(0, 64_000, 1440);
    fast.take(Nanos(0), &given);
    let out: Vec<_> = fast.due(FrameLane::Main, Nanos(u64::MAX)).map(|due| due.frame.to_vec()).collect();
    assert_eq!((out.len(), &out[0][VIRTIO_LEN..]), (1, &given[VIRTIO_LEN..]));
}

#[test]
fn superpackets_above_the_largest_ip_length_are_cut() {
    let mut fast = direction("rate=10G,rtt=2ms,queue=1M");
    fast.take(Nanos(0), &tcp(0, 180_000, 1440));
    let out = release(&mut fast, Nanos(u64::MAX));
    let lengths: Vec<_> = out.iter().map(|(_, _, payload)| payload.len()).collect();
    assert_eq!(lengths, [64_800, 64_800, 50_400]);
    assert!(whole_and_true(&out));
}

#[test]
fn slow_lines_carry_segments_one_by_one() {
    let mut slow = direction("rate=10M,rtt=2ms,queue=1M");
    slow.take(Nanos(0), &tcp(0, 14_400, 1440));
    let out = release(&mut slow, Nanos(u64::MAX));
    assert_eq!(out.len(), 10);
    // 1480 bytes at 10 Mb/s, then a millisecond on the way.
    assert_eq!(out[0].0, Nanos(1_184_000 + 1_000_000));
    assert_eq!(out[9].0, Nanos(10 * 1_184_000 + 1_000_000));
}

#[test]
fn a_superpacket_overflows_a_short_queue_in_its_tail_only() {
    let mut direction = direction("rate=100M,rtt=2ms,queue=14800");
    direction.take(Nanos(0), &tcp(0, 20 * 1440, 1440));
    let stats = stats(&direction);
    assert_eq!((stats.queue_drops, under_way_segments(&stats)), (10, 10));
    assert_eq!(stats.most_queued_bytes.0, 14_800);
    let out = release(&mut direction, Nanos(u64::MAX));
    assert_eq!(out.iter().map(|(_, _, payload)| payload.len()).sum::<usize>(), 10 * 1440);
}

#[test]
fn held_segments_are_overtaken_and_no_others() {
    let mut direction = direction("rate=1G,rtt=2ms,queue=10M,reorder=10%,reorder-delay=5ms");
    for n in 0..200 {
        direction.take(Nanos(0), &tcp(n * 1440, 1440, 1440));
    }
    let out = release(&mut direction, Nanos(u64::MAX));
    let held = stats(&direction).reordered_segments as usize;
    assert!((1..100).contains(&held), "{held}");
    // 200 segments take 2.4 ms: the held ones come after all others, in their own order.
    let (main, late) = out.split_at(200 - held);
    assert!(main.is_sorted_by_key(|(_, sequence, _)| *sequence));
    assert!(late.is_sorted_by_key(|(_, sequence, _)| *sequence));
}

#[test]
fn packets_of_the_second_round_trip_are_later_by_the_same_time_and_stay_whole() {
    let mut direction = direction("rate=10G,rtt=2ms,second-rtt=7ms,queue=10M");
    for n in 0..20_u32 {
        let dscp = if n % 2 == 0 { 0 } else { SECOND_RTT_DSCP };
        direction.take(Nanos(0), &ecn_tcp(n * 14_400, 14_400, 1440, dscp << 2));
    }
    // Twenty superpackets of 14,800 bytes of IP packets take 237 us: all near ones leave before all far ones.
    let out = release(&mut direction, Nanos(u64::MAX));
    let (near, far) = out.split_at(10);
    let superpackets = |frames: &[(Nanos, u32, Vec<u8>)]| -> Vec<u32> {
        frames.iter().map(|(_, sequence, _)| sequence / 14_400).collect()
    };
    assert_eq!(superpackets(near), (0..20).step_by(2).collect::<Vec<u32>>());
    assert_eq!(superpackets(far), (1..20).step_by(2).collect::<Vec<u32>>());
    assert!(near.iter().all(|(at, ..)| (Nanos::millis(1)..Nanos::millis(2)).contains(at)), "{near:?}");
    assert!(far.iter().all(|(at, ..)| (Nanos::millis(6)..Nanos::millis(7)).contains(at)), "{far:?}");
    assert!(whole_and_true(&out));
    let stats = stats(&direction);
    assert_eq!((stats.reordered_segments, stats.faults(), under_way_segments(&stats)), (0, 0, 0));
}

#[test]
fn a_link_has_memory_for_all_that_is_under_way_over_its_second_round_trip() {
    let mut direction = direction("rate=100M,rtt=2ms,second-rtt=202ms,queue=64K");
    // 100 Mb/s for 300 ms, all of the second round trip: 2.5 MB are under way.
    for n in 0..2500_u64 {
        let now = Nanos(n * 120_000);
        release(&mut direction, now);
        direction.take(now, &ecn_tcp(n as u32 * 1440, 1440, 1440, SECOND_RTT_DSCP << 2));
    }
    let stats = stats(&direction);
    assert_eq!((stats.overrun_drops, stats.queue_drops), (0, 0), "{stats:?}");
    assert!(under_way_segments(&stats) > 1600, "{stats:?}");
}

/// Builds a superpacket like `tcp`, with an ECN field and a complete IPv4 header.
fn ecn_tcp(from: u32, payload: usize, segment: u16, ecn: u8) -> Vec<u8> {
    let mut buffer = tcp(from, payload, segment);
    let frame = &mut buffer[VIRTIO_LEN..];
    let total = u16::try_from(frame.len() - ETHERNET).unwrap();
    frame[15] = ecn;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame[23] = 6;
    let sum = !header_sum(frame);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    buffer
}

fn header_sum(frame: &[u8]) -> u16 {
    let words = frame[ETHERNET..ETHERNET + 20].chunks_exact(2);
    let sum: u32 = words.map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

/// Returns the place in the stream, the number of segments and the ECN field of each piece that leaves, and checks
/// the headers' checksums.
fn pieces(direction: &mut LinkDirection) -> Vec<(u32, usize, u8)> {
    let due = direction.due(FrameLane::Main, Nanos(u64::MAX)).map(|due| {
        let frame = &due.frame[VIRTIO_LEN..];
        assert_eq!(header_sum(frame), 0xffff, "the checksum of a piece's header");
        let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
        (sequence, due.segments as usize, frame[15] & 3)
    });
    due.collect()
}

#[test]
fn the_right_piece_of_a_superpacket_is_marked() {
    // Ten segments of 1480 bytes arrive together; the sixth to tenth find five or more before them.
    let spec = "rate=10G,rtt=2ms,queue=1M,mark-above=7400";
    let mut marking = direction(spec);
    marking.take(Nanos(0), &ecn_tcp(0, 14_400, 1440, 2));
    assert_eq!(pieces(&mut marking), [(0, 5, 2), (7200, 5, 3)]);
    assert_eq!(stats(&marking).marked_segments, 5);
    let mut deaf = direction(spec);
    deaf.take(Nanos(0), &ecn_tcp(0, 14_400, 1440, 0));
    assert_eq!((pieces(&mut deaf), stats(&deaf).marked_segments), (vec![(0, 10, 0)], 0));
    // With a threshold of one byte, the whole superpacket is marked, and so is the packet after it.
    let mut all = direction("rate=10G,rtt=2ms,queue=1M,mark-above=1");
    all.take(Nanos(0), &ecn_tcp(0, 14_400, 1440, 1));
    assert_eq!(pieces(&mut all), [(0, 10, 3)]);
    all.take(Nanos(0), &ecn_tcp(14_400, 100, 1440, 1));
    assert_eq!(pieces(&mut all)[1], (14_400, 1, 3));
}

#[test]
fn doubled_segments_come_right_behind_themselves() {
    let mut direction = direction("rate=10G,rtt=2ms,queue=1M,duplicate=100%");
    direction.take(Nanos(0), &ecn_tcp(0, 2880, 1440, 0));
    let places: Vec<_> =
        pieces(&mut direction).iter().map(|(place, segments, _)| (*place, *segments)).collect();
    assert_eq!(places, [(0, 1), (0, 1), (1440, 1), (1440, 1)]);
    release(&mut direction, Nanos(u64::MAX));
    let stats = stats(&direction);
    assert_eq!((stats.arrived_segments, stats.duplicated_segments, stats.forwarded_segments), (2, 2, 4));
    assert_eq!(under_way_segments(&stats), 0);
}

#[test]
fn listed_segments_are_lost_wherever_they_are_within_a_superpacket() {
    let mut direction = direction("rate=10G,rtt=2ms,queue=1M,drop-list=2+5+6");
    // A pure acknowledgement is not counted: the superpacket's segments are 1 to 8.
    let mut bare = ecn_tcp(0, 1, 1440, 0);
    bare.pop();
    bare[VIRTIO_LEN + 16..VIRTIO_LEN + 18].copy_from_slice(&40_u16.to_be_bytes());
    direction.take(Nanos(0), &bare);
    direction.take(Nanos(0), &ecn_tcp(0, 8 * 1440, 1440, 0));
    let lost: Vec<_> =
        release(&mut direction, Nanos(u64::MAX)).iter().map(|(_, at, bytes)| (*at, bytes.len())).collect();
    assert_eq!(lost, [(0, 0), (0, 1440), (2 * 1440, 2 * 1440), (6 * 1440, 2 * 1440)]);
    assert_eq!(stats(&direction).loss_drops, 3);
    // After a new run begins, the second segment is lost again.
    direction.counters.begin_run();
    direction.take(Nanos(0), &ecn_tcp(0, 2 * 1440, 1440, 0));
    assert_eq!(stats(&direction).loss_drops, 4);
}

#[test]
fn the_queue_over_time_is_known() {
    let mut direction = direction("rate=8M,rtt=2ms,queue=1M");
    // 500 kB at one megabyte a second take half a second.
    for n in 0..500 {
        direction.take(Nanos::millis(1000), &tcp(n * 960, 960, 1440));
    }
    direction.take(Nanos::millis(5000), &tcp(0, 1, 1440));
    let queue = direction.counters.queue_since(&DirectionSnapshot::default(), Nanos::millis(1000));
    let seen: Vec<_> = queue.iter().map(|s| (s.at_ns.0 / 1_000_000, s.waiting_bytes.0)).collect();
    let expected = [(100, 400_000), (200, 300_000), (300, 200_000), (400, 100_000), (500, 0), (4000, 0)];
    assert_eq!(seen, expected);
    assert_eq!(direction.counters.most_queued_since(&DirectionSnapshot::default()).0, 500_000);
}

#[test]
fn refused_frames_are_counted_as_such() {
    let mut direction = direction("rate=1G,rtt=0ms");
    direction.take(Nanos(0), &[0; 12]);
    for n in 0..3 {
        direction.take(Nanos(0), &tcp(n * 100, 100, 1440));
    }
    direction.sent(FrameLane::Main, SendOutcome { done: 2, refused: true }, Nanos::secs(1));
    let stats = stats(&direction);
    assert_eq!((stats.arrived_segments, stats.forwarded_segments, stats.refused_segments), (4, 1, 2));
    assert_eq!(under_way_segments(&stats), 1);
    assert!(stats.late_max_ns > Some(Nanos::millis(999)), "late is from when it should have left");
}
