//! The processor cost of a bit by the number of streams: cottrell-2005 section IV.B.2, Figures 6 and 7.

use std::collections::BTreeMap;

use landspeed_record::units::{BitRate, Bytes};
use landspeed_record::{ContestQuestion, ParallelStreamFigures};

use super::contests::ContestRuns;
use super::repeats;

/// Returns, for each number of streams in ascending order, the figures at the window size with which the streams
/// carried most.
pub(super) fn streams(entries: &[&ContestRuns<'_>]) -> Vec<ParallelStreamFigures> {
    let mut best: BTreeMap<u16, ParallelStreamFigures> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| !entry.runs.is_empty()) {
        let ContestQuestion::Streams { streams, window_bytes } = entry.contest.question else { continue };
        let found = figures(entry, streams, window_bytes);
        let place = best.entry(streams).or_default();
        let tried = place.windows_tried + 1;
        if tried == 1 || found.rate_bps.0 > place.rate_bps.0 {
            *place = found;
        }
        place.windows_tried = tried;
    }
    best.into_values().collect()
}

fn figures(entry: &ContestRuns<'_>, streams: u16, window_bytes: Bytes) -> ParallelStreamFigures {
    ParallelStreamFigures {
        streams: streams.into(),
        window_bytes,
        rate_bps: BitRate(repeats::mean(entry.each(|f| Some(f.mean_bps.0)).into_values()).unwrap_or(0.0)),
        cpu: repeats::mean(entry.each(|f| f.cpu).into_values()),
        cycles_per_bit: repeats::mean(entry.each(|f| f.cycles_per_bit).into_values()),
        runs: entry.runs.len() as u32,
        windows_tried: 0,
    }
}

#[cfg(test)]
mod tests {
    use landspeed_record::Contest;

    use super::*;
    use crate::compare::contests::CountedRun;
    use crate::compare::run::RunFigures;
    use crate::compare::support_tests as support;

    #[test]
    fn each_number_of_streams_is_judged_by_its_best_window() {
        let study = support::study(1, 10, vec![support::alone("reno")]);
        let run = support::run(&study, &study.contests[0], 0, |_, _| support::KILOBIT);
        let figures = RunFigures::of(&study, &run).expect("samples");
        let contest = |streams, mib| Contest {
            question: ContestQuestion::Streams { streams, window_bytes: Bytes::mib(mib) },
            ..Contest::default()
        };
        let contests = [contest(4, 1), contest(4, 2), contest(4, 8), contest(1, 8)];
        let entry = |(contest, rate)| ContestRuns {
            contest,
            title: "",
            runs: vec![CountedRun {
                repeat: 0,
                run: &run,
                figures: RunFigures { mean_bps: BitRate(rate), ..figures.clone() },
            }],
            invalid: 0,
            is_one_repeat: false,
        };
        let entries: Vec<_> = contests.iter().zip([3e8, 9e8, 8e8, 5e8]).map(entry).collect();
        let found = streams(&entries.iter().collect::<Vec<_>>());
        let seen: Vec<_> =
            found.iter().map(|s| (s.streams, s.window_bytes, s.rate_bps.0, s.windows_tried)).collect();
        assert_eq!(seen, [(1, Bytes::mib(8), 5e8, 1), (4, Bytes::mib(2), 9e8, 3)]);
    }
}
