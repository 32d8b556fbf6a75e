//! Tests that compare the scoreboard's counts with counts computed anew, after any sequence of operations.

use proptest::prelude::*;

use super::*;
use crate::agenda::NEVER;

fn at(ns: u64) -> SentSegment {
    SentSegment { at: Nanos(ns), ..SentSegment::default() }
}

fn newest(ns: u64, seq: u64) -> NewestDelivery {
    NewestDelivery { sent_at: Nanos(ns), seq, rtt: Nanos(100) }
}

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new();
    for n in 0..segments {
        board.push(at(n));
    }
    board
}

#[test]
fn segments_sent_before_a_delivered_one_are_lost() {
    let mut board = board(10);
    board.sack(4);
    assert_eq!(board.detect(&newest(4, 4), Nanos(104), Nanos(0)), NEVER);
    assert_eq!(board.counts(), [10, 1, 4, 0]);
    let again: Vec<_> = std::iter::from_fn(|| board.resend(at(200))).collect();
    assert_eq!(again, [0, 1, 2, 3], "the oldest first");
    assert_eq!(board.in_flight(), 9);
}

#[test]
fn patience_puts_the_judgement_off() {
    let mut board = board(10);
    board.sack(1);
    assert_eq!(board.detect(&newest(1, 1), Nanos(101), Nanos(25)), Nanos(125));
    assert_eq!(board.lost(), 0);
    assert_eq!(board.detect(&newest(1, 1), Nanos(125), Nanos(25)), NEVER);
    assert_eq!(board.lost(), 1);
}

#[test]
fn a_lost_retransmission_is_found_by_a_later_segment() {
    let mut board = board(10);
    board.sack(4);
    board.detect(&newest(4, 4), Nanos(104), Nanos(0));
    assert_eq!((board.resend(at(200)), board.resend(at(201))), (Some(0), Some(1)));
    // The second retransmission arrives, the first does not.
    board.sack(1);
    board.detect(&newest(201, 1), Nanos(301), Nanos(0));
    assert_eq!(board.resend(at(302)), Some(0), "before what was never sent again");
    assert_eq!(board.resend(at(302)), Some(2));
}

#[test]
fn after_a_timeout_everything_is_lost_in_order() {
    let mut board = board(6);
    board.sack(2);
    board.detect(&newest(2, 2), Nanos(102), Nanos(0));
    board.resend(at(150));
    board.mark_all_lost();
    assert_eq!(board.counts(), [6, 1, 5, 0]);
    let again: Vec<_> = std::iter::from_fn(|| board.resend(at(900))).collect();
    assert_eq!(again, [0, 1, 3, 4, 5]);
}

#[derive(Debug, Clone)]
enum ScoreboardStep {
    Push,
    Pop,
    Sack(u64),
    Detect(u64),
    Resend,
    Probe,
    Timeout,
}

fn step() -> impl Strategy<Value = ScoreboardStep> {
    prop_oneof![
        4 => Just(ScoreboardStep::Push),
        2 => Just(ScoreboardStep::Pop),
        3 => (0..80_u64).prop_map(ScoreboardStep::Sack),
        2 => (0..80_u64).prop_map(ScoreboardStep::Detect),
        3 => Just(ScoreboardStep::Resend),
        1 => Just(ScoreboardStep::Probe),
        1 => Just(ScoreboardStep::Timeout),
    ]
}

fn recount(board: &Scoreboard) -> [u32; 4] {
    let count = |flag| (board.una..board.next).filter(|seq| board.at(*seq).flags & flag != 0).count() as u32;
    [(board.next - board.una) as u32, count(SACKED), count(LOST), count(RESENT)]
}

proptest! {
    #[test]
    fn counts_stay_true_and_every_lost_segment_can_be_sent_again(steps in prop::collection::vec(step(), 1..400)) {
        let mut board = board(70);
        for (now, step) in (1000..).zip(steps) {
            match step {
                ScoreboardStep::Push => _ = board.push(at(now)),
                ScoreboardStep::Pop if board.out() > 0 => _ = board.pop(),
                ScoreboardStep::Sack(n) => _ = board.sack(board.una() + n),
                ScoreboardStep::Detect(n) if n < u64::from(board.out()) => {
                    let seq = board.una() + n;
                    let newest = NewestDelivery { sent_at: board.at(seq).at, seq, rtt: Nanos(0) };
                    board.detect(&newest, Nanos(now), Nanos(0));
                }
                ScoreboardStep::Probe => _ = board.resend_last(at(now)),
                ScoreboardStep::Resend => _ = board.resend(at(now)),
                ScoreboardStep::Timeout => board.mark_all_lost(),
                ScoreboardStep::Pop | ScoreboardStep::Detect(_) => {}
            }
            prop_assert_eq!(board.counts(), recount(&board));
        }
        let is_waiting = |seq: &u64| board.at(*seq).flags & (LOST | RESENT) == LOST;
        let waiting = (board.una..board.next).filter(is_waiting).count() as u32;
        let sent = std::iter::from_fn(|| board.resend(at(5000))).count();
        prop_assert_eq!(sent as u32, waiting);
    }
}
