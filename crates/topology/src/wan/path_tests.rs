//! What holds for every path, whatever it is fed.

use landspeed_units::Nanos;
use proptest::prelude::*;

use super::*;

fn path(spec: &str) -> Path {
    Path::new(&spec.parse().unwrap(), 0)
}

/// Feeds segments (time since the one before, size) to a path.
fn feed(path: &mut Path, segments: &[(u64, u32)]) -> Vec<(Nanos, u32, Fate)> {
    let mut now = Nanos(0);
    let one = |(gap, size): &(u64, u32)| {
        now += Nanos(*gap);
        (now, *size, path.admit(now, *size))
    };
    segments.iter().map(one).collect()
}

/// When the line was done with each segment that reached the other end in order.
fn sent(fates: &[(Nanos, u32, Fate)], delay: Nanos) -> Vec<(Nanos, u32)> {
    let arrived = fates.iter().filter_map(|(_, size, fate)| match fate {
        Fate::Arrives(at) => Some((*at - delay, *size)),
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
    fn order_is_kept_and_nothing_is_early(segments in traffic()) {
        let fates = feed(&mut path(CLEAN), &segments);
        let mut last = Nanos(0);
        for (at, size, fate) in fates {
            match fate {
                Fate::Arrives(then) => {
                    prop_assert!(then >= last);
                    prop_assert!(then.0 >= at.0 + DELAY.0 + u64::from(size) * 80);
                    last = then;
                }
                Fate::NoRoom => {}
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
                // Finishing times are whole nanoseconds, each up to one early: 100 Mb/s is 1/80 byte in one.
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
            let before = path.waiting(now).0;
            match path.admit(now, size) {
                Fate::NoRoom => prop_assert!(before > 0 && before + u64::from(size) > 65_536),
                _ => prop_assert!(path.waiting(now).0 <= 65_536.max(u64::from(size))),
            }
        }
    }

    #[test]
    fn every_segment_has_one_fate_and_the_same_one_again(segments in traffic(), seed in any::<u64>()) {
        let spec = format!("rate=100M,rtt=20ms,queue=64K,loss=5%,reorder=5%,reorder-delay=2ms,seed={seed}");
        let fates = feed(&mut path(&spec), &segments);
        prop_assert_eq!(&fates, &feed(&mut path(&spec), &segments));
        // What is lost or held has used the line: nobody else's fate is another for it.
        let clean = feed(&mut path(CLEAN), &segments);
        for ((_, _, with), (_, _, without)) in fates.iter().zip(&clean) {
            match (with, without) {
                (Fate::NoRoom, Fate::NoRoom) | (Fate::Lost, Fate::Arrives(_)) => {}
                (Fate::Arrives(at), Fate::Arrives(then)) => prop_assert_eq!(at, then),
                (Fate::Held(at), Fate::Arrives(then)) => {
                    prop_assert_eq!(*at, *then + Nanos::millis(2));
                }
                pair => prop_assert!(false, "{pair:?}"),
            }
        }
    }
}

#[test]
fn rates_that_no_nanosecond_divides_do_not_drift() {
    // 3 Gb/s: 100 bytes take 266.67 ns.
    let mut path = path("rate=3G,rtt=0ms,queue=1G");
    let last = (0..3_000_000).map(|_| path.admit(Nanos(0), 100)).last();
    assert_eq!(last, Some(Fate::Arrives(Nanos::millis(800))));
}

#[test]
fn what_is_too_large_vanishes_and_takes_no_time() {
    let mut path = path("rate=1M,rtt=2ms,drop-above=1400");
    assert_eq!(path.admit(Nanos(5), 1401), Fate::TooLarge);
    assert_eq!(path.waiting(Nanos(5)), landspeed_units::Bytes(0));
    assert_eq!(path.admit(Nanos(5), 1400), Fate::Arrives(Nanos(5 + 11_200_000 + 1_000_000)));
}

#[test]
fn directions_have_chances_of_their_own() {
    let spec: WanSpec = "loss=50%".parse().unwrap();
    let fates = |direction| {
        let mut path = Path::new(&spec, direction);
        (0..64).map(|n| path.admit(Nanos::secs(n), 100) == Fate::Lost).collect::<Vec<_>>()
    };
    assert_ne!(fates(0), fates(1));
}
