//! From what the judges found to a verdict: the order, and what is said where nothing was found.

use landspeed_record::{Cause, Finding};

use super::causes::limits;
use super::next;
use super::scene::Scene;
use super::thresholds::LEAST_WEIGHT;
use super::view::View;
use super::words::called;

/// Whether a finding is worth listing: a fault costs something.
pub(super) fn counts(finding: &Finding) -> bool {
    finding.cause.is_limit() || finding.weight >= LEAST_WEIGHT
}

/// Faults that cost something, the one that costs most first, then those that would bind next, then limits.
/// A limit behind faults binds only when they are mended, so it weighs no more than the least of them.
pub(super) fn settle(view: &View<'_>, findings: Vec<Finding>, behind: Vec<Finding>) -> Vec<Finding> {
    let mut behind = next::settle(view, &findings, behind);
    let (mut limits, mut faults): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.cause.is_limit());
    if limits.is_empty() && faults.is_empty() {
        limits.push(limits::nearest(view));
    }
    let least = faults.iter().map(|finding| finding.weight).fold(1.0, f64::min);
    for limit in &mut limits {
        limit.weight = limit.weight.min(least);
    }
    let heaviest_first = |a: &Finding, b: &Finding| b.weight.total_cmp(&a.weight);
    faults.sort_by(heaviest_first);
    limits.sort_by(heaviest_first);
    faults.append(&mut behind);
    faults.append(&mut limits);
    faults
}

/// A line for each thing that was missing, with the causes that cannot be judged without it, and what the
/// observers themselves could not see.
pub(super) fn unjudged(scene: &Scene<'_>, missing: &[(&'static str, String)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut reasons: Vec<&str> = missing.iter().map(|(reason, _)| *reason).collect();
    reasons.dedup();
    let mut said: Vec<&str> = Vec::new();
    for reason in reasons {
        if said.contains(&reason) {
            continue;
        }
        said.push(reason);
        let causes = missing.iter().filter(|(r, _)| *r == reason).map(|(_, cause)| cause.as_str());
        lines.push(format!("{reason}: {} not judged", causes.collect::<Vec<_>>().join(", ")));
    }
    for host in [Some(scene.a), scene.b].into_iter().flatten() {
        let name = called(host.name);
        lines.extend(host.seen.unseen.iter().map(|line| format!("{name}: {}", shown_line(line))));
    }
    lines
}

fn shown_line(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// A cause in words: "small receive buffer".
pub(super) fn word(cause: Cause) -> String {
    let word = match cause {
        Cause::ReceiveBuffer => "small receive buffer",
        Cause::SendBuffer => "small send buffer",
        Cause::SlowReader => "slow reader",
        Cause::SlowWriter => "slow writer",
        Cause::TinyWrites => "tiny writes",
        Cause::NagleDelayedAck => "Nagle with delayed acknowledgement",
        Cause::SoftirqCore => "full softirq core",
        Cause::CompetingLoad => "competing load",
        Cause::RateLimit => "rate limit",
        Cause::RandomLoss => "random loss",
        Cause::BurstLoss => "burst loss",
        Cause::Reordering => "reordering",
        Cause::WindowBelowBdp => "window below the bandwidth-delay product",
        Cause::MtuBlackHole => "MTU black hole or mismatch",
        Cause::OffloadsOff => "offloads off",
        Cause::SoftwareChecksum => "checksum in software",
        Cause::Fragmentation => "fragmentation",
        Cause::UdpReceiveBuffer => "UDP receive buffer",
        Cause::ListenBacklog => "listen backlog",
        Cause::WindowAlignment => "window alignment",
        Cause::QdiscDrops => "queue drops",
        Cause::CongestionControl => "congestion control",
        Cause::CpuFrequency => "processor clock",
        Cause::Placement => "placement",
        Cause::Steal => "stolen time",
        Cause::CpuLimit => "processor limit",
        Cause::LinkLimit => "link limit",
        Cause::MemoryLimit => "memory limit",
        Cause::BusLimit => "bus limit",
    };
    word.to_owned()
}
