#[path = "../../tests/it/acl.rs"]
mod acl;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use landspeed_record::{CopyDifference, CopyKeeping, CopyKept, CopyLossKind};
use rustix::fs::{CWD, Mode, OFlags, XattrFlags};

use super::*;
use crate::beneath::Root;
use crate::identity::Timestamp;
use crate::name::RelativeName;
use crate::wire::{EntryKind, HardLink, OfferedEntry};

const ACCESS_LIST: &str = "system.posix_acl_access";
const DEFAULT_LIST: &str = "system.posix_acl_default";

const ONE: &[u8] = b"1";
const TWO: &[u8] = b"2";

/// Returns an ACL with which a mode has the bits 0o751.
fn list() -> Vec<u8> {
    acl::list(7, 5)
}

/// Returns the capability to open raw sockets, as the kernel writes it.
fn capability() -> Vec<u8> {
    [0x0200_0001_u32, 1 << 13, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Sets an attribute. Returns false where the file system or this process's rights do not allow it.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()).is_ok()
}

fn attributes(all: &[(&str, &[u8])]) -> Attributes {
    all.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
}

fn offered(all: &[(&str, &[u8])]) -> OfferedEntry {
    let [user, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    OfferedEntry {
        name: RelativeName::parse(b"a").expect("a name"),
        kind: EntryKind::File { size: 0 },
        mode: 0o4751,
        modified: Timestamp { seconds: 5, nanos: 6 },
        metadata: Metadata { user, group, attributes: attributes(all) },
        link: HardLink::Alone,
    }
}

fn keeper(kinds: &[CopyKept]) -> Keeper {
    Keeper::new(&CopyKeeping { kinds: kinds.iter().copied().collect(), devices: false })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn read_all(place: &Place<'_>) -> Attributes {
    read(place, |name| kind(name).is_some()).unwrap()
}

#[test]
fn what_an_honest_source_never_sends_is_refused() {
    let with = |all: &[(&str, &[u8])]| Metadata { attributes: attributes(all), ..Metadata::default() };
    assert!(with(&[("user.a", ONE), (ACCESS_LIST, ONE), ("security.capability", ONE)]).is_fine());
    let long = format!("user.{}", "a".repeat(251));
    for name in ["", "system.other", "user.a\0b", "security.selinux", long.as_str()] {
        assert!(!with(&[(name, ONE)]).is_fine(), "{name:?}");
    }
    let too_much = vec![0; MOST_OF_ENTRY];
    assert!(!with(&[("user.a", too_much.as_slice())]).is_fine());
    let names: Vec<String> = (0..20_000).map(|n| format!("user.{n}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(with(&many[..6_000]).is_fine() && !with(&many).is_fine(), "the kernel lists fewer");
    assert!(!Metadata { user: u32::MAX, ..Metadata::default() }.is_fine());
}

#[test]
fn attributes_are_read_of_an_open_entry_and_by_name_and_links_are_not_followed() {
    let all = tempfile::tempdir().unwrap();
    let at = |name: &str| all.path().join(name);
    std::fs::write(at("file"), "").unwrap();
    symlink("file", at("link")).unwrap();
    let long = vec![7; 3_000];
    if !set(&at("file"), "user.short", b"1") || !set(&at("file"), "user.long", &long) {
        return;
    }
    let (file, folder) = (File::open(at("file")).unwrap(), Root::open(all.path()).unwrap());
    let own = attributes(&[("user.short", ONE), ("user.long", long.as_slice())]);
    // A descriptor that only names the folder is enough.
    let folder = folder.folder(&RelativeName::root()).unwrap();
    for place in [Place::Open(file.as_fd()), Place::named(folder.as_fd(), b"file")] {
        assert_eq!(read_all(&place), own);
        assert_eq!(read(&place, |name| name == b"user.short").unwrap().len(), 1);
    }
    assert!(read_all(&Place::named(folder.as_fd(), b"link")).is_empty());
    assert!(read(&Place::named(folder.as_fd(), b"none"), |_| true).is_err());
}

/// A source that offers one entry as a FIFO and as a link, on two flows at once, sets no mode outside of the target.
#[test]
fn a_mode_is_not_set_through_a_link() {
    let all = tempfile::tempdir().unwrap();
    let at = |name: &str| all.path().join(name);
    std::fs::write(at("victim"), "").unwrap();
    std::fs::set_permissions(at("victim"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("victim", at("link")).unwrap();
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let folder = Root::open(all.path()).unwrap().folder(&RelativeName::root()).unwrap();
    // Some file systems give the link itself a mode.
    let _ = Place::named(folder.as_fd(), b"link").set_mode(0o777);
    Place::named(folder.as_fd(), b"fifo").set_mode(0o642).unwrap();
    let mode = |name: &str| at(name).metadata().unwrap().mode() & 0o7777;
    assert_eq!((mode("victim"), mode("fifo")), (0o600, 0o642));
}

/// A change of the owner takes set-ID bits and capabilities away, so they come after it.
#[test]
fn an_owner_is_set_before_set_id_bits_and_capabilities() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "").unwrap();
    let has_capabilities = set(&path, "security.capability", &capability());
    std::fs::remove_file(&path).unwrap();
    let (value, list) = (capability(), list());
    let mut all =
        vec![("security.capability", value.as_slice()), ("user.a", ONE), (ACCESS_LIST, list.as_slice())];
    all.retain(|(name, _)| has_capabilities || *name != "security.capability");
    let mut offered = offered(&all);
    (offered.metadata.user, offered.metadata.group) = (1234, 1235);
    let file = File::create_new(&path).unwrap();
    let keeper = keeper(&CopyKept::ALL);
    keeper.set_new(&Place::Open(file.as_fd()), &offered);
    let seen = file.metadata().unwrap();
    assert_eq!((seen.uid(), seen.gid(), seen.mtime()), (1234, 1235, 5));
    let lost: BTreeSet<CopyLossKind> = keeper.lost().iter().map(|lost| lost.reported().kind).collect();
    if !lost.is_empty() {
        // The file system lacks some. What it takes is set anyway.
        return assert!(
            lost.is_subset(&BTreeSet::from([CopyLossKind::Xattrs, CopyLossKind::Acls])),
            "{lost:?}"
        );
    }
    assert_eq!(read_all(&Place::Open(file.as_fd())), offered.metadata.attributes);
    assert_eq!(seen.mode() & 0o7777, 0o4751);
}

#[test]
fn set_id_bits_and_the_owner_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut offered = offered(&[]);
    if !is_root() {
        offered.metadata.user += 1;
    }
    let kinds = if is_root() { vec![CopyKept::Mode, CopyKept::Times] } else { CopyKept::ALL.to_vec() };
    let file = File::create_new(&path).unwrap();
    let keeper = keeper(&kinds);
    keeper.set_new(&Place::Open(file.as_fd()), &offered);
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o751);
    assert!(keeper.lost().is_empty(), "a plain user keeps no owner, and loses nothing by it");
    let there = rustix::fs::fstat(&file).unwrap();
    assert!(keeper.differences(&offered, &there, &Attributes::new()).is_empty());
}

#[test]
fn attributes_that_the_source_lacks_are_removed_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "").unwrap();
    if !set(&path, "user.gone", b"1") || !set(&path, ACCESS_LIST, &list()) {
        return;
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o604)).unwrap();
    let file = File::open(&path).unwrap();
    let (place, there) = (Place::Open(file.as_fd()), || rustix::fs::fstat(&file).unwrap());
    let offered = offered(&[("user.new", TWO)]);
    let times = keeper(&[CopyKept::Times]);
    let before = read_all(&place);
    assert_eq!(times.differences(&offered, &there(), &before), BTreeSet::from([CopyDifference::Time]));
    times.set_over(&place, &offered, &there()).unwrap();
    assert_eq!((read_all(&place), there().st_mode & 0o7777), (before, 0o604));
    let all = keeper(&CopyKept::ALL);
    let differs = all.differences(&offered, &there(), &all.attributes(&place).unwrap());
    let expected = [CopyDifference::Mode, CopyDifference::Xattrs, CopyDifference::Acls];
    assert_eq!(differs, BTreeSet::from(expected));
    all.set_over(&place, &offered, &there()).unwrap();
    assert_eq!(read_all(&place), offered.metadata.attributes);
    assert!(all.differences(&offered, &there(), &read_all(&place)).is_empty() && all.lost().is_empty());
}

/// Its owner could have put other content there, of the same length and time.
#[test]
fn a_file_of_another_user_gets_no_rights_in_place() {
    if !is_root() {
        return;
    }
    let there = File::open("/proc/self/status").unwrap();
    let there = rustix::fs::fstat(&there).unwrap();
    let mut offered = offered(&[]);
    let all = keeper(&CopyKept::ALL);
    assert!(all.is_to_be_new(&offered, &there), "an earlier copy may have set the owner");
    assert!(!keeper(&[CopyKept::Mode]).is_to_be_new(&offered, &there), "set-ID bits go with the owner");
    let mut has_them = there;
    has_them.st_mode |= 0o4000;
    assert!(!all.is_to_be_new(&offered, &has_them), "it has them already");
    offered.metadata.user = 1234;
    assert!(all.is_to_be_new(&offered, &has_them));
    assert!(all.is_to_be_new(&offered, &there));
    assert!(!keeper(&[CopyKept::Owner]).is_to_be_new(&offered, &there), "without the mode");
    offered.mode = 0o755;
    assert!(!all.is_to_be_new(&offered, &there));
    offered.metadata.attributes = attributes(&[("security.capability", capability().as_slice())]);
    assert!(all.is_to_be_new(&offered, &there));
}

/// Another user may have made a name in the target for a file outside of it.
#[test]
fn a_file_with_further_names_gets_no_other_mode_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, further) = (folder.path().join("a"), folder.path().join("b"));
    std::fs::write(&path, "").unwrap();
    std::fs::hard_link(&path, &further).unwrap();
    let all = keeper(&CopyKept::ALL);
    let mut offered = offered(&[]);
    offered.mode = 0o640;
    let is_to_be_new = |mode| {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        all.is_to_be_new(&offered, &rustix::fs::stat(&path).unwrap())
    };
    assert!(!is_to_be_new(0o640) && is_to_be_new(0o600));
    std::fs::remove_file(&further).unwrap();
    assert!(!is_to_be_new(0o600));
}

#[test]
fn no_other_user_has_a_right_while_it_goes_to_another_group() {
    use super::keeper::rights_meanwhile;
    assert_eq!(
        [(0o664, 0o600), (0o666, 0o640), (0o600, 0o777)].map(|(before, mode)| rights_meanwhile(before, mode)),
        [0o600, 0o640, 0o600]
    );
    assert_eq!(rights_meanwhile(0o700, 0o444), 0o700, "the owner can still write");
}

#[test]
fn a_file_is_created_with_its_mode_only_if_that_gives_nothing_but_rights() {
    let all = keeper(&CopyKept::ALL);
    let created = |mode: u32, has: &[(&str, &[u8])]| {
        let offered = OfferedEntry { mode, ..offered(has) };
        all.short_file_mode(&offered).as_raw_mode()
    };
    assert_eq!([0o644, 0o755, 0o600].map(|mode| created(mode, &[])), [0o644, 0o755, 0o600]);
    let others = [0o4755, 0o2755, 0o1777, 0o444, 0o060, 0o10_0644, u32::MAX];
    assert_eq!(others.map(|mode| created(mode, &[])), [0o600; 7]);
    assert_eq!(created(0o644, &[(ACCESS_LIST, ONE)]), 0o600);
    let without = keeper(&[CopyKept::Times]);
    let offered = OfferedEntry { mode: 0o444, ..offered(&[]) };
    assert_eq!(without.short_file_mode(&offered).as_raw_mode(), 0o644);
}

/// A pipe takes no attributes.
#[test]
fn losses_are_counted_by_entry() {
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let (mut offered, keeper) = (offered(&[("user.a", ONE), ("user.b", TWO)]), keeper(&[CopyKept::Xattrs]));
    for name in [&b"first"[..], b"second"] {
        offered.name = RelativeName::parse(name).expect("a name");
        keeper.set_new(&Place::Open(pipe.as_fd()), &offered);
    }
    let lost: Vec<_> = keeper.lost().iter().map(LostKind::reported).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((lost[0].kind, lost[0].entries), (CopyLossKind::Xattrs, 2), "{lost:?}");
    assert_eq!(lost[0].name_hex.0, b"first");
    assert!(lost[0].why.contains("not"), "{lost:?}");
}

#[test]
fn a_made_folder_inherits_nothing() {
    let all = tempfile::tempdir().unwrap();
    std::fs::set_permissions(all.path(), PermissionsExt::from_mode(0o2755)).unwrap();
    if is_root() {
        rustix::fs::chown(all.path(), None, Some(rustix::fs::Gid::from_raw(1234))).unwrap();
        std::fs::set_permissions(all.path(), PermissionsExt::from_mode(0o2755)).unwrap();
    }
    let has_lists = set(all.path(), DEFAULT_LIST, &list());
    std::fs::create_dir(all.path().join("heir")).unwrap();
    let heir = all.path().join("heir").metadata().unwrap();
    assert_eq!(heir.mode() & 0o2000, 0o2000, "else this test shows nothing");
    let root = Root::open(all.path()).unwrap();
    let parse = |name: &[u8]| RelativeName::parse(name).expect("a name");
    root.made_folder(&parse(b"made/below")).unwrap();
    for made in ["made", "made/below"] {
        let seen = all.path().join(made).metadata().unwrap();
        assert_eq!(seen.mode() & 0o7777, 0o700, "{made}");
        assert_eq!(seen.gid(), rustix::process::getegid().as_raw(), "{made}");
        let open = rustix::fs::openat(CWD, all.path().join(made), OFlags::RDONLY, Mode::empty()).unwrap();
        assert!(read_all(&Place::Open(open.as_fd())).is_empty(), "{made}, {has_lists}");
    }
    // Where no mode is kept, the kernel gives it the ACL's.
    Root::open(all.path()).unwrap().making(Mode::from_raw_mode(0o777)).made_folder(&parse(b"open")).unwrap();
    let open = all.path().join("open").metadata().unwrap();
    assert!(!has_lists || open.mode() & 0o7777 == 0o701, "{:o}", open.mode());
}

#[test]
fn room_is_given_back() {
    let room = AttributeRoom::default();
    let held = room.hold(48 << 20);
    assert!(room.is_full() && room.takes(16 << 20) && !room.takes((16 << 20) + 1));
    drop(held);
    assert!(!room.is_full() && room.takes(64 << 20));
}
