//! Tests of UDT, with the crate that also runs on sockets, over simulated paths.

mod path;

use landspeed_record::units::{Bytes, Nanos};
use landspeed_simulator::{FlowSpec, LossSpec, SimulationOutcome, SimulationScenario, simulate};

const RATE: f64 = 1e8;
const RTT: Nanos = Nanos::millis(40);
/// The payload of a packet of 1500 bytes: all but the headers of IP, UDP and UDT.
const PAYLOAD: u64 = 1500 - 28 - 16;
/// The largest rate of payload on the path, in bits per second.
const MOST: f64 = RATE * PAYLOAD as f64 / 1500.0;

fn flow(contestant: &str, seed: u32) -> FlowSpec {
    FlowSpec { contestant: contestant.to_owned(), return_ns: RTT, seed, ..FlowSpec::default() }
}

fn scenario(flows: Vec<FlowSpec>, seconds: u64) -> SimulationScenario {
    SimulationScenario { flows, duration_ns: Nanos::secs(seconds), ..path::scenario(RATE, RTT, 0.5) }
}

fn run(scenario: &SimulationScenario) -> SimulationOutcome {
    let outcome = simulate(scenario).unwrap();
    for flow in &outcome.flows {
        assert!(flow.is_whole(), "{:?} {:?}", flow.sender, flow.receiver);
    }
    outcome
}

fn rates(outcome: &SimulationOutcome, from: u64, to: u64) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.goodput(Nanos::secs(from), Nanos::secs(to)).0).collect()
}

#[test]
fn one_flow_fills_an_empty_path_and_knows_its_round_trip() {
    let outcome = run(&scenario(vec![flow("udt", 7)], 60));
    let rate = rates(&outcome, 10, 60)[0];
    assert!((0.85 * MOST..=MOST).contains(&rate), "{rate}");
    let last = &outcome.flows[0].samples.last().unwrap().tcp;
    // 40 ms, plus at most half as much in the queue.
    assert!((Nanos::millis(40)..=Nanos::millis(61)).contains(&last.rtt_ns), "{last:?}");
    assert!(last.cwnd_segments > 200 && last.mss_bytes == Bytes(PAYLOAD), "{last:?}");
    assert!(last.acked_bytes > Bytes(1 << 28) && outcome.flows[0].sender.timeouts == 0, "{last:?}");
}

#[test]
fn the_same_scenario_gives_the_same_and_another_seed_another() {
    let with = |seed| run(&scenario(vec![flow("udt", seed), flow("udt", seed + 1)], 20));
    assert_eq!(with(1), with(1));
    assert_ne!(with(1).flows[0].samples, with(5).flows[0].samples);
}

#[test]
fn flows_of_udt_share_evenly() {
    let flows = (1..=4).map(|n| FlowSpec { start_ns: Nanos::secs(n.into()), ..flow("udt", n) }).collect();
    let rates = rates(&run(&scenario(flows, 120)), 20, 120);
    let all: f64 = rates.iter().sum();
    assert!(all > 0.85 * MOST, "{rates:?}");
    // UDT's paper says that flows of one bottleneck have the same rate; a tenth is tolerance.
    assert!(rates.iter().all(|rate| (rate * 4.0 / all - 1.0).abs() < 0.1), "{rates:?}");
}

#[test]
fn reno_is_not_starved_where_it_can_fill_the_path_itself() {
    let rates = rates(&run(&scenario(vec![flow("udt", 1), flow("reno", 2)], 120)), 20, 120);
    assert!(rates[0] > rates[1] && rates[1] > 0.1 * RATE, "{rates:?}");
    assert!(rates[0] + rates[1] > 0.85 * RATE, "{rates:?}");
}

#[test]
fn every_byte_arrives_and_each_loss_is_made_good_once() {
    let data = Bytes(40_000 * PAYLOAD + 1);
    let mut scenario = scenario(vec![FlowSpec { data_bytes: Some(data), ..flow("udt", 3) }], 60);
    // A queue large enough to cause no further losses.
    scenario.link.queue_bytes = Bytes(1 << 30);
    scenario.link.loss = LossSpec::List { packets: vec![100, 5_000, 5_001, 5_003, 20_000] };
    let outcome = run(&scenario);
    let seen = &outcome.flows[0];
    let arrived: Bytes = seen.samples.iter().map(|sample| sample.goodput_bytes).sum();
    assert_eq!(arrived, data);
    assert_eq!((seen.lost, seen.no_room, seen.sender.retransmits), (5, 0, 5));
    assert_eq!((seen.receiver.duplicates, seen.sender.timeouts), (0, 0));
    assert!(seen.finished_ns.is_some_and(|at| at < Nanos::secs(30)), "{:?}", seen.finished_ns);
}

#[test]
fn a_stopped_flow_sends_a_few_packets_more_and_ends() {
    let stop = Nanos::secs(10);
    let outcome =
        run(&scenario(vec![FlowSpec { stop_ns: Some(stop), ..flow("udt", 3) }, flow("udt", 4)], 30));
    let (ended, at) = (&outcome.flows[0], outcome.flows[0].finished_ns.unwrap());
    // The packets on the path, and the answer to them.
    assert!(at > stop && at < stop + Nanos::millis(300), "{at}");
    assert_eq!(ended.goodput(Nanos::secs(11), Nanos::secs(30)).0, 0.0);
    let after = rates(&outcome, 20, 30)[1];
    assert!(after > 0.85 * MOST, "the other one takes what is left: {after}");
}

#[test]
fn no_more_is_under_way_than_the_receiver_takes() {
    let window = Bytes(100 * 1500);
    let outcome = run(&scenario(vec![FlowSpec { receive_window_bytes: Some(window), ..flow("udt", 3) }], 30));
    let rate = rates(&outcome, 10, 30)[0];
    // The limit is the receiver's free buffer beyond the acknowledged data. The receiver acknowledges every 10 ms.
    let bound = 100.0 * PAYLOAD as f64 * 8.0 / RTT.as_secs_f64();
    assert!((0.7 * bound..=bound).contains(&rate), "{rate} of {bound}");
}
