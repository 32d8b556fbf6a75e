//! Flows beside traffic of others, and over lines that lose by chance.

mod path;

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_simulator::{
    DurationLaw, FlowSpec, LossSpec, SimulationOutcome, SimulationScenario, TrafficSource, TrafficSpec,
    simulate,
};

const RTT: Nanos = Nanos::millis(20);

fn on_off(rate: f64, tail: Option<f64>, seed: u64) -> TrafficSpec {
    let law = |millis| DurationLaw { mean_ns: Nanos::millis(millis), tail };
    let source = TrafficSource::OnOff { rate_bps: BitRate(rate), on: law(100), off: law(300) };
    TrafficSpec { source, packet_bytes: 1500, seed }
}

fn short_flows(seed: u64) -> TrafficSpec {
    let source = TrafficSource::ShortFlows {
        flows_per_s: 25.0,
        mean_bytes: Bytes(50_000),
        tail: 1.4,
        rate_bps: BitRate(2e7),
    };
    TrafficSpec { source, packet_bytes: 1500, seed }
}

/// Returns one flow of Reno over a path of 100 Mb/s.
fn scenario(traffic: Vec<TrafficSpec>) -> SimulationScenario {
    let flows = vec![FlowSpec { return_ns: RTT, ..FlowSpec::default() }];
    SimulationScenario { flows, traffic, ..path::scenario(1e8, RTT, 1.0) }
}

/// Runs a scenario, and asserts that every packet that entered the line was one of a flow or of others.
fn run(scenario: &SimulationScenario) -> SimulationOutcome {
    let outcome = simulate(scenario).unwrap();
    let sent: u64 = outcome.flows.iter().map(|flow| flow.sender.sent).sum();
    let counts = outcome.link.counts;
    assert_eq!(counts.arrived, sent + outcome.traffic.packets);
    let of_flows =
        |of: fn(&landspeed_simulator::FlowOutcome) -> u64| outcome.flows.iter().map(of).sum::<u64>();
    assert_eq!(counts.no_room, of_flows(|flow| flow.no_room) + outcome.traffic.no_room);
    assert_eq!(counts.lost, of_flows(|flow| flow.lost) + outcome.traffic.lost);
    assert!(outcome.flows.iter().all(landspeed_simulator::FlowOutcome::is_whole));
    outcome
}

#[test]
fn a_flow_gets_the_rate_that_cross_traffic_leaves() {
    // Always on but for a nanosecond now and then: 40 Mb/s.
    let always = DurationLaw { mean_ns: Nanos::secs(1000), tail: None };
    let hardly = DurationLaw { mean_ns: Nanos(1), tail: None };
    let source = TrafficSource::OnOff { rate_bps: BitRate(4e7), on: always, off: hardly };
    let outcome = run(&scenario(vec![TrafficSpec { source, packet_bytes: 1500, seed: 1 }]));
    let others = outcome.traffic.bytes.per(Nanos::secs(60));
    assert!((others.0 / 4e7 - 1.0).abs() < 1e-3, "{others}");
    let rate = outcome.flows[0].goodput(Nanos::secs(10), Nanos::secs(60)).0;
    // Others lose packets only in the full queue, and then the flow can have their room. What path and queue held at the
    // tenth second may arrive after it.
    let lost = (outcome.traffic.no_room * 1500) as f64 * 8.0 / 50.0;
    let held = 2.0 * 1e8 * RTT.as_secs_f64() / 50.0;
    let left = (6e7 + lost + held) * 1448.0 / 1500.0;
    assert!(rate <= left && rate > 0.9 * left, "{rate} of {left}");
}

#[test]
fn a_seed_gives_the_same_outcome_and_another_one_another() {
    let of = |seed| {
        let mut scenario =
            scenario(vec![on_off(8e7, Some(1.5), seed), on_off(4e7, None, seed + 1), short_flows(seed)]);
        scenario.link.loss = LossSpec::Bursts { share: 1e-4, mean_packets: 3.0, seed };
        run(&scenario)
    };
    let one = of(1);
    assert_eq!(one, of(1));
    assert_ne!(one, of(2));
    assert!(one.traffic.lost > 0 && one.flows[0].lost > 0 && one.traffic.packets > 10_000);
}

#[test]
fn a_line_loses_the_share_that_it_says_from_all() {
    let mut scenario = scenario(vec![on_off(4e7, None, 1)]);
    scenario.link.loss = LossSpec::Chance { share: 1e-3, seed: 5 };
    let outcome = run(&scenario);
    let counts = outcome.link.counts;
    // The packets that find room are the trials.
    let expected = (counts.arrived - counts.no_room) as f64 * 1e-3;
    assert!((counts.lost as f64 - expected).abs() < 5.0 * expected.sqrt(), "{} of {expected}", counts.lost);
}

#[test]
fn no_packet_of_others_delays_a_line_that_they_never_fill() {
    // 60 Mb/s at most, beside a flow that a window of 20 packets holds at 12 Mb/s.
    let mut scenario = scenario(vec![on_off(3e7, None, 1), on_off(3e7, None, 2)]);
    scenario.flows[0].receive_window_bytes = Some(Bytes(20 * 1448));
    let outcome = run(&scenario);
    assert_eq!(outcome.link.counts.no_room, 0);
    let rate = outcome.flows[0].goodput(Nanos::secs(10), Nanos::secs(60)).0;
    // At worst the whole window comes at once, and a packet waits for the other 19: 2.28 ms, and as long again for those
    // of others that came meanwhile.
    assert!(rate > 20.0 * 1448.0 * 8.0 / 0.024_56, "{rate}");
}
