//! Cottrell et al., "Characterization and Evaluation of TCP and UDP-based Transport on Real Networks" (2005): its own
//! values and findings beside ours.
//!
//! | file | is |
//! |---|---|
//! | `tables` | Tables 1 and 2 as printed, SLAC to CERN |
//! | `scene` | what findings are judged from |
//! | `orders` | findings that order protocols |
//! | `single` | findings about one protocol |
//! | `findings` | all of them, a row each |

mod findings;
mod orders;
mod scene;
mod single;
mod tables;

use landspeed_record::{ContestFigures, PaperFinding, PaperValue, Study};

use super::book::Entry;
use scene::Scene;
use tables::{TABLE_1, TABLE_2};

/// How far a path may be from the paper's and still be called the same.
const SAME_PATH: f64 = 0.1;

/// Why the figures of `study` may not stand beside the paper's values; `None` where they may: at full size, over a path of
/// 1 Gb/s and 164 ms, each within a tenth.
pub(super) fn why_not_beside(study: &Study) -> Option<String> {
    let paper = Study::paper();
    let near = |ours: f64, theirs: f64| (ours - theirs).abs() <= SAME_PATH * theirs;
    let (path, theirs) = (&study.path, &paper.path);
    if (study.scale - 1.0).abs() > 1e-9 || study.region_ns != paper.region_ns || study.flows != paper.flows {
        return Some(format!(
            "the study is not at full size (4 flows, regions of 120 s): {} flows, regions of {}",
            study.flows, study.region_ns
        ));
    }
    let same = near(path.rate_bps.0, theirs.rate_bps.0)
        && near(path.rtt_ns.as_secs_f64(), theirs.rtt_ns.as_secs_f64());
    (!same)
        .then(|| format!("the path is not the paper's (1 Gb/s, 164 ms): {}, {}", path.rate_bps, path.rtt_ns))
}

/// Every value that the paper's two tables print of our protocols, with ours; nothing where they may not stand side by side.
/// The processor's utilisation is left out: the paper's is that of one flow on a processor of 2004.
pub(super) fn values(study: &Study, protocols: &[ContestFigures]) -> Vec<PaperValue> {
    if why_not_beside(study).is_some() {
        return Vec::new();
    }
    let counted = protocols.iter().filter(|protocol| protocol.runs > 0);
    counted.flat_map(|ours| overall(ours).into_iter().chain(by_region(ours))).collect()
}

fn beside(
    ours: &ContestFigures,
    figure: impl Into<String>,
    paper: f64,
    value: Option<f64>,
) -> Option<PaperValue> {
    let (protocol, figure) = (ours.protocol.clone(), figure.into());
    Some(PaperValue { protocol, figure, paper, ours: value? })
}

/// A row of Table 1.
fn overall(ours: &ContestFigures) -> Vec<PaperValue> {
    let Some(paper) = TABLE_1.iter().find(|row| row.protocol == ours.protocol) else { return Vec::new() };
    [
        ("mean_bps", paper.mean_mbps * 1e6, Some(ours.mean_bps.0)),
        ("sd_bps", paper.sd_mbps * 1e6, Some(ours.sd_bps.0)),
        ("stability", paper.stability, ours.stability),
        ("fairness_min", paper.fairness_min, ours.fairness_min),
        ("fairness_max", paper.fairness_max, ours.fairness_max),
        ("cycles_per_bit", paper.mhz_per_mbps, ours.cycles_per_bit),
        ("rtt_sd_s", paper.rtt_sd_ms / 1e3, ours.rtt_sd_s),
    ]
    .into_iter()
    .filter_map(|(figure, paper, value)| beside(ours, figure, paper, value))
    .collect()
}

/// Two rows of Table 2.
fn by_region(ours: &ContestFigures) -> Vec<PaperValue> {
    let Some(paper) = TABLE_2.iter().find(|row| row.protocol == ours.protocol) else { return Vec::new() };
    let of = |number: usize| ours.fairness.iter().find(|region| usize::from(region.region) == number);
    (1..=paper.stability.len())
        .flat_map(|number| {
            let region = of(number);
            [
                ("stability", paper.stability[number - 1], region.and_then(|r| r.stability)),
                ("fairness", paper.fairness[number - 1], region.and_then(|r| r.fairness)),
            ]
            .into_iter()
            .filter_map(move |(figure, paper, value)| {
                beside(ours, format!("{figure}_{number}"), paper, value)
            })
        })
        .collect()
}

/// Every finding of the paper that a study like this could bear out, and whether it does.
pub(super) fn findings(study: &Study, regions: &[&Entry<'_>]) -> Vec<PaperFinding> {
    let scene = Scene { study, entries: regions, is_papers: why_not_beside(study).is_none() };
    findings::FINDINGS.iter().map(|row| row.judged(&scene)).collect()
}
