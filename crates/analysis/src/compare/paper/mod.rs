//! Cottrell et al., "Characterization and Evaluation of TCP and UDP-based Transport on Real Networks" (2005): the
//! paper's own values and findings beside ours.
//!
//! | file | is |
//! |---|---|
//! | `tables` | Tables 1 and 2 as printed, SLAC to CERN |
//! | `findings` | the findings of the paper, one a row |
//! | `judge` | how a row is judged |

mod findings;
mod judge;
mod tables;

use landspeed_record::{ContestFigures, PaperFinding, PaperValue, Study};

use super::contests::ContestRuns;
use judge::PaperStudy;
use tables::{TABLE_1, TABLE_2};

/// The relative difference up to which a path counts as the paper's.
const SAME_PATH: f64 = 0.1;

/// A figure's name, the conversion of the paper's value to our unit, and our value.
type TableColumn = (&'static str, fn(f64) -> f64, fn(&ContestFigures) -> Option<f64>);
/// The columns of Table 1, with the paper's values in our units.
const COLUMNS: [TableColumn; 7] = [
    ("mean_bps", |mbps| mbps * 1e6, |ours| Some(ours.mean_bps.0)),
    ("sd_bps", |mbps| mbps * 1e6, |ours| Some(ours.sd_bps.0)),
    ("stability", |s| s, |ours| ours.stability),
    ("fairness_min", |f| f, |ours| ours.fairness_min),
    ("fairness_max", |f| f, |ours| ours.fairness_max),
    ("cycles_per_bit", |mhz_per_mbps| mhz_per_mbps, |ours| ours.cycles_per_bit),
    ("rtt_sd_s", |ms| ms / 1e3, |ours| ours.rtt_sd_s),
];

/// Returns the reason why the figures of `study` are not comparable with the paper's values; `None` if they are. They
/// are comparable if the study has full size and a path of 1 Gb/s and 164 ms, each within a tenth.
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
    (!same).then(|| format!("the path is not the paper's (1 Gb/s, 164 ms): {}", path.told()))
}

/// Returns every value that the paper's two tables print for our protocols, with ours; empty if the study is not
/// comparable. The processor's utilisation is left out, because the paper's is that of one flow on a processor of
/// 2004.
pub(super) fn values(study: &Study, protocols: &[ContestFigures]) -> Vec<PaperValue> {
    if why_not_beside(study).is_some() {
        return Vec::new();
    }
    protocols.iter().filter(|protocol| protocol.runs > 0).flat_map(beside).collect()
}

fn beside(ours: &ContestFigures) -> Vec<PaperValue> {
    let mut rows = TABLE_1.iter().zip(&TABLE_2);
    let Some(((_, overall), by_region)) = rows.find(|((name, _), _)| *name == ours.protocol) else {
        return Vec::new();
    };
    let overall = COLUMNS.iter().zip(overall);
    let overall = overall.map(|((name, paper, own), value)| ((*name).to_owned(), paper(*value), own(ours)));
    let [stability, fairness] = by_region;
    let regions = (1..).zip(stability.iter().zip(fairness)).flat_map(|(number, (s, f))| {
        let own = ours.fairness.iter().find(|region| region.region == number);
        [
            (format!("stability_{number}"), *s, own.and_then(|region| region.stability)),
            (format!("fairness_{number}"), *f, own.and_then(|region| region.fairness)),
        ]
    });
    let value = |(figure, paper, own): (String, f64, Option<f64>)| {
        Some(PaperValue { protocol: ours.protocol.clone(), figure, paper, ours: own? })
    };
    overall.chain(regions).filter_map(value).collect()
}

/// Returns the paper's findings, each with its judgement by this study. All findings are about flows that come and
/// go, so there are none if the study has only other contests.
pub(super) fn findings(study: &Study, regions: &[&ContestRuns<'_>]) -> Vec<PaperFinding> {
    if regions.is_empty() {
        return Vec::new();
    }
    let scene = PaperStudy { study, entries: regions, is_papers: why_not_beside(study).is_none() };
    findings::FINDINGS.iter().map(|row| row.judged(&scene)).collect()
}
