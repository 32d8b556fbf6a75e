//! The data of `landspeed compare`: the plan of a study, the raw data of its runs, and the figures of its report.
//!
//! | file | is |
//! |---|---|
//! | `study` | the plan: path, schedule, contestants |
//! | `run` | the raw samples of one run, on real hosts or in the simulator |
//! | `report` | what `landspeed compare --json` prints: computed from the runs alone |

mod contestant;
mod report;
mod run;
mod study;

pub use contestant::Contestant;
pub use report::{
    COMPARE_FORMAT, CompareReport, ContestFigures, MeanInterval, MeetingFigures, PaperFinding, PaperValue,
    ParallelStreamFigures, Ranking, RegionFigures, RoundTripFigures, ShortFlowFigures,
};
pub use run::{ProbeSample, QueueSample, RunFlow, RunPath, RunSample, StudyRun, StudyRunKey};
pub use study::{
    Contest, ContestQuestion, CrossTraffic, FlowPlan, LineLoss, SenderPart, Study, StudyEngine, StudyPath,
    StudyRegion,
};
