mod failing_disk;
mod in_place;
mod links_and_holes;
mod modes;
mod one_name;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use landspeed_record::CopyKept;

use super::*;
use crate::beneath::LastFolder;
use crate::digest;
use crate::identity::Timestamp;
use crate::metadata::{DeviceNumber, Metadata};
use crate::wire::{EntryKind, HardLink};

fn target(folder: &Path, names: &[&str]) -> Receiving {
    let names = names.iter().map(|name| RelativeName::parse(name.as_bytes()).expect("a name")).collect();
    Receiving::open(&Target {
        folder: folder.into(),
        names,
        is_synced: true,
        keeping: CopyKeeping::default(),
        rules: CopyRules::default(),
    })
    .unwrap()
}

fn offered(name: &str, kind: EntryKind) -> OfferedEntry {
    let name = RelativeName::parse(name.as_bytes()).expect("a name");
    OfferedEntry {
        name,
        kind,
        mode: 0o777,
        modified: Timestamp { seconds: 1, nanos: 0 },
        metadata: Metadata::default(),
        link: HardLink::Alone,
    }
}

fn considered(target: &Receiving, entry: u64, offered: &OfferedEntry) -> Answer {
    target.consider(entry, offered, &mut LastFolder::default())
}

/// Returns the messages to the source on a link.
fn sent(link: &SourceLink) -> Vec<ToSource> {
    let messages = (0..).map_while(|number| link.outbox.message(number));
    messages.map(|message| postcard::from_bytes(&message).expect("a message")).collect()
}

/// A source that was asked for one file does not get to write another one (CVE-2019-6111 of scp).
#[test]
fn a_source_writes_only_requested_names() {
    let folder = tempfile::tempdir().unwrap();
    let asked = target(folder.path(), &["f", "d"]);
    let refused = Answer::Failed(Failure::plain(Operation::Name));
    for name in ["", ".bashrc", "ff", "other/f", ".landspeed-copy/7", ".Landspeed-Copy"] {
        let link = EntryKind::Symlink { to: b"/".to_vec() };
        for kind in [EntryKind::File { size: 1 }, EntryKind::Folder, link] {
            assert_eq!(considered(&asked, 0, &offered(name, kind)), refused, "{name}");
        }
        assert_eq!(asked.complete_folder(&offered(name, EntryKind::Folder)), refused, "{name}");
    }
    assert_eq!(considered(&asked, 0, &offered("f", EntryKind::File { size: 1 })), Answer::Send);
    assert_eq!(considered(&asked, 1, &offered("d", EntryKind::Folder)), Answer::Made);
    assert_eq!(considered(&asked, 2, &offered("d/.bashrc", EntryKind::File { size: 1 })), Answer::Send);
    drop(asked);
    let all = target(folder.path(), &[""]);
    assert_eq!(all.complete_folder(&offered(".landspeed-copy", EntryKind::Folder)), refused);
    let own = folder.path().join(".landspeed-copy");
    assert_eq!(std::fs::metadata(own).unwrap().mode() & 0o777, 0o700, "no other user gets into it");
    assert_eq!(considered(&all, 0, &offered("any", EntryKind::Folder)), Answer::Made);
}

#[test]
fn numbers_and_long_files_are_used_once() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let twice = Answer::Failed(Failure { operation: Operation::Create, errno: libc::EEXIST });
    let file = |name: &str, size| offered(name, EntryKind::File { size });
    // The longest file that pieces have numbers for: nothing is kept of what has not arrived.
    let longest = u64::from(u32::MAX) * digest::PIECE as u64;
    assert_eq!(considered(&target, 0, &file("a", longest)), Answer::Send);
    assert_eq!(considered(&target, 1, &file("a", longest)), twice);
    assert_eq!(considered(&target, 0, &file("b", 1)), twice);
    let too_long = considered(&target, 2, &file("c", longest + 1));
    assert_eq!(too_long, Answer::Failed(Failure { operation: Operation::Create, errno: libc::EFBIG }));
}

/// More short files may wait to be put in place than a process may have open.
#[test]
fn files_that_wait_are_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let digest = digest::of_piece(b"x", 0, 1);
    let piece = |entry| PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
    for entry in 0..9 {
        let file = offered(&entry.to_string(), EntryKind::File { size: 1 });
        assert_eq!(considered(&target, entry, &file), Answer::Send);
        target.take_pieces(&[piece(entry)], b"x", &link, &commits).unwrap();
        // It is whole, and is not queued again.
        target.take_pieces(&[piece(entry)], b"x", &link, &commits).unwrap();
    }
    assert_eq!(queue.try_iter().count(), 9);
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let own = folder.path().join(".landspeed-copy/");
    assert_eq!(open.filter(|path| path.starts_with(&own) && *path != own).count(), 0);
}

/// Files of one message are put in place together, and reported to the source in one message.
#[test]
fn what_arrives_together_is_committed_and_reported_together() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let digest = digest::of_piece(b"x", 0, 1);
    let pieces: Vec<PieceHeader> =
        (0..9).map(|entry| PieceHeader { entry, index: 0, length: 1, digest, is_sent: true }).collect();
    for entry in 0..9 {
        let name = format!("{}/{entry}", entry / 3);
        assert_eq!(considered(&target, entry, &offered(&name, EntryKind::File { size: 1 })), Answer::Send);
    }
    target.take_pieces(&pieces, b"xxxxxxxxx", &link, &commits).unwrap();
    drop(commits);
    target.commit_all(&queue);
    let outcomes = (0..9).map(|entry| (entry, EntryOutcome::Installed)).collect();
    assert_eq!(sent(&link), [ToSource::Outcomes(outcomes)]);
    let there = std::fs::metadata(folder.path().join("2/8")).unwrap();
    assert_eq!((there.mode() & 0o7777, there.mtime(), there.len()), (0o777, 1, 1));
}

/// A source may send a piece twice, at once and later.
#[test]
fn a_duplicate_piece_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    let content: Vec<u8> = (0..digest::PIECE + 3).map(|n| (n % 251) as u8).collect();
    let (first, second) = content.split_at(digest::PIECE);
    let piece = |index, bytes: &[u8]| {
        let digest = digest::of_piece(bytes, index, 2);
        PieceHeader { entry: 5, index, length: bytes.len() as u32, digest, is_sent: true }
    };
    let file = offered("a", EntryKind::File { size: content.len() as u64 });
    assert_eq!(considered(&target, 5, &file), Answer::Send);
    target.take_pieces(&[piece(0, first)], first, &link, &commits).unwrap();
    target.take_pieces(&[piece(0, first)], first, &link, &commits).unwrap();
    let twice = [piece(1, second), piece(1, second)];
    target.take_pieces(&twice, &second.repeat(2), &link, &commits).unwrap();
    let digest = Digest(*blake3::hash(&content).as_bytes());
    target.install(5, digest, &link, &commits);
    drop(commits);
    target.commit_all(&queue);
    // A piece that comes after the end is of no file.
    let (commits, _queue) = sync_channel(99);
    target.take_pieces(&[piece(0, first)], first, &link, &commits).unwrap();
    let outcomes = [EntryOutcome::Taken(0), EntryOutcome::Taken(1), EntryOutcome::Installed];
    assert_eq!(sent(&link), outcomes.map(|outcome| ToSource::Outcomes(vec![(5, outcome)])));
    assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), content);
}

/// Without the mode of the source's folder, the target's gets the one that other programs give.
#[test]
fn a_new_folder_has_the_usual_mode_where_none_is_kept() {
    let all = tempfile::tempdir().unwrap();
    let at = |name: &str| all.path().join(name);
    std::fs::create_dir(at("usual")).unwrap();
    for (name, kinds) in [("usual", vec![CopyKept::Times]), ("private", CopyKept::ALL.to_vec())] {
        let keeping = CopyKeeping { kinds: kinds.into_iter().collect(), devices: false };
        let (folder, names) = (at(&format!("new-{name}")).into(), vec![RelativeName::root()]);
        let rules = CopyRules::default();
        drop(Receiving::open(&Target { folder, names, is_synced: false, keeping, rules }).unwrap());
    }
    let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o777;
    assert_eq!((mode("new-usual"), mode("new-private")), (mode("usual"), 0o700));
}

/// An earlier copy, which kept more, has ended before it could put its file in place.
#[test]
fn metadata_of_an_earlier_copy_are_removed() {
    use rustix::fs::{Mode, XattrFlags};
    let folder = tempfile::tempdir().unwrap();
    let root = Root::open(folder.path()).unwrap();
    let work = WorkFolder::open(&root, folder.path()).unwrap();
    let mut long = offered("a", EntryKind::File { size: 2 << 20 });
    long.mode = 0o640;
    let keeper = Keeper::new(&CopyKeeping { kinds: [CopyKept::Times].into(), devices: false });
    let mut file = IncomingFile::new(0, &long, 2 << 20, 2, &Arc::new(keeper));
    let part = work.file(file.own(), Mode::RWXU).unwrap();
    rustix::fs::fchmod(&part, Mode::from_raw_mode(0o4757)).unwrap();
    let has_attributes = rustix::fs::fsetxattr(&part, "user.old", b"1", XattrFlags::empty()).is_ok();
    if rustix::process::geteuid().is_root() {
        rustix::fs::fchown(&part, Some(rustix::fs::Uid::from_raw(1234)), None).unwrap();
        rustix::fs::fchmod(&part, Mode::from_raw_mode(0o4757)).unwrap();
    }
    file.may_have_old(true);
    file.complete(&work).unwrap();
    let seen = rustix::fs::fstat(&part).unwrap();
    assert_eq!((seen.st_mode & 0o7777, seen.st_uid), (0o740, rustix::process::geteuid().as_raw()));
    let mut room = [0; 9];
    let old = rustix::fs::fgetxattr(&part, "user.old", &mut room);
    assert!(!has_attributes || old == Err(rustix::io::Errno::NODATA), "{old:?}");
}

/// The source reads no longer list.
#[test]
fn many_outcomes_are_reported_in_several_messages() {
    let link = SourceLink::new(0);
    let outcomes: Vec<(u64, EntryOutcome)> =
        (0..5_000).map(|entry| (entry, EntryOutcome::Installed)).collect();
    link.tell_outcomes(outcomes.clone());
    link.tell_outcomes(Vec::new());
    let messages = sent(&link).into_iter().map(|message| match message {
        ToSource::Outcomes(outcomes) => outcomes,
        other => panic!("{other:?} in place of outcomes"),
    });
    let messages: Vec<Vec<(u64, EntryOutcome)>> = messages.collect();
    assert!(messages.len() == 3 && messages.concat() == outcomes);
}

/// Metadata of a source are bounded too, and devices are created only where the user asked for them.
#[test]
fn a_source_gets_no_more_memory_for_attributes_and_no_device() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), &[""]);
    let with = |name: &str, attribute: &[u8], length: usize| {
        let mut offered = offered(name, EntryKind::File { size: 1 });
        offered.metadata.attributes = [(attribute.to_vec(), vec![0; length])].into();
        offered
    };
    let answer =
        |offered: OfferedEntry| target.answer(&SourceLink::new(0), 0, &[offered], |_, _| Answer::Unchanged);
    assert!(answer(with("a", b"user.a", 1_000)).is_ok());
    assert!(answer(with("a", b"system.other", 1)).is_err());
    assert!(answer(with("a", b"user.a", 1 << 20)).is_err());
    let full = Answer::Failed(Failure { operation: Operation::Create, errno: libc::ENOBUFS });
    let answers: Vec<Answer> = (0..80)
        .map(|entry| considered(&target, entry, &with(&entry.to_string(), b"user.a", 1_000_000)))
        .collect();
    assert!(answers.starts_with(&[Answer::Send, Answer::Send]) && answers.ends_with(&[full]), "{answers:?}");
    target.forget(0);
    assert_eq!(considered(&target, 99, &with("b", b"user.a", 1_000_000)), Answer::Send);
    let null = DeviceNumber { is_block: false, major: 1, minor: 3 };
    let refused = Answer::Failed(Failure::plain(Operation::Device));
    assert_eq!(considered(&target, 100, &offered("null", EntryKind::Device(null))), refused);
}
