//! The goodput of a run over time, with all its flows on one grid.

use std::ops::Range;

use landspeed_record::units::{BitRate, Nanos};
use landspeed_record::{FlowPlan, RunFlow, RunSample, Study, StudyRun};

/// The largest number of flows on the grid: a forged record must not use up all memory.
const MOST_LANES: usize = 32;
/// The largest number of slots: 16 minutes in steps of 10 ms.
const MOST_SLOTS: usize = 100_000;

/// One interval of a timeline's grid, in time since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSlot {
    pub start_ns: Nanos,
    pub end_ns: Nanos,
}

/// One long flow over time.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRates {
    /// The index of the flow in the run.
    pub flow: usize,
    pub plan: FlowPlan,
    pub rates: Vec<BitRate>,
}

/// The long flows of a run over time, on one time axis: the sampling times of the flow with the most samples. The bytes
/// of other flows are distributed over its intervals in proportion to time. Short flows have no samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// The intervals of the time axis, in order. Intervals shorter than half the study's sampling time are left out,
    /// because a rate over so short a time is noise.
    pub slots: Vec<TimeSlot>,
    /// The flows, in the order of the run.
    pub lanes: Vec<FlowRates>,
}

/// The bytes that arrived within an interval.
#[derive(Debug, Clone, Copy)]
struct SlotBytes {
    slot: TimeSlot,
    bytes: f64,
}

impl Timeline {
    /// Returns the timeline of a run, with the samples of all its long flows on one grid.
    pub fn of(study: &Study, run: &StudyRun) -> Self {
        let long = run.flows.iter().enumerate().filter(|(_, flow)| !flow.is_short());
        let flows: Vec<(usize, &RunFlow, Vec<SlotBytes>)> =
            long.take(MOST_LANES).map(|(index, flow)| (index, flow, pieces(&flow.samples))).collect();
        let grid = flows.iter().map(|(_, _, pieces)| pieces).max_by_key(|pieces| pieces.len());
        let slots: Vec<TimeSlot> = grid
            .into_iter()
            .flatten()
            .map(|piece| piece.slot)
            .filter(|slot| (slot.end_ns - slot.start_ns).0.saturating_mul(2) >= study.sample_ns.0)
            .take(MOST_SLOTS)
            .collect();
        let lanes = flows
            .into_iter()
            .map(|(flow, of, pieces)| FlowRates { flow, plan: of.plan.clone(), rates: laid(&pieces, &slots) })
            .collect();
        Timeline { slots, lanes }
    }

    /// Returns the range of the slots that lie completely between `start` and `end`. A slot that straddles a border
    /// belongs to neither side.
    pub fn within(&self, start: Nanos, end: Nanos) -> Range<usize> {
        let first = self.slots.partition_point(|slot| slot.start_ns < start);
        let last = self.slots.partition_point(|slot| slot.end_ns <= end);
        first..last.max(first)
    }

    /// Returns the goodput of all flows together in bit/s, over stretches of at least `least`. Slots are merged from
    /// the first of `range` on, and a rest of less than half a stretch is left out.
    ///
    /// Data that waits behind a lost segment arrives in order in one burst, a round trip later: rates over less than a
    /// round trip show these gaps, and not how steadily a path carries data.
    pub(crate) fn stretches(&self, range: Range<usize>, least: Nanos) -> Vec<f64> {
        let mut stretches = Vec::new();
        let (mut bits, mut length) = (0.0, Nanos(0));
        for (rate, slot) in self.aggregate(range.clone()).into_iter().zip(&self.slots[range]) {
            let time = slot.end_ns - slot.start_ns;
            bits += rate * time.as_secs_f64();
            length += time;
            // Samples come a little early or late, so a stretch may be 2 % too short.
            if length.0.saturating_add(length.0 / 50) >= least.0 {
                stretches.push(bits / length.as_secs_f64());
                (bits, length) = (0.0, Nanos(0));
            }
        }
        if length.0 > 0 && length.0 >= least.0 / 2 {
            stretches.push(bits / length.as_secs_f64());
        }
        stretches
    }

    /// Returns the goodput of all flows together, slot by slot, in bit/s.
    pub fn aggregate(&self, range: Range<usize>) -> Vec<f64> {
        range.map(|slot| self.lanes.iter().map(|lane| lane.rates[slot].0).sum()).collect()
    }
}

impl FlowRates {
    /// Returns the mean goodput over `range`; zero where it is empty.
    pub fn mean(&self, range: Range<usize>) -> f64 {
        let rates = &self.rates[range];
        rates.iter().map(|rate| rate.0).sum::<f64>() / rates.len().max(1) as f64
    }

    /// Returns true if the flow was planned to run all the time from `start` to `end`.
    pub fn spans(&self, start: Nanos, end: Nanos) -> bool {
        self.plan.enters_ns <= start && self.plan.leaves_ns >= end
    }
}

/// Returns the bytes of each sample with its interval. A sample that is no later than the one before it has no interval
/// and is left out.
fn pieces(samples: &[RunSample]) -> Vec<SlotBytes> {
    let mut start = Nanos(0);
    let mut pieces = Vec::with_capacity(samples.len());
    for sample in samples.iter().filter(|sample| sample.at_ns.0 > 0) {
        if sample.at_ns > start {
            let slot = TimeSlot { start_ns: start, end_ns: sample.at_ns };
            pieces.push(SlotBytes { slot, bytes: sample.goodput_bytes.0 as f64 });
            start = sample.at_ns;
        }
    }
    pieces
}

/// Returns the rate in each slot. Both lists are in order and without overlaps, so one pass suffices.
fn laid(pieces: &[SlotBytes], slots: &[TimeSlot]) -> Vec<BitRate> {
    let mut first = 0;
    let rate = |slot: &TimeSlot| {
        while pieces.get(first).is_some_and(|piece| piece.slot.end_ns <= slot.start_ns) {
            first += 1;
        }
        let met = pieces[first..].iter().take_while(|piece| piece.slot.start_ns < slot.end_ns);
        let bytes: f64 = met.map(|piece| piece.bytes * share(piece.slot, *slot)).sum();
        BitRate(bytes * 8.0 / (slot.end_ns - slot.start_ns).as_secs_f64())
    };
    slots.iter().map(rate).collect()
}

/// Returns the share of the time of `part` that lies within `whole`.
fn share(part: TimeSlot, whole: TimeSlot) -> f64 {
    let overlap = part.end_ns.min(whole.end_ns) - part.start_ns.max(whole.start_ns);
    overlap.0 as f64 / (part.end_ns - part.start_ns).0 as f64
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::*;

    fn sample(at_ms: u64, bytes: u64) -> RunSample {
        RunSample { at_ns: Nanos::millis(at_ms), goodput_bytes: Bytes(bytes), ..RunSample::default() }
    }

    fn timeline(flows: &[&[(u64, u64)]]) -> Timeline {
        let study = Study { sample_ns: Nanos::secs(1), ..Study::default() };
        let flow = |samples: &&[(u64, u64)]| RunFlow {
            samples: samples.iter().map(|(at, bytes)| sample(*at, *bytes)).collect(),
            ..RunFlow::default()
        };
        Timeline::of(&study, &StudyRun { flows: flows.iter().map(flow).collect(), ..StudyRun::default() })
    }

    #[test]
    fn samples_taken_together_are_left_as_they_are() {
        let timeline = timeline(&[&[(1000, 125), (2000, 250)], &[(1000, 0), (2000, 125)]]);
        assert_eq!(timeline.aggregate(0..2), [1000.0, 3000.0]);
        assert_eq!((timeline.lanes[0].mean(0..2), timeline.lanes[1].mean(0..2)), (1500.0, 500.0));
    }

    #[test]
    fn samples_of_other_times_are_distributed_by_time() {
        // The second flow's interval of 2 s has 1000 bytes: half of them in each second.
        let timeline = timeline(&[&[(1000, 0), (2000, 0)], &[(2000, 1000)]]);
        assert_eq!(timeline.aggregate(0..2), [4000.0, 4000.0]);
    }

    #[test]
    fn short_samples_are_merged() {
        let timeline = timeline(&[&[(500, 125), (1000, 0), (1500, 250), (2000, 0), (2600, 150)]]);
        let bursts = timeline.aggregate(0..5);
        assert!(bursts[0] == 2000.0 && bursts[1] == 0.0);
        assert_eq!(timeline.stretches(0..5, Nanos::secs(1)), [1000.0, 2000.0, 2000.0]);
        assert_eq!(timeline.stretches(0..4, Nanos::secs(3)), [1500.0], "a rest of over half a stretch");
        assert_eq!(timeline.stretches(0..1, Nanos::secs(3)), Vec::<f64>::new());
    }

    #[test]
    fn a_slot_that_straddles_a_border_belongs_to_no_side() {
        let timeline = timeline(&[&[(1000, 1), (2100, 1), (3100, 1), (4000, 1)]]);
        assert_eq!(timeline.within(Nanos(0), Nanos::secs(2)), 0..1);
        assert_eq!(timeline.within(Nanos::secs(2), Nanos::secs(4)), 2..4);
        assert_eq!(timeline.within(Nanos::secs(9), Nanos::secs(10)), 4..4);
    }

    #[test]
    fn slivers_and_samples_out_of_order_are_left_out() {
        let kept = timeline(&[&[(0, 9), (1000, 1), (900, 7), (1000, 7), (1100, 1), (2100, 1)]]);
        let ends: Vec<u64> = kept.slots.iter().map(|slot| slot.end_ns.0 / 1_000_000).collect();
        assert_eq!(ends, [1000, 2100]);
        assert_eq!(timeline(&[]).slots.len() + timeline(&[&[]]).slots.len(), 0);
    }
}
