//! Windows against loss rates. Losses are at equal distances: chance would shift Reno's window by 7 %. The other controls
//! are held against their response functions in `landspeed-congestion`; here it is the sender and the path.

use landspeed_simulator::{FlowOutcome, FlowSample, FlowSpec, LinkSpec, LossSpec, Scenario, simulate};
use landspeed_units::{BitRate, Bytes, Nanos};

/// Losses before the window is looked at, and cycles that are looked at.
const WARM_UP: u64 = 10;
const CYCLES: u64 = 30;
const SEGMENT: u64 = 1448;
const RTT: Nanos = Nanos::millis(100);

#[derive(Debug)]
struct MeasuredWindow {
    /// What arrived, in segments, by how many round trips it took.
    mean: f64,
    /// Mean of the largest windows between one loss and the next.
    at_loss: f64,
}

/// Measures the window of one flow with `control` over a path that is never full and loses one in `nth` packets.
/// `expected` is about where the window will be: slow start ends there.
fn measured(control: &str, nth: u64, expected: f64) -> MeasuredWindow {
    let packets = nth * (WARM_UP + CYCLES + 1);
    let link = LinkSpec {
        // A packet takes 12 ns: the window alone is what limits the flow.
        rate_bps: BitRate(1e12),
        delay_ns: Nanos(0),
        queue_bytes: Bytes(u64::MAX),
        loss: LossSpec::EveryNth { nth },
    };
    let flow = FlowSpec {
        control: control.to_owned(),
        return_ns: RTT,
        data_bytes: Some(Bytes(packets * SEGMENT)),
        initial_ssthresh: Some(expected as u32),
        ..FlowSpec::default()
    };
    let outcome = simulate(&Scenario {
        link,
        flows: vec![flow],
        // Ten times what it should take: it is over when the data are.
        duration_ns: Nanos((packets as f64 / expected * RTT.0 as f64 * 10.0) as u64),
        sample_ns: RTT,
        probe: None,
    });
    let flow = &outcome.unwrap().flows[0];
    assert_eq!(flow.sender.timeouts, 0, "{control} at 1/{nth}");
    window(flow)
}

fn window(flow: &FlowOutcome) -> MeasuredWindow {
    let losses = |sample: &FlowSample| sample.tcp.retransmits;
    let all = flow.samples.last().map_or(0, losses);
    // From one loss to another: whole cycles.
    let from = flow.samples.partition_point(|sample| losses(sample) < WARM_UP.min(all));
    let to = flow.samples.partition_point(|sample| losses(sample) < all);
    let (first, last) = (&flow.samples[from], &flow.samples[to]);
    let segments = (last.tcp.acked_bytes - first.tcp.acked_bytes).0 / SEGMENT;
    let round_trips = (last.at_ns - first.at_ns).0 as f64 / RTT.0 as f64;
    let peaks = flow.samples[from..to].chunk_by(|a, b| losses(a) == losses(b));
    let peaks: Vec<u32> = peaks.filter_map(|of| of.iter().map(|s| s.tcp.cwnd_segments).max()).collect();
    let at_loss = peaks.iter().map(|peak| f64::from(*peak)).sum::<f64>() / peaks.len() as f64;
    MeasuredWindow { mean: segments as f64 / round_trips, at_loss }
}

/// Holds a control against its response function: 10 % from 1e-4 down, 20 % at 1e-3.
fn hold(control: &str, response: impl Fn(f64) -> f64, nths: &[u64]) {
    for &nth in nths {
        let expected = response(1.0 / nth as f64);
        let window = measured(control, nth, expected).mean;
        let within = if nth > 1000 { 0.10 } else { 0.20 };
        assert!(
            (window / expected - 1.0).abs() < within,
            "{control} at 1/{nth}: {window}, published {expected}"
        );
    }
}

#[test]
fn reno_is_sqrt_of_three_halves_by_p() {
    // Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997, equation 3 with one segment an acknowledgement.
    hold("reno", |p| (1.5 / p).sqrt(), &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn highspeed_is_rfc_3649s() {
    // Section 5, with the exponent that its two points give.
    hold("highspeed", |p| 0.12 / p.powf(0.835), &[1_000, 10_000, 100_000]);
}

#[test]
fn scalable_is_a_by_b_by_p_at_a_loss() {
    // Kelly, CCR 33(2), 2003: from 7/8 of the window at the loss it takes 13.4 round trips for 1/p packets.
    let mean = |p: f64| 1.0 / p / ((8.0_f64 / 7.0).ln() / 1.01_f64.ln());
    hold("scalable", mean, &[1_000, 10_000, 100_000]);
    // The round trip of recovery adds nothing, and is one of fourteen.
    let window = measured("scalable", 100_000, mean(1e-5)).at_loss;
    assert!((window / 0.08e5 - 0.93).abs() < 0.02, "{window}");
}
