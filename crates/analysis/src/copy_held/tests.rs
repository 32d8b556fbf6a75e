use landspeed_record::CopyHostTimes;
use landspeed_record::units::CpuNanos;

use super::*;

/// One end's times in seconds: on a processor, waiting for a disk, starved and blocked, by stage.
type StageSeconds<'a> = &'a [(CopyStage, [u64; 4])];

fn end(stages: StageSeconds<'_>) -> CopyEndTimes {
    let mut end = CopyEndTimes::default();
    for (stage, [processor, device, starved, blocked]) in stages {
        let times = end.of_mut(*stage);
        times.processor_ns = Nanos::secs(*processor);
        times.device_ns = Nanos::secs(*device);
        times.starved_ns = Nanos::secs(*starved);
        times.blocked_ns = Nanos::secs(*blocked);
    }
    end
}

fn times(source: StageSeconds<'_>, target: StageSeconds<'_>) -> CopyTimes {
    CopyTimes { source: end(source), target: end(target), ..CopyTimes::default() }
}

/// Returns the rows that hold a copy, with their shares in percent.
fn rows(held: &CopyHeld) -> Vec<(CopyHold, f64)> {
    held.by.iter().map(|holder| (holder.hold, (holder.share * 100.0).round())).collect()
}

/// A copy whose flows wait for a path that is far slower than both ends.
fn slow_path() -> CopyTimes {
    times(
        &[(Walk, [1, 0, 0, 99]), (Read, [4, 0, 0, 0]), (Hash, [4, 0, 0, 0]), (Send, [4, 0, 0, 88])],
        &[(Receive, [4, 0, 90, 0]), (Hash, [4, 0, 0, 0]), (Write, [1, 1, 0, 0]), (Sync, [0, 2, 98, 0])],
    )
}

#[test]
fn a_path_that_is_slow_holds_the_copy_and_then_the_source() {
    let held = copy_held(&slow_path());
    assert_eq!(rows(&held)[..2], [(CopyHold::NetworkRate, 88.0), (CopyHold::SourceProcessor, 12.0)]);
    let gain = held.gain_at_most.expect("a bound");
    assert!((gain - 100.0 / 12.0).abs() < 0.01, "the source needs 12 % of the time: {gain}");
}

#[test]
fn tcp_info_shows_why_the_path_is_slow() {
    let hold = |network: CopyNetworkTimes| {
        let mut times = slow_path();
        times.source.network = network;
        copy_held(&times).by[0].hold
    };
    let flows = CopyNetworkTimes {
        busy_ns: Nanos::secs(90),
        sent: 1_000_000,
        rtt_ns: Nanos::millis(101),
        least_rtt_ns: Nanos::millis(100),
        ..CopyNetworkTimes::default()
    };
    let window = CopyNetworkTimes { window_limited_ns: Nanos::secs(80), ..flows };
    let buffer = CopyNetworkTimes { buffer_limited_ns: Nanos::secs(80), ..flows };
    let lossy = CopyNetworkTimes { resent: 100, ..flows };
    assert_eq!(hold(flows), CopyHold::NetworkRate);
    assert_eq!(hold(window), CopyHold::NetworkWindow);
    assert_eq!(hold(buffer), CopyHold::SendBuffer);
    assert_eq!(hold(lossy), CopyHold::NetworkLoss);
    // BBR over a receive window of 128 KiB, 1 Gb/s and 40 ms: it paces at the rate that the window allows.
    let paced = CopyNetworkTimes { window_limited_ns: Nanos::secs(33), ..flows };
    assert_eq!(hold(paced), CopyHold::NetworkWindow);
    assert_eq!(hold(CopyNetworkTimes { resent: 100, ..paced }), CopyHold::NetworkLoss);
    // CUBIC on a path whose queue overflows and empties again.
    let overflows = CopyNetworkTimes { rtt_ns: Nanos::millis(160), ..lossy };
    assert_eq!(hold(overflows), CopyHold::NetworkRate);
    assert_eq!(hold(CopyNetworkTimes { rtt_ns: Nanos::millis(160), ..window }), CopyHold::NetworkWindow);
    // Where there is a standing queue, a full window or a loss only shows that the path is full.
    for full in [window, buffer, lossy] {
        assert_eq!(hold(CopyNetworkTimes { rtt_ns: Nanos::millis(350), ..full }), CopyHold::NetworkRate);
    }
}

#[test]
fn a_relay_is_held_by_its_processor_or_by_a_session() {
    let hold = |source_ms, target_ms, handing_ms| {
        let relay = CopyRelayTimes {
            relayed_ns: Nanos::secs(100),
            source_processor_ns: Nanos::millis(source_ms),
            target_processor_ns: Nanos::millis(target_ms),
            handing_ns: Nanos::millis(handing_ms),
        };
        let held = copy_held(&CopyTimes { relay, ..slow_path() });
        assert_eq!(rows(&held)[0].1, 88.0, "{held:?}");
        held.by[0].hold
    };
    assert_eq!(hold(90_000, 40_000, 95_000), CopyHold::RelayProcessor);
    assert_eq!(hold(20_000, 85_000, 95_000), CopyHold::RelayProcessor);
    assert_eq!(hold(20_000, 30_000, 95_000), CopyHold::RelayTarget);
    assert_eq!(hold(20_000, 30_000, 10_000), CopyHold::RelaySource);
}

/// The source waits to send, and yet not for the network: the target does not take what has arrived.
#[test]
fn a_disk_of_the_target_holds_the_copy_while_it_writes_and_while_it_syncs() {
    let source: StageSeconds<'_> =
        &[(Walk, [1, 0, 0, 99]), (Read, [3, 0, 0, 0]), (Hash, [5, 0, 0, 0]), (Send, [2, 0, 0, 90])];
    let writing = times(
        source,
        &[(Receive, [4, 0, 5, 0]), (Hash, [5, 0, 0, 0]), (Write, [6, 80, 0, 0]), (Sync, [0, 9, 91, 0])],
    );
    let held = copy_held(&writing);
    assert_eq!(rows(&held)[..2], [(CopyHold::TargetDisk, 80.0), (CopyHold::TargetProcessor, 15.0)]);
    assert_eq!(held.by[0].stage, None);
    let syncing = times(
        source,
        &[(Receive, [4, 0, 5, 0]), (Hash, [5, 0, 0, 0]), (Write, [6, 0, 0, 80]), (Sync, [0, 97, 3, 0])],
    );
    assert_eq!(rows(&copy_held(&syncing))[0], (CopyHold::TargetDisk, 97.0));
}

/// The crew that always works comes first, although a disk of another crew has a larger share than any of its rows.
#[test]
fn a_crew_that_never_waits_sets_the_pace() {
    let times = times(
        &[(Walk, [1, 0, 0, 99]), (Read, [10, 20, 0, 0]), (Hash, [40, 0, 0, 0]), (Send, [30, 0, 0, 0])],
        &[(Receive, [5, 0, 30, 0]), (Hash, [10, 0, 0, 0]), (Write, [0, 55, 0, 0]), (Sync, [0, 9, 91, 0])],
    );
    let held = copy_held(&times);
    assert_eq!(rows(&held)[..2], [(CopyHold::SourceProcessor, 80.0), (CopyHold::TargetDisk, 55.0)]);
    assert_eq!(held.by[0].stage, Some(Hash), "it is full of hashing");
    // Without the processor the target's crew would need 70 of 100 s.
    assert!((held.gain_at_most.expect("a bound") - 100.0 / 70.0).abs() < 0.01, "{held:?}");
}

#[test]
fn a_limit_that_the_user_has_set_holds_the_copy() {
    let mut times = slow_path();
    let send = times.source.of_mut(Send);
    (send.limited_ns, send.blocked_ns) = (send.blocked_ns, Nanos(0));
    let held = copy_held(&times);
    assert_eq!(rows(&held)[..2], [(CopyHold::Limit, 88.0), (CopyHold::SourceProcessor, 12.0)]);
    assert!((held.gain_at_most.expect("a bound") - 100.0 / 12.0).abs() < 0.01, "{held:?}");
}

#[test]
fn threads_that_wait_for_a_processor_are_held_by_it() {
    let mut times = slow_path();
    let send = times.source.of_mut(Send);
    (send.queued_ns, send.blocked_ns) = (send.blocked_ns, Nanos(0));
    let held = copy_held(&times);
    assert_eq!(rows(&held)[0], (CopyHold::SourceProcessor, 100.0));
    assert_eq!(held.by[0].stage, Some(Send));
}

#[test]
fn a_quota_and_a_hypervisor_are_separated_from_other_threads() {
    let mut times = slow_path();
    let send = times.source.of_mut(Send);
    (send.queued_ns, send.blocked_ns) = (Nanos::secs(78), Nanos::secs(10));
    let held = |host: CopyHostTimes| {
        let mut times = times;
        times.source.host = host;
        rows(&copy_held(&times))[..2].to_vec()
    };
    let (quota, steal) = (CopyHold::SourceQuota, CopyHold::SourceSteal);
    let host = CopyHostTimes { observed_ns: Nanos::secs(100), ..CopyHostTimes::default() };
    // Two processors were stopped at a time, so that the stopped time exceeds the elapsed time.
    let stopped = held(CopyHostTimes { quota_ns: Nanos::secs(150), ..host });
    assert_eq!(stopped, [(quota, 78.0), (CopyHold::SourceProcessor, 12.0)]);
    // Other threads take the processor, and a quota strikes now and then.
    let little = held(CopyHostTimes { quota_ns: Nanos::secs(8), ..host });
    assert_eq!(little, [(CopyHold::SourceProcessor, 82.0), (CopyHold::NetworkRate, 10.0)]);
    let stolen = held(CopyHostTimes { used_ns: CpuNanos(2_000), stolen_ns: CpuNanos(8_000), ..host });
    assert_eq!(stolen, [(steal, 72.0), (CopyHold::SourceProcessor, 18.0)]);
}

#[test]
fn small_files_are_held_by_a_file_system() {
    let creating = times(
        &[(Walk, [5, 5, 0, 90]), (Read, [9, 1, 0, 0]), (Send, [5, 0, 5, 80])],
        &[
            (Receive, [5, 0, 5, 0]),
            (Metadata, [60, 30, 0, 0]),
            (Sync, [0, 9, 51, 0]),
            (Install, [20, 20, 0, 0]),
        ],
    );
    assert_eq!(rows(&copy_held(&creating))[0], (CopyHold::TargetMetadata, 90.0));
    let walking = times(
        &[(Walk, [20, 78, 0, 2]), (Read, [9, 1, 85, 0]), (Send, [5, 0, 0, 0])],
        &[(Receive, [5, 0, 85, 0]), (Metadata, [5, 5, 0, 0]), (Sync, [0, 9, 91, 0])],
    );
    assert_eq!(rows(&copy_held(&walking))[0], (CopyHold::SourceMetadata, 98.0));
}

/// Folders alone, or files that are all there: the walk works all its life, which is short.
#[test]
fn a_walk_that_is_over_does_not_hold_the_last_sync() {
    let times = times(
        &[(Walk, [1, 0, 0, 0]), (Read, [0, 0, 100, 0])],
        &[(Receive, [0, 0, 100, 0]), (Sync, [0, 99, 1, 0])],
    );
    assert_eq!(rows(&copy_held(&times))[0], (CopyHold::TargetDisk, 99.0));
}

#[test]
fn ends_that_only_wait_for_each_other_are_held_by_answers() {
    let times = times(
        &[(Walk, [1, 0, 0, 99]), (Read, [5, 0, 85, 0]), (Send, [5, 0, 0, 5])],
        &[(Receive, [5, 0, 85, 0]), (Metadata, [5, 5, 0, 0]), (Sync, [0, 9, 91, 0])],
    );
    assert_eq!(rows(&copy_held(&times))[0], (CopyHold::Answers, 76.0));
}

/// One short file over four flows: three of them have nothing to do.
#[test]
fn flows_for_which_nothing_is_left_dilute_nothing() {
    let mut times = times(
        &[(Walk, [0, 1, 0, 9]), (Read, [1, 0, 8, 0]), (Send, [1, 0, 0, 0])],
        &[(Receive, [1, 0, 8, 0]), (Write, [1, 0, 0, 0]), (Sync, [0, 7, 3, 0])],
    );
    times.source.of_mut(Read).idle_ns = Nanos::secs(30);
    times.target.of_mut(Receive).idle_ns = Nanos::secs(30);
    let held = copy_held(&times);
    assert_eq!(rows(&held)[..2], [(CopyHold::TargetDisk, 70.0), (CopyHold::SourceProcessor, 20.0)]);
    // Flows that all wait for each other are another matter.
    times.source.of_mut(Read).starved_ns = Nanos::secs(38);
    times.target.of_mut(Receive).starved_ns = Nanos::secs(38);
    times.target.of_mut(Sync).device_ns = Nanos::secs(1);
    assert_eq!(copy_held(&times).by[0].hold, CopyHold::Answers);
}

#[test]
fn a_copy_without_times_is_held_by_nothing_that_is_known() {
    assert_eq!(copy_held(&CopyTimes::default()), CopyHeld::default());
    // A peer may report any times.
    let mut forged = slow_path();
    forged.target.stages.iter_mut().for_each(|stage| stage.device_ns = Nanos(u64::MAX));
    let held = copy_held(&forged);
    assert!(held.by.iter().all(|holder| (0.0..=1.0).contains(&holder.share)), "{held:?}");
}
