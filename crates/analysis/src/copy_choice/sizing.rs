//! Whether a copy is long enough to compare settings on its data, and how long a turn is.

use landspeed_record::units::{BitRate, Bytes, Nanos};

/// A copy that is expected to take less than this compares nothing.
pub const LEAST_COPY: Nanos = Nanos::secs(60);
/// The share of the copy's expected time that its trials may take.
const SHARE: f64 = 0.3;
/// The least length of a turn, as a time and in round trips.
const LEAST_TURN: Nanos = Nanos::millis(500);
const ROUND_TRIPS: u64 = 20;
/// The content that the target takes in a turn for each flow in use, at the least: four pieces, each of which counts
/// as a whole. Those that were under way before the change end in the part that is not counted.
const LEAST_OF_FLOW: Bytes = Bytes::mib(4);
/// The longest turn of the first candidate. A later one may have twice as many flows.
const LONGEST_TURN: Nanos = Nanos::secs(20);
/// The part of a turn that is not counted, as its divisor: 5 of 20 round trips. The bytes that were under way before
/// the change arrive in it.
const SETTLE: u64 = 4;
/// The time that passes between two turns, beside a round trip.
const BETWEEN: Nanos = Nanos::millis(150);
/// What a block moves over what its turns do: the content of the time between them too.
const BESIDE_TURNS: f64 = 1.1;
/// The least number of blocks of a candidate, and what each of several candidates has at the least.
const LEAST_BLOCKS: u64 = 4;
const USUAL_BLOCKS: u64 = 6;
/// The number of blocks beyond which all trials take no more than this share of the time. Half of the turns have a
/// setting that is worse, and what is hard to tell apart is worth little.
const ENOUGH_BLOCKS: u64 = 8;
const FURTHER_SHARE: f64 = 0.1;
/// The largest number of blocks of a candidate.
const MOST_BLOCKS: u64 = 24;

/// The least time that a copy is expected to take, and has taken, if what holds it is tested by slowing it.
const LEAST_SLOWED: Nanos = Nanos::secs(300);
const LEAST_BEFORE: Nanos = Nanos::secs(60);
/// The share of the copy's time in which that may be tested. It is slowed in half of the turns and loses at most one part in
/// eleven of these, which is less than 1 % of the copy's time.
const SLOWED_SHARE: f64 = 0.2;

/// What is known of a copy before its trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyOutlook {
    /// The time that it has taken.
    pub elapsed: Nanos,
    /// The bytes that are left, as far as the walk has found them.
    pub left: Bytes,
    /// The rate of the last seconds.
    pub rate: BitRate,
}

impl CopyOutlook {
    /// Returns the time that is left at the least, in seconds.
    fn left_s(&self) -> f64 {
        self.left.0 as f64 * 8.0 / self.rate.0.max(1.0)
    }

    /// Returns the time that the copy is expected to take at the least, in seconds.
    fn expected_s(&self) -> f64 {
        self.elapsed.as_secs_f64() + self.left_s()
    }

    /// Returns a part of that time.
    fn part(&self, share: f64) -> Nanos {
        Nanos((self.expected_s().min(1e9) * share * 1e9) as u64)
    }

    /// Returns the time that all trials together may take.
    pub(super) fn budget(&self) -> Nanos {
        self.part(SHARE)
    }

    /// Returns the time that trials may take of what is left of the copy.
    pub(super) fn budget_of_rest(&self) -> Nanos {
        Nanos((self.left_s().min(1e9) * SHARE * 1e9) as u64)
    }

    /// Returns true if the copy is long enough to test what holds it, and has gone on for long enough to name that.
    pub fn is_worth_a_test(&self) -> bool {
        self.expected_s() >= LEAST_SLOWED.as_secs_f64() && self.elapsed >= LEAST_BEFORE
    }

    /// Returns the time in which what holds the copy may be tested.
    pub fn test_budget(&self) -> Nanos {
        self.part(SLOWED_SHARE)
    }

    /// Returns the least length of a turn over a path with this round trip, and its length for each flow in use.
    fn turn_parts(&self, rtt: Nanos) -> (Nanos, Nanos) {
        let filled = LEAST_OF_FLOW.0 as f64 * 8.0 / self.rate.0.max(1.0);
        (LEAST_TURN.max(rtt.times(ROUND_TRIPS)), Nanos((filled.min(1e6) * 1e9) as u64))
    }

    /// Returns true if the copy is long enough to compare anything.
    pub fn is_long(&self) -> bool {
        self.expected_s() >= LEAST_COPY.as_secs_f64()
    }
}

/// The size of a copy's trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialSize {
    /// The least length of a turn.
    pub least: Nanos,
    /// The length of a turn for each flow in use, at the least.
    pub of_flow: Nanos,
    /// The number of candidates for which there is time.
    pub candidates: u32,
    /// The largest number of blocks of each of them.
    pub blocks: u32,
    /// The time that all trials together may take.
    pub budget: Nanos,
}

impl TrialSize {
    /// Returns the parts of a turn: the one that is not counted, and the one that is. `flows` is the larger number of
    /// the two settings that are compared, because their turns are equally long.
    pub fn turn(&self, flows: u32) -> [Nanos; 2] {
        let turn = turn_of(self.least, self.of_flow, flows);
        let settle = Nanos(turn.0 / SETTLE);
        [settle, turn - settle]
    }

    /// Returns the time of a block of four turns.
    pub fn block(&self, flows: u32) -> Nanos {
        turn_of(self.least, self.of_flow, flows).times(4)
    }

    /// Returns the time of the first turn of a candidate and of the least number of blocks that can be judged, with what
    /// passes between turns beside round trips.
    pub(super) fn least_trial(&self, flows: u32) -> Nanos {
        (turn_of(self.least, self.of_flow, flows) + BETWEEN).times(1 + 4 * LEAST_BLOCKS)
    }

    /// Returns true if there is time for the first candidate alone, and for few blocks of it.
    pub fn is_tight(&self) -> bool {
        u64::from(self.blocks) < USUAL_BLOCKS
    }

    /// Returns the number of blocks that may have this content at this rate: 30 % of it, or all of it for the usual
    /// number of blocks. `flows` is as in [`TrialSize::turn`].
    pub(super) fn blocks_in(&self, content: Bytes, rate: BitRate, flows: u32) -> u32 {
        let of_block = rate.0 / 8.0 * self.block(flows).as_secs_f64() * BESIDE_TURNS;
        let all = content.0 as f64 / of_block.max(1.0);
        // A conversion ends at the largest number.
        (SHARE * all).max(all.min(USUAL_BLOCKS as f64)) as u32
    }
}

/// Returns the size of the trials of a copy over a path with this round trip. `flows` has the larger number of flows
/// of each candidate and the setting in force, in the order of the candidates. Where the time is short, only the
/// first candidates have some.
///
/// # Errors
/// Returns the reason, in words, if the copy has no time for one of them.
pub fn trial_size(outlook: &CopyOutlook, rtt: Nanos, flows: &[u32]) -> Result<TrialSize, String> {
    let (least, of_flow) = outlook.turn_parts(rtt);
    let turns: Vec<Nanos> = flows.iter().map(|flows| turn_of(least, of_flow, *flows)).collect();
    let first = turns.first().copied().unwrap_or(least);
    if first > LONGEST_TURN {
        return Err(format!("a turn would take {first}, as the path is slow or long"));
    }
    // Trials that begin late end before the copy does.
    let left = Nanos((outlook.left_s().min(1e9) * 1e9) as u64);
    let times = [SHARE, FURTHER_SHARE].map(|share| outlook.part(share).min(left));
    let blocks = |candidates: usize| {
        let round: u64 = turns[..candidates].iter().map(|turn| (*turn + BETWEEN + rtt).0).sum();
        blocks_of(Nanos(round), times)
    };
    let is_enough = |candidates: &usize| {
        blocks(*candidates) >= if *candidates == 1 { LEAST_BLOCKS } else { USUAL_BLOCKS }
    };
    let Some(candidates) = (1..=turns.len()).rev().find(is_enough) else {
        let blocks = if turns.is_empty() { 0 } else { blocks(1) };
        return Err(format!(
            "30 % of the copy, or its rest, has time for {blocks} blocks of four turns of {first}, which are too few"
        ));
    };
    // Both are small numbers.
    let [candidates, blocks] = [candidates as u32, blocks(candidates) as u32];
    Ok(TrialSize { least, of_flow, candidates, blocks, budget: times[0] })
}

/// Returns the size of the turns that show whether what is named to hold a copy holds it, with this number of flows.
///
/// # Errors
/// Returns the reason, in words, if the copy has no time for them.
pub fn slowed_size(outlook: &CopyOutlook, rtt: Nanos, flows: u32) -> Result<TrialSize, String> {
    let (least, of_flow) = outlook.turn_parts(rtt);
    let (turn, budget) = (turn_of(least, of_flow, flows), outlook.test_budget());
    let within = (budget.0 / (turn + BETWEEN + rtt).0.max(1)).saturating_sub(1) / 4;
    if within < USUAL_BLOCKS || turn > LONGEST_TURN {
        return Err(format!(
            "1 % of the copy has time for {within} blocks of four turns of {turn}, which are too few"
        ));
    }
    // It is a small number.
    let blocks = within.min(MOST_BLOCKS) as u32;
    Ok(TrialSize { least, of_flow, candidates: 1, blocks, budget })
}

/// Returns the number of blocks of each candidate, if one turn of all of them takes `round`. They take no more than
/// the first of these times, and, if they are more than enough, than the second one.
fn blocks_of(round: Nanos, [most, further]: [Nanos; 2]) -> u64 {
    // Each candidate has one turn before its blocks.
    let within = |time: Nanos| (time.0 / round.0.max(1)).saturating_sub(1) / 4;
    within(most).min(within(further).clamp(ENOUGH_BLOCKS, MOST_BLOCKS))
}

fn turn_of(least: Nanos, of_flow: Nanos, flows: u32) -> Nanos {
    least.max(of_flow.times(flows.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(seconds: u64, rate: f64) -> CopyOutlook {
        let left = Bytes((rate / 8.0 * seconds as f64) as u64);
        CopyOutlook { elapsed: Nanos(0), left, rate: BitRate(rate) }
    }

    #[test]
    fn a_short_copy_compares_nothing() {
        assert!(!outlook(59, 1e9).is_long() && outlook(61, 1e9).is_long());
        assert!(CopyOutlook { elapsed: Nanos::secs(61), ..outlook(0, 1e9) }.is_long());
        assert!(outlook(60, 0.0).expected_s() >= 0.0, "nothing is divided by zero");
    }

    #[test]
    fn trials_take_at_most_their_share() {
        for (seconds, rate, rtt) in [(61, 10e9, 1), (300, 1e9, 40), (300, 10e9, 180), (100_000, 100e6, 40)] {
            let flows = [8, 4, 4, 4];
            let size =
                trial_size(&outlook(seconds, rate), Nanos::millis(rtt), &flows).expect("there is time");
            let [settle, count] = size.turn(4);
            let turn = settle + count;
            assert!(turn >= Nanos::millis(500) && turn >= Nanos::millis(20 * rtt), "{size:?}");
            assert!(settle >= Nanos::millis(5 * rtt) && size.blocks >= 4, "{size:?}");
            let all = |flows: &u32| size.block(*flows).as_secs_f64() * (f64::from(size.blocks) + 0.25);
            let all: f64 = flows[..size.candidates as usize].iter().map(all).sum();
            assert!(all <= 0.3 * seconds as f64, "{size:?} takes {all} s");
        }
    }

    /// What is under way on each flow before a change ends in the part of a turn that is not counted.
    #[test]
    fn more_flows_have_longer_turns() {
        let size = trial_size(&outlook(3_000, 100e6), Nanos::millis(10), &[8, 2]).expect("there is time");
        for flows in [2, 4, 8, 64] {
            let [settle, count] = size.turn(flows);
            let pieces = |time: Nanos| time.as_secs_f64() * 100e6 / 8.0 / f64::from(1 << 20);
            assert!(pieces(settle) + 1e-6 >= f64::from(flows), "{settle} at {flows} flows");
            assert!(pieces(count) + 1e-6 >= 3.0 * f64::from(flows), "{count} at {flows} flows");
        }
        assert!(size.turn(2)[1] < size.turn(8)[1]);
    }

    #[test]
    fn six_blocks_may_have_all_of_the_content_and_further_ones_30_percent() {
        let size = trial_size(&outlook(300, 1e9), Nanos::millis(10), &[4]).expect("there is time");
        // Four turns of half a second are 250 MB, and 275 MB with the time between them.
        let blocks = |mb: u64, rate| size.blocks_in(Bytes(mb * 1_000_000), BitRate(rate), 4);
        assert_eq!([0, 274, 276, 1_400, 2_800, 12_000].map(|mb| blocks(mb, 1e9)), [0, 0, 1, 5, 6, 13]);
        assert!(blocks(100, 0.0) > 1_000_000, "nothing is divided by zero");
    }

    /// Two minutes at 134 Mb/s had time for four blocks of turns of 32 MiB, and made none.
    #[test]
    fn two_minutes_compare_the_first_candidate_at_least() {
        let size = |flows: &[u32]| trial_size(&outlook(120, 134e6), Nanos::millis(10), flows);
        let first = size(&[4, 8, 4, 4]).expect("there is time");
        assert_eq!(first.candidates, 1);
        assert!(first.blocks >= 6 && !first.is_tight(), "{first:?}");
        let far = trial_size(&outlook(240, 75e6), Nanos::millis(180), &[4, 8]).expect("there is time");
        assert_eq!((far.candidates, far.blocks, far.is_tight()), (1, 4, true));
        let longer =
            trial_size(&outlook(600, 134e6), Nanos::millis(10), &[4, 8, 4, 4]).expect("there is time");
        assert_eq!(longer.candidates, 4);
    }

    #[test]
    fn blocks_that_are_not_needed_are_made_only_where_they_cost_little() {
        let blocks = |seconds| {
            trial_size(&outlook(seconds, 1e9), Nanos::millis(1), &[4]).expect("there is time").blocks
        };
        assert_eq!([blocks(120), blocks(300), blocks(500), blocks(100_000)], [8, 11, 18, 24]);
    }

    #[test]
    fn trials_that_could_not_end_do_not_begin() {
        let after_a_minute = |seconds: u64| {
            let outlook = CopyOutlook { elapsed: Nanos::secs(60), ..outlook(seconds, 1e9) };
            trial_size(&outlook, Nanos::millis(40), &[4])
        };
        let size = after_a_minute(30).expect("there is time");
        assert!(size.block(4).times(size.blocks.into()) < Nanos::secs(30), "{size:?}");
        let few = after_a_minute(10).unwrap_err();
        assert!(few.contains("too few"), "{few}");
    }

    #[test]
    fn a_copy_is_slowed_for_at_most_1_percent_of_its_time() {
        let after_a_minute =
            |seconds: u64| CopyOutlook { elapsed: Nanos::secs(60), ..outlook(seconds - 60, 1e9) };
        assert!(after_a_minute(301).is_worth_a_test() && !after_a_minute(299).is_worth_a_test());
        assert!(!outlook(1_000, 1e9).is_worth_a_test(), "nothing is known yet");
        for (seconds, rate, rtt, flows) in
            [(300, 1e9, 1, 4), (300, 1e9, 80, 4), (500, 100e6, 1, 8), (100_000, 1e9, 1, 64)]
        {
            let size =
                slowed_size(&outlook(seconds, rate), Nanos::millis(rtt), flows).expect("there is time");
            let [settle, count] = size.turn(flows);
            let slowed = (settle + count).as_secs_f64() * f64::from(2 * size.blocks + 1);
            assert!((6..=24).contains(&size.blocks) && slowed / 11.0 <= 0.01 * seconds as f64, "{size:?}");
        }
        let far = slowed_size(&outlook(300, 1e9), Nanos::millis(600), 4).unwrap_err();
        assert!(far.contains("too few"), "{far}");
    }

    #[test]
    fn a_path_without_time_for_turns_says_so() {
        let slow = trial_size(&outlook(70, 5e6), Nanos::millis(10), &[4, 4]).unwrap_err();
        assert!(slow.contains("a turn would take"), "{slow}");
        let few = trial_size(&outlook(70, 100e6), Nanos::millis(10), &[4, 4]).unwrap_err();
        assert!(few.contains("too few"), "{few}");
        assert!(trial_size(&outlook(70, 1e9), Nanos::millis(10), &[]).is_err());
    }
}
