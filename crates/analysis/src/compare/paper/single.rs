//! Findings about one protocol.

use std::collections::BTreeMap;

use landspeed_record::RegionFigures;
use landspeed_units::{BitRate, Nanos};

use super::super::metrics::{COST, FAIRNESS, Metric, ROUND_TRIP, STABILITY, THROUGHPUT};
use super::super::repeats::{mean, over};
use super::super::run::RunFigures;
use super::scene::{Judged, Scene};

/// An aggregate has returned where it is at least this share of what it was.
const RETURNED: f64 = 0.9;
/// An aggregate drops where less than this share of it is left.
const DROPPED: f64 = 0.8;

/// By a value that should lie within `low` to `high` of what the paper has.
fn within(values: &[f64], (low, high): (f64, f64), evidence: String) -> Judged {
    let margins: Vec<f64> = values.iter().map(|value| (value - low).min(high - value)).collect();
    Judged::by_margin(&margins, evidence)
}

fn first_and_last(figures: &RunFigures) -> Option<f64> {
    let last = figures.regions.iter().map(|region| region.region).max()?;
    let (first, last) = (figures.region(1)?.mean_bps.0, figures.region(last)?.mean_bps.0);
    (first > 0.0).then(|| last / first)
}

/// Reno does not come back to where it began.
pub(super) fn reno_stays_down(scene: &Scene<'_>) -> Judged {
    let shares = scene.each("reno", first_and_last);
    let Some(share) = mean(shares.iter().copied()) else { return Judged::without(&["reno"]) };
    let margins: Vec<f64> = shares.iter().map(|share| RETURNED - share).collect();
    Judged::by_margin(
        &margins,
        format!("Reno alone in the last region has {share:.2} of what it had in the first"),
    )
}

/// Whether a protocol's mean S is below that of all `others`.
pub(super) fn is_steadier(scene: &Scene<'_>, protocol: &str, others: &[&str]) -> bool {
    is_below(scene, protocol, others, &STABILITY)
}

/// Whether a protocol's mean least F is below that of all `others`.
pub(super) fn is_less_fair(scene: &Scene<'_>, protocol: &str, others: &[&str]) -> bool {
    is_below(scene, protocol, others, &FAIRNESS)
}

fn is_below(scene: &Scene<'_>, protocol: &str, others: &[&str], metric: &Metric) -> bool {
    let of = |name: &str| mean(scene.each(name, metric.of));
    let all_above = |own: f64| others.iter().all(|other| of(other).is_some_and(|other| own < other));
    of(protocol).is_some_and(all_above)
}

/// Time that Reno needs from a halved window back to the whole path: half a window, a segment a round trip.
pub(super) fn reno_recovers_in(scene: &Scene<'_>) -> String {
    let path = &scene.study.path;
    let segments = path.bdp().0 / u64::from(path.mtu_bytes.max(1));
    let takes = Nanos((segments / 2).saturating_mul(path.rtt_ns.0));
    format!(
        "Reno regains a halved window on this path in {takes}, and a region is {} long",
        scene.study.region_ns
    )
}

/// How far the round trip rises under Reno.
pub(super) fn reno_raises_rtt(scene: &Scene<'_>) -> Judged {
    let idle = scene.study.path.rtt_ns.as_secs_f64();
    let rises = scene.each("reno", |f| f.rtt_of_many_s.map(|[.., high]| high / idle - 1.0));
    let Some(rise) = mean(rises.iter().copied()) else { return Judged::without(&["reno"]) };
    let told =
        format!("with three and four flows one round trip in twenty is {:.0} % longer or more", rise * 100.0);
    within(&rises, (0.125, 0.5), told)
}

pub(super) fn reno_throttled_at(scene: &Scene<'_>) -> Judged {
    let times = scene.each("reno", |f| f.first_resent_s);
    let Some(at) = mean(times.iter().copied()) else {
        return Judged::cannot("Reno lost nothing, or is not in this study");
    };
    within(&times, (30.0, 120.0), format!("Reno's first loss is {at:.0} s after the start"))
}

/// The range of round trips under H-TCP.
pub(super) fn htcp_rtt(scene: &Scene<'_>) -> Judged {
    let highs = scene.each("htcp", |f| f.rtt_of_many_s.map(|all| all[2] * 1e3));
    let Some(high) = mean(highs.iter().copied()) else { return Judged::without(&["htcp"]) };
    let low = mean(scene.each("htcp", |f| f.rtt_of_many_s.map(|all| all[0] * 1e3))).unwrap_or(0.0);
    let told = format!("with more than two flows 90 % of round trips are from {low:.0} to {high:.0} ms");
    within(&highs, (280.0, 420.0), told)
}

/// H-TCP's aggregate when the next-to-last flow leaves.
pub(super) fn htcp_dips(scene: &Scene<'_>) -> Judged {
    let left = scene.each("htcp", |f| f.last_leaving);
    let Some(share) = mean(left.iter().copied()) else { return Judged::without(&["htcp"]) };
    let margins: Vec<f64> = left.iter().map(|share| DROPPED - share).collect();
    let told = format!("the five samples after it left carry {share:.2} of the ten before");
    Judged::by_margin(&margins, told)
}

/// Mean of a figure over the regions with so many flows.
fn with_flows(
    figures: &RunFigures,
    flows: impl Fn(u16) -> bool,
    of: fn(&RegionFigures) -> Option<f64>,
) -> Option<f64> {
    mean(figures.regions.iter().filter(|region| flows(region.flows)).filter_map(of))
}

/// More than two flows of H-TCP carry more than two.
pub(super) fn htcp_more_flows(scene: &Scene<'_>) -> Judged {
    let rate = |region: &RegionFigures| Some(region.mean_bps.0);
    let gains =
        scene.each("htcp", |f| Some(with_flows(f, |n| n > 2, rate)? - with_flows(f, |n| n == 2, rate)?));
    let Some(gain) = mean(gains.iter().copied()) else { return Judged::without(&["htcp"]) };
    let more = if gain < 0.0 { "less" } else { "more" };
    Judged::by_margin(
        &gains,
        format!("regions with three and four flows carry {} {more} than those with two", BitRate(gain.abs())),
    )
}

/// Two flows of H-TCP are steadier than more.
pub(super) fn htcp_two_steadier(scene: &Scene<'_>) -> Judged {
    let two = |f: &RunFigures| with_flows(f, |n| n == 2, |region| region.stability);
    let more = |f: &RunFigures| with_flows(f, |n| n > 2, |region| region.stability);
    let margins = scene.each("htcp", |f| Some(more(f)? - two(f)?));
    let means = mean(scene.each("htcp", two)).zip(mean(scene.each("htcp", more)));
    let Some((two, more)) = means else { return Judged::without(&["htcp"]) };
    Judged::by_margin(&margins, format!("S is {two:.2} with two flows and {more:.2} with more"))
}

pub(super) fn fast_aggregate(scene: &Scene<'_>) -> Judged {
    let rates = scene.each("fast", THROUGHPUT.of);
    let Some(rate) = over(rates.iter().copied()) else { return Judged::without(&["fast"]) };
    within(&rates, (335e6 * 0.8, 400e6 * 1.2), format!("FAST carries {}", THROUGHPUT.say_interval(&rate)))
}

/// FAST moves the round trip less than Reno, and that less than H-TCP.
pub(super) fn rtt_order(scene: &Scene<'_>) -> Judged {
    let order = ["fast", "reno", "htcp"];
    let missing: Vec<&str> = order.into_iter().filter(|name| scene.of(name).is_none()).collect();
    if !missing.is_empty() {
        return Judged::without(&missing);
    }
    let [fast, reno, htcp] =
        order.map(|name| scene.of(name).map(|entry| entry.each(ROUND_TRIP.of)).unwrap_or_default());
    let margin = |(repeat, fast): (&u32, &f64)| {
        Some((reno.get(repeat)? - fast).min(htcp.get(repeat)? - reno.get(repeat)?))
    };
    let margins: Vec<f64> = fast.iter().filter_map(margin).collect();
    if margins.is_empty() {
        return Judged::cannot("no repeat has a figure of the round trip for all three");
    }
    let say =
        |values: &BTreeMap<u32, f64>| mean(values.values().copied()).map(ROUND_TRIP.say).unwrap_or_default();
    let told = format!(
        "deviation of the round trip: FAST {}, Reno {}, H-TCP {}",
        say(&fast),
        say(&reno),
        say(&htcp)
    );
    Judged::by_margin(&margins, told)
}

/// What a bit costs differs little from TCP to TCP.
pub(super) fn cost_alike(scene: &Scene<'_>) -> Judged {
    const PAPERS_SPREAD: f64 = 0.08 / 0.69;
    let costs: Vec<f64> =
        scene.papers_own().iter().filter_map(|name| mean(scene.each(name, COST.of))).collect();
    if costs.len() < 3 {
        return Judged::cannot("processor time is known of fewer than three of the paper's protocols");
    }
    let (mean, deviation) = landspeed_stats::mean_and_deviation(&costs);
    let spread = deviation / mean;
    Judged {
        shows: Some(spread <= PAPERS_SPREAD),
        evidence: format!(
            "{} protocols at {} on average, deviation {:.0} % of it",
            costs.len(),
            (COST.say)(mean),
            spread * 100.0
        ),
    }
}
