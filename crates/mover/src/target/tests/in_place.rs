//! Files that are compared by content with those in place.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use super::*;
use crate::digest::{DonePieces, PIECE};

fn by_content(folder: &Path) -> Receiving {
    Receiving::open(&Target {
        folder: folder.into(),
        names: vec![RelativeName::root()],
        is_synced: false,
        keeping: CopyKeeping::default(),
        rules: CopyRules { by_content: true, ..CopyRules::default() },
    })
    .unwrap()
}

/// Returns the headers of a file's pieces, which are compared and not sent.
fn headers(entry: u64, content: &[u8]) -> Vec<PieceHeader> {
    let pieces = digest::pieces(content.len() as u64).expect("a number");
    let header = |(index, bytes): (u32, &[u8])| {
        let digest = digest::of_piece(bytes, index, pieces);
        PieceHeader { entry, index, length: bytes.len() as u32, digest, is_sent: false }
    };
    (0..).zip(content.chunks(PIECE)).map(header).collect()
}

/// Returns the content of three pieces, of which the middle one is a hole at the source.
fn with_hole() -> Vec<u8> {
    let mut content = vec![0_u8; 2 * PIECE + 5];
    content[5_000..5_010].fill(7);
    content[2 * PIECE..].fill(9);
    content
}

/// Returns the digest of such a file.
fn digest_of(pieces: &[PieceHeader]) -> Digest {
    let mut done = DonePieces::none_of(3);
    assert!(done.add(0, pieces[0].digest) && done.add(2, pieces[2].digest) && done.add_holes(&[(1, 1)]));
    done.digest().expect("all are there")
}

fn outcomes(all: &[&[EntryOutcome]]) -> Vec<ToSource> {
    let of = |one: &&[EntryOutcome]| ToSource::Outcomes(one.iter().map(|outcome| (0, *outcome)).collect());
    all.iter().map(of).collect()
}

/// Neither what an interrupted copy has left nor what is in place shows through a hole of the source.
#[test]
fn old_data_do_not_show_through_holes() {
    let (content, name) = (with_hole(), RelativeName::parse(b"a").expect("a name"));
    for in_hole in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let mut there = content.clone();
        (there[PIECE + 3], there[2 * PIECE]) = (in_hole, 1);
        fs::write(folder.path().join("a"), &there).unwrap();
        let work = folder.path().join(".landspeed-copy");
        fs::DirBuilder::new().mode(0o700).create(&work).unwrap();
        let part = work.join(String::from_utf8(work_folder::part(&name)).unwrap());
        fs::write(part, vec![0xff_u8; 3 * PIECE]).unwrap();
        let target = by_content(folder.path());
        let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
        let a = offered("a", EntryKind::File { size: content.len() as u64 });
        assert_eq!(considered(&target, 0, &a), Answer::Compare(vec![(0, 3)]));
        let pieces = headers(0, &content);
        target.take_holes(0, &[(1, 1)], &link);
        target.take_pieces(&[pieces[0], pieces[2]], &[], &link, &commits).unwrap();
        let last = PieceHeader { is_sent: true, ..pieces[2] };
        target.take_pieces(&[last], &content[2 * PIECE..], &link, &commits).unwrap();
        target.install(0, digest_of(&pieces), &link, &commits);
        drop(commits);
        target.commit_all(&queue);
        use EntryOutcome::{Again, Holes, Installed, Taken};
        assert_eq!(
            sent(&link),
            outcomes(&[&[Holes], &[Taken(0), Again(2)], &[Taken(2)], &[Installed]]),
            "{in_hole}"
        );
        assert!(fs::read(folder.path().join("a")).unwrap() == content, "{in_hole}");
    }
}

/// Zeros that are written are the same as a hole. Nothing is made for what is the same.
#[test]
fn a_file_with_equal_content_stays_and_gets_its_time() {
    let (folder, content) = (tempfile::tempdir().unwrap(), with_hole());
    let target = by_content(folder.path());
    for (name, content) in [("long", &content[..]), ("short", b"abc"), ("nothing", b"")] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let before = fs::metadata(&path).unwrap();
        let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
        let pieces = if content.is_empty() {
            let digest = digest::of_piece(b"", 0, 1);
            vec![PieceHeader { entry: 0, index: 0, length: 0, digest, is_sent: false }]
        } else {
            headers(0, content)
        };
        let offered = offered(name, EntryKind::File { size: content.len() as u64 });
        let held = vec![(0, pieces.len() as u32)];
        assert_eq!(considered(&target, 0, &offered), Answer::Compare(held), "{name}");
        if name == "long" {
            target.take_holes(0, &[(1, 1)], &link);
            target.take_pieces(&[pieces[0], pieces[2]], &[], &link, &commits).unwrap();
            target.install(0, digest_of(&pieces), &link, &commits);
        } else {
            target.take_pieces(&pieces, &[], &link, &commits).unwrap();
        }
        drop(commits);
        assert_eq!(queue.try_iter().count(), 0, "{name}");
        assert_eq!(sent(&link).last(), outcomes(&[&[EntryOutcome::Same]]).last(), "{name}");
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.ino(), there.mtime(), there.mode() & 0o777), (before.ino(), 1, 0o777), "{name}");
    }
    let left = fs::read_dir(folder.path().join(".landspeed-copy")).unwrap();
    assert_eq!(left.count(), 1, "only what says who holds the lock");
}
