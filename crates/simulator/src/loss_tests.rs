//! Tests of which packets a line loses. Bounds are five standard deviations of the law that the test names.

use super::*;

fn losses(spec: &LossSpec, packets: u64) -> Vec<u64> {
    let mut loss = LossProcess::new(spec);
    (1..=packets).filter(|_| loss.takes()).collect()
}

#[test]
fn numbers_are_met_exactly() {
    assert_eq!(losses(&LossSpec::EveryNth { nth: 4 }, 13), [4, 8, 12]);
    assert_eq!(losses(&LossSpec::EveryNth { nth: 0 }, 5), [0; 0]);
    assert_eq!(losses(&LossSpec::List { packets: vec![1, 2, 9] }, 20), [1, 2, 9]);
    assert_eq!(losses(&LossSpec::List { packets: vec![] }, 20), [0; 0]);
    assert_eq!(losses(&LossSpec::None, 5), [0; 0]);
}

#[test]
fn chance_loses_its_share_and_does_not_remember() {
    const PACKETS: u64 = 2_000_000;
    let lost = losses(&LossSpec::Chance { share: 0.01, seed: 1 }, PACKETS);
    // The variance of the count is n p (1 - p), which is 19,800.
    assert!((lost.len() as f64 - 20_000.0).abs() < 5.0 * 19_800_f64.sqrt(), "{}", lost.len());
    // A loss follows a loss with the same probability: 20,000 trials of 0.01.
    let pairs = lost.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!((pairs as f64 - 200.0).abs() < 5.0 * 198_f64.sqrt(), "{pairs}");
    // Certain cases.
    assert_eq!(losses(&LossSpec::Chance { share: 0.0, seed: 1 }, 1000), [0; 0]);
    assert_eq!(losses(&LossSpec::Chance { share: 1.0, seed: 1 }, 3), [1, 2, 3]);
}

#[test]
fn bursts_have_their_mean_length_and_lose_their_share() {
    const PACKETS: u64 = 2_000_000;
    let (share, length) = (0.01, 5.0);
    let lost = losses(&LossSpec::Bursts { share, mean_packets: length, seed: 1 }, PACKETS);
    let bursts = lost.chunk_by(|a, b| a + 1 == *b).count() as f64;
    // Of a cycle of a burst B and a good run G, B - share (B + G) has the mean 0 and the variance
    // (1 - share)^2 (b^2 - b) + share^2 (g^2 - g), where g is 495: 43.7. There are 4000 cycles.
    assert!((lost.len() as f64 - 20_000.0).abs() < 5.0 * (4000.0 * 43.7_f64).sqrt(), "{}", lost.len());
    // The variance of a burst is 20.
    let mean = lost.len() as f64 / bursts;
    assert!((mean - length).abs() < 5.0 * (20.0 / bursts).sqrt(), "{mean}");
    assert_eq!(losses(&LossSpec::Bursts { share: 0.0, mean_packets: 3.0, seed: 1 }, 1000), [0; 0]);
    let even = losses(&LossSpec::Bursts { share: 0.5, mean_packets: 1.0, seed: 1 }, 6);
    assert_eq!(even, [2, 4, 6], "one by one");
}

#[test]
fn a_seed_loses_the_same_packets_and_another_one_others() {
    let chance = |seed| losses(&LossSpec::Chance { share: 0.1, seed }, 1000);
    let bursts = |seed| losses(&LossSpec::Bursts { share: 0.1, mean_packets: 4.0, seed }, 1000);
    assert_eq!((chance(7), bursts(7)), (chance(7), bursts(7)));
    assert!(chance(7) != chance(8) && bursts(7) != bursts(8));
}

#[test]
fn what_cannot_be_is_known() {
    let bursts = |share, mean_packets| LossSpec::Bursts { share, mean_packets, seed: 0 }.is_possible();
    assert!(bursts(0.5, 1.0) && !bursts(0.51, 1.0) && !bursts(0.1, 0.9) && !bursts(f64::NAN, 2.0));
    let chance = |share| LossSpec::Chance { share, seed: 0 }.is_possible();
    assert!(chance(1.0) && !chance(1.01) && !chance(-0.1) && LossSpec::None.is_possible());
}
