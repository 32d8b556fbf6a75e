//! Another user of the host swaps folders for symbolic links while a copy runs: at each step, and continuously.

use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, RenameFlags};

use super::hostile_target::serve;
use super::*;

/// A folder of the target and a symbolic link, which change places.
struct Swap<'w>(&'w World);

impl Swap<'_> {
    fn new(world: &World) -> Swap<'_> {
        fs::create_dir(world.inside("d")).unwrap();
        symlink(world.at("outside"), world.at("link")).unwrap();
        Swap(world)
    }

    fn swap(&self) {
        let (folder, link) = (self.0.inside("d"), self.0.at("link"));
        rustix::fs::renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
}

/// Raises a flag when dropped, also in a panic, because another thread waits for it.
struct RaisedAtEnd<'f>(&'f AtomicBool);

impl Drop for RaisedAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Sends a file into the folder and the folder's mode. Calls `step` between the messages, with the number of the step.
fn send_into(peer: &mut Peer<'_>, round: u64, step: &dyn Fn(u64)) {
    step(0);
    let modified = Timestamp { seconds: round as i64, nanos: 0 };
    peer.offer(round, vec![OfferedEntry { modified, ..file(&format!("d/{}", round % 50), 3) }]);
    let answers = peer.answers();
    step(1);
    if answers == [Answer::Send] {
        peer.say_with(&ToTarget::Pieces(vec![piece(round, 0, 1, b"new")]), b"new");
        step(2);
        assert_eq!(peer.outcomes().len(), 1);
    }
    step(3);
    peer.say(&ToTarget::Folders { first: round, entries: vec![OfferedEntry { mode: 0o777, ..folder("d") }] });
    assert_eq!(peer.answers().len(), 1);
}

/// CVE-2026-29518 and CVE-2026-43619 of rsync: content, modes and times land where the link leads to.
#[test]
fn a_folder_that_becomes_a_link_at_any_step_leads_nowhere() {
    let world = World::new();
    let swap = Swap::new(&world);
    let ended = attack_target(&world.target(&[""]), |peer| {
        for round in 0..rounds() {
            send_into(peer, round, &|step| {
                // In every fifth round, the folder stays.
                if step == round % 5 {
                    swap.swap();
                }
            });
            if fs::symlink_metadata(world.inside("d")).unwrap().is_symlink() {
                swap.swap();
            }
        }
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    assert_eq!(fs::metadata(world.inside("d")).unwrap().mode() & 0o777, 0o777, "some went into the folder");
    world.assert_untouched();
}

#[test]
fn a_folder_that_becomes_a_link_all_the_time_leads_nowhere() {
    let world = World::new();
    let swap = Swap::new(&world);
    let is_over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                swap.swap();
            }
        });
        let _over = RaisedAtEnd(&is_over);
        attack_target(&world.target(&[""]), |peer| {
            (0..rounds()).for_each(|round| send_into(peer, round, &|_| {}));
        })
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    world.assert_untouched();
}

/// CVE-2024-12747 of rsync: a file or a folder of the source becomes a symbolic link between the look at it and its opening, and
/// the content of another file, which the copying user may read, is sent in its place.
#[test]
fn a_source_does_not_read_through_a_link() {
    let world = World::new();
    let name = |round: u64| format!("d{round}/victim");
    for round in 0..rounds() {
        fs::create_dir(world.inside(&format!("d{round}"))).unwrap();
        fs::write(world.inside(&name(round)), "own").unwrap();
    }
    let mut content = Vec::new();
    let outcome = attack_source(&world.at("target"), |peer| {
        content = serve(peer, |_, message| {
            if let ToTarget::Offer { entries, .. } = message {
                entries.iter().for_each(|entry| replace(&world, entry));
            }
        });
    });
    let outcome = outcome.expect("a copy in which entries fail");
    let failures = outcome.failures.first();
    assert_eq!(outcome.copied, 0, "{failures:?}");
    // A folder that a link has replaced fails too, beside its file. Once failures do not fit into the list, a folder that
    // may be among those without names does not count again.
    let folders = rounds().div_ceil(2);
    match outcome.unlisted.is_empty() {
        true => assert_eq!(outcome.failed, rounds() + folders, "{failures:?}"),
        false => assert!((rounds()..=rounds() + folders).contains(&outcome.failed), "{failures:?}"),
    }
    assert!(content.is_empty(), "{}", content.escape_ascii());
    world.assert_untouched();
}

/// Puts a symbolic link into the place of an offered file, or of its folder.
fn replace(world: &World, entry: &OfferedEntry) {
    let EntryKind::File { .. } = entry.kind else { return };
    let (folder, leaf) = entry.name.split().expect("a folder and a name");
    let folder = world.inside(std::str::from_utf8(folder.as_bytes()).expect("a name of ours"));
    let is_even = folder.as_os_str().as_bytes().last().is_some_and(|digit| digit % 2 == 0);
    if is_even {
        fs::remove_dir_all(&folder).unwrap();
        return symlink(world.at("outside"), &folder).unwrap();
    }
    let file = folder.join(std::str::from_utf8(leaf).expect("a name of ours"));
    fs::remove_file(&file).unwrap();
    symlink(world.at("outside/victim"), &file).unwrap();
}
