//! Tests of the window as a function of the loss rate. Losses have equal distances, because random ones would shift
//! Reno's window by 7 %. Windows grow by acknowledged segments, as in Linux, so that delayed acknowledgements have no
//! effect.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_simulator::{
    FlowOutcome, FlowSpec, LinkSpec, LossSpec, SimulatedFlowSample, SimulationScenario, simulate,
};

/// The number of losses before the window is measured. The next constant is the number of cycles that are measured.
const WARM_UP: u64 = 10;
const CYCLES: u64 = 30;
const SEGMENT: u64 = 1448;
const RTT: Nanos = Nanos::millis(100);

#[derive(Debug)]
struct MeasuredWindow {
    /// The number of segments that arrived, divided by the number of RTTs in which they did.
    mean: f64,
    /// The mean of the largest windows between two losses, in segments.
    at_loss: f64,
}

/// Measures the window of one flow with `control` over a path that is never full and that loses one of `nth` packets.
/// Slow start ends at `expected`, an estimate of the window.
fn measured(control: &str, nth: u64, expected: f64) -> MeasuredWindow {
    let packets = nth * (WARM_UP + CYCLES + 1);
    let link = LinkSpec {
        // A packet takes 12 ns, so that only the window limits the flow.
        rate_bps: BitRate(1e12),
        delay_ns: Nanos(0),
        queue_bytes: Bytes(u64::MAX),
        loss: LossSpec::EveryNth { nth },
    };
    let flow = FlowSpec {
        contestant: control.to_owned(),
        return_ns: RTT,
        data_bytes: Some(Bytes(packets * SEGMENT)),
        initial_ssthresh: Some(expected as u32),
        ..FlowSpec::default()
    };
    let outcome = simulate(&SimulationScenario {
        link,
        flows: vec![flow],
        traffic: Vec::new(),
        // Ten times the expected duration: the flow ends earlier, with its data.
        duration_ns: Nanos((packets as f64 / expected * RTT.0 as f64 * 10.0) as u64),
        sample_ns: RTT,
        probe: None,
    });
    let flow = &outcome.unwrap().flows[0];
    assert_eq!(flow.sender.timeouts, 0, "{control} at 1/{nth}");
    window(flow)
}

fn window(flow: &FlowOutcome) -> MeasuredWindow {
    let losses = |sample: &SimulatedFlowSample| sample.tcp.retransmits;
    let all = flow.samples.last().map_or(0, losses);
    // From one loss to another, so that cycles are whole.
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

/// Asserts that a control's window is within 10 % of its response function for loss rates up to 1e-4, and within 20 %
/// at 1e-3.
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
    // Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997, equation 3 with one segment per acknowledgement.
    hold("reno", |p| (1.5 / p).sqrt(), &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn highspeed_is_rfc_3649s() {
    // Section 5, with the exponent that its two points give.
    hold("highspeed", |p| 0.12 / p.powf(0.835), &[1_000, 10_000, 100_000]);
}

#[test]
fn scalable_is_a_by_b_by_p_at_a_loss() {
    // Kelly, CCR 33(2), 2003: from 7/8 of the window at the loss it takes 13.4 RTTs for 1/p packets.
    let mean = |p: f64| 1.0 / p / ((8.0_f64 / 7.0).ln() / 1.01_f64.ln());
    hold("scalable", mean, &[1_000, 10_000, 100_000]);
    // The RTT of recovery adds nothing, and is one of fourteen.
    let window = measured("scalable", 100_000, mean(1e-5)).at_loss;
    assert!((window / 0.08e5 - 0.93).abs() < 0.02, "{window}");
}

#[test]
fn bic_is_as_its_paper_steps() {
    // Xu, Harfoush, Rhee, INFOCOM 2004, section IV, with S_max = 32, S_min = 0.01, beta = 1/8.
    let gain = |window: f64, most: f64, _| ((most - window) / 2.0).clamp(0.01, 32.0);
    hold("bic", |p| periodic(p, 7.0 / 8.0, gain), &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn htcp_follows_its_draft() {
    // Leith, Shorten, draft-leith-tcp-htcp-06, section 2: the RTT is constant, so beta has its largest value.
    const KEPT: f64 = 0.8;
    let gain = |_, _, round_trips: f64| {
        let beyond = (round_trips * RTT.as_secs_f64() - 1.0).max(0.0);
        (2.0 * (1.0 - KEPT) * (1.0 + 10.0 * beyond + (beyond / 2.0).powi(2))).max(1.0)
    };
    hold("htcp", |p| periodic(p, KEPT, gain), &[1_000, 10_000, 100_000]);
}

#[test]
fn stepping_is_the_closed_form_where_there_is_one() {
    for p in [1e-3, 1e-5] {
        let stepped = periodic(p, 0.5, |_, _, _| 1.0);
        assert!((stepped / (1.5 / p).sqrt() - 1.0).abs() < 1e-3, "{stepped} at {p}");
    }
}

/// UDT's synchronisation time: the interval between two increases (draft-gg-udt-03 section 4).
const SYN: Nanos = Nanos::millis(10);
/// The rate of UDT's path in packets of 1500 bytes per second. The next constant is the payload of such a packet.
const CAPACITY: f64 = 1e9 / 8.0 / 1500.0;
const UDT_PAYLOAD: f64 = 1456.0;

/// Computes UDT's rate for a loss rate `p`, in packets per SYN, by its closed form. Gu, Hong and Grossman, "An
/// Analysis of AIMD Algorithms with Decreasing Increases" (GridNets 2004), increase the rate x by alpha(x) each SYN
/// and reduce it by the share beta at a loss. UDT4's values are those of draft-gg-udt-03 section 7.2, alpha =
/// 10^ceil(log10 B) * 1.5e-6 / 1500 packets for B bits per second of spare bandwidth, beta = 1/9. There are 1/p
/// packets between two losses, in which the rate grows back from 8/9. If alpha is constant (one packet, from a tenth
/// of 1 Gb/s up to nine tenths) this is `x = sqrt(9 alpha / p)` within 3 %, without an RTT in it.
///
/// `waits` is the additional cost of a loss, in SYNs: those in which nothing is sent, and those in which the rate does
/// not grow.
fn udt(p: f64, waits: (f64, f64)) -> f64 {
    let left = |x: f64| CAPACITY - x / SYN.as_secs_f64();
    let alpha = |x: f64, most: f64, _| {
        // Below the rate of the last loss, at most a ninth of the capacity counts.
        let left = if x < most { left(x).min(CAPACITY / 9.0) } else { left(x) };
        let bits = (left * 8.0 * 1500.0).max(1e-9);
        (10_f64.powf(bits.log10().ceil()) * 1.5e-6 / 1500.0).max(0.01)
    };
    periodic_with(p, 8.0 / 9.0, alpha, waits)
}

/// Simulates UDT over an RTT of `rtt` and returns the payload that arrives, in packets per SYN.
fn udt_measured(contestant: &str, nth: u64, rtt: Nanos) -> f64 {
    let (from, to) = (Nanos::secs(40), Nanos::secs(120));
    let link = LinkSpec {
        rate_bps: BitRate(1e9),
        delay_ns: Nanos(0),
        // As much as the path holds over 160 ms, so that slow start ends there.
        queue_bytes: Bytes(20_000_000),
        loss: LossSpec::EveryNth { nth },
    };
    let flows = vec![FlowSpec { contestant: contestant.to_owned(), return_ns: rtt, ..FlowSpec::default() }];
    let scenario = SimulationScenario {
        link,
        flows,
        traffic: Vec::new(),
        duration_ns: to,
        sample_ns: Nanos::secs(1),
        probe: None,
    };
    let outcome = simulate(&scenario).unwrap();
    assert_eq!(outcome.flows[0].sender.timeouts, 0, "1/{nth} over {rtt}");
    outcome.flows[0].goodput(from, to).0 / 8.0 / UDT_PAYLOAD * SYN.as_secs_f64()
}

#[test]
fn udt_is_its_papers_closed_form_over_a_round_trip_of_a_syn() {
    for nth in [1_000, 10_000, 100_000] {
        let (measured, published) = (udt_measured("udt", nth, SYN), udt(1.0 / nth as f64, (0.0, 0.0)));
        let within = if nth > 1000 { 0.10 } else { 0.20 };
        assert!((measured / published - 1.0).abs() < within, "1/{nth}: {measured}, published {published}");
    }
}

/// Tests that UDT deviates from the closed form over a long path. While a packet is missing, acknowledgements stall,
/// and all packets after the last acknowledged one count against the window (draft-gg-udt-03 section 6.1), which has
/// room for an RTT and a SYN. The sender is therefore silent for an RTT less a SYN until the loss is repaired. No
/// acknowledgement arrives in the next RTT either, and the rate grows only with acknowledgements (section 7.2).
#[test]
fn udt_waits_for_a_round_trip_at_each_loss() {
    for (nth, ms) in [(1_000, 180), (10_000, 40), (10_000, 180)] {
        let rtt = Nanos::millis(ms);
        let syns = rtt.as_secs_f64() / SYN.as_secs_f64();
        let said = udt(1.0 / nth as f64, (syns - 1.0, syns + 2.0));
        let measured = udt_measured("udt", nth, rtt);
        assert!((measured / said - 1.0).abs() < 0.10, "1/{nth} over {rtt}: {measured}, said {said}");
    }
}

/// Tests that `daimd-steady` follows the closed form. Its window of several round trips does not stop it while a loss
/// is repaired, and its rate then makes up for the increases that it missed. With several losses per RTT it carries
/// more (1.35 times at 1e-3 and 180 ms). The closed form reduces the rate at every loss, but the loss of a packet
/// that was sent before the last reduction does not always reduce it again.
#[test]
fn a_steady_udt_is_the_closed_form_over_a_long_path_too() {
    for (nth, ms) in [(1_000, 40), (10_000, 40), (10_000, 180), (100_000, 180)] {
        let published = udt(1.0 / nth as f64, (0.0, 0.0));
        let measured = udt_measured("udt+udt-congestion=daimd-steady", nth, Nanos::millis(ms));
        assert!(
            (measured / published - 1.0).abs() < 0.15,
            "1/{nth} over {ms} ms: {measured}, published {published}"
        );
    }
}

/// Returns the mean window of a control that keeps the share `kept` of its window at a loss. In each RTT it then
/// gains `gain(window, window at the loss, RTTs since)`, until it has the window of the loss again. There are `1/p`
/// packets between losses.
fn periodic(p: f64, kept: f64, gain: impl Fn(f64, f64, f64) -> f64) -> f64 {
    periodic_with(p, kept, gain, (0.0, 0.0))
}

/// Returns the mean window as [`periodic`] does, if in addition nothing is sent for `silent` RTTs after a loss, and
/// the window then stays constant for `flat` RTTs.
fn periodic_with(p: f64, kept: f64, gain: impl Fn(f64, f64, f64) -> f64, (silent, flat): (f64, f64)) -> f64 {
    let epoch = |most: f64| {
        let (mut window, mut packets, mut round_trips) = (most * kept, most * kept * flat, 0.0);
        // An epoch with too many packets is not computed to its end.
        while window < most && packets * p < 2.0 {
            let added = gain(window, most, round_trips);
            // The last RTT counts only as far as needed.
            let share = ((most - window) / added).min(1.0);
            packets += share * (window + share * added / 2.0);
            round_trips += share;
            window += added;
        }
        (packets, silent + flat + round_trips)
    };
    let (mut low, mut high) = (1.0, 1e8);
    // About 60 halvings reach the precision of doubles in this range.
    for _ in 0..60 {
        let most = (low + high) / 2.0;
        if epoch(most).0 * p < 1.0 { low = most } else { high = most }
    }
    let (packets, round_trips) = epoch(low);
    packets / round_trips
}
