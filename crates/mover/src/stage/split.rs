//! Divides a thread's time by the reason of its waits.

use landspeed_record::CopyStage;

use super::Pause;

/// The number of states of a thread.
pub(super) const STATES: usize = 7;
/// Nanoseconds in each state: on a processor, waiting for a processor, and the five pauses.
pub(super) type Spent = [u64; STATES];

pub(super) const PROCESSOR: usize = 0;
pub(super) const QUEUED: usize = 1;
/// The first of the five pauses.
const PAUSES: usize = 2;
/// The stage that waits only for a processor.
pub(super) const HASH: usize = CopyStage::Hash as usize;

/// Returns the state of a thread that pauses.
pub(super) fn state(pause: Pause) -> usize {
    match pause {
        Pause::Device => PAUSES,
        Pause::Starved => PAUSES + 1,
        Pause::Blocked => PAUSES + 2,
        Pause::Limit => PAUSES + 3,
        Pause::Idle => PAUSES + 4,
    }
}

/// Returns how much of the time in each stage was on a processor, if it was `used` in all. Hashing waits for nothing, so it
/// gets its share first.
pub(super) fn on_processor(stages: &[u64; CopyStage::ALL.len()], used: u64) -> [u64; CopyStage::ALL.len()] {
    let hash = stages[HASH].min(used);
    let others = stages.iter().sum::<u64>() - stages[HASH];
    let share = part(used - hash, others);
    std::array::from_fn(|index| if index == HASH { hash } else { share_of(stages[index], share) })
}

/// Moves `queued` nanoseconds from the pauses of all stages to the wait for a processor: a thread that has been woken and
/// does not run yet waits for nothing else.
pub(super) fn take_queued(stages: &mut [Spent], queued: u64) {
    let share = part(queued, stages.iter().flat_map(|spent| &spent[PAUSES..]).sum());
    for spent in stages {
        let (others, pauses) = spent.split_at_mut(PAUSES);
        for pause in pauses {
            let moved = share_of(*pause, share);
            *pause -= moved;
            others[QUEUED] += moved;
        }
    }
}

/// Returns a part as a share of the whole, at most 1.
fn part(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// Returns a share of a time, never more than the time.
fn share_of(nanos: u64, share: f64) -> u64 {
    ((nanos as f64 * share) as u64).min(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashing_is_on_a_processor_and_the_rest_is_shared() {
        let mut stages = [0; CopyStage::ALL.len()];
        (stages[CopyStage::Read as usize], stages[HASH]) = (300, 100);
        stages[CopyStage::Write as usize] = 100;
        let used = on_processor(&stages, 300);
        assert_eq!(
            (used[CopyStage::Read as usize], used[HASH], used[CopyStage::Write as usize]),
            (150, 100, 50)
        );
        assert_eq!(on_processor(&stages, 40).iter().sum::<u64>(), 40, "less than hashing took");
        // The two clocks differ by a little.
        assert_eq!(on_processor(&stages, 9_999).iter().sum::<u64>(), 500);
        assert_eq!(on_processor(&[0; CopyStage::ALL.len()], 7).iter().sum::<u64>(), 0);
    }

    #[test]
    fn the_wait_for_a_processor_comes_from_the_pauses() {
        let mut stages = [[100, 0, 60, 20, 20, 0, 0], [100, 0, 0, 0, 30, 40, 30]];
        take_queued(&mut stages, 100);
        assert_eq!(stages, [[100, 50, 30, 10, 10, 0, 0], [100, 50, 0, 0, 15, 20, 15]]);
        take_queued(&mut stages, 9_999);
        assert_eq!(stages, [[100, 100, 0, 0, 0, 0, 0], [100, 100, 0, 0, 0, 0, 0]]);
    }
}
