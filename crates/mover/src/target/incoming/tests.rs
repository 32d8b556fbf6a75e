use std::thread;
use std::time::{Duration, Instant};

use landspeed_record::CopyKeeping;
use landspeed_record::units::Nanos;

use super::*;
use crate::identity::{FileIdentity, Timestamp};
use crate::metadata::Metadata;
use crate::stage::StageTotals;

fn keeper() -> Arc<Keeper> {
    Arc::new(Keeper::new(&CopyKeeping::default()))
}

/// Returns a file of this length, which has two pieces.
fn of_two_pieces(size: u64) -> IncomingFile {
    let offered = OfferedEntry {
        name: RelativeName::parse(b"a").expect("a name"),
        kind: crate::wire::EntryKind::File { size },
        mode: 0o640,
        modified: Timestamp { seconds: 5, nanos: 7 },
        metadata: Metadata::default(),
        link: HardLink::Alone,
    };
    IncomingFile::new(0, &offered, size, 2, &keeper())
}

#[test]
fn a_piece_is_taken_only_with_its_digest_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = crate::beneath::Root::open(folder.path()).unwrap();
    let work = WorkFolder::open(&root, folder.path()).unwrap();
    let offered = OfferedEntry {
        name: RelativeName::parse(b"a").expect("a name"),
        kind: crate::wire::EntryKind::File { size: 3 },
        mode: 0o640,
        modified: Timestamp { seconds: -5, nanos: 7 },
        metadata: Metadata::default(),
        link: HardLink::Alone,
    };
    let file = IncomingFile::new(0, &offered, 3, 1, &keeper());
    let header = |digest| PieceHeader { entry: 0, index: 0, length: 3, digest, is_sent: true };
    let wrong = file.take(&work, &header(Digest([0; 32])), b"abc").unwrap_err();
    assert_eq!(wrong.operation, Operation::Damaged);
    assert_eq!(file.digest(), None);
    let right = digest::of_piece(b"abc", 0, 1);
    let taken = file.take(&work, &header(right), b"abc").unwrap();
    assert_eq!((taken, file.digest()), (Some(EntryOutcome::Taken(0)), Some(right)));
    assert_eq!(file.take(&work, &header(right), b"abc").unwrap(), None);
    let seen = rustix::fs::fstat(work.left(file.own()).unwrap().expect("a file")).unwrap();
    assert_eq!(seen.st_mode & 0o7777, 0o640);
    assert_eq!(FileIdentity::of(&seen).modified, offered.modified);
    let compared = file.compare(&work, &PieceHeader { is_sent: false, ..header(right) });
    assert_eq!(compared.unwrap(), Some(EntryOutcome::Again(0)), "a short file is never left");
    file.close(&work);
    assert_eq!(file.take(&work, &header(right), b"abc").unwrap(), None);
    assert!(work.left(file.own()).unwrap().is_none(), "nothing is written after the end");
    assert!(!file.fits(&PieceHeader { index: 1, ..header(right) }));
}

/// What was taken of it is gone, so a new one would have zeros in its place.
#[test]
fn an_incomplete_file_that_vanished_is_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let root = crate::beneath::Root::open(folder.path()).unwrap();
    let work = WorkFolder::open(&root, folder.path()).unwrap();
    let (file, bytes) = (of_two_pieces(2 << 20), vec![7_u8; 1 << 20]);
    let header = |index| {
        let digest = digest::of_piece(&bytes, index, 2);
        PieceHeader { entry: 0, index, length: 1 << 20, digest, is_sent: true }
    };
    file.take(&work, &header(0), &bytes).unwrap();
    work.remove(file.own());
    let lost = file.take(&work, &header(1), &bytes).unwrap_err();
    assert_eq!((lost.operation, lost.errno), (Operation::Create, libc::ENOENT));
    assert!(file.complete(&work).is_err());
}

/// Whether the file system takes such writes or refuses them. What an earlier copy has left in the hole is gone.
#[test]
fn a_piece_past_the_page_cache_and_one_with_a_hole_are_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = crate::beneath::Root::open(folder.path()).unwrap();
    let work = WorkFolder::open(&root, folder.path()).unwrap();
    work.direct.allow();
    work.direct.ask(true).unwrap();
    let mut file = of_two_pieces(2 << 20);
    file.may_have_old(true);
    let left = File::from(work.file(file.own(), rustix::fs::Mode::RWXU).unwrap());
    left.write_all_at(&vec![9_u8; 2 << 20], 0).unwrap();
    let mut buffer = PageBuffer::default();
    let whole = buffer.front(1 << 20);
    (0..).zip(whole.iter_mut()).for_each(|(at, byte): (u32, _)| *byte = (at / 7) as u8);
    let sparse = [vec![0_u8; 4_096], vec![7; 5_000], vec![0; (1 << 20) - 9_096]].concat();
    let header = |index, bytes: &[u8]| {
        let digest = digest::of_piece(bytes, index, 2);
        PieceHeader { entry: 0, index, length: 1 << 20, digest, is_sent: true }
    };
    file.take(&work, &header(0, whole), whole).unwrap();
    file.take_sparse(&work, &header(1, &sparse), &[(4_096, 5_000)], &[7; 5_000]).unwrap();
    file.complete(&work).unwrap();
    let mut read = vec![1_u8; 2 << 20];
    left.read_exact_at(&mut read, 0).unwrap();
    assert!(read[..1 << 20] == *whole && read[1 << 20..] == sparse);
}

/// The flow that waits sleeps, and its wait is that of an idle flow, and not one for the network.
#[test]
fn one_flow_at_a_time_writes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = crate::beneath::Root::open(folder.path()).unwrap();
    let work = WorkFolder::open(&root, folder.path()).unwrap();
    let (file, bytes) = (of_two_pieces(2 << 20), vec![7_u8; 1 << 20]);
    let digest = digest::of_piece(&bytes, 0, 2);
    let header = PieceHeader { entry: 0, index: 0, length: 1 << 20, digest, is_sent: true };
    let totals = Arc::<StageTotals>::default();
    let waited = || totals.times().of(CopyStage::Write).idle_ns;
    let until = Instant::now() + Duration::from_secs(20);
    thread::scope(|scope| {
        let turn = file.turn.lock();
        let taking = scope.spawn(|| {
            let _life = totals.begin(CopyStage::Receive);
            file.take(&work, &header, &bytes)
        });
        // A wait is longer than any write here.
        while waited() < Nanos::millis(500) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!taking.is_finished() && waited() >= Nanos::millis(500), "{:?}", totals.times());
        assert_eq!(file.digest(), None);
        drop(turn);
        assert_eq!(taking.join().expect("no panic"), Ok(Some(EntryOutcome::Taken(0))));
    });
    let write = *totals.times().of(CopyStage::Write);
    assert_eq!([write.starved_ns, write.blocked_ns], [Nanos(0); 2], "{write:?}");
    assert!(write.idle_ns + write.queued_ns >= Nanos::millis(500), "{write:?}");
}
