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

use landspeed_record::{ContestFigures, ExpectationKind, PaperFinding, PaperValue, Study, StudyRegion};

use super::contests::ContestRuns;
use judge::{ClaimTest, PaperClaim, PaperStudy, number_of};
use tables::{TABLE_1, TABLE_2};

/// The relative difference up to which a path counts as the paper's.
const SAME_PATH: f64 = 0.1;

/// A figure's name, its name in the papers' ledger, the conversion of the paper's value to our unit, and our value.
type TableColumn = (&'static str, &'static str, fn(f64) -> f64, fn(&ContestFigures) -> Option<f64>);
/// The name of the processor's utilisation in the papers' ledger. The paper has that of one flow, on a processor of 2004, so
/// other protocols are compared by its ratio to Reno's.
const CPU: &str = "cpu";
const CPU_OF_A_FLOW: &str = "cpu_of_a_flow";
const CPU_OVER_RENO: &str = "cpu_over_reno";
const RENO: &str = "reno";
/// The names of figures of both tables in the papers' ledger.
const STABILITY: &str = "stability";
const FAIRNESS: &str = "fairness";
/// The columns of Table 1, with the paper's values in our units.
const COLUMNS: [TableColumn; 7] = [
    ("mean_bps", "avg", |mbps| mbps * 1e6, |ours| Some(ours.mean_bps.0)),
    ("sd_bps", "std", |mbps| mbps * 1e6, |ours| Some(ours.sd_bps.0)),
    ("stability", STABILITY, |s| s, |ours| ours.stability),
    ("fairness_min", FAIRNESS, |f| f, |ours| ours.fairness_min),
    ("fairness_max", FAIRNESS, |f| f, |ours| ours.fairness_max),
    ("cycles_per_bit", "mhz_per_mbps", |mhz_per_mbps| mhz_per_mbps, |ours| ours.cycles_per_bit),
    ("rtt_sd_s", "std_rtt", |ms| ms / 1e3, |ours| ours.rtt_sd_s),
];

/// Returns the reason why the figures of `study` are not comparable with the paper's values; `None` if they are. They
/// are comparable if the study has full size and a path of 1 Gb/s and 164 ms, each within a tenth. A scene is the
/// paper's path as far as the paper describes it.
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
    let same = study.scene.is_some()
        || near(path.rate_bps.0, theirs.rate_bps.0)
            && near(path.rtt_ns.as_secs_f64(), theirs.rtt_ns.as_secs_f64());
    (!same).then(|| format!("the path is not the paper's (1 Gb/s, 164 ms): {}", path.description()))
}

/// Returns every value that the paper's two tables print for our protocols, with ours; empty if the study is not
/// comparable.
pub(super) fn values(study: &Study, protocols: &[ContestFigures]) -> Vec<PaperValue> {
    if why_not_beside(study).is_some() {
        return Vec::new();
    }
    let reno = protocols.iter().find(|protocol| protocol.protocol == RENO);
    let counted = protocols.iter().filter(|protocol| protocol.runs > 0);
    counted.flat_map(|ours| beside(study, ours, reno)).collect()
}

/// Returns the name of a protocol's utilisation of the processor, and its value; `None` if it cannot be compared with the
/// paper's. `reno` has the study's figures of Reno.
fn cpu(
    study: &Study,
    ours: &ContestFigures,
    reno: Option<&ContestFigures>,
) -> Option<(&'static str, Option<f64>)> {
    if ours.protocol == RENO {
        return Some((CPU_OF_A_FLOW, ours.cpu.map(|cpu| cpu / mean_flows(study))));
    }
    let both = ours.cpu.zip(reno?.cpu).filter(|(_, renos)| *renos > 0.0);
    Some((CPU_OVER_RENO, both.map(|(own, renos)| own / renos)))
}

/// Returns the mean number of flows over a run whose flows come and go.
fn mean_flows(study: &Study) -> f64 {
    let regions = study.regions();
    let seconds = |region: &StudyRegion| (region.end - region.start).as_secs_f64();
    let flows: f64 = regions.iter().map(|region| f64::from(region.flows) * seconds(region)).sum();
    flows / regions.iter().map(seconds).sum::<f64>()
}

/// Returns the values of one protocol. `reno` has the study's figures of Reno.
fn beside(study: &Study, ours: &ContestFigures, reno: Option<&ContestFigures>) -> Vec<PaperValue> {
    let mut rows = TABLE_1.iter().zip(&TABLE_2);
    let Some(((_, stack, printed), by_region)) = rows.find(|((name, ..), _)| *name == ours.protocol) else {
        return Vec::new();
    };
    let overall = COLUMNS.iter().zip(printed).map(|((name, claim, paper, own), value)| {
        (table_claim(1, stack, claim), (*name).to_owned(), paper(*value), own(ours))
    });
    let cpu = cpu(study, ours, reno).map(|(name, own)| {
        let [theirs, renos] = [printed, &TABLE_1[0].2].map(|row| row[COLUMNS.len()]);
        let theirs = if name == CPU_OF_A_FLOW { theirs } else { theirs / renos };
        (table_claim(1, stack, CPU), name.to_owned(), theirs, own)
    });
    let [stability, fairness] = by_region;
    let regions = (1..).zip(stability.iter().zip(fairness)).flat_map(|(number, (s, f))| {
        let own = ours.fairness.iter().find(|region| region.region == number);
        let (stable, fair) =
            (own.and_then(|region| region.stability), own.and_then(|region| region.fairness));
        [
            (table_claim(2, stack, STABILITY), format!("stability_{number}"), *s, stable),
            (table_claim(2, stack, FAIRNESS), format!("fairness_{number}"), *f, fair),
        ]
    });
    let value = |(claim, figure, paper, own): (String, String, f64, Option<f64>)| {
        Some(PaperValue { protocol: ours.protocol.clone(), figure, claim, paper, ours: own? })
    };
    overall.chain(cpu).chain(regions).filter_map(value).collect()
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

/// The claims of the papers' ledger that studies over several paths are about together: stability and fairness by round
/// trip.
pub const ROUND_TRIP_CLAIMS: [&str; 2] = ["cottrell.avg.S", "cottrell.avg.F"];

/// A claim of the papers' ledger that a study of flows that come and go is about.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyClaim {
    /// The name in the ledger, such as "cottrell.t1.reno.avg".
    pub claim: String,
    /// What the study compares with the paper; `None` if it cannot judge the claim.
    pub kind: Option<ExpectationKind>,
    /// True if only a study of the paper's size and path does so.
    pub needs_papers_size: bool,
}

/// Returns the claims that a study of all the paper's protocols is about: those of the findings, and those of the paper's
/// two tables. A claim may come twice.
pub fn study_claims() -> Vec<StudyClaim> {
    let of_tables = TABLE_1.iter().flat_map(|(protocol, stack, _)| of_stack(protocol, stack));
    findings::FINDINGS.iter().flat_map(of_finding).chain(of_tables).collect()
}

fn of_finding(row: &PaperClaim) -> Vec<StudyClaim> {
    let kind = row.test.kind();
    let needs_papers_size = matches!(row.test, ClaimTest::Value(..));
    let claim = |claim: &&str| StudyClaim { claim: (*claim).to_owned(), kind, needs_papers_size };
    row.claims.iter().map(claim).collect()
}

/// Returns the claims of the two rows that the paper's tables have for a protocol. `stack` is its name in the ledger.
fn of_stack(protocol: &str, stack: &str) -> Vec<StudyClaim> {
    let kind = number_of(protocol);
    let columns = COLUMNS.iter().map(|(_, figure, ..)| *figure);
    let overall = columns.chain([CPU]).map(|figure| table_claim(1, stack, figure));
    let by_region = [STABILITY, FAIRNESS].map(|figure| table_claim(2, stack, figure));
    let claim = |claim| StudyClaim { claim, kind: Some(kind), needs_papers_size: true };
    overall.chain(by_region).map(claim).collect()
}

/// Returns the ledger's name of a figure in one of the paper's tables.
fn table_claim(table: u8, stack: &str, figure: &str) -> String {
    format!("cottrell.t{table}.{stack}.{figure}")
}
