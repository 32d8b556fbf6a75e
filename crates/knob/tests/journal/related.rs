//! Tests that devices which the kernel changes along with the tuned one are restored too.

use super::host::{NamedNetns, TestHost, assert_same, can_ip, empty_netns, inside, ip, undo_with};
use super::interleavings::table;

/// A bridge with a macvlan on it, and a veth pair beside it. A test makes v0 a port of the bridge.
const STACK: &str = "
link add br0 type bridge
link set br0 up
link add link br0 name onbr address 02:00:00:00:01:01 type macvlan mode bridge
link set onbr up
link add p0 type veth peer name p1
link set p0 mtu 3000 up
link set p1 mtu 3000 up
";

/// Returns the MTUs, which show whether everything is restored.
fn mtus() -> String {
    let name_and_mtu = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let mtu = words.iter().position(|word| *word == "mtu").unwrap();
        format!("{} {}", words[1], words[mtu + 1])
    };
    ip("-o link show").lines().map(name_and_mtu).collect::<Vec<_>>().join("\n")
}

/// Returns a host with a macvlan on v0, and a separate namespace with another macvlan on v0. Returns `None` if the
/// kernel has no macvlan or if tests with real namespaces cannot run.
fn with_children() -> Option<(TestHost, std::os::fd::OwnedFd)> {
    let host = TestHost::try_new()?;
    let other = empty_netns();
    let makes = host.inside(|| can_ip("link add link v0 name child type macvlan mode bridge"));
    if !makes {
        println!("SKIP: this kernel has no macvlan");
        return None;
    }
    host.inside(|| {
        use std::os::fd::AsRawFd;
        // Duplicate address detection would keep the macvlan's link-local address tentative for about a second, and the
        // snapshot before would differ from the one after.
        std::fs::write("/proc/sys/net/ipv6/conf/child/accept_dad", "0").unwrap();
        ip("link set child mtu 3000 up");
        std::fs::write("/proc/sys/net/ipv6/conf/child/mtu", "2222").unwrap();
        ip("link add link v0 name away type macvlan mode bridge");
        ip("link set away mtu 2900");
        let there = format!("/proc/{}/fd/{}", std::process::id(), other.as_raw_fd());
        ip(&format!("link set away netns {there}"));
    });
    Some((host, other))
}

#[test]
fn stacked_devices_are_restored_in_other_namespaces_too() {
    let Some((host, other)) = with_children() else { return };
    // A namespace without a name and without a process could not be found.
    let _named = NamedNetns::new(&other);
    let away = || inside(&other, mtus);
    let ipv6 = || host.inside(|| std::fs::read_to_string("/proc/sys/net/ipv6/conf/child/mtu").unwrap());
    for end in ["restore", "undo"] {
        let (before, before_away, before_ipv6) = (host.picture(), away(), ipv6());
        let mut agent = host.agent_with_table(60_000);
        assert_eq!(agent.ask("start").unwrap(), "ok");
        assert_eq!(agent.ask("turn mtu 1400").unwrap(), "3000 -> 1400");
        assert_ne!(away(), before_away, "the kernel passes it on");
        agent.ask("turn mtu 9000");
        if end == "restore" {
            let said = agent.ask("restore").unwrap();
            assert!(said.starts_with("true") && said.contains("child: 1400 -> 3000"), "{said}");
        } else {
            agent.kill_with_guardian(&host);
            let report = host.inside(|| undo_with(false, &host.state(), table())).unwrap();
            assert!(report.clean && !report.left, "{report:?}");
        }
        assert_same(&host.picture(), &before, end);
        assert_eq!((away(), ipv6()), (before_away, before_ipv6), "{end}");
    }
}

#[test]
fn a_bridge_follows_its_port_and_stacked_devices_are_restored() {
    let Some(host) = TestHost::try_new() else { return };
    host.inside(|| {
        STACK.lines().filter(|line| !line.is_empty()).for_each(|line| drop(ip(line)));
        ip("link set v0 master br0");
        ip("link set onbr mtu 3000");
    });
    let before = host.inside(mtus);
    assert!(before.contains("br0: 3000"), "its MTU follows its port's: {before}");
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    assert_eq!(agent.ask("turn mtu 1400").unwrap(), "3000 -> 1400");
    assert!(host.inside(mtus).contains("br0: 1400"));
    let said = agent.ask("restore").unwrap();
    assert!(said.starts_with("true"), "{said}");
    assert_eq!(host.inside(mtus), before);
    // The bridge's own MTU was never set, so it still follows the MTU of its port.
    host.inside(|| ip("link set v0 mtu 2000"));
    assert!(host.inside(mtus).contains("br0: 2000"));
}

#[test]
fn changes_of_another_program_to_a_related_device_stay() {
    let Some((host, _other)) = with_children() else { return };
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    assert_eq!(agent.ask("turn mtu 1400").unwrap(), "3000 -> 1400");
    host.inside(|| ip("link set child mtu 1333"));
    let said = agent.ask("restore").unwrap();
    assert!(said.starts_with("false") && said.contains("another program changed it since"), "{said}");
    assert!(host.inside(mtus).contains("child@v0: 1333"));
    // A device that is gone has taken its settings along.
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    assert_eq!(agent.ask("turn mtu 1300").unwrap(), "3000 -> 1300");
    host.inside(|| ip("link del child"));
    let said = agent.ask("restore").unwrap();
    assert!(said.starts_with("true"), "{said}");
}
