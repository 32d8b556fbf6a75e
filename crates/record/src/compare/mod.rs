//! What `landspeed compare` writes down and says: the study as it was set, its runs as they were seen, and the figures
//! that follow.
//!
//! | file | is |
//! |---|---|
//! | `study` | what is to be run: path, schedule, who meets whom |
//! | `run` | one run as it was seen, by real hosts or by the simulator: raw samples |
//! | `report` | what `landspeed compare --json` prints: computed from the runs alone |

mod contestant;
mod report;
mod run;
mod study;

pub use contestant::Contestant;
pub use report::{
    COMPARE_FORMAT, CompareReport, ContestFigures, CpuByStreams, Interval, MeetingFigures, PaperFinding,
    PaperValue, Ranking, RegionFigures, RoundTripFigures, ShortFlowFigures,
};
pub use run::{ProbeSample, QueueSample, RunFlow, RunPath, RunSample, StudyRun};
pub use study::{Contest, Engine, FlowPlan, Question, Study, StudyPath};
