use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use landspeed_transport::used_by_thread;

use super::*;

const PAUSE: Duration = Duration::from_millis(60);

/// Uses a processor for a while.
fn spin() {
    let end = used_by_thread() + Nanos::from(PAUSE);
    while used_by_thread() < end {}
}

/// Returns the times of a thread that pauses for every reason, and how long it lived.
fn lived() -> (CopyEndTimes, Duration) {
    let totals = Arc::<StageTotals>::default();
    let alive = thread::scope(|scope| {
        let live = || {
            let begun = Instant::now();
            let life = totals.begin(CopyStage::Read);
            wait(Pause::Starved, || thread::sleep(PAUSE));
            enter(CopyStage::Hash);
            spin();
            enter(CopyStage::Read);
            thread::sleep(PAUSE);
            settle(Pause::Device);
            enter(CopyStage::Send);
            thread::sleep(PAUSE);
            settle(Pause::Blocked);
            wait(Pause::Limit, || thread::sleep(PAUSE));
            drop(life);
            begun.elapsed()
        };
        scope.spawn(live).join().expect("no panic")
    });
    (totals.times(), alive)
}

#[test]
fn the_times_of_a_thread_add_up_to_its_life() {
    let adds_up = || {
        let (times, alive) = lived();
        let sum: u64 = times.stages.iter().map(|stage| stage.total().0).sum();
        let life = alive.as_nanos() as u64;
        assert!(sum <= life, "{sum} of {life}");
        sum as f64 > 0.98 * life as f64
    };
    // The thread may lose the processor before its times begin, or after they end.
    assert!((0..5).any(|_| adds_up()));
}

#[test]
fn each_pause_is_that_of_its_stage() {
    let (times, _) = lived();
    // A thread waits for a processor once it is awake, and then uses it for a little.
    let least = Nanos::from(PAUSE / 2);
    let at_least = |paused: Nanos, queued: Nanos| assert!(paused + queued >= least, "{times:?}");
    let [read, hash, send] = [CopyStage::Read, CopyStage::Hash, CopyStage::Send].map(|one| times.of(one));
    at_least(read.starved_ns, read.queued_ns);
    at_least(read.device_ns, read.queued_ns);
    at_least(send.blocked_ns, send.queued_ns);
    at_least(send.limited_ns, send.queued_ns);
    at_least(hash.processor_ns, hash.queued_ns);
    // What passes between two calls goes to the pause that is named next.
    let between = Nanos::from(PAUSE / 10);
    assert!(
        [read.blocked_ns, send.starved_ns, hash.starved_ns].iter().all(|one| *one < between),
        "{times:?}"
    );
}

/// A thread that answers wakes another one, which may take its processor: that makes the stretch long, and no work.
#[test]
fn work_of_one_stage_is_not_attributed_to_a_longer_one() {
    let totals = Arc::<StageTotals>::default();
    let life = totals.begin(CopyStage::Metadata);
    thread::sleep(PAUSE);
    enter(CopyStage::Write);
    spin();
    enter(CopyStage::Metadata);
    settle(Pause::Device);
    drop(life);
    let times = totals.times();
    let [metadata, write] = [CopyStage::Metadata, CopyStage::Write].map(|stage| *times.of(stage));
    assert!(metadata.processor_ns < Nanos::from(PAUSE / 10), "{times:?}");
    assert!(write.processor_ns >= Nanos::from(PAUSE / 2), "{times:?}");
}

/// A flow breaks while its threads wait for the other end, and no disk has held them.
#[test]
fn a_thread_that_ends_within_a_stage_has_the_pauses_of_the_stage() {
    let totals = Arc::<StageTotals>::default();
    for stage in [CopyStage::Receive, CopyStage::Send, CopyStage::Read] {
        let _life = totals.begin(CopyStage::Hash);
        enter(stage);
        thread::sleep(PAUSE);
    }
    let times = totals.times();
    let [receive, send, read] =
        [CopyStage::Receive, CopyStage::Send, CopyStage::Read].map(|stage| *times.of(stage));
    assert_eq!([receive.device_ns, receive.blocked_ns, send.device_ns, send.starved_ns], [Nanos(0); 4]);
    let waited = [receive.starved_ns, send.blocked_ns, read.device_ns];
    assert!(waited.iter().all(|waited| *waited > Nanos(0)), "{times:?}");
}

/// The source says that it has nothing more for a flow, but may have something later.
#[test]
fn a_thread_for_which_nothing_is_left_is_idle_until_something_comes() {
    let waited = |something_comes: bool| {
        let totals = Arc::<StageTotals>::default();
        let life = totals.begin(CopyStage::Metadata);
        rest();
        if something_comes {
            enter(CopyStage::Metadata);
        }
        // A keep-alive comes first, and then a message.
        for _ in 0..2 {
            enter(CopyStage::Receive);
            thread::sleep(PAUSE);
            settle(Pause::Starved);
        }
        drop(life);
        *totals.times().of(CopyStage::Receive)
    };
    let [idle, starved] = [false, true].map(waited);
    assert_eq!([idle.starved_ns, starved.idle_ns], [Nanos(0); 2], "{idle:?} {starved:?}");
    // A thread waits for a processor once it is awake.
    let waits = [idle.idle_ns + idle.queued_ns, starved.starved_ns + starved.queued_ns];
    assert!(waits.iter().all(|waited| *waited >= Nanos::from(PAUSE)), "{idle:?} {starved:?}");
    assert_eq!(idle.total(), idle.engaged() + idle.idle_ns);
}

#[test]
fn a_long_wait_is_seen_before_it_ends() {
    let totals = Arc::<StageTotals>::default();
    let (end, ended) = channel::<()>();
    let until = Instant::now() + Duration::from_secs(20);
    thread::scope(|scope| {
        let totals = &totals;
        scope.spawn(move || {
            let _life = totals.begin(CopyStage::Walk);
            let ended = wait(Pause::Blocked, || ended.recv_timeout(Duration::from_secs(30)));
            assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
        });
        let is_seen = || totals.times().of(CopyStage::Walk).blocked_ns >= Nanos::millis(5);
        while !is_seen() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(is_seen());
        drop(end);
    });
    assert_eq!(totals.present.lock().iter().filter_map(Weak::upgrade).count(), 0);
}

#[test]
fn a_thread_whose_time_is_not_accounted_works_as_well() {
    enter(CopyStage::Hash);
    assert_eq!(wait(Pause::Starved, || 7), 7);
    assert!(!settle(Pause::Device));
}
