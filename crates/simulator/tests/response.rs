//! Windows against loss rates. Losses are at equal distances: chance would shift Reno's window by 7 %. Windows grow by
//! segments acknowledged, as Linux has it: delayed acknowledgements change nothing.

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
        contestant: control.to_owned(),
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

#[test]
fn bic_is_as_its_paper_steps() {
    // Xu, Harfoush, Rhee, INFOCOM 2004, section IV, with S_max = 32, S_min = 0.01, beta = 1/8.
    let gain = |window: f64, most: f64, _| ((most - window) / 2.0).clamp(0.01, 32.0);
    hold("bic", |p| periodic(p, 7.0 / 8.0, gain), &[1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn htcp_is_as_its_draft_says() {
    // Leith, Shorten, draft-leith-tcp-htcp-06, section 2: the round trips do not change, so beta is the largest.
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

/// UDT's time between two increases (draft-gg-udt-03 section 4).
const SYN: Nanos = Nanos::millis(10);
/// Rate of the path that UDT is on, in packets of 1500 bytes each second, and what such a packet carries.
const CAPACITY: f64 = 1e9 / 8.0 / 1500.0;
const UDT_PAYLOAD: f64 = 1456.0;

/// UDT's rate where one in `1/p` packets is lost, in packets each SYN: its closed form. Gu, Hong and Grossman, "An Analysis of AIMD
/// Algorithms with Decreasing Increases" (GridNets 2004), increase the rate x by alpha(x) each SYN and take beta of it at a loss; UDT4's
/// values are those of draft-gg-udt-03 section 7.2, alpha = 10^ceil(log10 B) * 1.5e-6 / 1500 packets for B bits a second that are left,
/// beta = 1/9. Between two losses lie 1/p packets, in which the rate grows from 8/9 of what it was back to it. Where alpha is
/// constant (one packet, from a tenth of 1 Gb/s up to nine tenths) that is `x = sqrt(9 alpha / p)`, all but 3 %: no round trip is in it.
///
/// `waits` is what a loss costs beyond that, in SYNs: none are sent, and as many are sent as before while nothing grows.
fn udt(p: f64, waits: (f64, f64)) -> f64 {
    let left = |x: f64| CAPACITY - x / SYN.as_secs_f64();
    let alpha = |x: f64, most: f64, _| {
        // Below the rate of the last loss a ninth of the capacity counts at most.
        let left = if x < most { left(x).min(CAPACITY / 9.0) } else { left(x) };
        let bits = (left * 8.0 * 1500.0).max(1e-9);
        (10_f64.powf(bits.log10().ceil()) * 1.5e-6 / 1500.0).max(0.01)
    };
    periodic_with(p, 8.0 / 9.0, alpha, waits)
}

/// The same in the simulator, over a round trip of `rtt`: payload that arrives, in packets each SYN.
fn udt_measured(contestant: &str, nth: u64, rtt: Nanos) -> f64 {
    let (from, to) = (Nanos::secs(40), Nanos::secs(120));
    let link = LinkSpec {
        rate_bps: BitRate(1e9),
        delay_ns: Nanos(0),
        // As much as the path holds over 160 ms: slow start ends there.
        queue_bytes: Bytes(20_000_000),
        loss: LossSpec::EveryNth { nth },
    };
    let flows = vec![FlowSpec { contestant: contestant.to_owned(), return_ns: rtt, ..FlowSpec::default() }];
    let scenario = Scenario { link, flows, duration_ns: to, sample_ns: Nanos::secs(1), probe: None };
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

/// Over a long one it is not. While a packet is missing the acknowledgements stand still, and what is not acknowledged counts
/// against the window (draft-gg-udt-03 section 6.1), which holds a round trip and a SYN: so the sender is silent for a round trip less a SYN
/// until the loss is made good. No acknowledgement comes in the round trip after that either, and the rate grows with
/// acknowledgements alone (section 7.2).
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

/// With `daimd-steady` it is, for the pace alone says what leaves until the loss is made good. Where several losses come in a round trip it
/// carries more (1.35 times at 1e-3 and 180 ms): what was sent before the rate fell says nothing against the new one.
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

/// Mean window of a control that keeps the share `kept` at a loss and then gains `gain(window, window at the loss,
/// round trips since)` each round trip until it is back where it was, if `1/p` packets lie between losses.
fn periodic(p: f64, kept: f64, gain: impl Fn(f64, f64, f64) -> f64) -> f64 {
    periodic_with(p, kept, gain, (0.0, 0.0))
}

/// The same, where nothing is sent for so many round trips after a loss, and then the window stays for so many.
fn periodic_with(p: f64, kept: f64, gain: impl Fn(f64, f64, f64) -> f64, (silent, flat): (f64, f64)) -> f64 {
    let epoch = |most: f64| {
        let (mut window, mut packets, mut round_trips) = (most * kept, most * kept * flat, 0.0);
        // What is too long a way is not walked to its end.
        while window < most && packets * p < 2.0 {
            let added = gain(window, most, round_trips);
            // The last round trip is only as long as is needed.
            let share = ((most - window) / added).min(1.0);
            packets += share * (window + share * added / 2.0);
            round_trips += share;
            window += added;
        }
        (packets, silent + flat + round_trips)
    };
    let (mut low, mut high) = (1.0, 1e8);
    // Doubles of this range are told apart after some 60 halvings.
    for _ in 0..60 {
        let most = (low + high) / 2.0;
        if epoch(most).0 * p < 1.0 { low = most } else { high = most }
    }
    let (packets, round_trips) = epoch(low);
    packets / round_trips
}
