//! Tests that what another program changes during a run is kept and reported.

use std::fs;

use super::host::{TestHost, ip, started, tc};

const RP_FILTER: &str = "/proc/sys/net/ipv4/conf/v0/rp_filter";

#[test]
fn changes_of_other_programs_stay_and_are_reported() {
    let Some((host, _, mut agent)) = started(60_000) else { return };
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    host.inside(|| {
        // A virtual address that failed over, a route that a daemon withdrew, an administrator's filter.
        ip("addr del 198.18.0.9/24 dev v0");
        ip("addr del fd00:1::1/64 dev v0");
        ip("route del 203.0.113.0/24 table 100");
        fs::write(RP_FILTER, "1").unwrap();
    });
    agent.ask("turn mtu 3000");
    agent.ask("turn mtu 9000");
    let restored = agent.ask("restore").unwrap();
    let now = host.picture();
    for gone in ["198.18.0.9/24", "fd00:1::1/64", "203.0.113.0/24"] {
        assert!(!now.contains(gone), "{gone} came back: {restored}");
        assert!(restored.contains(gone), "{gone} is not mentioned: {restored}");
    }
    assert!(now.contains("ipv4/conf/v0/rp_filter=1\n"), "{restored}");
    assert!(restored.contains("rp_filter"), "{restored}");
    assert!(restored.starts_with("false"), "{restored}");
    assert!(now.contains("mtu 3000") && host.journals().is_empty());
}

#[test]
fn a_users_own_mtu_stays_with_all_that_follows_from_it() {
    let Some((host, _, mut agent)) = started(60_000) else { return };
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    host.inside(|| ip("link set v0 mtu 4000"));
    let before = host.picture();
    assert!(before.contains("ipv6/conf/v0/mtu=4000\n"));
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("false"), "{restored}");
    super::host::assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn changes_of_other_programs_between_two_turns_survive_undo_too() {
    let Some((host, _, mut agent)) = started(60_000) else { return };
    // IPv6 goes, with its addresses and routes. Another program removes a remaining address and sets a remaining
    // sysctl.
    assert_eq!(agent.ask("turn mtu 1200").unwrap(), "3000 -> 1200");
    host.inside(|| {
        ip("addr del 198.18.0.9/24 dev v0");
        fs::write(RP_FILTER, "1").unwrap();
    });
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "1200 -> 9000");
    assert_eq!(agent.ask("turn mtu 1200").unwrap(), "9000 -> 1200");
    agent.kill_with_guardian(&host);
    let report = host.undo();
    assert!(report.clean, "{report:?}");
    let now = host.picture();
    assert!(!now.contains("198.18.0.9/24") && now.contains("ipv4/conf/v0/rp_filter=1\n"), "{report:?}");
    for ours in ["fd00:1::1/64", "fd00:1::2/64", "fd00:2::/48", "ipv6/conf/v0/accept_ra=2\n", "mtu 3000"] {
        assert!(now.contains(ours), "{ours} is missing: {report:?}");
    }
}

/// If another program removes an IPv6 address with a lifetime, the kernel keeps the route to its prefix. If our write
/// then removes that route, undo restores it without the address.
#[test]
fn a_route_that_outlived_its_address_comes_back() {
    let Some((host, _, mut agent)) = started(60_000) else { return };
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    host.inside(|| ip("addr del fd00:3::1/64 dev v0"));
    let routes = || host.inside(|| ip("-6 route show dev v0"));
    assert!(routes().contains("fd00:3::/64"), "{}", routes());
    assert_eq!(agent.ask("turn mtu 1200").unwrap(), "9000 -> 1200");
    assert!(!routes().contains("fd00:3::/64"), "{}", routes());
    let restored = agent.ask("restore").unwrap();
    assert!(routes().contains("fd00:3::/64"), "{restored}\n{}", routes());
    assert!(!host.picture().contains("fd00:3::1/64") && host.journals().is_empty());
}

/// The options of HTB contain a counter of the packets that no class took.
#[test]
fn a_qdisc_that_counts_in_its_options_does_not_block_the_host() {
    let Some(host) = TestHost::try_new() else { return };
    host.inside(|| {
        tc("qdisc add dev v0 root handle 7: htb default 0");
        tc("class add dev v0 parent 7: classid 7:1 htb rate 1gbit");
    });
    let mut agent = host.started(60_000);
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    let shown = || host.inside(|| tc("qdisc show dev v0"));
    let before = shown();
    host.inside(|| {
        let socket = std::net::UdpSocket::bind("198.18.0.1:0").unwrap();
        // No host answers at that address; the packets that pass are requests for its hardware address.
        for _ in 0..20 {
            let _ = socket.send_to(b"x", "198.18.0.77:9");
            std::thread::sleep(std::time::Duration::from_millis(100));
            if tc("qdisc show dev v0") != before {
                break;
            }
        }
    });
    assert_ne!(shown(), before, "the counter moved");
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("true"), "{restored}");
    assert!(host.journals().is_empty());
    let classes = host.inside(|| tc("class show dev v0"));
    assert!(classes.contains("class htb 7:1"), "{classes}");
}
