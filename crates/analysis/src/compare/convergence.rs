//! The time in which a flow that enters a path in use reaches its fair share (RFC 5166 section 2.3).

use std::ops::Range;

use landspeed_record::{Study, StudyRegion};

use super::timeline::{FlowRates, Timeline};

/// The number of samples in a mean goodput, as in the paper's figures (cottrell-2005 section IV.A).
const SMOOTHED: usize = 5;
/// The number of successive means that must be near the fair share, so that a flow that only passes it on the way up
/// does not count.
const STAYS: usize = 5;
/// The least length of a sample in round trips; shorter ones are merged. A flow that resends a segment delivers
/// nothing in order for one round trip, and then everything in one burst.
const ROUND_TRIPS: u64 = 2;
/// The largest distance from the fair share that counts as near, as a share of the fair share.
const NEAR: f64 = 0.2;
/// The largest number of slots that are merged: a study that needs more has samples far shorter than its round trip.
const MOST_TOGETHER: usize = 100;

/// For each flow that enters while others run, returns the seconds from its entry until it reaches its fair share. The
/// flow's goodput is averaged over five samples of at least two round trips each. A mean is near the fair share if it
/// is within 20 % of the aggregate of the same samples divided by the number of flows. The flow reaches its share at
/// the end of the first of five successive means that are near. `None` if it does not reach it within the region that
/// begins with its entry.
pub(super) fn times(study: &Study, timeline: &Timeline) -> Vec<Option<f64>> {
    let regions = study.regions();
    let sums: Vec<RateSums> = timeline.lanes.iter().map(RateSums::of).collect();
    let lanes = timeline.lanes.iter().zip(&sums);
    lanes
        .clone()
        .filter_map(|(lane, own)| {
            let region = regions.iter().find(|region| region.start == lane.plan.enters_ns)?;
            let here = lanes.clone().filter(|(other, _)| other.spans(region.start, region.end));
            let in_use = here.clone().any(|(other, _)| other.plan.enters_ns < region.start);
            let all: Vec<&RateSums> = here.map(|(_, sums)| sums).collect();
            in_use.then(|| time(study, timeline, own, &all, region))
        })
        .collect()
}

fn time(
    study: &Study,
    timeline: &Timeline,
    own: &RateSums,
    all: &[&RateSums],
    region: &StudyRegion,
) -> Option<f64> {
    let per = together(study);
    let window = SMOOTHED * per;
    let range = timeline.within(region.start, region.end);
    let is_near = |slot: usize| slot + window <= range.end && is_near(own, all, slot..slot + window);
    let near: Vec<bool> = range.clone().map(is_near).collect();
    let stays = |first: usize| (0..STAYS).all(|n| near.get(first + n * per).is_some_and(|near| *near));
    let first = (0..near.len()).find(|first| stays(*first))?;
    let at = timeline.slots[range.start + first + window - 1].end_ns;
    Some((at - region.start).as_secs_f64())
}

/// The cumulative sums of a flow's rates, so that a mean over many slots takes no longer to compute than a mean over
/// few.
struct RateSums(Vec<f64>);

impl RateSums {
    fn of(lane: &FlowRates) -> Self {
        let mut sum = 0.0;
        let sums = lane.rates.iter().map(|rate| {
            sum += rate.0;
            sum
        });
        RateSums(std::iter::once(0.0).chain(sums).collect())
    }

    fn over(&self, range: &Range<usize>) -> f64 {
        self.0[range.end] - self.0[range.start]
    }
}

/// Returns the number of slots that are merged into a sample of at least two round trips.
fn together(study: &Study) -> usize {
    let least = study.path.rtt_ns.0.saturating_mul(ROUND_TRIPS);
    let slots = least.div_ceil(study.sample_ns.0.max(1));
    usize::try_from(slots).unwrap_or(MOST_TOGETHER).clamp(1, MOST_TOGETHER)
}

/// Returns true if the goodput of a flow over a range of slots is within 20 % of its fair share, which is the goodput
/// of all flows divided by their number.
fn is_near(own: &RateSums, all: &[&RateSums], range: Range<usize>) -> bool {
    let fair = all.iter().map(|other| other.over(&range)).sum::<f64>() / all.len() as f64;
    fair > 0.0 && (own.over(&range) - fair).abs() <= NEAR * fair
}

/// Returns the median of `times`. A flow that did not reach its share counts as slower than any that did. `None` if the
/// median is such a flow, or if there are no flows.
pub(super) fn median(times: &[Option<f64>]) -> Option<f64> {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    middle.is_finite().then_some(middle)
}

#[cfg(test)]
mod tests {
    use landspeed_record::FlowPlan;
    use landspeed_record::units::{BitRate, Nanos};

    use super::super::timeline::TimeSlot;
    use super::*;

    #[test]
    fn samples_below_two_round_trips_are_merged() {
        let (mut study, half) = timeline(|n| if n < 3 { 0.0 } else { 50.0 });
        study.sample_ns = Nanos::secs(1);
        study.path.rtt_ns = Nanos::millis(400);
        assert_eq!(times(&study, &half), [Some(7.0)], "a sample is long enough");
        study.path.rtt_ns = Nanos::secs(1);
        // Ten slots of 1 s: the first mean with no more than two empty ones is that of samples 1 to 10.
        assert_eq!(times(&study, &half), [Some(11.0)]);
    }

    /// Returns a study of two flows and its timeline of 80 slots of 1 s. The second flow runs from 20 s to 60 s, at the
    /// rate `second` in each second since its entry; the first flow has the rest of 100 bit/s.
    fn timeline(second: impl Fn(u64) -> f64) -> (Study, Timeline) {
        let study = Study { flows: 2, region_ns: Nanos::secs(20), ..Study::default() };
        let slots: Vec<TimeSlot> =
            (0..80).map(|n| TimeSlot { start_ns: Nanos::secs(n), end_ns: Nanos::secs(n + 1) }).collect();
        let lane = |flow: usize, enters: u64, rates: Vec<BitRate>| FlowRates {
            flow,
            plan: FlowPlan {
                enters_ns: Nanos::secs(enters),
                leaves_ns: Nanos::secs(80 - enters),
                ..FlowPlan::default()
            },
            rates,
        };
        let of = |n: u64| if (20..60).contains(&n) { second(n - 20) } else { 0.0 };
        let lanes = vec![
            lane(0, 0, (0..80).map(|n| BitRate(100.0 - of(n))).collect()),
            lane(1, 20, (0..80).map(|n| BitRate(of(n))).collect()),
        ];
        (study, Timeline { slots, lanes })
    }

    #[test]
    fn the_time_counts_to_the_end_of_the_first_mean_that_stays() {
        // Nothing for 3 s, then half of the path: the mean of samples 3 to 7 is the first that is near.
        let (study, half) = timeline(|n| if n < 3 { 0.0 } else { 50.0 });
        // Samples 2 to 6 have a mean of 40, which is 20 % below 50.
        assert_eq!(times(&study, &half), [Some(7.0)]);
    }

    #[test]
    fn a_flow_that_only_passes_its_share_has_not_reached_it() {
        let (study, ramp) = timeline(|n| (n as f64 * 12.0).min(100.0));
        assert_eq!(times(&study, &ramp), [None]);
        let (study, starved) = timeline(|_| 1.0);
        assert_eq!(times(&study, &starved), [None]);
    }

    #[test]
    fn the_median_counts_flows_that_never_reached_their_share() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[Some(3.0), None, Some(1.0)]), Some(3.0));
        assert_eq!(median(&[Some(3.0), None]), Some(3.0), "half of them came");
        assert_eq!(median(&[Some(3.0), None, None]), None);
    }
}
