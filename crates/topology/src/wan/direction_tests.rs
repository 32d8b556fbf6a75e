//! Frames through one direction, without sockets and clocks.

use landspeed_record::DirectionStats;
use proptest::prelude::*;

use super::super::virtio::{Segments, Virtio};
use super::*;

const HEADERS: usize = ETHERNET + 40;

/// A TCP superpacket over IPv4 whose payload counts up from `from`; a plain packet if one segment holds it.
fn tcp(from: u32, payload: usize, segment: u16) -> Vec<u8> {
    let mut frame = vec![0; HEADERS];
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[38..42].copy_from_slice(&from.to_be_bytes());
    frame[46] = 5 << 4;
    frame.extend((0..payload).map(|n| (from as usize + n) as u8));
    let virtio = match payload > segment.into() {
        true => Virtio::super_packet(Segments::Tcp, false, segment, 34),
        false => Virtio::plain(),
    };
    [&virtio.bytes()[..], &frame].concat()
}

fn direction(spec: &str) -> Direction {
    Direction::new(&spec.parse().unwrap(), 0, Arc::default())
}

fn stats(direction: &Direction) -> DirectionStats {
    direction.counters.read()
}

/// Lets everything go that leaves by `now`: times, and payloads with their place in the stream.
fn release(direction: &mut Direction, now: Nanos) -> Vec<(Nanos, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((lane, until)) = direction.turn(now) {
        let due = direction.due(lane, until).map(|due| {
            let frame = &due.frame[VIRTIO_LEN..];
            let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
            (due.leaves, sequence, frame[HEADERS..].to_vec())
        });
        let due: Vec<_> = due.collect();
        direction.given(lane, Given { done: due.len(), refused: false }, now);
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
        let spec = format!("rate=200M,rtt=4ms,queue=100K,loss=3%,reorder=3%,drop-above=1480,seed={seed}");
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
        prop_assert_eq!(stats.under_way_segments(), 0);
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
}

#[test]
fn superpackets_stay_whole_where_nothing_happens_to_them() {
    let mut fast = direction("rate=10G,rtt=2ms");
    let given = tcp(0, 64_000, 1440);
    fast.take(Nanos(0), &given);
    let out: Vec<_> = fast.due(Lane::Main, Nanos(u64::MAX)).map(|due| due.frame.to_vec()).collect();
    assert_eq!((out.len(), &out[0][VIRTIO_LEN..]), (1, &given[VIRTIO_LEN..]));
}

#[test]
fn superpackets_above_what_ip_can_say_are_cut() {
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
    // 1480 bytes at 10 Mb/s, then a millisecond's way.
    assert_eq!(out[0].0, Nanos(1_184_000 + 1_000_000));
    assert_eq!(out[9].0, Nanos(10 * 1_184_000 + 1_000_000));
}

#[test]
fn a_superpacket_overflows_a_short_queue_in_its_tail_only() {
    let mut direction = direction("rate=100M,rtt=2ms,queue=14800");
    direction.take(Nanos(0), &tcp(0, 20 * 1440, 1440));
    let stats = stats(&direction);
    assert_eq!((stats.queue_drops, stats.under_way_segments()), (10, 10));
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
    // 200 segments take 2.4 ms: those that are held come after all others, in their own order.
    let (main, late) = out.split_at(200 - held);
    assert!(main.is_sorted_by_key(|(_, sequence, _)| *sequence));
    assert!(late.is_sorted_by_key(|(_, sequence, _)| *sequence));
}

#[test]
fn refused_frames_are_counted_as_such() {
    let mut direction = direction("rate=1G,rtt=0ms");
    direction.take(Nanos(0), &[0; 12]);
    for n in 0..3 {
        direction.take(Nanos(0), &tcp(n * 100, 100, 1440));
    }
    direction.given(Lane::Main, Given { done: 2, refused: true }, Nanos::secs(1));
    let stats = stats(&direction);
    assert_eq!((stats.arrived_segments, stats.forwarded_segments, stats.refused_segments), (4, 1, 2));
    assert_eq!(stats.under_way_segments(), 1);
    assert!(stats.late_max_ns > Nanos::millis(999), "late is from when it should have left");
}
