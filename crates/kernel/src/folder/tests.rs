use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

fn open_to(path: &Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refusal(path: &Path) -> String {
    PrivateFolder::make(path).expect_err("it is refused").to_string()
}

#[test]
fn a_folder_is_made_for_its_owner_alone_and_reached_by_its_descriptor() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("own");
    assert!(PrivateFolder::open(&path).unwrap().is_none());
    let folder = PrivateFolder::make(&path).unwrap();
    let inside = folder.make_inside("inside").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    fs::write(inside.through("file"), "x").unwrap();
    // After the rename, another folder has the same name. The descriptor still leads to the first one.
    fs::rename(&path, home.path().join("moved")).unwrap();
    open_to(&path, 0o700);
    assert_eq!(inside.names().unwrap(), ["file"]);
    assert_eq!(inside.own("file"), Some(FileType::RegularFile));
    inside.remove("file").unwrap();
    inside.remove("file").unwrap();
    assert!(!home.path().join("moved/inside/file").exists() && inside.own("file").is_none());
    assert!(folder.open_inside("none").unwrap().is_none());
}

#[test]
fn a_folder_that_another_user_can_read_or_replace_is_refused() {
    let home = tempfile::tempdir().unwrap();
    open_to(&home.path().join("readable"), 0o755);
    assert!(refusal(&home.path().join("readable")).contains("is open to others"));
    // An open folder far above counts too, not only the direct parent.
    open_to(&home.path().join("open/a/b"), 0o755);
    open_to(&home.path().join("open"), 0o777);
    assert!(refusal(&home.path().join("open/a/b/own")).contains("open can be changed by other users"));
    // The sticky bit, as on /tmp, makes an open folder safe.
    open_to(&home.path().join("open"), 0o1777);
    PrivateFolder::make(&home.path().join("open/a/b/own")).unwrap();
}

#[test]
fn a_folder_of_another_user_is_refused_anywhere_on_the_path() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP a_folder_of_another_user_is_refused: needs root to be another user");
    }
    let home = tempfile::tempdir().unwrap();
    let theirs = home.path().join("theirs");
    open_to(&theirs.join("a"), 0o700);
    chown(&theirs, Some(41_002), Some(41_002)).unwrap();
    let refused = refusal(&theirs);
    assert!(
        refused.contains("belongs to another user (uid 41002") && !refused.contains("remove"),
        "{refused}"
    );
    assert!(refusal(&theirs.join("a/own")).contains("theirs can be changed by other users"));
    // A link of another user leads to a folder of this user.
    open_to(&home.path().join("ours"), 0o700);
    let link = home.path().join("link");
    symlink("ours", &link).unwrap();
    PrivateFolder::make(&link.join("own")).unwrap();
    std::os::unix::fs::lchown(&link, Some(41_002), Some(41_002)).unwrap();
    assert!(refusal(&link.join("own")).contains("link can be changed by other users"));
}

#[test]
fn links_above_are_followed_and_the_folder_itself_is_none() {
    let home = tempfile::tempdir().unwrap();
    open_to(&home.path().join("real/deep"), 0o700);
    symlink(home.path().join("real"), home.path().join("absolute")).unwrap();
    symlink("absolute/deep/../deep", home.path().join("relative")).unwrap();
    PrivateFolder::make(&home.path().join("relative/own")).unwrap();
    assert!(home.path().join("real/deep/own").is_dir());
    assert!(refusal(&home.path().join("relative")).contains("symbolic link"));
    symlink("round", home.path().join("round")).unwrap();
    assert!(refusal(&home.path().join("round/own")).contains("cannot follow"));
    fs::write(home.path().join("file"), "").unwrap();
    assert!(refusal(&home.path().join("file/own")).contains("is no folder"));
}
