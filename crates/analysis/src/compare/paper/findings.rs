//! What the paper found, a row a finding, in its own order of importance.

use super::super::metrics::{COST, FAIRNESS, Metric, ROUND_TRIP, STABILITY, THROUGHPUT};
use super::super::run::RunFigures;
use super::scene::{Judged, Row, Scene};
use super::{orders, single};

/// How far an aggregate comes back as flows leave.
const RECOVERY: Metric = Metric {
    name: "aggregate while flows leave over that while they entered",
    more_is_better: true,
    of: RunFigures::recovery,
    say: |share| format!("{share:.2}"),
};

pub(super) const FINDINGS: [Row; 22] = [
    Row {
        place: "sections IV.A and V.A, Table 1",
        claim: "Scalable, BIC and H-TCP carry most",
        is_value: false,
        judge: |scene| orders::best(scene, &["scalable", "bic", "htcp"], &THROUGHPUT),
        reason: |_| todays_recovery(),
    },
    Row {
        place: "sections IV.A and V.A, Table 1",
        claim: "Reno, HSTCP-LP and HSTCP carry least",
        is_value: false,
        judge: |scene| orders::worst(scene, &["reno", "hstcp_lp", "highspeed"], &THROUGHPUT),
        reason: |_| todays_recovery(),
    },
    Row {
        place: "sections IV.A and V.A, Table 1",
        claim: "H-TCP and BIC are the steadiest",
        is_value: false,
        judge: |scene| orders::best(scene, &["htcp", "bic"], &STABILITY),
        reason: |scene| match single::is_steadier(scene, "scalable", &["htcp", "bic"]) {
            true => "the paper's own Table 1 has Scalable steadier than both".into(),
            false => alone_on_the_path(),
        },
    },
    Row {
        place: "sections IV.A and V.A, Table 1",
        claim: "Reno and HSTCP are the least steady",
        is_value: false,
        judge: |scene| orders::worst(scene, &["reno", "highspeed"], &STABILITY),
        reason: |_| todays_recovery(),
    },
    Row {
        place: "sections IV.A and V.A, Tables 1 and 2",
        claim: "H-TCP and BIC are the fairest",
        is_value: false,
        judge: |scene| orders::best(scene, &["htcp", "bic"], &FAIRNESS),
        reason: |_| alone_on_the_path(),
    },
    Row {
        place: "sections IV.A and V.A, Tables 1 and 2",
        claim: "Reno, FAST, HSTCP and HSTCP-LP are the least fair",
        is_value: false,
        judge: |scene| orders::worst(scene, &["reno", "fast", "highspeed", "hstcp_lp"], &FAIRNESS),
        reason: |scene| match single::is_less_fair(scene, "ltcp", &["highspeed"]) {
            true => "the paper's own Table 1 has LTCP at the bottom, and HSTCP in the middle".into(),
            false => alone_on_the_path(),
        },
    },
    Row {
        place: "section IV.A",
        claim: "Reno, HSTCP and HSTCP-LP have trouble to recover the aggregate as flows leave",
        is_value: false,
        judge: |scene| orders::worst(scene, &["reno", "highspeed", "hstcp_lp"], &RECOVERY),
        reason: single::reno_recovers_in,
    },
    Row {
        place: "sections IV.A and V.A, Table 1",
        claim: "FAST has the least effect on the round trip",
        is_value: false,
        judge: |scene| orders::best(scene, &["fast"], &ROUND_TRIP),
        reason: fasts_queue,
    },
    Row {
        place: "section IV.A, Figure 4 and Table 1",
        claim: "the round trip moves least under FAST, more under Reno, most under H-TCP",
        is_value: false,
        judge: single::rtt_order,
        reason: the_queue,
    },
    Row {
        place: "section IV.A, Figure 2",
        claim: "Reno's aggregate does not come back near its first value after the other flows have left",
        is_value: false,
        judge: single::reno_stays_down,
        reason: single::reno_recovers_in,
    },
    Row {
        place: "section IV.A, Figure 2",
        claim: "Reno lengthens the round trip by up to 25 % as its aggregate nears the maximum",
        is_value: true,
        judge: single::reno_raises_rtt,
        reason: the_queue,
    },
    Row {
        place: "section IV.A, Figure 2",
        claim: "about 60 s after the start Reno's rising round trip throttles it",
        is_value: true,
        judge: single::reno_throttled_at,
        reason: |_| {
            "slow start ends here in a full queue within seconds; the paper's hosts offered 16 MB of window, 818 Mb/s, and shared the path".into()
        },
    },
    Row {
        place: "section IV.A, Figure 3",
        claim: "round trips of 160 to 350 ms under more than two flows of H-TCP",
        is_value: true,
        judge: single::htcp_rtt,
        reason: the_queue,
    },
    Row {
        place: "section IV.A, Figure 3",
        claim: "H-TCP's aggregate drops when the next-to-last flow leaves",
        is_value: false,
        judge: single::htcp_dips,
        reason: |_| "the flow that stays takes up what is left within the samples that are compared".into(),
    },
    Row {
        place: "section IV.A, Figure 3",
        claim: "more than two flows of H-TCP carry more than two",
        is_value: false,
        judge: single::htcp_more_flows,
        reason: |_| "two flows fill this path, which carries no other traffic".into(),
    },
    Row {
        place: "section IV.A, Figure 3",
        claim: "two flows of H-TCP are steadier than more",
        is_value: false,
        judge: single::htcp_two_steadier,
        reason: |_| alone_on_the_path(),
    },
    Row {
        place: "section IV.A, Figure 4 and Table 1",
        claim: "FAST carries 335 to 400 Mb/s",
        is_value: true,
        judge: single::fast_aggregate,
        reason: |_| alone_on_the_path(),
    },
    Row {
        place: "section IV.A",
        claim: "what a bit costs the sender's processor is alike for all TCPs, within an eighth",
        is_value: false,
        judge: single::cost_alike,
        reason: |_| {
            "the processor does little for a byte today (segmentation offloads), so what a run costs beside bytes, timers and idle waking, shows".into()
        },
    },
    Row {
        place: "section IV.A, Table 1",
        claim: "HSTCP costs most processor time for a bit",
        is_value: false,
        judge: |scene| orders::worst(scene, &["highspeed"], &COST),
        reason: |_| {
            "the paper puts it down to HSTCP's low throughput: the cost follows the rate and not the algorithm".into()
        },
    },
    Row {
        place: "section IV.A",
        claim: "stability and fairness fall as the round trip grows",
        is_value: false,
        judge: |_| Judged::cannot("a study has one round trip: run it at 13.6, 80 and 164 ms and compare"),
        reason: |_| String::new(),
    },
    Row {
        place: "section IV.A",
        claim: "more parallel streams cost more processor time for a bit",
        is_value: false,
        judge: |_| {
            Judged::cannot(
                "the runs of a study have as many flows as its schedule; figures by streams are apart",
            )
        },
        reason: |_| String::new(),
    },
    Row {
        place: "section IV.A, Table 1",
        claim: "UDTv2 takes about twice the processor time of TCP for a bit",
        is_value: false,
        judge: |_| Judged::cannot("UDT is no TCP, and not in this study"),
        reason: |_| String::new(),
    },
];

/// Why protocols that lose often do better than in 2004.
fn todays_recovery() -> String {
    "a loss costs a sender of today one reduction (selective acknowledgements, RACK, proportional rate reduction), where one \
     of 2004 often fell back to a timeout, and the path carries no other traffic"
        .into()
}

/// Why flows share otherwise than on a production network.
fn alone_on_the_path() -> String {
    "the flows have the path to themselves and lose in the same queue at the same moments; the paper's carried the traffic of \
     others"
        .into()
}

/// Why round trips are others.
fn the_queue(scene: &Scene<'_>) -> String {
    let ours = scene.queue_share().map_or_else(
        || "the queue of this path is unknown".to_owned(),
        |share| format!("the queue of this path adds up to {:.0} % to a round trip", share * 100.0),
    );
    format!("{ours}; the paper does not tell what its routers held")
}

/// Why FAST fails to keep a queue short.
fn fasts_queue(scene: &Scene<'_>) -> String {
    let room = scene.queue_share().map(|share| format!(", which here holds {share:.2} of a round trip"));
    format!(
        "FAST keeps some packets of each flow in the queue{}: where there is little room for them, it loses as others do",
        room.unwrap_or_default()
    )
}
