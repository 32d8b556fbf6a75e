use super::*;
use crate::tree::tests::found_file as file;

const MIB: u64 = 1 << 20;

fn same() -> Result<BTreeSet<CopyDifference>, String> {
    Ok(BTreeSet::new())
}

/// Returns a queue that waits for the answer about these files.
fn asked(check: CopyCheck, files: &[(&str, u64)]) -> (CompareQueue, Vec<FoundEntry>) {
    let mut queue = CompareQueue::new(check, false);
    queue.add(files.iter().map(|(name, size)| file(name, *size)).collect());
    queue.walked();
    let NextStep::Look(found) = queue.step() else { panic!("a question") };
    assert_eq!(queue.step(), NextStep::Wait, "another flow may find something to do");
    (queue, found)
}

fn content(queue: &mut CompareQueue) -> Vec<RangeWork> {
    let NextStep::Read(work) = queue.step() else { panic!("content to read") };
    work
}

fn names(compared: &[ComparedEntry]) -> Vec<String> {
    compared
        .iter()
        .map(|one| String::from_utf8_lossy(one.found.offered.name.as_bytes()).into_owned())
        .collect()
}

#[test]
fn a_dry_run_reads_nothing() {
    let (mut queue, found) = asked(CopyCheck::DryRun, &[("a", 10), ("b", 5 * MIB)]);
    assert_eq!(names(&queue.seen(found, [same(), same()])), ["a", "b"]);
    assert_eq!(queue.step(), NextStep::Over);
}

#[test]
fn files_of_the_same_length_are_read_and_no_others() {
    let (mut queue, found) =
        asked(CopyCheck::Verify, &[("a", 10), ("empty", 0), ("b", 9), ("c", 9), ("d", 9)]);
    let differs = |difference| Ok([difference].into());
    let seen = [
        same(),
        same(),
        differs(CopyDifference::Size),
        differs(CopyDifference::Mode),
        Err("at the target: cannot be opened".to_owned()),
    ];
    assert_eq!(names(&queue.seen(found, seen)), ["empty", "b", "d"]);
    let work = content(&mut queue);
    assert_eq!(work.len(), 2, "short files share a question");
    assert_eq!(queue.step(), NextStep::Wait);
    let compared = queue.read(&work, [Ok(true), Ok(false)]);
    assert_eq!(names(&compared), ["a", "c"]);
    assert_eq!(compared[0].differs, same());
    assert_eq!(compared[1].differs, Ok([CopyDifference::Mode, CopyDifference::Content].into()));
    assert_eq!((compared[0].read_bytes, queue.step()), (10, NextStep::Over));
}

#[test]
fn a_long_file_is_read_over_several_flows() {
    let size = 100 * MIB + 1;
    let (mut queue, found) = asked(CopyCheck::Verify, &[("a", size)]);
    assert!(queue.seen(found, [same()]).is_empty());
    let (one, other) = (content(&mut queue), content(&mut queue));
    let ranges = [&one[0].range, &other[0].range].map(|range| (range.first, range.number, range.bytes()));
    assert_eq!(ranges, [(0, 64, 64 * MIB), (64, 37, 36 * MIB + 1)]);
    assert!(queue.read(&other, [Ok(true)]).is_empty());
    let compared = queue.read(&one, [Ok(true)]);
    assert_eq!((&compared[0].differs, compared[0].read_bytes), (&same(), size));
    assert_eq!(queue.step(), NextStep::Over);
}

#[test]
fn a_file_that_differs_is_read_no_further() {
    let other: Result<BTreeSet<CopyDifference>, String> = Ok([CopyDifference::Content].into());
    for (result, expected) in [(Ok(false), other), (Err("changed".to_owned()), Err("changed".to_owned()))] {
        let (mut queue, found) = asked(CopyCheck::Verify, &[("a", 200 * MIB)]);
        queue.seen(found, [same()]);
        let (one, other) = (content(&mut queue), content(&mut queue));
        assert!(queue.read(&one, [result]).is_empty(), "a flow still reads it");
        assert_eq!(queue.step(), NextStep::Wait);
        let compared = queue.read(&other, [Ok(true)]);
        assert_eq!((&compared[0].differs, compared[0].read_bytes), (&expected, 128 * MIB));
        assert_eq!(queue.step(), NextStep::Over);
    }
}

#[test]
fn a_question_has_a_bounded_number_of_files() {
    let many: Vec<FoundEntry> = (0..300).map(|n| file(&n.to_string(), 1)).collect();
    let mut queue = CompareQueue::new(CopyCheck::Verify, false);
    queue.add(many);
    queue.walked();
    let NextStep::Look(found) = queue.step() else { panic!("a question") };
    queue.seen(found, std::iter::repeat_with(same));
    assert_eq!((content(&mut queue).len(), content(&mut queue).len()), (MOST_PIECES, 300 - MOST_PIECES));
}
