//! The findings of the paper, one per row, in the paper's order of importance.

use landspeed_record::RegionFigures;
use landspeed_record::units::{BitRate, Nanos};

use super::super::metrics::{COST, FAIRNESS, ProtocolMetric, ROUND_TRIP, STABILITY, THROUGHPUT};
use super::super::repeats::mean;
use super::super::run::RunFigures;
use super::judge::ClaimTest::{Above, Ascending, Below, Best, Cannot, CostAlike, Ratio, Value, Worst};
use super::judge::{ClaimTest, PaperClaim, PaperStudy, PeerProtocols, ProtocolFigure};
use super::tables::UDT;

const TEXT: &str = "section IV.A";
const TABLE: &str = "section IV.A, Table 1";
const BOTH_TEXTS: &str = "sections IV.A and V.A, Table 1";
const BOTH_TABLES: &str = "sections IV.A and V.A, Tables 1 and 2";
const FIGURE_2: &str = "section IV.A, Figure 2";
const FIGURE_3: &str = "section IV.A, Figure 3";
const FIGURE_4: &str = "section IV.A, Figure 4 and Table 1";
const FIGURE_5: &str = "section IV.A, Figure 5 and Table 1";

/// The figure that compares the aggregate goodput while flows leave with that while they entered.
const RECOVERY: ProtocolMetric = ProtocolMetric {
    name: "aggregate while flows leave over that while they entered",
    more_is_better: true,
    of: RunFigures::recovery,
    say: |share| format!("{share:.2}"),
};
const DEVIATION: ProtocolMetric = ProtocolMetric { name: "deviation of the round trip", ..ROUND_TRIP };
/// The share of its former rate from which an aggregate goodput counts as recovered.
const RETURNED: f64 = 0.9;
/// The share of its former rate below which an aggregate goodput counts as dropped.
const DROPPED: f64 = 0.8;
/// The TCPs that the paper means where it calls UDT's stability and fairness "comparable to the better" ones.
const BETTER: PeerProtocols = PeerProtocols::These(&["htcp", "bic"]);
/// The range of ratios that count as "about as". The paper's own ratios are 1.16 (throughput, all TCPs), 1.25
/// (stability), 0.96 (least fairness) and 0.86 (deviation of the round trip).
const WITHIN_A_THIRD: (f64, f64) = (0.75, 4.0 / 3.0);
const WITHIN_A_HALF: (f64, f64) = (2.0 / 3.0, 1.5);
const WITHIN_A_TENTH: (f64, f64) = (0.9, 1.0 / 0.9);
/// The deviation of the paper's processor costs divided by their mean.
const PAPERS_SPREAD: f64 = 0.08 / 0.69;

#[rustfmt::skip]
pub(super) const FINDINGS: [PaperClaim; 27] = [
    claim_of(BOTH_TEXTS, "Scalable, BIC and H-TCP carry most",
        Best(&["scalable", "bic", "htcp"], &THROUGHPUT), recovery)
        .about(&["cottrell.rank.throughput_best"]),
    claim_of(BOTH_TEXTS, "Reno, HSTCP-LP and HSTCP carry least",
        Worst(&["reno", "hstcp_lp", "highspeed"], &THROUGHPUT), recovery)
        .about(&["cottrell.rank.throughput_worst"]),
    claim_of(BOTH_TEXTS, "H-TCP and BIC are the steadiest", Best(&["htcp", "bic"], &STABILITY),
        |scene| unless_below(scene, "scalable", &["htcp", "bic"], &STABILITY,
            "the paper's own Table 1 has Scalable steadier than both"))
        .about(&["cottrell.rank.stable_best"]),
    claim_of(BOTH_TEXTS, "Reno and HSTCP are the least steady", Worst(&["reno", "highspeed"], &STABILITY), recovery)
        .about(&["cottrell.rank.stable_worst"]),
    claim_of(BOTH_TABLES, "H-TCP and BIC are the fairest", Best(&["htcp", "bic"], &FAIRNESS), alone)
        .about(&["cottrell.rank.fair_best"]),
    claim_of(BOTH_TABLES, "Reno, FAST, HSTCP and HSTCP-LP are the least fair",
        Worst(&["reno", "fast", "highspeed", "hstcp_lp"], &FAIRNESS),
        |scene| unless_below(scene, "ltcp", &["highspeed"], &FAIRNESS,
            "the paper's own Table 1 has LTCP at the bottom, and HSTCP in the middle"))
        .about(&["cottrell.rank.fair_worst"]),
    claim_of(TEXT, "Reno, HSTCP and HSTCP-LP have trouble to recover the aggregate as flows leave",
        Worst(&["reno", "highspeed", "hstcp_lp"], &RECOVERY), reno_recovers_in)
        .about(&["cottrell.rank.recover"]),
    claim_of(BOTH_TEXTS, "FAST has the least effect on the round trip", Best(&["fast"], &ROUND_TRIP), fasts_queue)
        .about(&["cottrell.rank.rtt"]),
    claim_of(FIGURE_4, "the round trip moves least under FAST, more under Reno, most under H-TCP",
        Ascending(&["fast", "reno", "htcp"], &DEVIATION), queue)
        .about(&["cottrell.rtt_std"]),
    claim_of(FIGURE_2, "Reno's aggregate does not come back near its first value after the other flows have left",
        Below(ProtocolFigure { protocol: "reno", of: first_and_last, say: |[share, _]|
            format!("Reno alone in the last region has {:.2} of what it had in the first", share.mean)
        }, RETURNED), reno_recovers_in)
        .about(&["cottrell.reno.recover"]),
    claim_of(FIGURE_2, "Reno lengthens the round trip by up to 25 % as its aggregate nears the maximum",
        Value(ProtocolFigure { protocol: "reno", of: |run, idle| alike(run.rtt_of_many_s?[2] / idle - 1.0), say: |[rise, _]|
            format!("with three and four flows one round trip in twenty is {:.0} % longer or more", rise.mean * 100.0)
        }, (0.125, 0.5)), queue)
        .about(&["cottrell.reno.rtt_rise"]),
    claim_of(FIGURE_2, "about 60 s after the start Reno's rising round trip throttles it",
        Value(ProtocolFigure { protocol: "reno", of: |run, _| alike(run.first_resent_s?), say: |[at, _]|
            format!("Reno's first loss is {:.0} s after the start", at.mean)
        }, (30.0, 120.0)),
        |_| "slow start ends here in a full queue within seconds; the paper's hosts offered 16 MB of window, 818 Mb/s, \
             and shared the path".into())
        .about(&["cottrell.reno.throttle_time"]),
    claim_of(FIGURE_3, "round trips of 160 to 350 ms under more than two flows of H-TCP",
        Value(ProtocolFigure { protocol: "htcp", of: |run, _| run.rtt_of_many_s.map(|[low, _, high]| [high * 1e3, low * 1e3]),
            say: |[high, low]|
            format!("with more than two flows 90 % of round trips are from {:.0} to {:.0} ms", low.mean, high.mean)
        }, (280.0, 420.0)), queue)
        .about(&["cottrell.htcp.rtt"]),
    claim_of(FIGURE_3, "H-TCP's aggregate drops when the next-to-last flow leaves",
        Below(ProtocolFigure { protocol: "htcp", of: |run, _| alike(run.last_leaving?), say: |[share, _]|
            format!("the five samples after it left carry {:.2} of the ten before", share.mean)
        }, DROPPED),
        |_| "the flow that stays takes up what is left within the samples that are compared".into())
        .about(&["cottrell.htcp.dip"]),
    claim_of(FIGURE_3, "more than two flows of H-TCP carry more than two",
        Above(ProtocolFigure { protocol: "htcp", of: |run, _| {
            let [two, more] = two_and_more(run, |region| Some(region.mean_bps.0))?;
            alike(more - two)
        }, say: |[gain, _]| format!("regions with three and four flows carry {} {} than those with two",
            BitRate(gain.mean.abs()), if gain.mean < 0.0 { "less" } else { "more" })
        }, 0.0),
        |scene| format!("two flows fill this path{}", and_alone(scene, ", which")))
        .about(&["cottrell.htcp.flows"]),
    claim_of(FIGURE_3, "two flows of H-TCP are steadier than more",
        Above(ProtocolFigure { protocol: "htcp", of: |run, _| {
            let [two, more] = two_and_more(run, |region| region.stability)?;
            Some([more - two, two])
        }, say: |[gain, two]|
            format!("S is {:.2} with two flows and {:.2} with more", two.mean, two.mean + gain.mean)
        }, 0.0), alone)
        .about(&["cottrell.htcp.flows"]),
    claim_of(FIGURE_4, "FAST carries 335 to 400 Mb/s",
        Value(ProtocolFigure { protocol: "fast", of: |run, _| alike(run.mean_bps.0), say: |[rate, _]|
            format!("FAST carries {}", THROUGHPUT.say_interval(&rate))
        }, (335e6 * 0.8, 400e6 * 1.2)), alone)
        .about(&["cottrell.fast.aggregate", "cottrell.t1.fasttcp.avg"]),
    claim_of(TEXT, "what a bit costs the sender's processor is alike for all TCPs, within an eighth",
        CostAlike(PAPERS_SPREAD),
        |_| "the processor does little for a byte today (segmentation offloads), so what a run costs beside bytes, timers \
             and idle waking, shows".into())
        .about(&["cottrell.mhz.mean"]),
    claim_of(TABLE, "HSTCP costs most processor time for a bit", Worst(&["highspeed"], &COST),
        |_| "the paper puts it down to HSTCP's low throughput: the cost follows the rate and not the algorithm".into())
        .about(&["cottrell.mhz.hstcp"]),
    claim_of(TEXT, "stability and fairness fall as the round trip grows",
        Cannot("a study has one round trip: run it at 13.6, 80 and 164 ms and compare"), never)
        .about(&["cottrell.avg.S", "cottrell.avg.F"]),
    claim_of(TEXT, "more parallel streams cost more processor time for a bit",
        Cannot("the runs of a study have as many flows as its schedule; figures by streams are apart"), never)
        .about(&["cottrell.mhz.streams"]),
    claim_of(FIGURE_5, "UDTv2 carries about 390 Mb/s",
        Value(ProtocolFigure { protocol: UDT, of: |run, _| alike(run.mean_bps.0), say: |[rate, _]|
            format!("UDT carries {}", THROUGHPUT.say_interval(&rate))
        }, (390e6 * 0.8, 390e6 * 1.2)), alone)
        .about(&["cottrell.udt.aggregate", "cottrell.t1.udtv2.avg"]),
    claim_of(TABLE, "UDTv2 carries about as much as the TCPs", Ratio(UDT, PeerProtocols::Tcps, &THROUGHPUT, WITHIN_A_THIRD),
        another_version)
        .about(&["cottrell.t1.udtv2.avg"]),
    claim_of(FIGURE_5, "UDTv2 is about as steady as the better TCPs", Ratio(UDT, BETTER, &STABILITY, WITHIN_A_HALF),
        another_version)
        .about(&["cottrell.t1.udtv2.stability"]),
    claim_of(FIGURE_5, "UDTv2 is about as fair as the better TCPs", Ratio(UDT, BETTER, &FAIRNESS, WITHIN_A_TENTH), alone)
        .about(&["cottrell.t1.udtv2.fairness"]),
    claim_of(FIGURE_5, "the round trip moves under UDTv2 about as under H-TCP",
        Ratio(UDT, PeerProtocols::These(&["htcp"]), &DEVIATION, WITHIN_A_HALF), another_version)
        .about(&["cottrell.t1.udtv2.std_rtt"]),
    claim_of(TABLE, "UDTv2 takes about twice the processor time of TCP for a bit",
        Ratio(UDT, PeerProtocols::Tcps, &COST, (1.5, 2.5)),
        |_| "both have changed: this UDT hands over runs of packets in one call, and the kernel cuts TCP's bytes into packets below it".into())
        .about(&["cottrell.udt.cpu_factor"]),
];

const fn claim_of(
    place: &'static str,
    claim: &'static str,
    test: ClaimTest,
    reason: fn(&PaperStudy<'_>) -> String,
) -> PaperClaim {
    PaperClaim { place, claim, test, claims: &[], reason }
}

impl PaperClaim {
    /// Names the claims of the papers' ledger that the finding is about.
    const fn about(self, claims: &'static [&'static str]) -> PaperClaim {
        PaperClaim { claims, ..self }
    }
}

/// Returns a single figure as a pair of equal values.
fn alike(figure: f64) -> Option<[f64; 2]> {
    Some([figure; 2])
}

fn first_and_last(run: &RunFigures, _: f64) -> Option<[f64; 2]> {
    let last = run.regions.iter().map(|region| region.region).max()?;
    let (first, last) = (run.region(1)?.mean_bps.0, run.region(last)?.mean_bps.0);
    alike(last / first).filter(|_| first > 0.0)
}

/// Returns the means of a figure over the regions with two flows and over those with more.
fn two_and_more(run: &RunFigures, of: fn(&RegionFigures) -> Option<f64>) -> Option<[f64; 2]> {
    let over =
        |flows: fn(u16) -> bool| mean(run.regions.iter().filter(|region| flows(region.flows)).filter_map(of));
    Some([over(|flows| flows == 2)?, over(|flows| flows > 2)?])
}

fn never(_: &PaperStudy<'_>) -> String {
    String::new()
}

/// Explains why protocols that lose often do better than in 2004.
fn recovery(scene: &PaperStudy<'_>) -> String {
    let why = "a loss costs a sender of today one reduction (selective acknowledgements, RACK, proportional rate reduction), \
               where one of 2004 often fell back to a timeout";
    format!("{why}{}", and_alone(scene, ", and the path"))
}

/// Returns true if the path carries nothing but the study's flows.
fn is_alone(scene: &PaperStudy<'_>) -> bool {
    scene.study.path.cross.is_none() && scene.study.scene.is_none()
}

/// Returns `begin` and the words that the path carries no other traffic; empty where it carries some.
fn and_alone(scene: &PaperStudy<'_>, begin: &str) -> String {
    if is_alone(scene) { format!("{begin} carries no other traffic") } else { String::new() }
}

/// Explains why today's UDT behaves differently.
fn another_version(scene: &PaperStudy<'_>) -> String {
    let why = "this is UDT's version 4, whose rate control differs from version 2's";
    format!("{why}{}", and_alone(scene, ", and the path"))
}

/// Explains why the flows divide the path's rate differently than in the paper, whose path also carried other traffic.
fn alone(scene: &PaperStudy<'_>) -> String {
    match is_alone(scene) {
        true => "the flows have the path to themselves and lose in the same queue at the same moments; the paper's carried the \
                 traffic of others",
        false => "the flows lose in the same queue at the same moments; the traffic of others is not that of the paper's path",
    }
    .into()
}

/// Returns `own_table`, which describes a result of the paper that contradicts its finding, if this study has that
/// result too: the mean of `protocol` is below the means of all `others`. Otherwise returns the explanation of `alone`.
fn unless_below(
    scene: &PaperStudy<'_>,
    protocol: &str,
    others: &[&str],
    metric: &ProtocolMetric,
    own_table: &str,
) -> String {
    let of = |name: &str| scene.mean(name, metric);
    let below = |own: f64| others.iter().all(|other| of(other).is_some_and(|other| own < other));
    if of(protocol).is_some_and(below) { own_table.into() } else { alone(scene) }
}

/// Explains the difference by the time that Reno needs to regain a halved window: half a window at one segment per
/// round trip.
fn reno_recovers_in(scene: &PaperStudy<'_>) -> String {
    let path = &scene.study.path;
    let segments = path.bdp().0 / u64::from(path.mtu_bytes.max(1));
    let takes = Nanos((segments / 2).saturating_mul(path.rtt_ns.0));
    let region = scene.study.region_ns;
    format!("Reno regains a halved window on this path in {takes}, and a region is {region} long")
}

/// Explains why round trips differ.
fn queue(scene: &PaperStudy<'_>) -> String {
    let ours = scene.queue_share().map_or_else(
        || "the queue of this path is unknown".to_owned(),
        |share| format!("the queue of this path adds up to {:.0} % to a round trip", share * 100.0),
    );
    format!("{ours}; the paper does not tell what its routers held")
}

/// Explains why FAST fails to keep a queue short.
fn fasts_queue(scene: &PaperStudy<'_>) -> String {
    let room = scene.queue_share().map(|share| format!(", which here holds {share:.2} of a round trip"));
    let room = room.unwrap_or_default();
    format!(
        "FAST keeps some packets of each flow in the queue{room}: where there is little room for them, it loses as others do"
    )
}
