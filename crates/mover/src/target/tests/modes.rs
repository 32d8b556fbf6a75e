//! The modes of short files, and the calls that they cost.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::beneath::tests::deny;

/// Takes short files with these modes, and returns those that they have then.
fn modes(folder: &Path, target: &Receiving, modes: &[u32]) -> Vec<u32> {
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let digest = digest::of_piece(b"x", 0, 1);
    let own = Metadata {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
        ..Metadata::default()
    };
    for (entry, mode) in (0_u64..).zip(modes) {
        let kind = EntryKind::File { size: 1 };
        let file = OfferedEntry { mode: *mode, metadata: own.clone(), ..offered(&entry.to_string(), kind) };
        assert_eq!(considered(target, entry, &file), Answer::Send);
        let piece = PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
        target.take_pieces(&[piece], b"x", &link, &commits).unwrap();
    }
    drop(commits);
    target.commit_all(&queue);
    let mode = |entry: usize| std::fs::metadata(folder.join(entry.to_string())).unwrap().mode() & 0o7777;
    (0..modes.len()).map(mode).collect()
}

/// The umask takes rights from some, others cannot be created with their mode, and the second of a mode is not looked at.
#[test]
fn short_files_get_their_modes() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<u32> = [0o600, 0o644, 0o666, 0o777, 0o444, 0o060, 0o4755, 0o1700].repeat(2);
    let bits: u32 = if rustix::process::geteuid().is_root() { 0o7777 } else { 0o777 };
    let expected: Vec<u32> = all.iter().map(|mode| mode & bits).collect();
    let target = target(folder.path(), &[""]);
    assert_eq!(modes(folder.path(), &target, &all), expected);
    assert!(target.keeper.lost().is_empty());
}

/// Most umasks leave the user's own rights.
#[test]
fn a_short_file_that_has_its_mode_costs_no_call_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let seen = std::thread::scope(|scope| {
        let taken = scope.spawn(|| {
            deny(libc::SYS_fchmod, libc::EPERM);
            modes(folder.path(), &target, &[0o600, 0o600, 0o700])
        });
        taken.join().expect("no panic")
    });
    assert_eq!(seen, [0o600, 0o600, 0o700]);
    assert!(target.keeper.lost().is_empty());
}

/// The target looks at a name only where something can be.
#[test]
fn a_file_in_a_folder_that_the_copy_has_made_is_not_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    assert_eq!(considered(&target, 0, &offered("new", EntryKind::Folder)), Answer::Made);
    let file = |name: &str| offered(name, EntryKind::File { size: 1 });
    let [in_new, in_old] = std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            deny(libc::SYS_newfstatat, libc::EIO);
            [considered(&target, 1, &file("new/f")), considered(&target, 2, &file("f"))]
        });
        asked.join().expect("no panic")
    });
    assert_eq!(in_new, Answer::Send);
    assert_eq!(in_old, Answer::Failed(Failure { operation: Operation::Open, errno: libc::EIO }));
}

/// As after the look at a name: what another program puts there is replaced by a whole file, and a folder stays.
#[test]
fn a_foreign_entry_in_a_new_folder_is_replaced_unless_it_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    assert_eq!(considered(&target, 0, &offered("new", EntryKind::Folder)), Answer::Made);
    std::fs::write(folder.path().join("new/f"), "other").unwrap();
    std::fs::create_dir(folder.path().join("new/d")).unwrap();
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let digest = digest::of_piece(b"x", 0, 1);
    for (entry, name) in [(1, "new/f"), (2, "new/d")] {
        assert_eq!(considered(&target, entry, &offered(name, EntryKind::File { size: 1 })), Answer::Send);
        let piece = PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
        target.take_pieces(&[piece], b"x", &link, &commits).unwrap();
    }
    drop(commits);
    target.commit_all(&queue);
    let failed = EntryOutcome::Failed(Failure { operation: Operation::Install, errno: libc::EISDIR });
    let outcomes = vec![(1, EntryOutcome::Installed), (2, failed)];
    assert_eq!(sent(&link), [ToSource::Outcomes(outcomes)]);
    assert_eq!(std::fs::read(folder.path().join("new/f")).unwrap(), b"x");
    assert!(folder.path().join("new/d").is_dir());
}

/// Calls `act` as a user who is not root, to whom the folder then belongs.
fn as_user<T: Send>(folder: &Path, act: impl FnOnce() -> T + Send) -> T {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return act();
    }
    std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    std::thread::scope(|scope| {
        let acted = scope.spawn(|| {
            // These calls change one thread; those of libc change all.
            for call in [libc::SYS_setresgid, libc::SYS_setresuid] {
                // SAFETY: the arguments are numbers.
                let set = unsafe { libc::syscall(call, NOBODY, NOBODY, NOBODY) };
                assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
            }
            act()
        });
        acted.join().expect("no panic")
    })
}

/// A first copy has set the mode of such a folder although an entry in it had failed. The next copy continues there.
#[test]
fn a_folder_that_forbids_its_user_to_write_gets_its_entries() {
    for mode in [0o555, 0] {
        takes_what_it_lacks(mode);
    }
}

/// Checks that a folder of this mode takes a file.
fn takes_what_it_lacks(mode: u32) {
    // Any user can reach it, which a folder in TMPDIR need not be.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path().join("shut");
    let seen = as_user(folder.path(), || {
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let target = target(folder.path(), &[""]);
        let shut = OfferedEntry { mode: 0o555, ..offered("shut", EntryKind::Folder) };
        assert_eq!(considered(&target, 0, &shut), Answer::Unchanged);
        let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
        assert_eq!(considered(&target, 1, &offered("shut/f", EntryKind::File { size: 1 })), Answer::Send);
        let digest = digest::of_piece(b"x", 0, 1);
        let piece = PieceHeader { entry: 1, index: 0, length: 1, digest, is_sent: true };
        target.take_pieces(&[piece], b"x", &link, &commits).unwrap();
        drop(commits);
        target.commit_all(&queue);
        assert_eq!(target.complete_folder(&shut), Answer::Unchanged);
        sent(&link)
    });
    assert_eq!(seen, [ToSource::Outcomes(vec![(1, EntryOutcome::Installed)])]);
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o555);
    // Its user can remove what is in it.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Otherwise it would stay for one user alone: the second copy finds it there.
#[test]
fn a_folder_that_an_interrupted_copy_has_made_gets_its_mode_from_the_next_one() {
    let all = tempfile::tempdir().unwrap();
    let path = all.path().join("new");
    let mode = || std::fs::metadata(&path).unwrap().mode() & 0o7777;
    drop(target(&path, &[""]));
    assert_eq!(mode(), 0o700);
    let again = target(&path, &[""]);
    let root = OfferedEntry { mode: 0o755, ..offered("", EntryKind::Folder) };
    assert_eq!(considered(&again, 0, &root), Answer::Unchanged);
    assert_eq!(again.complete_folder(&root), Answer::Unchanged);
    drop(again);
    assert_eq!((mode(), std::fs::read_dir(&path).unwrap().count()), (0o755, 0), "nothing is left");
    let third = target(&path, &[""]);
    assert_eq!(third.complete_folder(&OfferedEntry { mode: 0o700, ..root }), Answer::Unchanged);
    assert_eq!(mode(), 0o755, "it is as any folder that is there");
}
