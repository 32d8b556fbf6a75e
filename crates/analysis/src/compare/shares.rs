//! The shares of a path that the two sides of a run have.

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{ContestQuestion, Study, StudyRun};
use landspeed_stats::jain;

use super::repeats;
use super::timeline::Timeline;

/// The goodput of the two sides of a run while all its flows ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideShares {
    /// The mean goodput of a flow of the first side: flows 1, 3, ...
    pub first_bps: BitRate,
    /// The mean goodput of a flow of the second side: flows 2, 4, ...
    pub second_bps: BitRate,
    pub all_bps: BitRate,
    /// Jain's index of all flows.
    pub fairness: Option<f64>,
}

impl SideShares {
    /// Returns the logarithm of the first side's goodput over the second's; `None` if nothing arrived. A starved side
    /// counts as a millionth of the other one.
    pub fn log_ratio(&self) -> Option<f64> {
        repeats::log_ratio(self.first_bps.0, self.second_bps.0)
    }
}

/// Returns the shares of a run whose contest has two sides: two protocols, or two round trips. `None` for other
/// contests, and where one side has no flow.
pub fn shares(study: &Study, run: &StudyRun) -> Option<SideShares> {
    let contest = study.contests.iter().find(|contest| contest.name == run.contest)?;
    let (start, end) = match contest.question {
        ContestQuestion::Meeting => {
            study.regions().into_iter().find(|r| r.flows == study.flows).map(|r| (r.start, r.end))?
        }
        ContestQuestion::RoundTrips { .. } => (Nanos(0), study.duration()),
        ContestQuestion::Regions | ContestQuestion::ShortFlows { .. } | ContestQuestion::Streams { .. } => {
            return None;
        }
    };
    let timeline = Timeline::of(study, run);
    let range = timeline.within(start, end);
    let here = timeline.lanes.iter().filter(|lane| lane.spans(start, end));
    let means: Vec<(bool, f64)> = here.map(|lane| (lane.flow % 2 == 0, lane.mean(range.clone()))).collect();
    let side = |first: bool| -> Option<f64> {
        let of: Vec<f64> = means.iter().filter(|mean| mean.0 == first).map(|mean| mean.1).collect();
        (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
    };
    let all: Vec<f64> = means.iter().map(|mean| mean.1).collect();
    (!range.is_empty()).then_some(SideShares {
        first_bps: BitRate(side(true)?),
        second_bps: BitRate(side(false)?),
        all_bps: BitRate(all.iter().sum()),
        fairness: jain(&all),
    })
}
