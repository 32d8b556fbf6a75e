//! Known properties of congestion controls, beyond their response functions.

mod path;

use landspeed_record::units::Nanos;
use landspeed_simulator::{FlowSpec, LossSpec, SimulationOutcome, SimulationScenario, simulate};

fn flow(control: &str, rtt: Nanos) -> FlowSpec {
    FlowSpec { contestant: control.to_owned(), return_ns: rtt, ..FlowSpec::default() }
}

fn run(scenario: &SimulationScenario) -> SimulationOutcome {
    simulate(scenario).unwrap()
}

#[test]
fn fast_keeps_alpha_packets_in_the_queue() {
    // fast.c: alpha is 200.
    for (rate, rtt) in [(1e8, 40), (4e8, 100)] {
        let rtt = Nanos::millis(rtt);
        let mut scenario = path::scenario(rate, rtt, 2.0);
        scenario.flows = vec![flow("fast", rtt)];
        let outcome = run(&scenario);
        let late = &outcome.link.samples[30..];
        let mean = late.iter().map(|sample| sample.waiting_packets as f64).sum::<f64>() / late.len() as f64;
        assert!((160.0..=240.0).contains(&mean), "{rate} b/s: {mean}");
    }
}

#[test]
fn one_flow_of_each_fills_an_easy_path() {
    for row in landspeed_congestion::CONTROLS {
        let rtt = Nanos::millis(20);
        let mut scenario = path::scenario(1e8, rtt, 1.0);
        scenario.flows = vec![flow(row.name, rtt)];
        let rate = run(&scenario).flows[0].goodput(Nanos::secs(20), Nanos::secs(60));
        // Of at most 96.5 Mb/s; HSTCP-LP yields to its own queue.
        assert!(rate.0 > 0.75e8, "{}: {rate}", row.name);
    }
}

#[test]
fn hstcp_lp_yields_to_reno() {
    let rtt = Nanos::millis(80);
    let alone = {
        let mut scenario = path::scenario(1e8, rtt, 0.25);
        scenario.flows = vec![flow("reno", rtt)];
        run(&scenario).flows[0].goodput(Nanos::secs(20), Nanos::secs(60)).0
    };
    let mut scenario = path::scenario(1e8, rtt, 0.25);
    scenario.flows = vec![flow("reno", rtt), flow("hstcp_lp", rtt)];
    scenario.duration_ns = Nanos::secs(120);
    let outcome = run(&scenario);
    let rate = |n: usize| outcome.flows[n].goodput(Nanos::secs(40), Nanos::secs(120)).0;
    assert!(rate(0) > 0.8 * alone && rate(1) < 0.25 * rate(0), "{} and {}", rate(0), rate(1));
}

#[test]
fn cubic_follows_the_curve_of_rfc_9438_after_a_loss() {
    // Section 4.2: W(t) = C (t - K)^3 + W_max, K = cbrt(W_max (1 - beta) / C), C = 0.4, beta = 0.7.
    let rtt = Nanos::millis(50);
    let mut scenario = path::scenario(1e12, rtt, 1.0);
    scenario.link.loss = LossSpec::List { packets: vec![20_000] };
    scenario.flows = vec![FlowSpec { initial_ssthresh: Some(1000), ..flow("cubic", rtt) }];
    scenario.sample_ns = rtt;
    scenario.duration_ns = Nanos::secs(15);
    let samples = &run(&scenario).flows[0].samples;
    let lost = samples.iter().position(|sample| sample.tcp.retransmits > 0).unwrap();
    let most = f64::from(samples[lost].tcp.ssthresh_segments) / 0.7;
    let k = (most * 0.3 / 0.4).cbrt();
    // The curve begins when recovery ends, an RTT after the retransmission.
    for (n, sample) in
        samples[lost + 2..].iter().enumerate().take_while(|(_, sample)| sample.at_ns < scenario.duration_ns)
    {
        let t = (n as f64 + 1.0) * rtt.as_secs_f64();
        let said = 0.4 * (t - k).powi(3) + most;
        let is = f64::from(sample.tcp.cwnd_segments);
        assert!((is / said - 1.0).abs() < 0.01, "after {t} s: {is}, by the curve {said}");
    }
}
