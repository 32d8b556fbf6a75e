//! A source that writes what it may not.

use std::sync::Arc;

use super::memory::bounded;
use super::*;
use crate::extras::FolderNames;
use crate::select::Removal;
use crate::wire::{MOST_OFFERED, MOST_PIECES};

/// Returns a message in which the name `old` is replaced by bytes that may not be a name.
fn renamed(message: &ToTarget, old: &[u8], new: &[u8]) -> Vec<u8> {
    let [old, new] = [old, new].map(|name| postcard::to_stdvec(&name.to_vec()).unwrap());
    let message = encode(message);
    let at = message.windows(old.len()).position(|bytes| bytes == old).expect("the name");
    [&message[..at], new.as_slice(), &message[at + old.len()..]].concat()
}

/// CVE-2019-6111 of scp, croc#594: the receiver joins a name (in croc, of an archive's entry) to its own folder, and
/// the name leads out of that folder.
#[test]
fn a_name_leads_nowhere_else() {
    let world = World::new();
    let target = world.target(&[""]);
    let entries = [file("placeholder", 1), folder("placeholder"), link("placeholder", b"/")];
    let offers = entries.map(|entry| ToTarget::Offer { first: 0, entries: vec![entry] });
    let folders = ToTarget::Folders { first: 0, entries: vec![folder("placeholder")] };
    let messages = [&offers[..], &[folders]].concat();
    let long = [b'a'; 4096];
    for name in [
        &b"/etc/new"[..],
        b"../outside/victim",
        b"a/../../outside/new",
        b"..",
        b".",
        b"a//b",
        b"a/",
        b"a\0b",
        &long,
    ] {
        for message in &messages {
            let bytes = renamed(message, b"placeholder", name);
            let ended = attack_target(&target, |peer| peer.say_bytes(&bytes, &[]));
            assert!(is_refused(&ended), "{}: {ended:?}", name.escape_ascii());
        }
    }
    assert!(world.names().is_empty());
    world.assert_untouched();
    // The same bytes with a name are a message.
    let bytes = renamed(&messages[0], b"placeholder", b"fine");
    let ended = attack_target(&target, |peer| {
        peer.say_bytes(&bytes, &[]);
        assert_eq!(peer.answers(), [Answer::Send]);
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
}

/// CVE-2022-29154 of rsync, CVE-2019-6111 of scp, croc#593: the sender chooses what is written. This source also sends
/// an entry that the target has refused.
#[test]
fn names_that_were_not_requested_are_not_written() {
    let world = World::new();
    let names = [".bashrc", "other", "asked.not", ".landspeed-copy/0.short", ".LANDSPEED-copy", "asked"];
    let ended = attack_target(&world.target(&["asked"]), |peer| {
        peer.offer(0, names.iter().map(|name| file(name, 1)).collect());
        let answers = peer.answers();
        let refused = Answer::Failed(Failure::plain(Operation::Name));
        assert!(answers[..5].iter().all(|answer| *answer == refused), "{answers:?}");
        let headers = (0..6).map(|entry| piece(entry, 0, 1, b"x")).collect();
        peer.say_with(&ToTarget::Pieces(headers), b"xxxxxx");
        assert_eq!(peer.outcomes(), [(5, EntryOutcome::Installed)]);
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    assert_eq!(world.names(), ["asked"]);
    world.assert_untouched();
}

/// Lengths and numbers that do not agree with what was announced.
#[test]
fn more_than_was_announced_ends_the_copy() {
    let world = World::new();
    let target = world.target(&[""]);
    let header = |index, length| PieceHeader { index, length, ..piece(0, 0, 1, b"abc") };
    let pieces = |header: PieceHeader| encode(&ToTarget::Pieces(vec![header]));
    let many = |number| ToTarget::Pieces(vec![PieceHeader { is_sent: false, ..header(0, 3) }; number]);
    let too_many = (0..=MOST_OFFERED).map(|n| file(&format!("n{n}"), 1)).collect();
    let body = vec![0; digest::PIECE + 1];
    for (what, message, body) in [
        ("bytes after the piece", pieces(header(0, 3)), &b"abcd"[..]),
        ("too few bytes", pieces(header(0, 3)), b"ab"),
        ("a longer piece than the file", pieces(header(0, 4)), b"abcd"),
        ("a shorter piece than the file", pieces(header(0, 2)), b"ab"),
        ("a piece after the end", pieces(header(1, 3)), b"abc"),
        ("the last piece of all", pieces(header(u32::MAX, 0)), b""),
        ("4 GiB", pieces(header(0, u32::MAX)), b"abc"),
        ("too many pieces", encode(&many(MOST_PIECES + 1)), b""),
        ("too many entries", encode(&ToTarget::Offer { first: 9, entries: too_many }), b""),
        ("a body of no message", Vec::new(), b"abc"),
        ("a body longer than a piece", pieces(header(0, 3)), &body),
        ("a message that is too long", vec![0; (4 << 20) + 1], b""),
    ] {
        let ended = attack_target(&target, |peer| {
            peer.offer(0, vec![file("f", 3)]);
            assert_eq!(peer.answers(), [Answer::Send]);
            peer.say_bytes(&message, body);
        });
        assert!(is_refused(&ended), "{what}: {ended:?}");
        assert!(world.names().is_empty(), "{what}");
    }
    world.assert_untouched();
}

/// CVE-2024-12084 and CVE-2024-12085 of rsync: the sender chooses how long a digest is. Here all have the same length.
#[test]
fn a_digest_has_its_length_and_is_checked() {
    let world = World::new();
    let target = world.target(&[""]);
    let damaged = EntryOutcome::Failed(Failure::plain(Operation::Damaged));
    let long = vec![7; digest::PIECE];
    let ended = attack_target(&target, |peer| {
        peer.offer(0, vec![file("short", 3), file("long", 2 * digest::PIECE as u64), file("none", 2 << 20)]);
        assert_eq!(peer.answers(), [Answer::Send, Answer::Send, Answer::Send]);
        let wrong = PieceHeader { digest: piece(0, 0, 1, b"abd").digest, ..piece(0, 0, 1, b"abc") };
        peer.say_with(&ToTarget::Pieces(vec![wrong]), b"abc");
        assert_eq!(peer.outcomes(), [(0, damaged)]);
        for index in [0, 1] {
            peer.say_with(&ToTarget::Pieces(vec![piece(1, index, 2, &long)]), &long);
            assert_eq!(peer.outcomes(), [(1, EntryOutcome::Taken(index))]);
        }
        // A wrong digest of the whole file, a digest of a file of which nothing has arrived, and a digest of no entry.
        let digest = piece(1, 0, 2, &long).digest;
        for entry in [1, 2] {
            peer.say(&ToTarget::Install { entry, digest });
            assert_eq!(peer.outcomes(), [(entry, damaged)]);
        }
        peer.say(&ToTarget::Install { entry: u64::MAX, digest });
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    let message = encode(&ToTarget::Install { entry: 0, digest: piece(0, 0, 1, b"abc").digest });
    for kept in 0..message.len() {
        let ended = attack_target(&target, |peer| {
            peer.say_bytes(&message[..kept], &[]);
            // An empty frame is a keep-alive.
            if kept == 0 {
                peer.say_bytes(&[0xff], &[]);
            }
        });
        assert!(is_refused(&ended), "{kept} bytes: {ended:?}");
    }
    assert_eq!(world.names(), [".landspeed-copy"], "what has arrived of a long file stays for the next copy");
    world.assert_untouched();
}

#[test]
fn the_largest_numbers_do_no_harm() {
    let world = World::new();
    let longest = u64::from(u32::MAX) * digest::PIECE as u64;
    let mut odd = file("odd", 0);
    (odd.mode, odd.modified) = (u32::MAX, Timestamp { seconds: i64::MAX, nanos: u32::MAX });
    let mut old = file("old", 0);
    old.modified = Timestamp { seconds: i64::MIN, nanos: u32::MAX };
    let bytes = vec![7; digest::PIECE];
    let ended = attack_target(&world.target(&[""]), |peer| {
        peer.offer(u64::MAX, vec![file("a", 1), file("b", 1), file("c", 1)]);
        let answers = peer.answers();
        assert!(answers[0] == Answer::Send && answers[1..].iter().all(is_failed), "{answers:?}");
        peer.offer(0, vec![file("d", u64::MAX), file("e", longest + 1), file("f", longest), odd, old]);
        let answers = peer.answers();
        assert!(answers[..2].iter().all(is_failed), "{answers:?}");
        assert_eq!(answers[2..], [Answer::Send, Answer::Send, Answer::Send]);
        // The file system may hold such a file or not.
        let last = piece(2, u32::MAX - 1, u32::MAX, &bytes);
        peer.say_with(&ToTarget::Pieces(vec![last]), &bytes);
        assert_eq!(peer.outcomes()[0].0, 2);
        peer.say(&ToTarget::Pieces(vec![piece(3, 0, 1, b""), piece(4, 0, 1, b"")]));
        let outcomes = peer.outcomes().len();
        assert!(outcomes == 2 || peer.outcomes().len() == 1, "an outcome for each file");
        peer.say(&ToTarget::Withdraw { entry: u64::MAX });
        assert_eq!(peer.outcomes(), [(u64::MAX, EntryOutcome::Withdrawn)]);
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    world.assert_untouched();
}

/// CVE-2024-12087 and CVE-2024-12088 of rsync: a symbolic link is sent first, and then what is below it.
#[test]
fn nothing_is_written_through_a_link_that_was_sent() {
    let world = World::new();
    let ended = attack_target(&world.target(&[""]), |peer| {
        let outside = world.outside("");
        let through =
            [file("d/victim", 6), folder("d/new"), folder("d"), link("d/link", b"x"), file("d/folder", 1)];
        peer.offer(0, [&[link("d", &outside)][..], &through].concat());
        let answers = peer.answers();
        assert!(answers[0] == Answer::Made && answers[1..].iter().all(is_failed), "{answers:?}");
        peer.say_with(&ToTarget::Pieces(vec![piece(1, 0, 1, b"broken")]), b"broken");
        peer.say(&ToTarget::Folders { first: 9, entries: vec![folder("d"), folder("d/folder")] });
        assert!(peer.answers().iter().all(is_failed), "modes and times");
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    world.assert_untouched();
}

/// The kind of an entry changes while its content is under way.
#[test]
fn an_entry_that_changes_its_kind_leads_nowhere() {
    let world = World::new();
    let ended = attack_target(&world.target(&[""]), |peer| {
        let victim = world.outside("victim");
        peer.offer(0, vec![file("f", 3)]);
        assert_eq!(peer.answers(), [Answer::Send]);
        peer.offer(1, vec![link("f", &victim)]);
        assert_eq!(peer.answers(), [Answer::Made]);
        peer.say_with(&ToTarget::Pieces(vec![piece(0, 0, 1, b"abc")]), b"abc");
        assert_eq!(peer.outcomes(), [(0, EntryOutcome::Installed)]);
        // A link, then a folder of its name; a folder, then a link and a file of its name.
        peer.offer(
            2,
            vec![link("l", &world.outside("folder")), folder("l"), folder("l/new"), file("l/new", 1)],
        );
        let answers = peer.answers();
        assert!(answers[0] == Answer::Made && answers[1..].iter().all(is_failed), "{answers:?}");
        peer.offer(6, vec![folder("e"), link("e", &victim), file("e", 1), file("e/in", 0)]);
        let answers = peer.answers();
        assert!(answers[0] == Answer::Made && answers[1..3].iter().all(is_failed), "{answers:?}");
        // One that looks like the file behind the link, with another mode.
        let mut same = file("k", 6);
        let seen = fs::metadata(world.at("outside/victim")).unwrap();
        same.modified = Timestamp { seconds: seen.mtime(), nanos: seen.mtime_nsec() as u32 };
        peer.offer(20, vec![link("k", &victim), same]);
        assert_eq!(peer.answers(), [Answer::Made, Answer::Send]);
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    assert_eq!(fs::read(world.inside("f")).unwrap(), b"abc");
    assert!(world.inside("f").symlink_metadata().unwrap().is_file(), "the link itself was replaced");
    world.assert_untouched();
}

/// A name of 4,095 bytes has at most 2,048 components.
#[test]
fn the_deepest_name_is_an_entry_or_a_failure() {
    let world = World::new();
    let deepest = ["a"; 2_048].join("/");
    let ended = attack_target(&world.target(&[""]), |peer| {
        peer.offer(0, vec![folder(&deepest), file(&format!("{}/b", &deepest[..4_093]), 1)]);
        assert_eq!(peer.answers().len(), 2);
        peer.say_with(&ToTarget::Pieces(vec![piece(1, 0, 1, b"x")]), b"x");
        assert_eq!(peer.outcomes().len(), 1);
    });
    assert!(matches!(ended, Err(Error::Ended)), "{ended:?}");
    assert_eq!(world.names(), ["a"]);
    world.assert_untouched();
    remove_nested(&world.at("target"));
}

/// Removes folders "a", each in the one before. std would open all of them at once, and a process may not have as many open.
fn remove_nested(folder: &Path) {
    let (outer, inner) = (folder.join("a"), folder.join("inner"));
    while fs::rename(outer.join("a"), &inner).is_ok() {
        fs::remove_dir_all(&outer).unwrap();
        fs::rename(&inner, &outer).unwrap();
    }
}

/// A copy ends before it has more files in flight than an honest source has.
#[test]
fn a_flood_of_entries_ends_the_copy() {
    let world = World::new();
    let ended = bounded(|| {
        attack_target(&world.target(&[""]), |peer| {
            for offer in 0..200 {
                let first = offer * MOST_OFFERED as u64;
                let names = first..first + MOST_OFFERED as u64;
                peer.offer(first, names.map(|n| file(&n.to_string(), 1)).collect());
            }
        })
    });
    assert!(is_refused(&ended), "{ended:?}");
    world.assert_untouched();
}

/// A source that never acknowledges messages does not fill the target's memory.
#[test]
fn answers_that_are_not_acknowledged_end_the_copy() {
    let world = World::new();
    let withdraw: Arc<[u8]> = encode(&ToTarget::Withdraw { entry: 0 }).into();
    let many = vec![withdraw; 4_096];
    let ended = bounded(|| {
        attack_target(&world.target(&[""]), |peer| {
            // The target ends the flow after about a million of them.
            let all_sent = (0..2_000).all(|_| peer.writer.send_together(&many).is_ok());
            assert!(!all_sent, "the target takes them all");
        })
    });
    assert!(is_refused(&ended), "{ended:?}");
}

/// An attribute takes few bytes of a message and far more memory. An offer with more attributes than an honest one ends
/// the copy.
#[test]
fn many_attributes_do_not_fill_the_memory() {
    let world = World::new();
    let target = world.target(&[""]);
    let with = |name: &str, attributes: u32| {
        let mut offered = file(name, 1);
        let attribute = |n: u32| (format!("user.{n}").into_bytes(), Vec::new());
        offered.metadata.attributes = (0..attributes).map(attribute).collect();
        offered
    };
    let four = (0..4).map(|n| with(&n.to_string(), 6_000)).collect();
    for (what, entries) in [("one entry", vec![with("f", 300_000)]), ("four entries", four)] {
        let message = encode(&ToTarget::Offer { first: 2, entries });
        let ended = bounded(|| {
            attack_target(&target, |peer| {
                peer.offer(0, vec![with("a", 6_000), with("b", 6_000)]);
                assert_eq!(peer.answers(), [Answer::Send, Answer::Send]);
                peer.say_bytes(&message, &[]);
            })
        });
        assert!(is_refused(&ended), "{what}: {ended:?}");
        assert!(world.names().is_empty(), "{what}");
    }
    world.assert_untouched();
}

/// A source that asks the target to remove entries although the user did not, or entries outside of the target.
#[test]
fn nothing_is_removed_that_was_not_asked_for() {
    let world = World::new();
    fs::write(world.inside("own"), "own").unwrap();
    std::os::unix::fs::symlink(world.at("outside"), world.inside("link")).unwrap();
    let names = |folder: &str| {
        let folder = RelativeName::parse(folder.as_bytes()).expect("a name");
        let (folders, removes) = (FolderNames::parts(&folder, Vec::new()), true);
        ToTarget::Names { number: 0, folders, removes }
    };
    let ended = attack_target(&world.target(&[""]), |peer| peer.say(&names("")));
    assert!(is_refused(&ended), "{ended:?}");
    let rules = CopyRules { removal: Some(Removal { most: None }), ..CopyRules::default() };
    let target = Target { rules, ..world.target(&["asked", "link"]) };
    let ended = attack_target(&target, |peer| {
        for folder in ["", "own", "link", "link/folder", "asked", ".landspeed-copy"] {
            peer.say(&names(folder));
            match peer.hear_all() {
                Some((ToSource::Swept { swept, .. }, _)) => {
                    assert_eq!((swept.extras, swept.failed), (0, 1), "{folder}: {swept:?}");
                }
                other => panic!("{other:?} in place of what was swept"),
            }
        }
        let folders = vec![FolderNames::parts(&RelativeName::root(), Vec::new()).remove(0); 300];
        peer.say(&ToTarget::Names { number: 1, folders, removes: true });
    });
    assert!(is_refused(&ended), "{ended:?}");
    assert_eq!(world.names(), ["link", "own"]);
    world.assert_untouched();
}

/// This source is not hostile, but its messages cannot be decoded either.
#[test]
fn a_source_of_another_version_is_refused_with_the_remedy() {
    let world = World::new();
    let target = &world.target(&["a"]);
    let (caller, flows) = ends();
    let ended = std::thread::scope(|scope| {
        let receiving =
            scope.spawn(move || receive(flows, target, &CopyProgress::default(), &CancelFlag::default()));
        let flow = caller.open(0, PATIENCE, &CancelFlag::default()).expect("a flow");
        flow.sender().expect("a sending half").send(b"LSm\xff", 1).expect("it is sent");
        receiving.join().expect("the target does not panic")
    });
    let error = ended.expect_err("the source has another version");
    assert!(matches!(error, Error::Version { theirs: 0xff, .. }), "{error}");
}
