//! Decides which segments the line loses.

use landspeed_stats::Random;

use super::plan::DirectionPlan;
use super::spec::DirectionSpec;
use landspeed_record::units::Share;

/// The losses of one direction: random losses, and losses by number.
#[derive(Debug, Clone)]
pub(super) struct LossModel {
    chance: ChanceLoss,
    random: Random,
    numbered: NumberedLoss,
}

/// Random losses. They are independent, or follow the two-state chain of Elliott (Bell System Technical Journal 42,
/// 1963), which steps before each segment. If the good state loses nothing and the bad state everything, it is
/// Gilbert's chain (the same journal 39, 1960).
#[derive(Debug, Clone, PartialEq)]
enum ChanceLoss {
    /// Each segment is lost independently, with this probability.
    Independent { share: f64 },
    /// Segments are lost in bursts. `enter` and `leave` are the probabilities of the steps into and out of the bad
    /// state; `good` and `bad` are the probabilities of a loss in each state.
    States { is_bad: bool, enter: f64, leave: f64, good: f64, bad: f64 },
}

/// Losses by number. Only segments with payload are counted; the first segment of a run has number 1. The simulator
/// counts in the same way (`landspeed_simulator::LossSpec`).
#[derive(Debug, Clone)]
struct NumberedLoss {
    count: u64,
    /// Every segment whose number is a multiple of `nth` is lost; 0 loses none.
    nth: u64,
    /// The numbers of the lost segments, ascending.
    list: Vec<u64>,
    /// The index in `list` of the next segment to lose.
    place: usize,
}

impl LossModel {
    pub(super) fn new(plan: &DirectionPlan, random: Random) -> Self {
        let direction = &plan.direction;
        let chance = match chain(direction) {
            Some([enter, leave, good, bad]) => ChanceLoss::States { is_bad: false, enter, leave, good, bad },
            None => ChanceLoss::Independent { share: direction.loss.as_f64() },
        };
        let nth = direction.loss_nth.unwrap_or(0);
        LossModel {
            chance,
            random,
            numbered: NumberedLoss { count: 0, nth, list: plan.drops.clone(), place: 0 },
        }
    }

    /// Returns true if the next segment is lost. `has_payload` is true if the segment carries payload.
    pub(super) fn loses(&mut self, has_payload: bool) -> bool {
        // Each of the two models advances, whatever the other one decides.
        let numbered = has_payload && self.numbered.loses();
        self.chance.loses(&mut self.random) || numbered
    }

    /// Begins a run, in which segments are counted from 1 again.
    pub(super) fn count_anew(&mut self) {
        (self.numbered.count, self.numbered.place) = (0, 0);
    }
}

/// Returns the probabilities of Elliott's chain: good to bad, bad to good, loss while good, loss while bad. Returns
/// `None` if losses do not come in bursts.
fn chain(direction: &DirectionSpec) -> Option<[f64; 4]> {
    direction.loss_states.map(|states| states.0.map(Share::as_f64)).or_else(|| {
        // A burst ends with probability `leave` after each loss, so its mean length is 1 / leave; the chain is in its
        // bad state for enter / (enter + leave) of the time.
        let (share, length) = (direction.loss.as_f64(), f64::from(direction.loss_burst?) / 1000.0);
        let leave = 1.0 / length.max(1.0);
        Some([leave * share / (1.0 - share), leave, 0.0, 1.0])
    })
}

impl ChanceLoss {
    fn loses(&mut self, random: &mut Random) -> bool {
        match self {
            ChanceLoss::Independent { share } => random.happens(*share),
            ChanceLoss::States { is_bad, enter, leave, good, bad } => {
                *is_bad ^= random.happens(if *is_bad { *leave } else { *enter });
                random.happens(if *is_bad { *bad } else { *good })
            }
        }
    }
}

impl NumberedLoss {
    fn loses(&mut self) -> bool {
        self.count += 1;
        let listed = self.list.get(self.place) == Some(&self.count);
        self.place += usize::from(listed);
        listed || (self.nth > 0 && self.count.is_multiple_of(self.nth))
    }
}

/// Returns the largest share of segments that bursts of this mean length, in segments, can lose. There is a gap of at
/// least one segment between two bursts.
pub(super) fn most_in_bursts(length: f64) -> f64 {
    length / (length + 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::WanSpec;
    use super::*;

    fn loss(spec: &str) -> LossModel {
        let plan = spec.parse::<WanSpec>().unwrap().plan().unwrap();
        LossModel::new(&plan[0], Random::new(7))
    }

    fn losses(spec: &str, segments: usize) -> Vec<bool> {
        let mut loss = loss(spec);
        (0..segments).map(|_| loss.loses(true)).collect()
    }

    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|lost| **lost).count()
    }

    fn numbers(spec: &str, segments: usize) -> Vec<usize> {
        (1..).zip(losses(spec, segments)).filter(|(_, lost)| *lost).map(|(number, _)| number).collect()
    }

    fn runs(lost: &[bool]) -> Vec<usize> {
        lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect()
    }

    #[test]
    fn takes_its_share_and_no_more() {
        let lost = count(&losses("loss=1%", 1_000_000));
        // Binomial: five standard deviations of 99.5.
        assert!((9_502..=10_498).contains(&lost), "{lost}");
    }

    #[test]
    fn bursts_have_their_mean_length_and_the_same_share() {
        let lost = losses("loss=1%,loss-burst=8", 4_000_000);
        let share = count(&lost) as f64 / lost.len() as f64;
        let runs = runs(&lost);
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        // About 5000 bursts, geometric with standard deviation 7.5: five standard errors of the mean are 0.53.
        assert!((mean - 8.0).abs() < 0.53, "runs of {mean}");
        assert!((share - 0.01).abs() < 0.001, "share {share}");
    }

    #[test]
    fn bursts_of_one_never_touch() {
        assert!(runs(&losses("loss=20%,loss-burst=1", 100_000)).iter().all(|run| *run == 1));
    }

    #[test]
    fn the_largest_share_is_reached() {
        let share = most_in_bursts(4.0);
        let lost = count(&losses("loss=80%,loss-burst=4", 1_000_000));
        assert!((lost as f64 / 1e6 - share).abs() < 0.005, "{lost}");
    }

    #[test]
    fn each_of_elliotts_states_loses_its_own_share() {
        // A quarter of the time bad: 0.75 * 1 % + 0.25 * 41 %.
        let lost = losses("loss-states=1%+3%+1%+41%", 4_000_000);
        let share = count(&lost) as f64 / 4e6;
        // Stays in a state last 33 and 100 segments, so 4 million segments hold some 30,000 changes: 1 % is five
        // standard errors.
        assert!((share - 0.11).abs() < 0.004, "{share}");
        // Gilbert's chain is a special case: bursts of 8 with the share 0.002 / 0.127.
        let mean = runs(&losses("loss-states=0.2%+12.5%+0%+100%", 4_000_000));
        let mean = mean.iter().sum::<usize>() as f64 / mean.len() as f64;
        assert!((mean - 8.0).abs() < 0.43, "runs of {mean}");
    }

    #[test]
    fn numbers_are_met_exactly_and_count_payload_alone() {
        assert_eq!(numbers("loss-nth=4", 13), [4, 8, 12]);
        assert_eq!(numbers("drop-list=1+2+9", 20), [1, 2, 9]);
        let file = super::super::numbers::tests::file("1\n2\n9\n");
        assert_eq!(numbers(&format!("drop-list={}", file.display()), 20), [1, 2, 9], "from a file");
        assert_eq!(numbers("drop-list=3+9,loss-nth=3", 10), [3, 6, 9], "together");
        let mut loss = loss("drop-list=2");
        let lost = [true, false, false, true].map(|payload| loss.loses(payload));
        assert_eq!(lost, [false, false, false, true]);
        loss.count_anew();
        assert_eq!([loss.loses(true), loss.loses(true)], [false, true], "a run counts anew");
    }

    #[test]
    fn chance_is_the_same_with_and_without_a_list() {
        let (alone, with) = (losses("loss=5%", 10_000), losses("loss=5%,drop-list=77", 10_000));
        let other: Vec<usize> = (0..10_000).filter(|n| alone[*n] != with[*n]).collect();
        assert!(with[76] && other.iter().all(|n| *n == 76), "{other:?}");
    }
}
