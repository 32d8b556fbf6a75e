//! Properties of whole simulations that hold for every congestion control.

mod path;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{Contest, Study};
use landspeed_simulator::{
    FlowSpec, FullPath, LossSpec, ProbeSpec, ReceiverSpec, SimulationOutcome, SimulationScenario,
    recovery_time, simulate, simulated_recovery, study_scenario,
};
use proptest::prelude::*;

fn flow(rtt: Nanos) -> FlowSpec {
    FlowSpec { return_ns: rtt, ..FlowSpec::default() }
}

/// Asserts that every packet is accounted for, on each flow and on the line.
fn assert_whole(outcome: &SimulationOutcome) {
    for flow in &outcome.flows {
        assert!(flow.is_whole(), "{}: {:?} {:?}", flow.contestant, flow.sender, flow.receiver);
    }
    let counts = outcome.link.counts;
    assert!(counts.no_room + counts.lost <= counts.arrived);
}

#[test]
fn an_idle_path_takes_exactly_its_round_trip() {
    let rtt = Nanos::millis(164);
    let mut scenario = path::scenario(1e9, rtt, 1.0);
    scenario.link.delay_ns = Nanos::millis(82);
    scenario.probe = Some(ProbeSpec { return_ns: Nanos::millis(82), ..ProbeSpec::default() });
    let outcome = simulate(&scenario).unwrap();
    assert_eq!((outcome.probes.len(), outcome.probes_sent), (60, 61), "the last is under way");
    // 84 bytes at 1 Gb/s.
    assert!(outcome.probes.iter().all(|probe| probe.rtt_ns == rtt + Nanos(672)));
    // A flow of single segments of 1500 bytes, with no other on the line.
    scenario.probe = None;
    let receiver = ReceiverSpec { ack_every: 1, ..ReceiverSpec::default() };
    let window = Some(Bytes(1448));
    let return_ns = Nanos::millis(82);
    scenario.flows =
        vec![FlowSpec { return_ns, receiver, receive_window_bytes: window, ..FlowSpec::default() }];
    let outcome = simulate(&scenario).unwrap();
    let last = &outcome.flows[0].samples.last().unwrap().tcp;
    assert_eq!((last.rtt_ns, last.min_rtt_ns), (Nanos::micros(164_012), Some(Nanos::millis(164))));
    assert_eq!(outcome.flows[0].sender.sent, 1 + 60_000_000_000 / (rtt.0 + 12_000));
}

#[test]
fn a_window_of_one_bandwidth_delay_product_fills_the_path_and_no_queue() {
    let rtt = Nanos::millis(20);
    let mut scenario = path::scenario(1e8, rtt, 1.0);
    // The packets of 1e8 * 0.02 / 8 bytes, and a few more for delayed acknowledgements.
    let segments = 166 + 3;
    let window = Some(Bytes(segments * 1448));
    scenario.flows = vec![FlowSpec { receive_window_bytes: window, ..flow(rtt) }];
    let outcome = simulate(&scenario).unwrap();
    let rate = outcome.flows[0].goodput(Nanos::secs(10), Nanos::secs(60));
    assert!((rate.0 / (1e8 * 1448.0 / 1500.0) - 1.0).abs() < 1e-3, "{rate}");
    assert_eq!(outcome.flows[0].sender.retransmits, 0);
    assert!(outcome.link.samples.last().unwrap().waiting_packets <= 5);
    assert_whole(&outcome);
}

#[test]
fn losses_are_those_of_the_list_and_each_is_made_good_once() {
    let rtt = Nanos::millis(20);
    let mut scenario = path::scenario(1e8, rtt, 100.0);
    let packets = vec![100, 5_000, 5_001, 5_003, 20_000];
    scenario.link.loss = LossSpec::List { packets };
    scenario.flows = vec![FlowSpec { data_bytes: Some(Bytes(40_000 * 1448)), ..flow(rtt) }];
    let outcome = simulate(&scenario).unwrap();
    let seen = &outcome.flows[0];
    assert_eq!((seen.lost, seen.no_room, seen.sender.retransmits), (5, 0, 5));
    assert_eq!((seen.sender.recoveries, seen.sender.timeouts), (3, 0));
    assert_eq!((seen.sender.sent, seen.receiver.received), (40_005, 40_000));
    assert_eq!(seen.receiver.duplicates, 0);
    assert!(seen.finished_ns.is_some());
    assert_whole(&outcome);
}

#[test]
fn a_second_loss_is_found_without_a_timeout_wherever_it_falls() {
    let rtt = Nanos::millis(20);
    let mut scenario = path::scenario(1e8, rtt, 100.0);
    let data_bytes = Some(Bytes(8_000 * 1448));
    scenario.flows = vec![FlowSpec { initial_ssthresh: Some(100), data_bytes, ..flow(rtt) }];
    // The window is about 150, so that one of these is the retransmission of packet 5000.
    let mut together = 0;
    for second in 5_001..5_400 {
        scenario.link.loss = LossSpec::List { packets: vec![5_000, second] };
        let outcome = simulate(&scenario).unwrap();
        let seen = &outcome.flows[0];
        assert!(seen.finished_ns.is_some(), "{second}");
        assert_eq!((seen.lost, seen.sender.retransmits, seen.sender.timeouts), (2, 2, 0), "{second}");
        assert_whole(&outcome);
        together += u32::from(seen.sender.recoveries == 1);
    }
    // A second loss within the same window, or within its recovery, counts as the same loss.
    assert!((140..350).contains(&together), "{together}");
}

#[test]
fn two_like_flows_of_reno_share_evenly_and_unlike_ones_by_their_round_trips() {
    let rtt = Nanos::millis(20);
    let mut scenario = path::scenario(1e8, rtt, 1.0);
    scenario.duration_ns = Nanos::secs(400);
    scenario.flows = vec![flow(rtt), FlowSpec { start_ns: Nanos::millis(3517), ..flow(rtt) }];
    let share = |scenario: &SimulationScenario| {
        let outcome = simulate(scenario).unwrap();
        assert_whole(&outcome);
        let rate = |n: usize| outcome.flows[n].goodput(Nanos::secs(100), Nanos::secs(400)).0;
        assert!(rate(0) + rate(1) > 0.9 * 1e8, "the path is full");
        rate(0) / rate(1)
    };
    let even = share(&scenario);
    assert!((even - 1.0).abs() < 0.15, "{even}");
    scenario.flows[1].return_ns = Nanos::millis(80);
    let uneven = share(&scenario);
    // Between the ratio of the RTTs and its square (Lakshman, Madhow 1997); the queue adds to both RTTs.
    assert!((2.0..16.0).contains(&uneven), "{uneven}");
}

#[test]
fn recovery_from_one_loss_takes_as_long_as_fengs_formula() {
    // Table 1's middle row at a hundredth of its rate: 10 Gb/s, 120 ms, MSS 8960.
    let (rate, rtt) = (BitRate(1e8), Nanos::millis(120));
    let path = FullPath { rate_bps: rate, rtt_ns: rtt, mtu_bytes: 9000 };
    let took = simulated_recovery("reno", path, Nanos::secs(60), |_| {});
    let took = took.expect("a path").expect("within a minute");
    let said = recovery_time(rate, rtt, Bytes(8960));
    // The formula leaves out the RTT of recovery itself, and the last packet in the queue.
    assert!((took.as_secs_f64() / said.as_secs_f64() - 1.0).abs() < 0.03, "{took}, by the formula {said}");
}

fn small_study(control: &str, seed: u64) -> SimulationScenario {
    let mut study = Study { region_ns: Nanos::secs(5), seed, ..Study::paper() };
    study.path.rate_bps = BitRate(2e7);
    study.path.rtt_ns = Nanos::millis(40);
    study.path.queue_bytes = Some(Bytes(study.path.bdp().0 / 2));
    study_scenario(&study, &Contest { contestants: vec![control.to_owned()], ..Contest::default() }, 0)
}

/// Returns all contestants of the simulator.
fn contestants() -> Vec<&'static str> {
    landspeed_congestion::CONTROLS.iter().map(|row| row.name).chain(["udt"]).collect()
}

#[test]
fn every_contestant_runs_the_small_study_whole_and_the_same_again() {
    for name in contestants() {
        let outcome = simulate(&small_study(name, 1)).unwrap();
        assert_whole(&outcome);
        assert_eq!(outcome, simulate(&small_study(name, 1)).unwrap(), "{name}");
        assert_ne!(outcome, simulate(&small_study(name, 2)).unwrap(), "{name}");
        let (waiting, bound) = (outcome.link.counts.most_waiting_bytes, 50_000);
        assert!(waiting <= bound, "{name}: {waiting}");
    }
}

/// Returns figures of an outcome in which any change to the order of events shows: the line's counts, and the packets that
/// each flow sent, first and again.
fn fingerprint(outcome: &SimulationOutcome) -> (u64, u64, u64, Vec<(u64, u64)>) {
    let counts = outcome.link.counts;
    let flows = outcome.flows.iter().map(|flow| (flow.sender.sent, flow.sender.retransmits)).collect();
    (outcome.events, counts.arrived, counts.no_room, flows)
}

/// Reno's figures are those of the version before a line could carry traffic of others (commit 7faeff4a). BBR's are of the
/// one that took an RTT sample from the timestamp of a retransmission.
#[test]
fn a_line_without_cross_traffic_gives_the_earlier_figures() {
    let of = |control| fingerprint(&simulate(&small_study(control, 1)).unwrap());
    let reno = vec![(32_670, 105), (17_270, 90), (9_539, 41), (3_894, 28)];
    assert_eq!(of("reno"), (99_565, 63_414, 264, reno));
    let bbr = vec![(47_957, 3_496), (5_591, 1_017), (18_459, 2_308), (1_358, 373)];
    assert_eq!(of("bbr"), (191_444, 73_406, 7_194, bbr));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn nothing_is_made_or_unmade_on_a_bad_path(
        rate in 1e5..1e8_f64,
        rtt in 1..300_u64,
        queue in 0.01..3.0_f64,
        lost in prop::collection::btree_set(1..3000_u64, 0..400),
        contestant in 0..13_usize,
        every in 1..4_u32,
    ) {
        let contestants = contestants();
        let mut scenario = path::scenario(rate, Nanos::millis(rtt), queue);
        scenario.duration_ns = Nanos::secs(20);
        scenario.link.loss = LossSpec::List { packets: lost.into_iter().collect() };
        let contestant = contestants[contestant % contestants.len()].to_owned();
        let receiver = ReceiverSpec { ack_every: every, ..ReceiverSpec::default() };
        let spec = FlowSpec { contestant, receiver, ..flow(Nanos::millis(rtt)) };
        let stop = Some(Nanos::secs(9));
        scenario.flows = vec![FlowSpec { stop_ns: stop, ..spec.clone() }, spec];
        assert_whole(&simulate(&scenario).unwrap());
    }
}
