//! Tests of sources alone. Bounds are five standard deviations of the law that the test names.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn law(millis: u64, tail: Option<f64>) -> DurationLaw {
    DurationLaw { mean_ns: Nanos::millis(millis), tail }
}

fn on_off(on: DurationLaw, off: DurationLaw, seed: u64) -> TrafficSpec {
    TrafficSpec { source: TrafficSource::OnOff { rate_bps: BitRate(1e6), on, off }, packet_bytes: 1250, seed }
}

/// Returns the times and sizes of all packets within `seconds`.
fn packets(spec: &TrafficSpec, seconds: u64) -> Vec<(Nanos, u16)> {
    assert!(spec.is_possible());
    let mut process = TrafficProcess::new(spec);
    let mut all = Vec::new();
    while process.next() < Nanos(seconds * SECOND) {
        let at = process.next();
        all.extend(process.take().map(|size| (at, size)));
    }
    all
}

fn bytes(packets: &[(Nanos, u16)]) -> f64 {
    packets.iter().map(|(_, size)| f64::from(*size)).sum()
}

#[test]
fn a_source_has_its_mean_load_however_short_its_times_are() {
    const SECONDS: u64 = 20_000;
    // The second pair of times is shorter than the 10 ms between two packets.
    for (on, off) in [(500, 1000), (4, 8)] {
        let spec = on_off(law(on, None), law(off, None), 1);
        assert!((spec.mean_rate().0 - 1e6 / 3.0).abs() < 1.0);
        let rate = bytes(&packets(&spec, SECONDS)) * 8.0 / SECONDS as f64;
        // Of a cycle, on - (on + off) / 3 has the variance (2/3 on)^2 + (1/3 off)^2.
        let (on, off) = (on as f64 / 1e3, off as f64 / 1e3);
        let cycles = SECONDS as f64 / (on + off);
        let deviation = (cycles * ((2.0 / 3.0 * on).powi(2) + (off / 3.0).powi(2))).sqrt();
        let share = deviation / SECONDS as f64;
        assert!((rate / 1e6 - 1.0 / 3.0).abs() < 5.0 * share, "{on} s: {rate}, {share}");
    }
}

#[test]
fn packets_of_a_source_that_is_on_are_spaced_by_its_rate() {
    let packets = packets(&on_off(law(10_000, None), law(10_000, None), 2), 1000);
    let spaced = packets.windows(2).filter(|pair| (pair[1].0 - pair[0].0).0.abs_diff(10_000_000) <= 1);
    let rest = packets.len() - 1 - spaced.count();
    // A pause begins at the end of each time on: 50 times in 1000 s, with a deviation of 50^0.5 at most (an
    // alternating process of two equal exponential laws has less than a Poisson process).
    assert!((rest as f64 - 50.0).abs() < 5.0 * 50_f64.sqrt(), "{rest}");
}

#[test]
fn heavy_tails_have_longer_times_than_exponential_ones() {
    let times_on = |tail| {
        let packets = packets(&on_off(law(1000, tail), law(1000, tail), 3), 20_000);
        let runs = packets.chunk_by(|a, b| (b.0 - a.0).0 <= 10_000_001);
        runs.map(<[_]>::len).collect::<Vec<usize>>()
    };
    // Ten times the mean: e^-10 of exponential times, and (1/30)^1.5, which is 0.61 %, of those with a tail of 1.5.
    let long = |times: &[usize]| times.iter().filter(|packets| **packets > 1000).count() as f64;
    let (light, heavy) = (times_on(None), times_on(Some(1.5)));
    let expected = heavy.len() as f64 * 30_f64.powf(-1.5);
    assert!((long(&heavy) - expected).abs() < 5.0 * expected.sqrt(), "{} of {expected}", long(&heavy));
    // The expectation is 0.45: six or more have a probability below 1e-5.
    assert!(long(&light) < 6.0, "{}", long(&light));
}

fn short_flows(tail: f64, seed: u64) -> TrafficSpec {
    let source = TrafficSource::ShortFlows {
        flows_per_s: 20.0,
        mean_bytes: Bytes(10_000),
        tail,
        rate_bps: BitRate(1e7),
    };
    TrafficSpec { source, packet_bytes: 1500, seed }
}

#[test]
fn short_flows_have_their_mean_load() {
    const SECONDS: u64 = 10_000;
    let spec = short_flows(3.0, 1);
    assert!((spec.mean_rate().0 - 1.6e6).abs() < 1e-3);
    let sent = bytes(&packets(&spec, SECONDS));
    // A compound Poisson sum has the variance n E[size^2], which is 4/3 of the square of the mean with a tail of 3.
    let flows = 20.0 * SECONDS as f64;
    let deviation = 1e4 * (flows * 4.0 / 3.0).sqrt();
    // A flow lasts for 8 ms on average, so that a fifth of one is under way at the end.
    assert!((sent - flows * 1e4).abs() < 5.0 * deviation, "{sent}");
}

#[test]
fn a_short_flow_sends_its_bytes_at_its_rate() {
    let source = TrafficSource::ShortFlows {
        flows_per_s: 0.001,
        mean_bytes: Bytes(1_000_000),
        tail: 1.2,
        rate_bps: BitRate(1.2e7),
    };
    let packets = packets(&TrafficSpec { source, packet_bytes: 1500, seed: 4 }, 20_000);
    let flows: Vec<_> = packets.chunk_by(|a, b| (b.0 - a.0) == Nanos::millis(1)).collect();
    assert!((2..40).contains(&flows.len()), "{}", flows.len());
    // The least size is a sixth of the mean.
    let least = 1e6 / 6.0 - 1.0;
    let mut whole = flows[..flows.len() - 1].iter();
    assert!(
        whole
            .all(|flow| flow[..flow.len() - 1].iter().all(|packet| packet.1 == 1500) && bytes(flow) >= least)
    );
}

#[test]
fn a_seed_sends_the_same_and_another_one_something_else() {
    let mixed = |seed| {
        let on_off = on_off(law(100, Some(1.5)), law(100, None), seed);
        (packets(&on_off, 100), packets(&short_flows(1.3, seed), 100))
    };
    let (one, again, other) = (mixed(7), mixed(7), mixed(8));
    assert_eq!(one, again);
    assert!(one.0 != other.0 && one.1 != other.1);
}

#[test]
fn impossible_mixes_are_refused() {
    let possible = |on, tail| on_off(law(on, tail), law(1, None), 0).is_possible();
    assert!(possible(1, None) && possible(1, Some(1.1)));
    assert!(!possible(0, None) && !possible(1, Some(1.0)) && !possible(1, Some(f64::NAN)));
    assert!(short_flows(1.1, 0).is_possible() && !short_flows(1.0, 0).is_possible());
    assert!(!TrafficSpec { packet_bytes: 0, ..short_flows(2.0, 0) }.is_possible());
}
