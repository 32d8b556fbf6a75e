//! What is changed on a copy that goes on.

use std::fs;
use std::thread;
use std::time::Duration;

use landspeed_mover::{CopyProgress, CopyRules, Source, Target, receive, send};
use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{CopyArm, CopyCount};
use landspeed_transport::CancelFlag;

use crate::{MIB, bytes, flows, is_same, source, target};

const COUNTED: Duration = Duration::from_millis(300);

fn arm(flows: u32, control: Option<&str>) -> CopyArm {
    CopyArm { flows, control: control.map(str::to_owned), ..CopyArm::default() }
}

/// Makes turns with a setting until one is as wanted.
fn turn_until(progress: &CopyProgress, arm: &CopyArm, is_wanted: &dyn Fn(&CopyCount) -> bool) -> CopyCount {
    let turns = (0..20).map(|_| progress.turn(arm, COUNTED / 4, COUNTED, &CancelFlag::new()));
    let mut seen = Vec::new();
    for counted in turns {
        if is_wanted(&counted) {
            return counted;
        }
        seen.push(counted);
    }
    panic!("no turn is as wanted: {seen:?}");
}

/// The copy is so slow, by a limit, that it goes on for all turns.
#[test]
fn flows_rest_work_again_and_get_another_congestion_control_in_a_copy_that_goes_on() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(from.path().join("long"), bytes(48 * MIB, 7)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(64e6)), ..CopyRules::default() };
    let source = Source { rules, ..source(from.path()) };
    let target = Target { is_synced: false, ..target(to.path()) };
    let [sent, received] = [CopyProgress::default(), CopyProgress::default()];
    [&sent, &received].iter().for_each(|progress| progress.begin_with(2));
    let cancel = CancelFlag::default();
    let [sending, receiving] = flows("tls", 4);
    thread::scope(|scope| {
        scope.spawn(|| receive(receiving, &target, &received, &cancel).unwrap());
        let copied = scope.spawn(|| send(sending, &source, &sent, &cancel).unwrap());
        let moves = |counted: &CopyCount| counted.is_clean && counted.taken_bytes > Bytes(0);
        let two = turn_until(&sent, &arm(4, None), &moves);
        assert_eq!(two.flows, 2, "no others are open: {two:?}");
        assert!(two.counted_ns >= Nanos::from(COUNTED) && two.control.is_some(), "{two:?}");
        sent.widen(4);
        turn_until(&sent, &arm(4, None), &|counted| counted.flows == 4 && moves(counted));
        let one = turn_until(&sent, &arm(1, Some("reno")), &moves);
        assert_eq!((one.flows, one.control.as_deref(), one.refused.as_str()), (1, Some("reno"), ""));
        let refused = sent.turn(&arm(3, Some("no-such")), COUNTED, COUNTED, &cancel);
        assert!(refused.refused.contains("no-such") && refused.counted_ns == Nanos(0), "{refused:?}");
        // All that the sockets had are kept, also those of before.
        let (used, first) = (sent.controls(), two.control.clone().unwrap_or_default());
        assert!(used.contains(&"reno".to_owned()) && used.contains(&first), "{used:?}");
        assert!(!used.contains(&"no-such".to_owned()), "{used:?}");
        assert!(copied.join().expect("no panic").is_complete());
    });
    is_same(from.path(), to.path());
    let late = sent.turn(&arm(1, None), Duration::from_secs(60), Duration::from_secs(60), &cancel);
    assert!(!late.is_clean, "{late:?}");
}

/// Whether the file system takes such writes or refuses them, all bytes arrive.
#[test]
fn pieces_that_go_past_the_page_cache_in_the_middle_of_a_copy_arrive_too() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Its last piece is no whole block.
    fs::write(from.path().join("long"), bytes(48 * MIB + 77, 9)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(64e6)), ..CopyRules::default() };
    let (source, target) = (Source { rules, ..source(from.path()) }, target(to.path()));
    let [sent, received] = [CopyProgress::default(), CopyProgress::default()];
    let cancel = CancelFlag::default();
    let [sending, receiving] = flows("tls", 4);
    assert!(received.write_direct(true).unwrap_err().contains("writes no files"), "it has not begun");
    thread::scope(|scope| {
        scope.spawn(|| receive(receiving, &target, &received, &cancel).unwrap());
        let copied = scope.spawn(|| send(sending, &source, &sent, &cancel).unwrap());
        let moves = |counted: &CopyCount| counted.taken_bytes > Bytes(0);
        turn_until(&sent, &arm(4, None), &moves);
        for is_direct in [true, false, true] {
            if let Err(refused) = received.write_direct(is_direct) {
                assert!(refused.contains("takes no direct writes"), "{refused}");
            }
            turn_until(&sent, &arm(4, None), &moves);
        }
        assert!(copied.join().expect("no panic").is_complete());
    });
    is_same(from.path(), to.path());
    assert!(sent.write_direct(true).is_err(), "the source writes no files");
}
