//! Tests of the order of candidates: by rank, by the current setting, and by a verdict.

use landspeed_record::Cause;

use super::*;

fn candidate(knob: &str, rank: u32, interacts: &[&str]) -> Candidate {
    let interacts = interacts.iter().map(|s| (*s).to_owned()).collect();
    Candidate { knob: knob.into(), rank, interacts, ..Candidate::default() }
}

fn valued(knob: &str, value: &str, rank: u32) -> Candidate {
    Candidate { value: value.into(), ..candidate(knob, rank, &[]) }
}

fn hint(knob: &str, value: &str, expected_ratio: Option<f64>) -> KnobHint {
    let why = StepPrediction { verdict: 0, cause: Cause::OffloadsOff, weight: 0.5, expected_ratio };
    KnobHint { knob: knob.into(), value: value.into(), why }
}

/// Returns findings with one remedy each.
fn each<const N: usize>(hints: [KnobHint; N]) -> Vec<Vec<KnobHint>> {
    hints.map(|hint| vec![hint]).into()
}

/// Empties the queue. Returns each task as "knob=value".
fn order(queue: &mut CandidateQueue) -> Vec<String> {
    let tasks = std::iter::from_fn(|| queue.pop());
    tasks.map(|task| format!("{}={}", task.candidate.knob, task.candidate.value)).collect()
}

#[test]
fn lowest_rank_first_and_ties_in_the_order_given() {
    let mut queue =
        CandidateQueue::new(vec![candidate("c", 5, &[]), candidate("a", 1, &[]), candidate("b", 1, &[])]);
    assert_eq!(order(&mut queue), ["a=", "b=", "c="]);
}

#[test]
fn the_current_setting_decides_what_is_worth_trying() {
    let mut queue = CandidateQueue::new(vec![candidate("tso", 1, &[]), candidate("mtu", 2, &[])]);
    queue.pop().unwrap();
    let bigger = candidate("gso-max-size", 3, &[]);
    // With TSO kept, larger packets matter and the MTU no longer does; TSO is not tried again.
    queue.renew(vec![candidate("tso", 1, &[]), bigger.clone()], &[candidate("mtu", 2, &[])]);
    assert_eq!(queue.pop().unwrap().candidate, bigger);
    assert!(queue.pop().is_none());
    queue.renew(vec![candidate("mtu", 2, &[])], &[]);
    assert_eq!(queue.pop().unwrap().candidate.knob, "mtu", "it was never tried");
}

#[test]
fn reopened_twice_at_most_and_after_the_decisive() {
    let window = candidate("window", 1, &["tso", "mtu", "csum"]);
    let mut queue = CandidateQueue::new(vec![window, candidate("tso", 50, &[])]);
    let first = queue.pop().unwrap();
    queue.reject(first);
    assert_eq!(queue.reopen(&candidate("mtu", 2, &[]), "1").len(), 1);
    assert_eq!(queue.pop().unwrap().candidate.knob, "tso", "windows wait for it");
    let again = queue.pop().unwrap();
    assert!(again.reopened());
    queue.reject(again);
    assert_eq!(queue.reopen(&candidate("rings", 3, &[]), "2").len(), 0, "no interaction");
    assert_eq!(queue.reopen(&candidate("csum", 3, &[]), "3").len(), 1);
    let last = queue.pop().unwrap();
    queue.reject(last);
    assert_eq!(queue.reopen(&candidate("tso", 3, &[]), "4").len(), 0, "twice in all");
}

#[test]
fn a_verdict_brings_what_it_names_to_the_front_in_its_order() {
    let all = || vec![valued("mtu", "9000", 1), valued("tso", "on", 2), valued("gro", "on", 3)];
    let mut queue = CandidateQueue::new(all());
    queue.advise(&each([hint("gro", "on", None), hint("unknown", "on", None), hint("tso", "on", Some(2.0))]));
    assert_eq!(order(&mut queue), ["gro=on", "tso=on", "mtu=9000"]);
    let mut queue = CandidateQueue::new(all());
    queue.advise(&each([hint("gro", "off", None)]));
    assert_eq!(order(&mut queue), ["mtu=9000", "tso=on", "gro=on"], "another value is another candidate");
}

#[test]
fn the_table_chooses_the_value_where_a_verdict_does_not() {
    let values =
        || vec![valued("mtu", "9000", 15), valued("window", "large", 18), valued("window", "fixed", 125)];
    let mut queue = CandidateQueue::new(values());
    queue.advise(&each([hint("window", "", None)]));
    let first = queue.pop().unwrap();
    assert_eq!(first.candidate.value, "large", "one value, not all of them");
    assert_eq!(queue.waiting[0].candidate.knob, "mtu");
    // The table's first value was tried. The others are not decisive and keep their place.
    queue.reject(first);
    queue.advise(&each([hint("window", "", None)]));
    assert_eq!(order(&mut queue), ["mtu=9000", "window=fixed"]);
    // A knob that the literature ranks low comes forward once, because none of its values was tried.
    let mut queue = CandidateQueue::new(vec![valued("mtu", "9000", 15), valued("irq-affinity", "0", 170)]);
    queue.advise(&each([hint("irq-affinity", "", None)]));
    assert_eq!(order(&mut queue), ["irq-affinity=0", "mtu=9000"]);
}

#[test]
fn the_first_hint_decides_the_place_and_the_first_figure_what_is_expected() {
    let mut queue = CandidateQueue::new(vec![valued("gro", "on", 1), valued("tso", "on", 2)]);
    queue.advise(&each([
        hint("tso", "on", None),
        hint("gro", "on", Some(1.2)),
        hint("tso", "on", Some(3.0)),
    ]));
    let (place, said) = queue.pop().unwrap().advised.unwrap();
    assert_eq!((place, said.expected_ratio), (0, Some(3.0)));
    assert_eq!(queue.pop().unwrap().advised.unwrap().1.expected_ratio, Some(1.2));
}

#[test]
fn a_kept_step_and_a_new_verdict_forget_the_old_one() {
    let mut queue =
        CandidateQueue::new(vec![valued("mtu", "9000", 1), valued("tso", "on", 2), valued("gro", "on", 3)]);
    queue.advise(&each([hint("gro", "on", None)]));
    queue.advise(&each([hint("tso", "on", None)]));
    assert_eq!(queue.waiting[0].candidate.knob, "tso", "the new verdict alone counts");
    queue.reopen(&candidate("rings", 9, &[]), "1");
    assert_eq!(order(&mut queue), ["mtu=9000", "tso=on", "gro=on"], "the bottleneck may have moved");
}

#[test]
fn a_verdict_does_not_overrule_a_measurement() {
    let window = Candidate { value: "large".into(), ..candidate("window", 1, &["tso", "csum"]) };
    let mut queue = CandidateQueue::new(vec![window, candidate("tso", 50, &[]), candidate("mtu", 60, &[])]);
    let first = queue.pop().unwrap();
    queue.reject(first);
    queue.advise(&each([hint("window", "large", None)]));
    assert_eq!(queue.waiting[0].candidate.knob, "tso", "what was rejected stays rejected");
    queue.reopen(&candidate("csum", 2, &[]), "1");
    queue.advise(&each([hint("window", "large", None)]));
    assert_eq!(
        order(&mut queue),
        ["tso=", "window=large", "mtu="],
        "and its second chance waits for its partner"
    );
}

#[test]
fn a_change_that_brings_the_first_remedy_along_goes_before_it_with_the_figure() {
    let change = |knobs: &[&str]| Cell {
        a: knobs.iter().map(|knob| ((*knob).to_owned(), "on".to_owned())).collect(),
        ..Cell::default()
    };
    let candidates = || {
        vec![
            valued("mtu", "9000", 15),
            Candidate { change: change(&["csum", "sg"]), ..valued("csum", "on", 20) },
            Candidate { change: change(&["csum", "sg", "tso"]), ..valued("tso", "on", 25) },
        ]
    };
    let figures = |queue: &mut CandidateQueue| {
        let tasks = std::iter::from_fn(|| queue.pop());
        tasks
            .map(|t| (t.candidate.knob, t.advised.and_then(|(_, said)| said.expected_ratio)))
            .collect::<Vec<_>>()
    };
    let mut queue = CandidateQueue::new(candidates());
    queue.advise(&[vec![hint("csum", "on", Some(3.0)), hint("tso", "on", None)]]);
    let expected: Vec<(String, Option<f64>)> =
        vec![("tso".into(), Some(3.0)), ("csum".into(), None), ("mtu".into(), None)];
    assert_eq!(figures(&mut queue), expected);
    // Two causes need two remedies: their order stays.
    let mut queue = CandidateQueue::new(candidates());
    queue.advise(&each([hint("csum", "on", Some(3.0)), hint("tso", "on", Some(2.0))]));
    let expected: Vec<(String, Option<f64>)> =
        vec![("csum".into(), Some(3.0)), ("tso".into(), Some(2.0)), ("mtu".into(), None)];
    assert_eq!(figures(&mut queue), expected);
}

#[test]
fn a_value_that_a_kept_step_replaced_is_not_brought_back() {
    let mut queue =
        CandidateQueue::new(vec![valued("mtu", "9000", 15), valued("placement", "neighbours", 105)]);
    queue.replace("placement", "neighbours");
    queue.advise(&each([hint("placement", "neighbours", None)]));
    assert_eq!(
        order(&mut queue),
        ["mtu=9000", "placement=neighbours"],
        "it keeps its place in the literature's order"
    );
}
