//! Names in letters of both cases, where the file system tells them apart. `validate` has one that does not, and tries a copy to it.

use super::*;

/// Two names of one file look as one entry does elsewhere. The list of the folder tells.
#[test]
fn names_in_both_cases_are_two_where_the_folder_lists_both() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("f"), "old").unwrap();
    std::fs::hard_link(at("f"), at("F")).unwrap();
    let target = target(folder.path(), &[""]);
    let (link, (commits, queue)) = (Arc::new(SourceLink::new(0)), sync_channel(99));
    for (entry, name) in [(0, "f"), (1, "F")] {
        assert_eq!(considered(&target, entry, &offered(name, EntryKind::File { size: 1 })), Answer::Send);
        let digest = digest::of_piece(name.as_bytes(), 0, 1);
        let piece = PieceHeader { entry, index: 0, length: 1, digest, is_sent: true };
        target.take_pieces(&[piece], name.as_bytes(), &link, &commits).unwrap();
    }
    drop(commits);
    target.commit_all(&queue);
    assert_eq!(["f", "F"].map(|name| std::fs::read(at(name)).unwrap()), [b"f", b"F"]);
    assert_eq!(considered(&target, 2, &offered("d", EntryKind::Folder)), Answer::Made);
    assert_eq!(considered(&target, 3, &offered("D", EntryKind::Folder)), Answer::Made);
}
