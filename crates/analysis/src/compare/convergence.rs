//! How long a flow that enters a path in use needs to come to its fair share (RFC 5166 section 2.3).

use landspeed_record::Study;

use super::timeline::{Lane, Timeline};

/// Samples that a goodput is the mean of, as in the paper's figures (cottrell-2005 section IV.A).
const SMOOTHED: usize = 5;
/// Such means in a row that must be near the fair share: a flow that passes it on the way up has not come to it.
const STAYS: usize = 5;
/// How near that is, as a share of the fair share.
const NEAR: f64 = 0.2;

/// By flow that enters while others run: seconds from its entry to the end of the first of five means in a row, each over
/// five samples, that are within 20 % of the aggregate of the same samples by the number of flows; `None` where it did not
/// come so far within the region that begins with it.
pub(super) fn times(study: &Study, timeline: &Timeline) -> Vec<Option<f64>> {
    let regions = study.regions();
    let enters = |lane: &Lane| regions.iter().find(|(start, ..)| *start == lane.plan.enters_ns);
    timeline
        .lanes
        .iter()
        .filter_map(|lane| {
            let (start, end, _) = *enters(lane)?;
            let here: Vec<&Lane> = timeline.lanes.iter().filter(|other| other.spans(start, end)).collect();
            let in_use = here.iter().any(|other| other.plan.enters_ns < start);
            in_use.then(|| {
                let range = timeline.within(start, end);
                let near: Vec<bool> = range
                    .clone()
                    .map(|slot| slot + SMOOTHED <= range.end && is_near(lane, &here, slot))
                    .collect();
                let first = near.windows(STAYS).position(|all| all.iter().all(|near| *near))?;
                let at = timeline.slots[range.start + first + SMOOTHED - 1].end_ns;
                Some((at - start).as_secs_f64())
            })
        })
        .collect()
}

/// Whether the mean of the five samples from `slot` on is near the fair share.
fn is_near(lane: &Lane, here: &[&Lane], slot: usize) -> bool {
    let range = slot..slot + SMOOTHED;
    let all: f64 = here.iter().map(|other| other.mean(range.clone())).sum();
    let fair = all / here.len() as f64;
    fair > 0.0 && (lane.mean(range) - fair).abs() <= NEAR * fair
}

/// The median, where a flow that did not come to its share took longer than any that did; `None` where that is the median,
/// or there are none.
pub(super) fn median(times: &[Option<f64>]) -> Option<f64> {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    middle.is_finite().then_some(middle)
}

#[cfg(test)]
mod tests {
    use landspeed_record::FlowPlan;
    use landspeed_units::{BitRate, Nanos};

    use super::super::timeline::Slot;
    use super::*;

    /// Two flows, two regions of 20 s with the second flow in the later, longer one; samples of 1 s.
    fn timeline(second: impl Fn(u64) -> f64) -> (Study, Timeline) {
        let study = Study { flows: 2, region_ns: Nanos::secs(20), ..Study::default() };
        let slots: Vec<Slot> =
            (0..80).map(|n| Slot { start_ns: Nanos::secs(n), end_ns: Nanos::secs(n + 1) }).collect();
        let lane = |flow: usize, enters: u64, rates: Vec<BitRate>| Lane {
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
    fn a_flow_that_only_passes_its_share_has_not_come_to_it() {
        let (study, ramp) = timeline(|n| (n as f64 * 12.0).min(100.0));
        assert_eq!(times(&study, &ramp), [None]);
        let (study, starved) = timeline(|_| 1.0);
        assert_eq!(times(&study, &starved), [None]);
    }

    #[test]
    fn the_median_holds_those_that_never_came() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[Some(3.0), None, Some(1.0)]), Some(3.0));
        assert_eq!(median(&[Some(3.0), None]), Some(3.0), "half of them came");
        assert_eq!(median(&[Some(3.0), None, None]), None);
    }
}
