use std::collections::HashMap;

use super::*;
use crate::wire::{Failure, Operation};

/// Numbers that look random (Numerical Recipes, a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % (1 << 32);
        (self.0 >> 8) % most
    }
}

fn name(text: &str) -> RelativeName {
    RelativeName::parse(text.as_bytes()).expect("a name")
}

/// Returns the entries of a folder, of which those with `d` are folders.
fn entries(folder: &RelativeName) -> Vec<RelativeName> {
    let depth = folder.as_bytes().split(|byte| *byte == b'/').count();
    let mut numbers = Numbers(folder.as_bytes().iter().map(|byte| u64::from(*byte)).sum());
    let folders = 7 - depth.min(5) as u64;
    let one = |number: u64| format!("{}{number}", if number < folders { 'd' } else { 'f' });
    let count = if depth > 5 { 2 } else { numbers.below(9) };
    (0..count).filter_map(|number| folder.join(one(number).as_bytes())).collect()
}

fn is_folder(name: &RelativeName) -> bool {
    name.split().is_some_and(|(_, leaf)| leaf.starts_with(b"d")) && name.upwards().count() < 8
}

/// Returns the names in the order of a walk by one thread: what was found last is read first.
fn walked() -> Vec<RelativeName> {
    let (mut folders, mut all) = (vec![name("d0")], Vec::new());
    while let Some(folder) = folders.pop() {
        let found = entries(&folder);
        folders.extend(found.iter().filter(|name| is_folder(name)).cloned());
        all.extend(found);
    }
    all
}

fn portion(names: &[RelativeName]) -> Portion {
    let failed = |name: &RelativeName| Seen::Failed(name.clone(), Failure::plain(Operation::Special));
    Portion {
        seen: names.iter().map(failed).collect(),
        folders: names.iter().filter(|name| is_folder(name)).cloned().collect(),
        bytes: 1,
    }
}

/// Threads that read parts of a tree in any order.
struct Threads {
    numbers: Numbers,
    steps: Steps,
    /// The parts that are being read, and the entries of folders that are read in part.
    under_way: Vec<(u64, Vec<RelativeName>)>,
    left: HashMap<RelativeName, Vec<RelativeName>>,
    folder: tempfile::TempDir,
}

impl Threads {
    /// Begins to read a part, of two names at the most.
    fn begin(&mut self, (reading, part): (u64, FolderPart)) {
        let mut names = match &part {
            FolderPart::Whole(name) => entries(name),
            FolderPart::Rest(folder) => self.left.remove(folder.name()).expect("it was left"),
        };
        let rest = names.split_off(names.len().min(2));
        if !rest.is_empty() {
            let open = match part {
                FolderPart::Rest(folder) => folder,
                FolderPart::Whole(name) => OpenFolder::new(name, self.folder.path()),
            };
            self.left.insert(open.name().clone(), rest);
            self.steps.leave(reading, open);
        }
        self.under_way.push((reading, names));
    }

    fn finish_any(&mut self) {
        if !self.under_way.is_empty() {
            let at = self.numbers.below(self.under_way.len() as u64) as usize;
            let (reading, names) = self.under_way.swap_remove(at);
            self.steps.finish(reading, portion(&names));
        }
    }
}

#[test]
fn the_order_is_that_of_one_thread_whatever_is_read_first() {
    let expected = walked();
    assert!(expected.len() > 200, "{}", expected.len());
    for seed in 0..20 {
        let (steps, folder) = (Steps::default(), tempfile::tempdir().unwrap());
        let (under_way, left) = (Vec::new(), HashMap::new());
        let mut threads = Threads { numbers: Numbers(seed), steps, under_way, left, folder };
        threads.steps.push(name("d0"));
        let mut all = Vec::new();
        loop {
            match threads.numbers.below(3) {
                0 => threads.finish_any(),
                1 => {
                    if let Some(ahead) = threads.steps.next_ahead(6) {
                        threads.begin(ahead);
                    }
                }
                _ => match threads.steps.step() {
                    NextStep::Over => break,
                    NextStep::Wait => threads.finish_any(),
                    NextStep::Read(reading, part) => threads.begin((reading, part)),
                    NextStep::Take(seen) => all.extend(seen.into_iter().map(|one| match one {
                        Seen::Failed(name, _) => name,
                        other => panic!("{other:?}"),
                    })),
                },
            }
        }
        assert_eq!(all, expected, "seed {seed}");
        assert_eq!((threads.steps.waiting, threads.steps.open, threads.steps.bytes), (0, 0, 0));
    }
}

#[test]
fn no_more_is_read_ahead_than_the_bounds_allow() {
    let mut steps = Steps::default();
    (0..99).for_each(|number| steps.push(name(&number.to_string())));
    let begun: Vec<u64> =
        std::iter::from_fn(|| steps.next_ahead(6)).map(|(reading, _)| reading).take(99).collect();
    assert_eq!(begun.len(), 6);
    // The next step of the walk is being read. Once it is taken, one more may be.
    assert!(matches!(steps.step(), NextStep::Wait));
    steps.finish(begun[0], Portion { bytes: MOST_BYTES, ..Portion::default() });
    assert!(steps.next_ahead(7).is_none(), "the memory is used");
    assert!(matches!(steps.step(), NextStep::Take(_)));
    assert!(steps.next_ahead(6).is_some() && steps.next_ahead(6).is_none());
}

#[test]
fn no_further_folder_is_opened_while_many_are_open() {
    let (mut steps, all, mut opened) = (Steps::default(), tempfile::tempdir().unwrap(), 0);
    for number in 0..2 * MOST_OPEN {
        steps.push(name(&number.to_string()));
        let Some((reading, FolderPart::Whole(folder))) = steps.next_ahead(usize::MAX) else { break };
        steps.leave(reading, OpenFolder::new(folder, all.path()));
        steps.finish(reading, Portion::default());
        opened += 1;
    }
    assert_eq!(opened, MOST_OPEN);
    assert!(matches!(steps.step(), NextStep::Read(_, FolderPart::Whole(_))), "the walk goes on by itself");
}

/// Of a folder with many names, one part waits at a time.
#[test]
fn help_is_wanted_for_the_rest_of_a_folder_before_the_walk_comes_to_it() {
    let (mut steps, all) = (Steps::default(), tempfile::tempdir().unwrap());
    steps.push(name("d"));
    while let Some((reading, part)) = steps.next_ahead(4) {
        let open = match part {
            FolderPart::Whole(folder) => OpenFolder::new(folder, all.path()),
            FolderPart::Rest(folder) => folder,
        };
        steps.leave(reading, open);
        steps.finish(reading, Portion::default());
    }
    let wanted = [(); 4].map(|()| {
        assert!(matches!(steps.step(), NextStep::Take(_)));
        steps.wants_help(4, usize::from(steps.is_next_unread()))
    });
    assert_eq!(wanted, [false, false, true, false], "the walk reads by itself what it has come to");
}
