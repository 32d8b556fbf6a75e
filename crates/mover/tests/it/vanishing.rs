//! Folders of the source that are gone once their content is copied.

use landspeed_record::units::BitRate;

use super::*;

/// Modes are sent last. Otherwise the folder would stay for one user alone, and the copy would seem complete.
#[test]
fn a_folder_that_is_gone_before_its_mode_is_sent_is_named_and_gets_it() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let modes = [("gone/inner", 0o755), ("gone", 0o750), ("stays", 0o711)];
    for (name, mode) in modes {
        let path = from.path().join(name);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    // At this rate it takes two seconds.
    fs::write(from.path().join("long"), bytes(4 * MIB, 1)).unwrap();
    let rules = CopyRules { limit: Some(BitRate(16e6)), ..CopyRules::default() };
    let source = Source { rules, ..source(from.path()) };
    let (target, cancel) = (target(to.path()), CancelFlag::default());
    let outcome = std::thread::scope(|scope| {
        let copying = scope.spawn(|| carried(&source, &target, flows("tcp", 2), &cancel));
        let end = Instant::now() + Duration::from_secs(20);
        while !to.path().join("gone/inner").exists() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        fs::remove_dir_all(from.path().join("gone")).unwrap();
        copying.join().expect("no panic").unwrap()
    });
    assert_eq!((outcome.copied, outcome.failed), (1, 2), "{outcome:?}");
    let mut named: Vec<&[u8]> = outcome.failures.iter().map(|failed| failed.name_hex.0.as_slice()).collect();
    named.sort_unstable();
    assert_eq!(named, [&b"gone"[..], b"gone/inner"]);
    assert!(outcome.failures[0].why.contains("No such file") && !outcome.is_complete(), "{outcome:?}");
    for (name, mode) in modes {
        let there = fs::metadata(to.path().join(name)).unwrap().permissions().mode();
        assert_eq!(there & 0o7777, mode, "{name}");
    }
}
