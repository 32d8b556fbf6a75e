//! Tests of costs by message size in a lab, with very short measurements: their form, not their values.

mod support;

use landspeed_engine::{
    Host, JoinedHosts, Pairing, PathOptions, ReachOptions, SizesEffort, SizesOptions, UserListener,
    explain_sizes,
};
use landspeed_lab::topology;
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{ExplainReport, PerPacketCost, Settings};
use parking_lot::Mutex;
use support::{LANDSPEED, needs_root};

/// A lock that allows one lab at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn lab() -> JoinedHosts {
    let hosts = topology::open(&["lab:back-to-back".to_owned()]).unwrap();
    let reaching = ReachOptions { tune: true, agent: Some(LANDSPEED.into()), ..ReachOptions::default() };
    JoinedHosts::open(hosts, Pairing::FirstTwo, &reaching, &PathOptions::default()).unwrap()
}

fn mtus(lab: &JoinedHosts) -> Vec<String> {
    let mtu = |host: &Host| {
        let states = host.knobs().unwrap();
        let mtu = states.iter().find(|state| state.knob == "mtu").unwrap();
        mtu.value.clone().unwrap()
    };
    lab.group.hosts().iter().map(mtu).collect()
}

fn brief(may_turn: bool) -> SizesOptions {
    let effort = SizesEffort {
        sizes: [64, 512, 4096, 16_384].map(Bytes).to_vec(),
        steps: vec![1, 2],
        // The median of three is sound even if other programs disturb one window.
        rounds: 3,
        // The windows of both ends do not open at the same moment, and must overlap for the most part.
        window: Nanos::millis(90),
        profiled: Nanos::millis(60),
        blocks: u32::from(may_turn),
    };
    SizesOptions { flow: Settings::new(), may_turn, seed: 1, effort }
}

fn sweep(options: &SizesOptions, lab: &mut JoinedHosts, stop: &dyn Fn() -> bool) -> ExplainReport {
    let mut report = ExplainReport::default();
    let mut listener = UserListener { progress: &mut |_| {}, stop };
    explain_sizes(&mut lab.group, options, &mut listener, &mut report).unwrap();
    report
}

fn of<'r>(report: &'r ExplainReport, transport: &str, mtu: u64) -> &'r PerPacketCost {
    let found = report.per_packet.iter().find(|p| p.transport == transport && p.mtu_bytes == Bytes(mtu));
    found.unwrap_or_else(|| panic!("{transport} at MTU {mtu}: {report:#?}"))
}

#[test]
fn datagrams_are_cut_as_the_rule_says_and_everything_is_put_back() {
    needs_root!();
    let _alone = ALONE.lock();
    let mut lab = lab();
    let before = mtus(&lab);
    let report = sweep(&brief(true), &mut lab, &|| false);
    assert_eq!(mtus(&lab), before);
    for mtu in [1500, 9000] {
        let udp = of(&report, "udp", mtu);
        assert!(udp.points.len() > 4, "{udp:#?}");
        for point in &udp.points {
            let counted = point.packets_counted.expect("veth counts");
            // The last datagrams of a window may be counted at only one end.
            let share = counted / point.fragments as f64;
            assert!((0.6..1.6).contains(&share), "{counted} for {} at {mtu}", point.fragments);
            let cost = |layer: &str| point.layers.get(layer).map_or(0.0, |cost| cost.median_ns);
            assert!(cost("both hosts") > 0.0 && cost("link") > 0.0, "{point:#?}");
            // Medians of parts need not add up to the median of the whole, but their minima bound it.
            let least = |layer: &str| point.layers.get(layer).map_or(0.0, |cost| cost.least_ns);
            assert!(least("both hosts") + 1.0 >= least("host A") + least("host B"), "{point:#?}");
        }
        assert!(udp.layers.contains_key("both hosts"), "{:?}", udp.notes);
        assert!(!udp.fragment_steps.is_empty(), "{udp:#?}");
        let tcp = of(&report, "tcp", mtu);
        assert!(tcp.points.iter().all(|point| point.fragments == 1) && tcp.steps_bytes.is_empty());
    }
    of(&report, "udp without checksum", 1500);
    let asked: Vec<&str> = report.answers.iter().map(|answer| answer.question.as_str()).collect();
    assert!(asked.iter().any(|question| question.contains("fragment")), "{asked:?}");
    assert!(asked.iter().any(|question| question.contains("copy")), "{asked:?}");
}

#[test]
fn if_nothing_may_be_changed_only_the_current_settings_are_measured_with_a_note() {
    needs_root!();
    let _alone = ALONE.lock();
    let mut lab = lab();
    let report = sweep(&brief(false), &mut lab, &|| false);
    assert!(report.per_packet.iter().all(|part| part.mtu_bytes == Bytes(1500)));
    assert!(report.notes.iter().any(|note| note.contains("only MTU 1500")), "{:?}", report.notes);
}

/// Returns the number of trials in which nothing arrived: other work may take the cores for a whole window.
fn silent(report: &ExplainReport) -> u32 {
    let count =
        |note: &String| note.split_once("nothing arrived in ")?.1.split(' ').next()?.parse::<u32>().ok();
    report.notes.iter().find_map(count).unwrap_or(0)
}

#[test]
fn a_stop_ends_the_run_with_the_results_so_far() {
    needs_root!();
    let _alone = ALONE.lock();
    let mut lab = lab();
    let before = mtus(&lab);
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let report = sweep(&brief(true), &mut lab, &stop);
    let heard: u32 = report.per_packet.iter().flat_map(|part| &part.points).map(|point| point.trials).sum();
    assert_eq!((heard + silent(&report), asked.get()), (3, 4), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("ended by the user")), "{:?}", report.notes);
    assert_eq!(mtus(&lab), before);
}
