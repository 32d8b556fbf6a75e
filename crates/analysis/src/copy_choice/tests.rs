use landspeed_record::units::Bytes;

use super::*;

const SIZE: TrialSize = TrialSize {
    least: Nanos::millis(500),
    of_flow: Nanos(0),
    candidates: 4,
    blocks: 11,
    budget: Nanos::secs(1_000),
};

fn arm(flows: u32, control: &str) -> CopyArm {
    CopyArm { flows, control: Some(control.to_owned()), ..CopyArm::default() }
}

fn flows(flows: u32) -> CopyChange {
    CopyChange { flows: Some(flows), ..CopyChange::default() }
}

fn counted(turn: &NextTurn, bytes: f64) -> CopyCount {
    CopyCount {
        taken_bytes: Bytes(bytes as u64),
        counted_ns: turn.count,
        is_clean: true,
        flows: turn.arm.flows,
        control: turn.arm.control.clone(),
        transport: turn.arm.transport.clone(),
        ..CopyCount::default()
    }
}

/// A path whose rate drifts, and varies from turn to turn.
struct DriftingPath {
    random: Random,
    drift: f64,
}

impl DriftingPath {
    /// Returns the bytes per second of the next turn.
    fn rate(&mut self, effect: f64) -> f64 {
        self.drift += 0.03 * self.random.normal();
        // Some turns have a rate that is far off, as on a machine that others share.
        let noise = if self.random.happens(0.05) { 0.4 } else { 0.08 };
        267e6 * (self.drift + noise * self.random.normal()).exp() * effect
    }
}

/// What is left of a copy of [`copied`]: a first turn that is 1.2 times as fast as usual leaves fewer blocks than planned.
const COPIED_LEFT: Bytes = Bytes(24_000_000_000);

/// Runs a copy with four of twelve settings as candidates, and returns what it decided. `effect` is what a setting does
/// to the rate, by its number of flows.
fn copied(seed: u64, effect: &dyn Fn(u32) -> f64) -> (CopyChooser, Vec<CopyDecision>) {
    let mut path = DriftingPath { random: Random::stream(seed, 1), drift: 0.0 };
    let mut settings: Vec<u32> = (1..=12).filter(|number| *number != 4).collect();
    path.random.shuffle(&mut settings);
    let candidates = settings.into_iter().take(4).map(flows).collect();
    let mut chooser = CopyChooser::new(arm(4, "cubic"), candidates, SIZE, seed);
    let mut spent = Nanos(0);
    while let Some(turn) = chooser.next_turn(spent) {
        spent += turn.settle + turn.count;
        let bytes = path.rate(effect(turn.arm.flows)) * turn.count.as_secs_f64();
        chooser.take(&counted(&turn, bytes));
        chooser.has_left(spent, &CopyOutlook { elapsed: spent, left: COPIED_LEFT, rate: BitRate(2e9) });
    }
    let decided = chooser.decided();
    (chooser, decided)
}

/// The bar of the issue: of 2,000 copies with twelve equal settings, at most 5 % keep a change.
#[test]
fn of_equal_settings_the_default_stays() {
    let kept = (0..2_000).filter(|seed| copied(*seed, &|_| 1.0).0.kept().is_some()).count();
    assert!(kept <= 100, "{kept} of 2,000 copies kept a change");
}

#[test]
fn a_setting_that_is_half_as_fast_again_is_kept() {
    let mut tried = 0;
    let mut found = 0;
    for seed in 0..300 {
        let (chooser, decided) = copied(seed, &|flows| if flows == 8 { 1.5 } else { 1.0 });
        let of_best = decided.iter().find(|decision| decision.to.flows == 8);
        tried += u32::from(of_best.is_some());
        found += u32::from(of_best.is_some_and(|best| best.result == CopyTrialResult::Kept));
        assert!(decided.len() == 4 && chooser.kept().is_none_or(|kept| kept == chooser.incumbent()));
    }
    assert!(tried > 50 && found * 10 > tried * 7, "{found} of {tried}");
}

#[test]
fn a_setting_that_is_slower_harms_and_is_soon_left() {
    let (chooser, decided) = copied(3, &|flows| if flows == 4 { 1.0 } else { 0.3 });
    assert!(decided.iter().all(|decision| decision.result == CopyTrialResult::Harms), "{decided:?}");
    assert!(decided.iter().all(|decision| decision.blocks < SIZE.blocks && decision.ratio.is_some()));
    assert_eq!((chooser.incumbent(), chooser.kept()), (&arm(4, "cubic"), None));
}

#[test]
fn both_settings_have_the_same_turns_and_one_is_first_by_chance() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], SIZE, 7);
    let mut order = Vec::new();
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        order.push(turn.is_candidate);
        assert_eq!(turn.arm.flows == 8, turn.is_candidate);
        chooser.take(&counted(&turn, 1e8));
    }
    assert!(order.remove(0), "the first turn brings the candidate into force");
    for block in order.chunks(4) {
        assert!(block == [true, false, false, true] || block == [false, true, true, false], "{block:?}");
    }
    let [first, second] = [&order[..4], &order[4..8]];
    assert_ne!(first, second, "of two blocks, one begins with the candidate");
}

#[test]
fn the_first_turn_counts_at_its_end() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], SIZE, 7);
    let mut parts = Vec::new();
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        parts.push([turn.settle, turn.count]);
        // Its further flows open in the second turn.
        let flows = if parts.len() == 1 { 4 } else { turn.arm.flows };
        chooser.take(&CopyCount { flows, ..counted(&turn, 1e8) });
    }
    let [short, long] = [Nanos::millis(125), Nanos::millis(375)];
    assert_eq!(parts[..2], [[long, short]; 2]);
    assert!(parts.len() > 4 && parts[2..].iter().all(|part| *part == [short, long]), "{parts:?}");
}

#[test]
fn a_setting_that_does_not_come_into_force_is_not_tried() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![bbr(None), flows(8)], SIZE, 7);
    let turn = chooser.next_turn(Nanos(0)).expect("a turn");
    assert_eq!(turn.arm, arm(4, "bbr"));
    chooser.take(&CopyCount { refused: "not permitted".to_owned(), ..counted(&turn, 1e8) });
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        chooser.take(&CopyCount { flows: 4, ..counted(&turn, 1e8) });
    }
    let decided = chooser.decided();
    assert!(decided.iter().all(|decision| decision.result == CopyTrialResult::NotTried), "{decided:?}");
    assert_eq!(decided[0].why, "not permitted");
    assert_eq!(decided[1].why, "4 of 8 flows were open");
}

fn over_udt() -> CopyChange {
    CopyChange { flows: Some(4), transport: Some("udt".to_owned()), ..CopyChange::default() }
}

/// Where its flows do not open, those of the copy's own transport carry on, and no turn counts for it.
#[test]
fn a_transport_that_is_not_let_in_is_not_tried() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![over_udt()], SIZE, 7);
    let mut turns = 0;
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        turns += 1;
        assert!(turns < 100 && turn.arm.transport.is_some(), "{turn:?}");
        chooser.take(&CopyCount { flows: turns % 4, ..counted(&turn, 1e8) });
    }
    let decided = chooser.decided();
    assert_eq!((decided.len(), decided[0].result), (1, CopyTrialResult::NotTried));
    assert_eq!(decided[0].why, "2 of 4 flows were open over udt: something on the way may not let it in");
}

#[test]
fn a_transport_whose_flows_break_is_not_kept_and_a_better_one_is_compared_with_no_control() {
    let run = |open_in_its_turns: &dyn Fn(u32) -> u32| {
        let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![over_udt(), bbr(None)], SIZE, 7);
        let mut turns = 0;
        while let Some(turn) = chooser.next_turn(Nanos(0)) {
            turns += 1;
            let is_other = turn.arm.transport.is_some();
            let flows = if is_other { open_in_its_turns(turns) } else { 4 };
            chooser.take(&CopyCount { flows, ..counted(&turn, if is_other { 2e8 } else { 1e8 }) });
        }
        (chooser.kept().cloned(), chooser.decided())
    };
    let (kept, decided) = run(&|turns| if turns == 1 { 4 } else { 3 });
    assert_eq!((kept, decided[0].result), (None, CopyTrialResult::Undecided));
    let (kept, decided) = run(&|_| 4);
    assert_eq!(kept, Some(over_udt().applied(&arm(4, "cubic"))));
    assert_eq!((decided.len(), decided[0].result), (1, CopyTrialResult::Kept), "nothing else can be changed");
}

fn bbr(flows: Option<u32>) -> CopyChange {
    CopyChange { flows, control: Some("bbr".to_owned()), ..CopyChange::default() }
}

/// Tries BBR with eight flows, then UDT, BBR alone and eight flows. BBR is twice as fast. Returns what came of each.
fn beside_bbr_with_more_flows(open: u32) -> Vec<(CopyArm, CopyTrialResult)> {
    let all = vec![bbr(Some(8)), over_udt(), bbr(None), flows(8)];
    let mut chooser = CopyChooser::new(arm(4, "cubic"), all, SIZE, 7);
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        let bytes = if turn.arm.control.as_deref() == Some("bbr") { 2e8 } else { 1e8 };
        chooser.take(&CopyCount { flows: turn.arm.flows.min(open), ..counted(&turn, bytes) });
    }
    chooser.decided().into_iter().map(|one| (one.to, one.result)).collect()
}

#[test]
fn a_control_that_was_kept_with_more_flows_is_not_tried_alone() {
    let udt = over_udt().applied(&arm(4, "cubic"));
    let kept = [(arm(8, "bbr"), CopyTrialResult::Kept), (udt, CopyTrialResult::Harms)];
    assert_eq!(beside_bbr_with_more_flows(8), kept);
}

#[test]
fn a_control_is_tried_alone_where_its_further_flows_do_not_open() {
    let [not_tried, kept] = [CopyTrialResult::NotTried, CopyTrialResult::Kept];
    let udt = (over_udt().applied(&arm(4, "cubic")), CopyTrialResult::NoEffect);
    let missing = (arm(8, "bbr"), not_tried);
    assert_eq!(beside_bbr_with_more_flows(4), [missing.clone(), udt, (arm(4, "bbr"), kept), missing]);
}

/// A stream of small files between long ones, or a path that breaks, must not be taken for the effect of a setting.
#[test]
fn turns_without_a_figure_decide_nothing_and_have_an_end() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], SIZE, 7);
    let mut turns = 0;
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        turns += 1;
        assert!(turns < 1_000, "it has no end");
        chooser.take(&CopyCount { is_clean: turns % 3 != 0, ..counted(&turn, 1e8) });
    }
    let decided = chooser.decided();
    assert_eq!((decided.len(), decided[0].result), (1, CopyTrialResult::Undecided));
    assert!(decided[0].why.contains("flows broke"), "{decided:?}");
}

#[test]
fn a_setting_that_breaks_flows_is_not_kept_for_the_turns_without_a_break() {
    let decided = |breaks: bool| {
        let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], SIZE, 7);
        let mut of_candidate = 0_u32;
        while let Some(turn) = chooser.next_turn(Nanos(0)) {
            of_candidate += u32::from(turn.is_candidate);
            let has_broken = breaks && turn.is_candidate && of_candidate.is_multiple_of(4);
            let bytes = if turn.is_candidate { 2e8 } else { 1e8 };
            chooser.take(&CopyCount { is_clean: !has_broken, ..counted(&turn, bytes) });
        }
        chooser.decided().remove(0)
    };
    assert_eq!(decided(false).result, CopyTrialResult::Kept);
    let of_breaking = decided(true);
    assert_eq!((of_breaking.result, of_breaking.blocks), (CopyTrialResult::Undecided, SIZE.blocks));
    assert!(of_breaking.why.contains("more of its turns"), "{of_breaking:?}");
}

#[test]
fn what_has_no_time_left_is_named() {
    let size = TrialSize { budget: Nanos::secs(13), ..SIZE };
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8), flows(2)], size, 7);
    let mut spent = Nanos(0);
    while let Some(turn) = chooser.next_turn(spent) {
        spent += turn.settle + turn.count;
        assert!(spent <= size.budget);
        // It is far better, and only a last look may keep it.
        let bytes = if turn.is_candidate { 2e8 } else { 1e8 };
        chooser.take(&counted(&turn, bytes));
    }
    let decided = chooser.decided();
    assert_eq!(decided.len(), 2);
    assert_eq!((decided[0].result, decided[0].blocks), (CopyTrialResult::Kept, 6), "its time was over");
    assert_eq!(decided[1].result, CopyTrialResult::NotTried);
    assert_eq!(decided[1].to.flows, 2);
    assert_eq!(decided[1].why, "no time was left for it");
}

#[test]
fn a_candidate_begins_only_where_it_can_be_judged() {
    let decided = |budget| {
        let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], TrialSize { budget, ..SIZE }, 7);
        let mut spent = Nanos(0);
        while let Some(turn) = chooser.next_turn(spent) {
            spent += turn.settle + turn.count;
            chooser.take(&counted(&turn, if turn.is_candidate { 2e8 } else { 1e8 }));
        }
        let CopyDecision { result, blocks, why, .. } = chooser.decided().remove(0);
        (result, blocks, spent, why)
    };
    let why = || "no time was left for it".to_owned();
    // Four blocks and a turn take 8.5 seconds, and 2.55 pass between their turns, but not in this test.
    let [short, enough] = [11_049, 11_050].map(Nanos::millis);
    assert_eq!(decided(short), (CopyTrialResult::NotTried, 0, Nanos(0), why()));
    assert_eq!(decided(enough), (CopyTrialResult::Kept, 5, Nanos::millis(10_500), why()));
}

/// One that could not be tried leaves its time to the next one.
#[test]
fn as_many_are_tried_as_there_is_time_for_and_the_others_are_named() {
    let size = TrialSize { candidates: 1, ..SIZE };
    let all = [flows(16), flows(8), flows(2)].to_vec();
    let mut chooser = CopyChooser::new(arm(4, "cubic"), all, size, 7);
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        let open = turn.arm.flows.min(8);
        chooser.take(&CopyCount { flows: open, ..counted(&turn, 1e8) });
    }
    let decided = chooser.decided();
    let results: Vec<(u32, CopyTrialResult)> = decided.iter().map(|one| (one.to.flows, one.result)).collect();
    let [not_tried, no_effect] = [CopyTrialResult::NotTried, CopyTrialResult::NoEffect];
    assert_eq!(results, [(16, not_tried), (8, no_effect), (2, not_tried)]);
    assert!(decided[2].why.contains("no room for it"), "{decided:?}");
    let numbers: Vec<u32> = decided.iter().map(|one| one.candidate).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn the_turns_of_both_settings_are_as_long_as_the_one_with_more_flows_takes() {
    let size = TrialSize { of_flow: Nanos::millis(200), ..SIZE };
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8), flows(2)], size, 7);
    let mut lengths = [Vec::new(), Vec::new()];
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        lengths[turn.candidate as usize].push(turn.settle + turn.count);
        chooser.take(&counted(&turn, 1e8));
    }
    assert!(lengths.iter().all(|of_candidate| of_candidate.len() > 4), "{lengths:?}");
    assert!(lengths[0].iter().all(|turn| *turn == Nanos::millis(1_600)), "8 flows");
    assert!(lengths[1].iter().all(|turn| *turn == Nanos::millis(800)), "4 flows, also while 2 are in use");
}

#[test]
fn direct_writes_are_a_setting_like_others() {
    let direct = CopyChange { direct: Some(true), ..CopyChange::default() };
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![direct, flows(8)], SIZE, 7);
    while let Some(turn) = chooser.next_turn(Nanos(0)) {
        let bytes = if turn.arm.direct { 2e8 } else { 1e8 };
        chooser.take(&counted(&turn, bytes));
    }
    let kept = CopyArm { direct: true, ..arm(4, "cubic") };
    assert_eq!(chooser.kept(), Some(&kept));
    assert_eq!(chooser.decided()[1].from, kept, "the next one is compared with it");
}

const LOSSY_RTT: Nanos = Nanos::millis(180);
/// What CUBIC has at first over the path of [`over_a_lossy_path`].
const LOSSY_RATE: BitRate = BitRate(75e6);

/// Copies over 1 Gb/s and 180 ms with one lost packet in 10,000: four flows have 75 Mb/s with CUBIC and ten times as much
/// with BBR, and CUBIC's turns begin with BBR's windows. More flows with BBR have more. Returns what came of BBR with this
/// number of flows, and what was left then.
fn over_a_lossy_path(content: Bytes, number: Option<u32>) -> (CopyDecision, Bytes) {
    let outlook = CopyOutlook { elapsed: Nanos::secs(15), left: content, rate: LOSSY_RATE };
    let size = trial_size(&outlook, LOSSY_RTT, &[number.unwrap_or(4), 8]).expect("there is time");
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![bbr(number), flows(8)], size, 7);
    let of_bbr = if number.is_some() { 112e6 } else { 93e6 };
    let (mut random, mut left, mut spent) = (Random::new(7), content, Nanos(0));
    loop {
        chooser.has_left(spent, &CopyOutlook { left, ..outlook });
        let turn = chooser.next_turn(spent).expect("BBR is tried first");
        let usual = if turn.is_candidate { of_bbr } else { 50e6 };
        let rate = usual * (0.05 * random.normal()).exp();
        let time = turn.settle + turn.count;
        assert!(time >= LOSSY_RTT.times(20) && turn.settle >= LOSSY_RTT.times(5), "{turn:?}");
        (spent, left) = (spent + time, left - Bytes((rate * time.as_secs_f64()) as u64));
        match left {
            Bytes(0) => chooser.end("the copy came to its end"),
            _ => chooser.take(&counted(&turn, rate * turn.count.as_secs_f64())),
        }
        if let Some(first) = chooser.decided().into_iter().next() {
            return (first, left);
        }
    }
}

/// A better setting moves ten times as much in its turns, so that the copy ends long before the time that it was expected
/// to take.
#[test]
fn a_far_better_control_is_proven_before_it_ends_the_copy() {
    for (gib, number) in [(6, None), (8, None), (12, None), (8, Some(8)), (12, Some(8))] {
        let (bbr, left) = over_a_lossy_path(Bytes::mib(gib << 10), number);
        let asked = arm(number.unwrap_or(4), "bbr");
        assert_eq!((bbr.result, bbr.to), (CopyTrialResult::Kept, asked), "{gib} GiB");
        assert!(
            bbr.ratio.is_some_and(|ratio| ratio.low > 1.02) && left > Bytes::mib(1 << 10),
            "{gib} GiB: {left}"
        );
    }
}

/// At the link's rate 2 GiB take less time than four blocks of turns of 20 round trips.
#[test]
fn a_copy_that_is_over_before_four_blocks_proves_nothing() {
    let (bbr, _) = over_a_lossy_path(Bytes::mib(2 << 10), None);
    assert_eq!((bbr.result, bbr.ratio), (CopyTrialResult::Undecided, None));
    assert!(bbr.blocks < 4 && bbr.why == "the copy came to its end", "{bbr:?}");
}

#[test]
fn what_was_kept_shortens_the_copy_and_the_trials_that_follow() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8), flows(2)], SIZE, 7);
    let outlook = CopyOutlook { elapsed: Nanos::secs(30), left: Bytes(0), rate: BitRate(1e9) };
    let mut spent = Nanos(0);
    chooser.has_left(spent, &outlook);
    while let Some(turn) = chooser.next_turn(spent) {
        spent += turn.settle + turn.count;
        chooser.take(&counted(&turn, if turn.is_candidate { 2e8 } else { 1e8 }));
        chooser.has_left(spent, &outlook);
    }
    // Four blocks and a turn of half a second are 8.5 of the 9 seconds.
    assert_eq!(spent, Nanos::millis(8_500));
    let decided = chooser.decided();
    assert_eq!([decided[0].result, decided[1].result], [CopyTrialResult::Kept, CopyTrialResult::NotTried]);
    assert_eq!(decided[1].why, "no time was left for it");
}

/// Trials that begin late in a copy have their share of all of it, and a later candidate has one of the rest.
#[test]
fn a_candidate_after_one_that_was_kept_takes_at_most_30_percent_of_what_is_left() {
    let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8), over_udt()], SIZE, 7);
    let (mut spent, mut kept_at) = (Nanos(0), None);
    while let Some(turn) = chooser.next_turn(spent) {
        spent += turn.settle + turn.count;
        let rate = match turn.arm.transport {
            Some(_) => 1e8,
            None if turn.arm.flows == 8 => 5e7,
            None => 2.5e7,
        };
        chooser.take(&counted(&turn, rate * turn.count.as_secs_f64()));
        let left = if chooser.kept().is_some() { 4_800_000_000 } else { 50_000_000_000 };
        kept_at = kept_at.or_else(|| chooser.kept().map(|_| spent));
        let elapsed = Nanos::secs(300) + spent;
        chooser.has_left(spent, &CopyOutlook { elapsed, left: Bytes(left), rate: BitRate(1e9) });
    }
    let decided: Vec<_> = chooser.decided().into_iter().map(|one| (one.result, one.blocks)).collect();
    assert_eq!(decided, [(CopyTrialResult::Kept, SIZE.blocks), (CopyTrialResult::Kept, 5)]);
    // Of 38.4 s these are 11.5. The content would suffice for six blocks.
    assert_eq!(kept_at.map(|at| spent - at), Some(Nanos::millis(10_500)));
}

/// Blocks may not say how many of them there are.
#[test]
fn what_is_left_counts_after_the_first_turn_alone() {
    let blocks = |left_at: usize| {
        let mut chooser = CopyChooser::new(arm(4, "cubic"), vec![flows(8)], SIZE, 7);
        let mut turns = 0;
        while let Some(turn) = chooser.next_turn(Nanos(0)) {
            turns += 1;
            chooser.take(&counted(&turn, if turn.is_candidate { 2e8 } else { 1e8 }));
            if turns == left_at {
                let outlook = CopyOutlook { elapsed: Nanos(0), left: Bytes(0), rate: BitRate(1e9) };
                chooser.has_left(Nanos(0), &outlook);
            }
        }
        chooser.decided().remove(0).blocks
    };
    assert_eq!([blocks(1), blocks(2), blocks(9)], [4, SIZE.blocks, SIZE.blocks]);
}
