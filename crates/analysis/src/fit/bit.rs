//! Answers Jin & Yoo's section 6.2: how many processor cycles a bit takes over TCP.

use landspeed_record::{ExpectationKind, PerPacketCost, SizeAnswer};

use super::draft::{AnswerDraft, SizeQuestion};
use super::message::{HOST_A, HOST_B, SHARED};

pub(super) const BIT: SizeQuestion = SizeQuestion {
    question: "How many processor cycles does a bit take over TCP?",
    claims: &[("jin.rule.hz", ExpectationKind::Number)],
    paper: "Jin & Yoo cite a rough rule of one cycle at an end (section 6.2)",
};

/// Returns the answer by the largest TCP writes; `None` if a clock or the cost of a host is unknown. `a` and `b` are the
/// clocks of the hosts.
pub(super) fn bit(sweeps: &[PerPacketCost], [a, b]: [Option<f64>; 2]) -> Option<SizeAnswer> {
    let point = sweeps.iter().find(|part| part.transport == "tcp")?.points.last()?;
    let cycles = |layer: &str, hz: f64| Some(point.layers.get(layer)?.median_ns * hz / 1e9);
    // Hosts that share time are one machine.
    let shared = cycles(SHARED, a?).unwrap_or(0.0);
    let all = cycles(HOST_A, a?)? + cycles(HOST_B, b?)? + shared;
    let both = all / (8.0 * point.size_bytes.0.max(1) as f64);
    let mut draft = AnswerDraft::default();
    draft.figure("tcp_end_cycles_per_bit", both / 2.0);
    draft.lines.push(format!(
        "in writes of {} a bit takes {both:.3} cycles at both ends together, {:.3} at one on average",
        point.size_bytes,
        both / 2.0
    ));
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

    fn cycles(layers: &[(&str, f64)]) -> Option<f64> {
        let answer = bit(&[sweep(layers)], [Some(2e9), Some(4e9)])?;
        assert_eq!(answer.claims, ["jin.rule.hz"]);
        Some(answer.figures["tcp_end_cycles_per_bit"])
    }

    #[test]
    fn cycles_are_those_of_both_ends_by_their_own_clocks() {
        let [a, b, shared] = [HOST_A, HOST_B, SHARED].map(|host| (host, 1000.0));
        // 2000 + 4000 + 2000 cycles for 8000 bits, and half of them at an end.
        assert_eq!(cycles(&[a, b, shared]), Some(0.5));
        assert_eq!(cycles(&[a, b]), Some(0.375), "two machines");
        assert_eq!(cycles(&[a, shared]), None, "host B was not observed");
    }

    #[test]
    fn a_clock_that_is_not_known_and_a_sweep_without_tcp_have_no_answer() {
        let one = sweep(&[(HOST_A, 1000.0), (HOST_B, 1000.0)]);
        assert_eq!(bit(std::slice::from_ref(&one), [Some(2e9), None]), None);
        let datagrams = PerPacketCost { transport: "udp".into(), ..one };
        assert_eq!(bit(&[datagrams], [Some(2e9); 2]), None);
    }
}
