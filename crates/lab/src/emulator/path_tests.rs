//! Tests of properties that hold for every path, whatever traffic it gets.

use landspeed_record::units::Nanos;
use proptest::prelude::*;

use super::super::WanSpec;
use super::*;

fn path(spec: &str) -> EmulatedPath {
    EmulatedPath::new(&spec.parse::<WanSpec>().unwrap().plan().unwrap()[0])
}

fn segment(size: u32) -> Segment {
    Segment { size, has_payload: true, is_ect: false, is_far: false }
}

/// Returns the fate of a segment that arrives unchanged at this time.
fn plain(at: Nanos) -> SegmentFate {
    SegmentFate::Arrives(SegmentArrival {
        at,
        is_held: false,
        is_far: false,
        is_marked: false,
        is_doubled: false,
    })
}

/// Feeds segments (time since the previous one in nanoseconds, size in bytes) to a path. Returns the arrival time, the
/// size and the fate of each.
fn feed(path: &mut EmulatedPath, segments: &[(u64, u32)]) -> Vec<(Nanos, u32, SegmentFate)> {
    let mut now = Nanos(0);
    let one = |(gap, size): &(u64, u32)| {
        now += Nanos(*gap);
        (now, *size, path.admit(now, segment(*size)))
    };
    segments.iter().map(one).collect()
}

/// Returns when the line had sent each segment that arrived without being held back, and its size.
fn sent(fates: &[(Nanos, u32, SegmentFate)], delay: Nanos) -> Vec<(Nanos, u32)> {
    let arrived = fates.iter().filter_map(|(_, size, fate)| match fate {
        SegmentFate::Arrives(arrival) if !arrival.is_held => Some((arrival.at - delay, *size)),
        _ => None,
    });
    arrived.collect()
}

fn traffic() -> impl Strategy<Value = Vec<(u64, u32)>> {
    // Bursts (no gap) and pauses, small and large segments, around the rate of 100 Mb/s.
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..200_000_u64, 1 => 0..5_000_000_u64];
    prop::collection::vec((gap, 40..9000_u32), 1..400)
}

const DELAY: Nanos = Nanos::millis(10);
const CLEAN: &str = "rate=100M,rtt=20ms,queue=64K";

proptest! {
    #[test]
    fn order_is_kept_and_nothing_is_early(segments in traffic(), jitter in 0..3_u64) {
        let spec = format!("{CLEAN},jitter={jitter}ms");
        let fates = feed(&mut path(&spec), &segments);
        let mut last = Nanos(0);
        for (at, size, fate) in fates {
            match fate {
                SegmentFate::Arrives(SegmentArrival { at: then, .. }) => {
                    prop_assert!(then >= last);
                    prop_assert!(then.0 >= at.0 + DELAY.0 + u64::from(size) * 80);
                    last = then;
                }
                SegmentFate::NoRoom => {}
                other => prop_assert!(false, "a clean path made {other:?}"),
            }
        }
    }

    #[test]
    fn no_window_carries_more_than_the_rate_and_one_segment(segments in traffic()) {
        let sent = sent(&feed(&mut path(CLEAN), &segments), DELAY);
        for first in 0..sent.len() {
            let mut bytes = 0;
            for (at, size) in &sent[first..] {
                bytes += u64::from(*size);
                // The first segment of a window may have been on the line before it opened.
                let within = (at.0 - sent[first].0.0) / 80;
                // Finishing times are rounded down to whole nanoseconds. At 100 Mb/s, one nanosecond is 1/80 byte.
                prop_assert!(bytes <= within + u64::from(sent[first].1) + 1);
            }
        }
    }

    #[test]
    fn the_queue_is_bounded_and_used(segments in traffic()) {
        let mut path = path(CLEAN);
        let mut now = Nanos(0);
        for (gap, size) in segments {
            now += Nanos(gap);
            let before = path.waiting(now).bytes;
            match path.admit(now, segment(size)) {
                SegmentFate::NoRoom => prop_assert!(before > 0 && before + u64::from(size) > 65_536),
                _ => prop_assert!(path.waiting(now).bytes <= 65_536.max(u64::from(size))),
            }
        }
    }

    #[test]
    fn a_queue_in_packets_is_bounded_and_used(segments in traffic()) {
        let mut counted = path("rate=100M,rtt=20ms,queue=7p");
        let mut now = Nanos(0);
        for (gap, size) in segments {
            now += Nanos(gap);
            let before = counted.waiting(now);
            match counted.admit(now, segment(size)) {
                SegmentFate::NoRoom => prop_assert_eq!(before.packets, 7),
                _ => prop_assert_eq!(counted.waiting(now).packets, before.packets + 1),
            }
        }
    }

    #[test]
    fn every_segment_has_one_fate_and_the_same_one_again(segments in traffic(), seed in any::<u64>()) {
        let spec = format!("rate=100M,rtt=20ms,queue=64K,loss=5%,reorder=5%,reorder-delay=2ms,seed={seed}");
        let fates = feed(&mut path(&spec), &segments);
        prop_assert_eq!(&fates, &feed(&mut path(&spec), &segments));
        // Lost and held segments have used the line, so that the other segments' fates do not change.
        let clean = feed(&mut path(CLEAN), &segments);
        for ((_, _, with), (_, _, without)) in fates.iter().zip(&clean) {
            match (with, without) {
                (SegmentFate::NoRoom, SegmentFate::NoRoom) | (SegmentFate::Lost, SegmentFate::Arrives(_)) => {}
                (SegmentFate::Arrives(with), SegmentFate::Arrives(without)) => {
                    let held = if with.is_held { Nanos::millis(2) } else { Nanos(0) };
                    prop_assert_eq!(with.at, without.at + held);
                }
                pair => prop_assert!(false, "{pair:?}"),
            }
        }
    }

    #[test]
    fn one_chance_does_not_change_another(segments in traffic()) {
        let lost = |more: &str| {
            let spec = format!("rate=100G,rtt=20ms,queue=1G,loss=5%{more}");
            let fates = feed(&mut path(&spec), &segments);
            fates.iter().map(|(_, _, fate)| *fate == SegmentFate::Lost).collect::<Vec<_>>()
        };
        prop_assert_eq!(lost(""), lost(",reorder=5%,duplicate=5%,jitter=3ms"));
    }
}

#[test]
fn rates_that_no_nanosecond_divides_do_not_drift() {
    // 3 Gb/s: 100 bytes take 266.67 ns.
    let mut path = path("rate=3G,rtt=0ms,queue=1G");
    let last = (0..3_000_000).map(|_| path.admit(Nanos(0), segment(100))).last();
    assert_eq!(last, Some(plain(Nanos::millis(800))));
}

#[test]
fn a_packet_that_is_too_large_vanishes_and_takes_no_time() {
    let mut path = path("rate=1M,rtt=2ms,drop-above=1400");
    assert_eq!(path.admit(Nanos(5), segment(1401)), SegmentFate::TooLarge);
    assert_eq!(path.waiting(Nanos(5)), QueueContents::default());
    assert_eq!(path.admit(Nanos(5), segment(1400)), plain(Nanos(5 + 11_200_000 + 1_000_000)));
}

#[test]
fn directions_have_chances_of_their_own() {
    let plans = "loss=50%".parse::<WanSpec>().unwrap().plan().unwrap();
    let fates = plans.each_ref().map(|plan| {
        let mut path = EmulatedPath::new(plan);
        (0..64).map(|n| path.admit(Nanos::secs(n), segment(100)) == SegmentFate::Lost).collect::<Vec<_>>()
    });
    assert_ne!(fates[0], fates[1]);
}

#[test]
fn the_return_path_has_its_own_parameters() {
    let plans = "rate=1G,rtt=2ms,back.rate=8M,drop-list=1".parse::<WanSpec>().unwrap().plan().unwrap();
    let [there, back] = plans.each_ref().map(|plan| EmulatedPath::new(plan).admit(Nanos(0), segment(1000)));
    assert_eq!((there, back), (SegmentFate::Lost, plain(Nanos::millis(2))));
}

#[test]
fn a_second_round_trip_begins_behind_the_queue_and_on_the_way_there() {
    let plans = "rate=1G,rtt=2ms,second-rtt=7ms".parse::<WanSpec>().unwrap().plan().unwrap();
    let arrivals = plans.each_ref().map(|plan| {
        let mut path = EmulatedPath::new(plan);
        let fates =
            [true, false, true].map(|is_far| path.admit(Nanos(0), Segment { is_far, ..segment(1000) }));
        fates.map(|fate| match fate {
            SegmentFate::Arrives(arrival) => (arrival.at, arrival.is_far),
            fate => panic!("{fate:?}"),
        })
    });
    // All share the line: each segment takes 8 us of it.
    let at = |segments: u64, ms: u64| Nanos(segments * 8_000) + Nanos::millis(ms);
    assert_eq!(arrivals[0], [(at(1, 6), true), (at(2, 1), false), (at(3, 6), true)]);
    assert_eq!(arrivals[1], [(at(1, 1), false), (at(2, 1), false), (at(3, 1), false)]);
}

#[test]
fn only_ecn_capable_packets_are_marked_above_a_threshold() {
    let mut path = path("rate=1G,rtt=2ms,queue=100p,mark-above=3p");
    let mut fates = |is_ect| {
        (0..5).map(|_| path.admit(Nanos(0), Segment { is_ect, ..segment(1000) })).collect::<Vec<_>>()
    };
    let marked = |fates: Vec<SegmentFate>| {
        fates
            .iter()
            .map(|fate| matches!(fate, SegmentFate::Arrives(arrival) if arrival.is_marked))
            .collect::<Vec<_>>()
    };
    assert_eq!(marked(fates(true)), [false, false, false, true, true]);
    assert_eq!(marked(fates(false)), [false; 5]);
}

#[test]
fn jitter_is_uniform_from_none_to_all_of_it() {
    // The segments are so far apart that none waits for another, so delays are as drawn. Kolmogorov and Smirnov: the
    // largest distance between the two distributions is below 1.63 / sqrt(n) in 99 of 100 samples.
    const SEGMENTS: u64 = 20_000;
    let mut path = path("rate=1G,rtt=20ms,jitter=4ms");
    let mut extra: Vec<f64> = (0..SEGMENTS)
        .map(|n| {
            let sent = Nanos::millis(n * 10);
            let SegmentFate::Arrives(arrival) = path.admit(sent, segment(125)) else {
                panic!("nothing is lost")
            };
            (arrival.at - sent - Nanos::micros(10_001)).0 as f64 / 4e6
        })
        .collect();
    extra.sort_unstable_by(f64::total_cmp);
    assert!(extra[0] >= 0.0 && extra[extra.len() - 1] <= 1.0);
    let count = SEGMENTS as f64;
    let distance = (1..)
        .zip(&extra)
        .map(|(n, x)| (x - f64::from(n) / count).abs().max((x - f64::from(n - 1) / count).abs()));
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 1.63 / count.sqrt(), "{distance}");
}

#[test]
fn lost_segments_are_within_binomial_bounds() {
    for (spec, share) in [("loss=1%", 0.01), ("loss=0.01%", 1e-4), ("loss=30%,seed=9", 0.3)] {
        const SEGMENTS: u64 = 1_000_000;
        let mut path = path(&format!("rate=100G,rtt=0ms,queue=1G,{spec}"));
        let lost =
            (0..SEGMENTS).filter(|n| path.admit(Nanos(n * 1000), segment(100)) == SegmentFate::Lost).count();
        let (mean, deviation) = (SEGMENTS as f64 * share, (SEGMENTS as f64 * share * (1.0 - share)).sqrt());
        assert!((lost as f64 - mean).abs() < 4.0 * deviation, "{spec}: {lost}");
    }
}

#[test]
fn a_trace_is_a_line_like_any_other() {
    let file = super::super::numbers::tests::file("10\n20\n");
    let mut path = path(&format!("trace={},rtt=2ms,queue=3000", file.display()));
    let fates: Vec<SegmentFate> = (0..3).map(|_| path.admit(Nanos(0), segment(1500))).collect();
    assert_eq!(fates, [plain(Nanos::millis(11)), plain(Nanos::millis(21)), SegmentFate::NoRoom]);
    assert_eq!(path.waiting(Nanos::millis(10)), QueueContents { packets: 1, bytes: 1500 });
}
