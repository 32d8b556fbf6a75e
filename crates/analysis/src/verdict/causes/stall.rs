//! Judges why a path carried nothing, from packets of several sizes that were sent over it afterwards.

use landspeed_record::units::Bytes;
use landspeed_record::{Cause, Finding, FragmentationPoint, PathProbe, ProbedSize};

use crate::verdict::judge::{FindingBuilder, found};
use crate::verdict::words::percent;

/// The judges of what a probe shows. The last one applies if no packet passes, or if packets pass and no other judge
/// applies.
const RULES: [fn(&PathProbe) -> Option<Finding>; 5] =
    [black_hole, icmp_blocked, fragments_dropped, lossy, path_down];

/// The least share of lost packets from which a path that carries all sizes loses them at random; [`FEW`] is the
/// least number.
const LOSSY: f64 = 0.03;
const FEW: u64 = 3;

/// Returns the causes that a probe alone shows.
pub fn stalls(probe: &PathProbe) -> Vec<Finding> {
    RULES.iter().filter_map(|rule| rule(probe)).collect()
}

/// Returns the sizes of the largest packet that arrives whole and of the next larger one that was sent. `None` if no
/// packet arrives, or if the largest does.
fn hole(probe: &PathProbe) -> Option<(Bytes, Bytes)> {
    probe.largest(FragmentationPoint::Never).zip(probe.smallest_lost(FragmentationPoint::Never))
}

/// Returns true if packets that vanish whole arrive in pieces when routers may cut them.
fn passes_in_pieces(probe: &PathProbe, lost: Bytes) -> bool {
    probe.largest(FragmentationPoint::OnTheWay).is_some_and(|bytes| bytes >= lost)
}

pub(super) fn black_hole(probe: &PathProbe) -> Option<Finding> {
    let (most, lost) = hole(probe)?;
    if passes_in_pieces(probe, lost) {
        return None;
    }
    let summary = format!("packets over {} bytes do not arrive: set mtu {}, or mtu-probing", most.0, most.0);
    Some(remedied(evidence(probe, found(Cause::MtuBlackHole, 0.99, 0.95, summary)), most))
}

pub(super) fn icmp_blocked(probe: &PathProbe) -> Option<Finding> {
    let (most, lost) = hole(probe)?;
    if !passes_in_pieces(probe, lost) {
        return None;
    }
    let summary = format!(
        "a router has an MTU of about {} bytes, and its ICMP message that says so does not arrive: set mtu {}, or mtu-probing",
        most.0, most.0
    );
    let finding = found(Cause::IcmpBlocked, 0.99, 0.95, summary)
        .saw(format!("packets of {} bytes that routers may cut arrive; uncut they vanish", lost.0));
    Some(remedied(evidence(probe, finding), most))
}

fn remedied(finding: Finding, most: Bytes) -> Finding {
    finding
        .try_knob("mtu-probing", "1", "let TCP find the size that passes (RFC 4821)")
        .try_knob("mtu", most.0.to_string(), "or give both links the MTU that the path carries")
        .ask("let ICMP 'fragmentation needed' and 'packet too big' through firewalls on the way")
}

pub(super) fn fragments_dropped(probe: &PathProbe) -> Option<Finding> {
    let lost = probe.smallest_lost(FragmentationPoint::AtOnce)?;
    // Where whole packets vanish too, fragments may vanish for the same reason.
    let whole = probe.largest(FragmentationPoint::Never)?;
    if hole(probe).is_some() || probe.largest(FragmentationPoint::AtOnce).is_some() {
        return None;
    }
    let summary = format!(
        "fragments are dropped on the way: datagrams over {} bytes do not arrive; send smaller ones",
        whole.0.saturating_sub(28)
    );
    let finding = found(Cause::FragmentsDropped, 0.99, 0.95, summary)
        .saw(format!("of packets of {} bytes, which are cut into fragments, none arrived", lost.0));
    Some(
        evidence(probe, finding)
            .try_knob("write-size", whole.0.saturating_sub(48).to_string(), "datagrams that fit a packet")
            .ask("let fragments through firewalls on the way"),
    )
}

/// Judges a path that carries packets of all sizes, and loses some of each.
pub(super) fn lossy(probe: &PathProbe) -> Option<Finding> {
    let whole = || probe.sizes.iter().filter(|size| size.cut == FragmentationPoint::Never);
    let (sent, arrived) = whole().fold((0, 0), |(sent, arrived), s| (sent + s.sent, arrived + s.arrived));
    let lost = sent.saturating_sub(arrived);
    let share = lost as f64 / sent.max(1) as f64;
    if probe.largest(FragmentationPoint::Never).is_none()
        || hole(probe).is_some()
        || lost < FEW
        || share < LOSSY
    {
        return None;
    }
    let summary =
        format!("the path loses packets: {lost} of {sent} that were sent to find out ({})", percent(share));
    let finding = evidence(probe, found(Cause::RandomLoss, 0.99, 0.9, summary));
    Some(finding.ask("look for errors on the links between the hosts, and for queues that overflow"))
}

pub(super) fn path_down(probe: &PathProbe) -> Option<Finding> {
    let sent = probe.sizes.iter().any(|size| size.sent > 0);
    let passes = probe.sizes.iter().any(|size| size.arrived > 0);
    let other = || RULES[..4].iter().any(|rule| rule(probe).is_some());
    if passes && (!probe.stalled.ended_run() || other()) {
        return None;
    }
    let waited = probe.stalled.waited_ns;
    let summary = match (passes, sent) {
        (true, _) => {
            format!("the path carried nothing for {waited}, and carries packets of every size again")
        }
        (false, true) => "the path is down: packets of no size arrive, not even small ones".to_owned(),
        (false, false) => "the path is down: no new flow can be opened over it".to_owned(),
    };
    let confidence = if sent { 0.9 } else { 0.7 };
    let finding = found(Cause::PathDown, 0.99, confidence, summary);
    Some(evidence(probe, finding).ask("look at the links, routes and firewalls between the hosts"))
}

/// Adds the arrivals by size and the state of the stalled flow as evidence.
fn evidence(probe: &PathProbe, finding: Finding) -> Finding {
    let stalled = &probe.stalled;
    let row = |size: &ProbedSize| format!("{} B {} of {}", size.packet_bytes.0, size.arrived, size.sent);
    let whole: Vec<String> =
        probe.sizes.iter().filter(|size| size.cut == FragmentationPoint::Never).map(row).collect();
    let failed = probe.failed.iter().cloned();
    let finding = failed.fold(finding, FindingBuilder::saw);
    finding
        .at("the path")
        .saw_when(
            !whole.is_empty(),
            format!("arrived whole over {}, by size of the packet: {}", probe.over, whole.join(", ")),
        )
        .saw_when(
            stalled.timeouts > 0,
            format!(
                "the flow's timer went off {} times in a row and waits {} now",
                stalled.timeouts, stalled.timeout_ns
            ),
        )
        .saw_when(probe.mtu_bytes.0 > 0, format!("the sender's link has an MTU of {} B", probe.mtu_bytes.0))
}

#[cfg(test)]
mod tests {
    use landspeed_record::PathStall;
    use landspeed_record::units::Nanos;

    use super::*;

    fn probe(sizes: &[(u64, FragmentationPoint, u64)]) -> PathProbe {
        let size = |&(bytes, cut, arrived): &(u64, FragmentationPoint, u64)| ProbedSize {
            packet_bytes: Bytes(bytes),
            cut,
            sent: 5,
            arrived,
        };
        let stalled = PathStall { waited_ns: Nanos::secs(3), ..PathStall::default() };
        PathProbe {
            over: "UDP".into(),
            sizes: sizes.iter().map(size).collect(),
            stalled,
            ..PathProbe::default()
        }
    }

    fn named(sizes: &[(u64, FragmentationPoint, u64)]) -> Vec<(Cause, String)> {
        stalls(&probe(sizes)).into_iter().map(|finding| (finding.cause, finding.summary)).collect()
    }

    #[test]
    fn each_pattern_of_arrivals_has_one_cause() {
        use FragmentationPoint::{AtOnce, Never, OnTheWay};
        let hole = [(128, Never, 5), (1400, Never, 4), (1420, Never, 0), (1500, Never, 0)];
        let [(cause, said)] = &named(&[&hole[..], &[(1500, OnTheWay, 0), (2700, AtOnce, 0)]].concat())[..]
        else {
            panic!("one cause")
        };
        assert_eq!(*cause, Cause::MtuBlackHole);
        assert!(
            said.contains("packets over 1400 bytes do not arrive: set mtu 1400, or mtu-probing"),
            "{said}"
        );
        let of = |sizes: &[(u64, FragmentationPoint, u64)]| {
            named(sizes).into_iter().map(|one| one.0).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&[&hole[..], &[(1500, OnTheWay, 5), (2700, AtOnce, 5)]].concat()),
            [Cause::IcmpBlocked]
        );
        let whole = [(128, Never, 5), (1500, Never, 5), (1500, OnTheWay, 5)];
        assert_eq!(of(&[&whole[..], &[(2700, AtOnce, 0)]].concat()), [Cause::FragmentsDropped]);
        assert_eq!(of(&[(128, Never, 0), (1500, Never, 0)]), [Cause::PathDown]);
        assert_eq!(
            of(&[&whole[..], &[(2700, AtOnce, 5)]].concat()),
            [Cause::PathDown],
            "it was, and is back"
        );
        assert_eq!(of(&[]), [Cause::PathDown]);
        // A size of which all were lost although larger ones arrive was lost by chance.
        assert_eq!(of(&[(128, Never, 5), (1400, Never, 0), (1500, Never, 1)]), [Cause::RandomLoss]);
    }
}
