use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::beneath::tests::deny;
use crate::digest::{DonePieces, PIECE};

/// Makes a file of one byte with the time of what is offered.
fn same_file(folder: &Path, name: &str) {
    fs::write(folder.join(name), "x").unwrap();
    File::open(folder.join(name)).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
}

fn file(name: &str, link: HardLink) -> OfferedEntry {
    OfferedEntry { link, ..offered(name, EntryKind::File { size: 1 }) }
}

fn to(name: &str) -> HardLink {
    HardLink::To(RelativeName::parse(name.as_bytes()).expect("a name"))
}

/// Returns the answer to an offered link, and what else was said to the source.
fn linked(target: &Receiving, entry: u64, offered: &OfferedEntry) -> (Answer, Vec<ToSource>) {
    let link = SourceLink::new(0);
    let answer = target.consider_link(entry, offered, &mut LastFolder::default(), &link);
    (answer, sent(&link))
}

fn apart(entry: u64) -> Vec<ToSource> {
    vec![ToSource::Outcomes(vec![(entry, EntryOutcome::Apart)])]
}

/// A source may not give a file that it has not sent, and that it does not have, another name.
#[test]
fn a_link_is_made_only_to_files_of_this_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (at, inode) = (
        |name: &str| folder.path().join(name),
        |name: &str| fs::symlink_metadata(folder.path().join(name)).map(|seen| seen.ino()).ok(),
    );
    same_file(folder.path(), "own");
    symlink("own", at("sym")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let target = target(folder.path(), &[""]);
    for (entry, first) in (0..).zip(["own", "none", "none/own", "sym", "sym/own", "folder", ""]) {
        let answer = linked(&target, entry, &file(&format!("new{entry}"), to(first)));
        assert_eq!(answer, (Answer::Send, apart(entry)), "{first}");
        assert_eq!(inode(&format!("new{entry}")), None, "{first}");
    }
    assert_eq!(considered(&target, 20, &file("own", HardLink::First)), Answer::Unchanged);
    assert_eq!(linked(&target, 21, &file("d/two", to("own"))), (Answer::Made, Vec::new()));
    assert_eq!(linked(&target, 22, &file("d/two", to("own"))), (Answer::Unchanged, Vec::new()));
    assert_eq!(inode("d/two"), inode("own"));
    // An existing entry is replaced, even a symbolic link, but not a folder.
    assert_eq!(linked(&target, 23, &file("sym", to("own"))), (Answer::Made, Vec::new()));
    assert_eq!(inode("sym"), inode("own"));
    let (answer, more) = linked(&target, 24, &file("folder", to("own")));
    assert!(matches!(answer, Answer::Failed(_)) && more == apart(24), "{answer:?}");
    // Another program has put something else into its place.
    fs::remove_file(at("own")).unwrap();
    symlink("d/two", at("own")).unwrap();
    assert_eq!(linked(&target, 25, &file("new", to("own"))), (Answer::Send, apart(25)));
    fs::rename(at("folder"), at("gone")).unwrap();
    symlink("d", at("folder")).unwrap();
    assert_eq!(linked(&target, 26, &file("new", to("folder/two"))), (Answer::Send, apart(26)));
    assert_eq!(fs::read_dir(at(".landspeed-copy")).unwrap().count(), 1, "only what says who holds the lock");
}

/// ext4 gives a file 65,000 names.
#[test]
fn a_link_beyond_those_that_the_file_system_allows_is_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    same_file(folder.path(), "own");
    let target = target(folder.path(), &[""]);
    assert_eq!(considered(&target, 0, &file("own", HardLink::First)), Answer::Unchanged);
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            deny(libc::SYS_linkat, libc::EMLINK);
            linked(&target, 1, &file("two", to("own")))
        });
        asked.join().expect("no panic")
    });
    assert_eq!(answer, (Answer::Send, apart(1)), "the target counts the lost link, and asks for the file");
}

#[test]
fn a_link_has_only_names_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    same_file(folder.path(), "f");
    same_file(folder.path(), "secret");
    let target = target(folder.path(), &["f", "g"]);
    assert_eq!(considered(&target, 0, &file("f", HardLink::First)), Answer::Unchanged);
    let refused = Answer::Failed(Failure::plain(Operation::Name));
    for (name, first) in [("g", "secret"), ("g", ".landspeed-copy/x"), ("h", "f")] {
        assert_eq!(linked(&target, 1, &file(name, to(first))), (refused.clone(), Vec::new()), "{name}");
    }
    assert_eq!(linked(&target, 1, &file("g", to("f"))).0, Answer::Made);
}

#[test]
fn a_file_that_was_put_in_place_gets_further_names() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let digest = digest::of_piece(b"x", 0, 1);
    for (entry, role) in [(0, HardLink::First), (1, HardLink::Alone)] {
        assert_eq!(considered(&target, entry, &file(&entry.to_string(), role)), Answer::Send);
        let piece = PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
        target.take_pieces(&[piece], b"x", &link, &commits).unwrap();
    }
    assert_eq!(linked(&target, 2, &file("early", to("0"))), (Answer::Send, apart(2)), "it is not in place");
    drop(commits);
    target.commit_all(&queue);
    assert_eq!(linked(&target, 3, &file("late", to("0"))), (Answer::Made, Vec::new()));
    assert_eq!(linked(&target, 4, &file("other", to("1"))), (Answer::Send, apart(4)), "none was announced");
    assert_eq!(fs::metadata(folder.path().join("0")).unwrap().nlink(), 2);
}

/// No honest source gives two entries one number.
#[test]
fn a_link_and_a_file_of_one_number_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    same_file(folder.path(), "own");
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    assert_eq!(considered(&target, 0, &file("own", HardLink::First)), Answer::Unchanged);
    assert_eq!(considered(&target, 1, &file("new", HardLink::Alone)), Answer::Send);
    target.take_pieces(&[header(1, 0, b"y", 1)], b"y", &link, &commits).unwrap();
    assert_eq!(linked(&target, 1, &file("two", to("own"))), (Answer::Made, Vec::new()));
    drop(commits);
    target.commit_all(&queue);
    assert_eq!(sent(&link), [ToSource::Outcomes(vec![(1, EntryOutcome::Installed)])]);
    assert_eq!(fs::read(folder.path().join("new")).unwrap(), b"y");
}

fn header(entry: u64, index: u32, bytes: &[u8], pieces: u32) -> PieceHeader {
    let digest = digest::of_piece(bytes, index, pieces);
    PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent: true }
}

#[test]
fn old_data_do_not_show_through_holes() {
    let folder = tempfile::tempdir().unwrap();
    let name = RelativeName::parse(b"a").expect("a name");
    let work = folder.path().join(".landspeed-copy");
    fs::DirBuilder::new().mode(0o700).create(&work).unwrap();
    let part = work.join(String::from_utf8(work_folder::part(&name)).unwrap());
    // A copy of another version of the file has left it, and it was longer.
    fs::write(part, vec![0xff_u8; 3 * PIECE]).unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let mut content = vec![0_u8; 2 * PIECE + 5];
    content[5_000..5_010].fill(7);
    content[2 * PIECE..].fill(9);
    let a = offered("a", EntryKind::File { size: content.len() as u64 });
    assert_eq!(considered(&target, 0, &a), Answer::Compare(vec![(0, 3)]));
    let pieces: Vec<PieceHeader> =
        (0..).zip(content.chunks(PIECE)).map(|(index, bytes)| header(0, index, bytes, 3)).collect();
    let sparse = [
        SparsePiece { header: pieces[0], data: Some(vec![(5_000, 10)]) },
        SparsePiece { header: pieces[2], data: None },
    ];
    let body = [&content[5_000..5_010], &content[2 * PIECE..]].concat();
    target.take_holes(0, &[(1, 1)], &link);
    target.take_sparse(&sparse, &body, &link, &commits).unwrap();
    let mut done = DonePieces::none_of(3);
    assert!(done.add(0, pieces[0].digest) && done.add(2, pieces[2].digest) && done.add_holes(&[(1, 1)]));
    target.install(0, done.digest().expect("all are there"), &link, &commits);
    drop(commits);
    target.commit_all(&queue);
    let outcomes = [vec![EntryOutcome::Holes], vec![EntryOutcome::Taken(0), EntryOutcome::Taken(2)]];
    let outcomes = outcomes.into_iter().chain([vec![EntryOutcome::Installed]]);
    let outcomes: Vec<ToSource> = outcomes
        .map(|outcomes| ToSource::Outcomes(outcomes.into_iter().map(|outcome| (0, outcome)).collect()))
        .collect();
    assert_eq!(sent(&link), outcomes);
    assert!(fs::read(folder.path().join("a")).unwrap() == content);
}

#[test]
fn a_short_file_has_its_holes() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let contents = [vec![0; 900_000], vec![0, 0, 5], vec![5, 0, 0]];
    for ((entry, content), data) in (0..).zip(&contents).zip([vec![], vec![(2, 1)], vec![(0, 1)]]) {
        let file = offered(&entry.to_string(), EntryKind::File { size: content.len() as u64 });
        assert_eq!(considered(&target, entry, &file), Answer::Send);
        let body: &[u8] = if data.is_empty() { &[] } else { &[5] };
        let piece = SparsePiece { header: header(entry, 0, content, 1), data: Some(data) };
        target.take_sparse(&[piece], body, &link, &commits).unwrap();
    }
    drop(commits);
    target.commit_all(&queue);
    for (entry, content) in (0..).zip(&contents) {
        let there = fs::read(folder.path().join(format!("{entry}"))).unwrap();
        assert!(there == *content, "{entry}");
    }
}

#[test]
fn impossible_holes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, _queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let size = 3 * PIECE as u64;
    let many: Vec<(u32, u32)> = (0..1_026).map(|n| (n * 2, 1)).collect();
    let cases = [
        (size, vec![(0, 4)]),
        (size, vec![(1, 1), (0, 1)]),
        (size, Vec::new()),
        (9, vec![(0, 1)]),
        (3_000 * size, many),
    ];
    for (entry, (size, holes)) in (0..).zip(cases) {
        let file = offered(&entry.to_string(), EntryKind::File { size });
        assert_eq!(considered(&target, entry, &file), Answer::Send);
        target.take_holes(entry, &holes, &link);
        let failed = EntryOutcome::Failed(Failure::plain(Operation::Damaged));
        assert_eq!(sent(&link).last(), Some(&ToSource::Outcomes(vec![(entry, failed)])), "{holes:?}");
    }
    let number = sent(&link).len();
    target.take_holes(77, &[(0, 1)], &link);
    assert_eq!(sent(&link).len(), number, "of no file");
    assert_eq!(considered(&target, 9, &offered("9", EntryKind::File { size: 9 })), Answer::Send);
    for data in [vec![(0, 10)], vec![(5, 1), (2, 1)], vec![(0, 0)]] {
        let piece = SparsePiece { header: header(9, 0, &[0; 9], 1), data: Some(data.clone()) };
        let error = target.take_sparse(&[piece], &[0; 10], &link, &commits).unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{data:?}: {error}");
    }
    // Something else in the data than the digest says.
    let piece = SparsePiece { header: header(9, 0, &[0; 9], 1), data: Some(vec![(0, 1)]) };
    target.take_sparse(&[piece], &[1], &link, &commits).unwrap();
    let damaged = EntryOutcome::Failed(Failure::plain(Operation::Damaged));
    assert_eq!(sent(&link).last(), Some(&ToSource::Outcomes(vec![(9, damaged)])));
}

/// The source's files are short now, or something else, or are at the target already.
#[test]
fn a_part_that_is_of_no_use_does_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join(".landspeed-copy");
    fs::DirBuilder::new().mode(0o700).create(&work).unwrap();
    let part = |name: &str| {
        let name = RelativeName::parse(name.as_bytes()).expect("a name");
        work.join(String::from_utf8(work_folder::part(&name)).unwrap())
    };
    ["short", "link", "long"].iter().for_each(|name| fs::write(part(name), "part").unwrap());
    let target = target(folder.path(), &[""]);
    let link = EntryKind::Symlink { to: b"/nowhere".to_vec() };
    assert_eq!(considered(&target, 0, &offered("short", EntryKind::File { size: 1 })), Answer::Send);
    assert_eq!(considered(&target, 1, &offered("link", link)), Answer::Made);
    let long = offered("long", EntryKind::File { size: 2 * PIECE as u64 });
    assert!(matches!(considered(&target, 2, &long), Answer::Compare(_)));
    let stays = ["short", "link", "long"].map(|name| part(name).exists());
    assert_eq!(stays, [false, false, true]);
}
