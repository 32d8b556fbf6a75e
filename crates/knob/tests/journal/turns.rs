//! Tests of knob changes that succeed, and of those that fail because of the knob or of another program.

use super::host::{TestHost, assert_same, ip, started};

#[test]
fn written_settings_and_their_side_effects_are_restored() {
    let Some((host, before, mut agent)) = started(5000) else { return };
    assert_eq!(
        agent.ask("turn rmem 4096 65536 65536").unwrap().split(" -> ").nth(1),
        Some("4096 65536 65536")
    );
    assert_eq!(agent.ask("turn sack 0").unwrap(), "1 -> 0");
    // Every IPv6 address and route of the device goes.
    assert_eq!(agent.ask("turn mtu 1200").unwrap(), "3000 -> 1200");
    assert!(!host.picture().contains("fd00:1::1"));
    assert_eq!(agent.ask("turn down on").unwrap(), "off -> on");
    assert_eq!(host.journals().len(), 1);
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("true"), "{restored}");
    assert_same(&host.picture(), &before, "afterwards");
    assert!(host.journals().is_empty());
}

#[test]
fn dropping_the_agent_restores_too() {
    let Some((host, before, mut agent)) = started(5000) else { return };
    assert_eq!(agent.ask("turn down on").unwrap(), "off -> on");
    drop(agent);
    host.comes_back(&before);
}

#[test]
fn a_thousand_toggles_do_not_grow_the_journal() {
    let Some(host) = TestHost::try_new() else { return };
    let mut agent = host.started(60_000);
    // A snapshot is written only once. After these writes the kernel has lowered a route's MTU, and nothing new
    // follows.
    for value in ["9000", "3000", "1500", "9000", "1500", "9000"] {
        agent.ask(&format!("turn mtu {value}"));
    }
    let size = || std::fs::metadata(&host.journals()[0]).unwrap().len();
    let grown = size();
    for n in 0..1000 {
        let answer = agent.ask(&format!("turn mtu {}", [1500, 9000][n % 2])).unwrap();
        assert!(answer.contains(" -> "), "{answer}");
    }
    assert_eq!(size(), grown);
    assert!(agent.ask("restore").unwrap().starts_with("true mtu of v0: 9000 -> 3000"));
}

#[test]
fn a_value_that_does_not_read_back_is_taken_back_at_once() {
    let Some((host, before, mut agent)) = started(5000) else { return };
    let refused = agent.ask("turn liar 13").unwrap();
    assert!(refused.contains("asked for '13', reads back '600'"), "{refused}");
    assert_same(&host.picture(), &before, "afterwards");
    // A value that the kernel refuses is handled alike.
    let refused = agent.ask("turn rmem 0 0 0").unwrap();
    assert!(!refused.contains(" -> "), "{refused}");
    assert!(agent.ask("restore").unwrap().starts_with("true"));
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn a_knob_that_is_not_in_the_table_is_never_written() {
    let Some((host, before, mut agent)) = started(5000) else { return };
    assert!(agent.ask("turn /etc/passwd x").unwrap().contains("no setting is called"));
    assert!(agent.ask("turn mtu 67").unwrap().contains("does not take '67'"));
    assert!(agent.ask("turn mtu 9000;reboot").unwrap().contains("does not take"));
    assert!(agent.ask("turn host 1").unwrap().contains("first network namespace"));
    assert!(agent.ask("restore").unwrap().starts_with("true"));
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn foreign_changes_are_left_and_reported() {
    let Some(host) = TestHost::try_new() else { return };
    let mut agent = host.started(5000);
    agent.ask("turn rmem 4096 65536 65536");
    agent.ask("turn mtu 9000");
    host.inside(|| std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 50000 50000")).unwrap();
    host.inside(|| ip("route add 192.168.77.0/24 via 198.18.0.4"));
    let restored = agent.ask("restore").unwrap();
    assert!(restored.starts_with("false"), "{restored}");
    assert!(restored.contains("rmem: another program set it to 4096 50000 50000 since"), "{restored}");
    assert!(restored.contains("192.168.77.0/24 via 198.18.0.4"), "{restored}");
    let now = host.picture();
    assert!(
        now.contains("50000\t50000") && now.contains("192.168.77.0/24") && now.contains("mtu 3000"),
        "{now}"
    );
    assert!(host.journals().is_empty());
}

#[test]
fn one_run_at_a_time() {
    let Some(host) = TestHost::try_new() else { return };
    let (mut first, mut second) = (host.agent(60_000), host.agent(60_000));
    assert_eq!(first.ask("start").unwrap(), "ok");
    let refused = second.ask("start").unwrap();
    assert!(refused.contains(&format!("another run is tuning here (pid {})", first.pid())), "{refused}");
    first.ask("restore");
    assert_eq!(second.ask("start").unwrap(), "ok");
}
