//! Answers Jin & Yoo's section 6.2: how many processor cycles a bit takes over TCP.

use landspeed_record::{ExpectationKind, PerPacketCost, SizeAnswer};

use super::answers::{AnswerDraft, SizeQuestion};
use super::message::{HOST_A, HOST_B, SHARED};

pub(super) const BIT: SizeQuestion = SizeQuestion {
    question: "How many processor cycles does a bit take over TCP?",
    claims: &[("jin.rule.hz", ExpectationKind::Number), ("jin.rule.20ghz", ExpectationKind::Number)],
    paper: "Jin & Yoo cite a rule of one cycle at an end, so that a host needs 20 GHz for 10 Gb/s in both directions (section 6.2)",
};

/// The rate, in bit/s and each direction, for which the paper tells the clock.
const PAPERS_RATE: f64 = 1e10;

/// Returns the answer by the largest TCP writes; `None` if a clock is unknown. `a` and `b` are the clocks of the hosts.
pub(super) fn bit(sweeps: &[PerPacketCost], [a, b]: [Option<f64>; 2]) -> Option<SizeAnswer> {
    let point = sweeps.iter().find(|part| part.transport == "tcp")?.points.last()?;
    // Hosts that share time are one machine.
    let layers = [(HOST_A, a?), (HOST_B, b?), (SHARED, a?)];
    let cycles = layers.iter().filter_map(|(layer, hz)| Some(point.layers.get(*layer)?.median_ns / 1e9 * hz));
    let both = cycles.sum::<f64>() / (8.0 * point.size_bytes.0 as f64);
    let mut draft = AnswerDraft::default();
    if both > 0.0 && both.is_finite() {
        draft.figure("tcp_end_cycles_per_bit", both / 2.0);
        draft.figure("tcp_10_gbps_both_ways_hz", both * PAPERS_RATE);
        draft.lines.push(format!(
            "in writes of {} a bit takes {both:.3} cycles at both ends together, {:.3} at one on average: 10 Gb/s in both directions \
             take a host {:.2} GHz",
            point.size_bytes,
            both / 2.0,
            both * PAPERS_RATE / 1e9
        ));
    }
    draft.answer(&BIT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landspeed_record::units::Bytes;
    use landspeed_record::{LayerCost, SizePoint};

    use super::*;

    /// Returns a sweep of TCP whose largest writes, of 1000 bytes, cost these nanoseconds by layer.
    fn sweep(layers: &[(&str, f64)]) -> PerPacketCost {
        let cost = |ns: f64| LayerCost { median_ns: ns, least_ns: ns, most_ns: ns };
        let layers: BTreeMap<String, LayerCost> =
            layers.iter().map(|(name, ns)| ((*name).to_owned(), cost(*ns))).collect();
        let point = SizePoint { size_bytes: Bytes(1000), layers, ..SizePoint::default() };
        PerPacketCost { transport: "tcp".into(), points: vec![point], ..PerPacketCost::default() }
    }

    #[test]
    fn cycles_are_those_of_both_ends_by_their_own_clocks() {
        // 2000 + 4000 + 2000 cycles for 8000 bits.
        let one = sweep(&[(HOST_A, 1000.0), (HOST_B, 1000.0), (SHARED, 1000.0)]);
        let answer = bit(&[one], [Some(2e9), Some(4e9)]).expect("an answer");
        assert!((answer.figures["tcp_end_cycles_per_bit"] - 0.5).abs() < 1e-9, "{answer:?}");
        assert!((answer.figures["tcp_10_gbps_both_ways_hz"] - 1e10).abs() < 1.0, "{answer:?}");
        assert_eq!(answer.claims, ["jin.rule.hz", "jin.rule.20ghz"]);
    }

    #[test]
    fn a_clock_that_is_not_known_and_a_sweep_without_tcp_have_no_answer() {
        let one = sweep(&[(HOST_A, 1000.0), (HOST_B, 1000.0)]);
        assert_eq!(bit(std::slice::from_ref(&one), [Some(2e9), None]), None);
        let datagrams = PerPacketCost { transport: "udp".into(), ..one };
        assert_eq!(bit(&[datagrams], [Some(2e9); 2]), None);
        assert_eq!(bit(&[sweep(&[])], [Some(2e9); 2]), None, "nothing was measured");
    }
}
