//! Tests of what the guardian checks on the host before each write: whether the knob can be written here, and whether
//! the value is still the original or ours. `tc` and `ip` show the result.

use super::host::{TestHost, assert_same, ip, started, tc};

/// Classes and filters as an administrator would set them up.
const CLASSFUL: &[&str] = &[
    "qdisc replace dev v0 root handle 1: htb default 10",
    "class add dev v0 parent 1: classid 1:10 htb rate 100mbit quantum 1500",
    "class add dev v0 parent 1: classid 1:20 htb rate 1mbit quantum 1500",
    "filter add dev v0 parent 1: protocol ip prio 1 u32 match ip dst 198.18.0.2/32 flowid 1:20",
];

fn make_classful(host: &TestHost) -> String {
    host.inside(|| CLASSFUL.iter().for_each(|line| drop(tc(line))));
    let classes = classes(host);
    assert!(classes.contains("htb 1:20") && classes.contains("flowid 1:20"), "{classes}");
    classes
}

/// Returns qdiscs, classes and filters, without counters of packets.
fn classes(host: &TestHost) -> String {
    let text =
        host.inside(|| ["qdisc", "class", "filter"].map(|what| tc(&format!("{what} show dev v0"))).concat());
    let uncounted =
        |line: &str| line.split(" direct_packets_stat").next().unwrap_or_default().to_owned() + "\n";
    text.lines().map(uncounted).collect()
}

#[test]
fn a_classful_root_is_left_alone_whatever_the_agent_asks() {
    let Some(host) = TestHost::try_new() else { return };
    let before = make_classful(&host);
    let mut agent = host.agent_with_table(60_000);
    assert_eq!(agent.ask("start").unwrap(), "ok");
    for kind in ["pfifo", "fq_codel", "default", "htb"] {
        let refused = agent.ask(&format!("turn qdisc {kind}")).unwrap();
        assert!(refused.contains("v0 has a htb qdisc that a user configured"), "{kind}: {refused}");
        assert_same(&classes(&host), &before, kind);
    }
    assert!(agent.ask("restore").unwrap().starts_with("true"));
    assert_same(&classes(&host), &before, "afterwards");

    // A classful root that appears between two toggles is not ours either.
    host.inside(|| drop(tc("qdisc del dev v0 root")));
    assert_eq!(agent.ask("start").unwrap(), "ok");
    for toggle in ["pfifo", "default", "pfifo"] {
        let turned = agent.ask(&format!("turn qdisc {toggle}")).unwrap();
        assert!(turned.ends_with(&format!("-> {toggle}")), "{turned}");
    }
    let theirs = make_classful(&host);
    for kind in ["default", "pfifo"] {
        let refused = agent.ask(&format!("turn qdisc {kind}")).unwrap();
        assert!(refused.contains("another program set it to 'htb'"), "{refused}");
    }
    assert_same(&classes(&host), &theirs, "after the refusals");
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("false qdisc of v0: another program set it to htb since"), "{restored}");
    assert_same(&classes(&host), &theirs, "after the restore");
}

#[test]
fn a_value_that_somebody_else_set_is_not_written_over() {
    let Some(host) = TestHost::try_new() else { return };
    let mut agent = host.started(60_000);
    let their_mtu = |mtu: &str| drop(host.inside(|| ip(&format!("link set v0 mtu {mtu}"))));
    let now = || host.inside(|| ip("link show v0"));
    assert_eq!(agent.ask("turn mtu 9000").unwrap(), "3000 -> 9000");
    assert_eq!(agent.ask("turn mtu 8000").unwrap(), "9000 -> 8000");
    // Neither a new value nor one that this run wrote earlier is what the run left.
    for theirs in ["7000", "9000"] {
        their_mtu(theirs);
        let refused = agent.ask("turn mtu 6000").unwrap();
        let line = format!("mtu: another program set it to '{theirs}' since this run set it to '8000'");
        assert!(refused.contains(&line), "{refused}");
        assert!(now().contains(&format!("mtu {theirs} ")), "{}", now());
    }
    // Toggling may continue from the original value and from the last one written.
    their_mtu("3000");
    assert_eq!(agent.ask("turn mtu 8000").unwrap(), "3000 -> 8000");
    assert_eq!(agent.ask("turn mtu 3000").unwrap(), "8000 -> 3000");
    their_mtu("7000");
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("false mtu of v0: another program set it to 7000 since"), "{restored}");
    assert!(now().contains("mtu 7000 "), "{}", now());
}

#[test]
fn a_value_of_an_own_write_may_be_changed_again() {
    let Some((host, before, mut agent)) = started(60_000) else { return };
    // A reverted write leaves the value before it.
    assert!(agent.ask("turn liar 700").unwrap().ends_with("-> 700"));
    assert!(agent.ask("turn liar 13").unwrap().contains("reads back '600'"));
    assert_eq!(agent.ask("turn liar 800").unwrap(), "700 -> 800");
    // Writing one knob sets another. That value is still this run's, and only that one.
    assert_eq!(agent.ask("turn dsack 5").unwrap(), "1 -> 5");
    assert_eq!(agent.ask("turn sack 0").unwrap(), "1 -> 0");
    assert_eq!(agent.ask("turn dsack 7").unwrap(), "0 -> 7");
    assert_eq!(agent.ask("turn sack 0").unwrap(), "0 -> 0");
    host.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_dsack", "9")).unwrap();
    assert_eq!(agent.ask("turn sack 0").unwrap(), "0 -> 0");
    host.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_dsack", "9")).unwrap();
    let refused = agent.ask("turn dsack 8").unwrap();
    assert!(refused.contains("dsack: another program set it to '9'"), "{refused}");
    host.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_dsack", "1")).unwrap();
    assert!(agent.ask("restore").unwrap().starts_with("true"));
    assert_same(&host.picture(), &before, "afterwards");
}
