//! A disk that does not take what it was given.

use super::*;
use crate::beneath::tests::deny;
use crate::digest::{DonePieces, PIECE};

/// Takes this number of files of one byte, all in one message, and puts them in place.
fn take(target: &Receiving, link: &Arc<SourceLink>, files: u64) {
    let (commits, queue) = sync_channel(99);
    let digest = digest::of_piece(b"x", 0, 1);
    let piece = |entry| PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
    for entry in 0..files {
        let file = offered(&entry.to_string(), EntryKind::File { size: 1 });
        assert_eq!(considered(target, entry, &file), Answer::Send);
    }
    let (pieces, body): (Vec<PieceHeader>, Vec<u8>) = (0..files).map(|entry| (piece(entry), b'x')).unzip();
    target.take_pieces(&pieces, &body, link, &commits).unwrap();
    drop(commits);
    target.commit_all(&queue);
}

/// One file alone is synced by itself, and several by the sync of their file system. What was there stays, whichever call fails.
#[test]
fn a_file_that_the_disk_does_not_take_gets_no_name() {
    for (calls, files, operation) in [
        (&[libc::SYS_pwrite64][..], 2, Operation::Write),
        (&[libc::SYS_fdatasync], 1, Operation::Sync),
        (&[libc::SYS_syncfs, libc::SYS_fdatasync], 2, Operation::Sync),
        (&[libc::SYS_renameat, libc::SYS_renameat2], 2, Operation::Install),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("0"), "old").unwrap();
        let (target, link) = (target(folder.path(), &[""]), Arc::new(SourceLink::new(0)));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| {
                // The thread that syncs is made by this one, and inherits it.
                calls.iter().for_each(|call| deny(*call, libc::EIO));
                take(&target, &link, files);
            });
            taken.join().expect("no panic");
        });
        let failed = EntryOutcome::Failed(Failure { operation, errno: libc::EIO });
        let outcomes = (0..files).map(|entry| (entry, failed)).collect();
        assert_eq!(sent(&link), [ToSource::Outcomes(outcomes)]);
        assert_eq!(std::fs::read(folder.path().join("0")).unwrap(), b"old");
        assert!(!folder.path().join("1").exists());
        drop(target);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of them");
    }
}

/// The kernel reports of the file system that something was lost, and of each file whether it was that one.
#[test]
fn a_sync_of_all_that_fails_fails_no_file_that_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (target(folder.path(), &[""]), Arc::new(SourceLink::new(0)));
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| {
            deny(libc::SYS_syncfs, libc::EIO);
            take(&target, &link, 2);
        });
        taken.join().expect("no panic");
    });
    let outcomes = (0..2).map(|entry| (entry, EntryOutcome::Installed)).collect();
    assert_eq!(sent(&link), [ToSource::Outcomes(outcomes)]);
    assert!(target.syncs_apart.into_inner(), "what was lost may be of a file that is not whole");
}

/// Takes a file of two pieces and puts it in place, with a sync that fails so.
fn take_long(target: &Receiving, link: &Arc<SourceLink>, errno: i32) {
    let (commits, queue) = sync_channel(99);
    let content = vec![7; PIECE + 1];
    let long = offered("long", EntryKind::File { size: content.len() as u64 });
    assert_eq!(considered(target, 0, &long), Answer::Send);
    let mut done = DonePieces::none_of(2);
    for (index, bytes) in (0..).zip(content.chunks(PIECE)) {
        let digest = digest::of_piece(bytes, index, 2);
        let length = bytes.len() as u32;
        let piece = PieceHeader { entry: 0, index, length, digest, is_sent: true };
        target.take_pieces(&[piece], bytes, link, &commits).unwrap();
        done.add(index, digest);
    }
    target.install(0, done.digest().expect("all of them"), link, &commits);
    drop(commits);
    deny(libc::SYS_fdatasync, errno);
    target.commit_all(&queue);
}

/// Otherwise the next copy finds in memory what the disk has lost, and the kernel reports no error. The part of a file
/// for which there is no room stays.
#[test]
fn nothing_stays_of_a_long_file_that_the_disk_has_lost() {
    for (errno, left) in [(libc::EIO, 0), (libc::ENOSPC, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (target(folder.path(), &[""]), Arc::new(SourceLink::new(0)));
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| take_long(&target, &link, errno));
            taken.join().expect("no panic");
        });
        let failed = EntryOutcome::Failed(Failure { operation: Operation::Sync, errno });
        assert_eq!(sent(&link).pop(), Some(ToSource::Outcomes(vec![(0, failed)])));
        drop(target);
        assert!(!folder.path().join("long").exists());
        let parts = std::fs::read_dir(folder.path().join(".landspeed-copy"));
        assert_eq!(parts.map_or(0, Iterator::count), left, "{errno}");
    }
}

/// The source then says that the copy is incomplete, although all names are there.
#[test]
fn a_copy_whose_last_sync_fails_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (target(folder.path(), &[""]), Arc::new(SourceLink::new(0)));
    std::thread::scope(|scope| {
        let finished = scope.spawn(|| {
            deny(libc::SYS_syncfs, libc::EIO);
            let (commits, queue) = sync_channel(99);
            commits.send(Commit::Finish { link: Arc::clone(&link) }).expect("it is taken");
            drop(commits);
            target.commit_all(&queue);
        });
        finished.join().expect("no panic");
    });
    let failed = Failure { operation: Operation::Sync, errno: libc::EIO };
    assert_eq!(sent(&link), [ToSource::Finished(Err(failed))]);
}
