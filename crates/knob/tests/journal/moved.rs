//! Tests with devices that leave the namespace in which their knobs were changed.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use landspeed_kernel::netlink::{LinkChange, Rtnl};
use landspeed_knob::journal::Undo;

use super::host::{NamedNetns, TestHost, can_run, empty_netns, inside, ip};
use super::knobs::lookup;

fn moved(host: &TestHost, to: &OwnedFd) {
    host.inside(|| Rtnl::open().unwrap().set_link("v0", LinkChange::Netns(to.as_fd()))).unwrap();
}

fn mtu_in(netns: &OwnedFd) -> u32 {
    inside(netns, || Rtnl::open().unwrap().link("v0").unwrap().mtu)
}

#[test]
fn a_device_that_moved_is_put_back_where_it_is_now() {
    let Some(host) = TestHost::try_new() else { return };
    let other = empty_netns();
    let _reachable = NamedNetns::new(&other);
    // In that namespace, another device has the index of v0.
    inside(&other, || ip("link add x1 type veth peer name x2"));
    let mut agent = host.started(60_000);
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    agent.ask("turn sack 0");
    moved(&host, &other);
    let restored = agent.ask("restore").unwrap();
    assert_eq!(mtu_in(&other), 3000, "{restored}");
    assert!(restored.contains("mtu of v0: 9000 -> 3000"), "{restored}");
    assert!(restored.contains("sack: 0 -> 1"), "{restored}");
    assert!(restored.contains("moved to another network namespace"), "{restored}");
    assert!(!restored.contains("gone"), "{restored}");
    assert!(host.journals().is_empty());
}

#[test]
fn a_device_that_moved_unseen_is_looked_for_and_otherwise_the_journal_is_kept() {
    let Some(host) = TestHost::try_new() else { return };
    let other = empty_netns();
    let mut agent = host.started(60_000);
    agent.ask("turn mtu 9000");
    agent.kill_with_guardian(&host);
    moved(&host, &other);
    let report = host.undo();
    assert!(!report.clean && host.journals().len() == 1, "{report:?}");
    assert!(report.lines[0].contains("cannot be reached"), "{report:?}");
    assert_eq!(mtu_in(&other), 9000);
    let _reachable = NamedNetns::new(&other);
    let report = host.undo();
    assert!(report.clean && host.journals().is_empty(), "{report:?}");
    assert_eq!(mtu_in(&other), 3000, "{report:?}");
}

#[test]
fn a_device_that_was_deleted_or_ended_with_another_namespace_is_gone() {
    if !can_run() {
        return;
    }
    for deleted in [true, false] {
        let (host, other) = (TestHost::new(), empty_netns());
        let mut agent = host.started(60_000);
        assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
        if deleted {
            host.inside(|| ip("link del v0"));
        } else {
            moved(&host, &other);
            drop(other);
            // The kernel removes a namespace some time later; the other end goes with the device.
            host.inside(|| {
                while Rtnl::open().unwrap().link("v1").is_ok() {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            });
        }
        let restored = agent.ask("restore").unwrap();
        assert!(restored.contains("mtu of v0: the device is gone"), "{restored}");
        assert!(host.journals().is_empty());
    }
}

/// A lab's devices ended with it, even if the next lab has similar ones: the hosts of all labs are alike.
#[test]
fn a_device_of_a_lab_that_was_taken_down_is_gone_though_another_looks_alike() {
    if !can_run() {
        return;
    }
    let (host, alike) = (TestHost::alike(), TestHost::alike());
    let _named = NamedNetns::new(alike.netns());
    let mut agent = host.started(60_000);
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    agent.kill_with_guardian(&host);
    let [journal] = &host.journals()[..] else { panic!("one journal") };
    let kept = alike.state().join("journal").join(journal.file_name().unwrap());
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    for folder in [alike.state(), alike.state().join("journal")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::copy(journal, &kept).unwrap();
    drop(host);
    // The similar device even has the value that this run wrote.
    alike.inside(|| ip("link set v0 mtu 9000"));
    let undo = Undo { devices_ended: true, state_dir: alike.state(), lookup, ..Undo::default() };
    let report = undo.run().unwrap();
    assert!(report.clean && alike.journals().is_empty(), "{report:?}");
    assert!(alike.picture().contains("mtu 9000"), "{report:?}");
}
