//! Tests of what a later run or `undo` does with leftovers, friendly or hostile.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use landspeed_knob::journal::Undo;

use super::host::{NamedNetns, TestHost, assert_same, undo_with};
use super::knobs::lookup;

/// Writes a journal for this host, as another program might.
fn plant(host: &TestHost, lines: &str) -> PathBuf {
    let folder = host.state().join("journal");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let cookie = host.inside(|| landspeed_kernel::netlink::netns_cookie().unwrap());
    let path = folder.join(format!("net-{cookie}.jsonl"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let lines = lines.replace("BOOT", boot.trim()).replace("COOKIE", &cookie.to_string());
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, lines.as_bytes()).unwrap();
    path
}

const HEADER: &str = r#"{"entry":"header","format":3,"boot_id":"BOOT","netns_cookie":COOKIE,"agent":{"pid":1,"start_ticks":0},"guardian":{"pid":1,"start_ticks":0}}
{"entry":"mark","turning":"0000000000","seen":"0000000000","net":"0000000000","at_s":"0000000000"}
"#;

fn with_header(line: &str) -> String {
    format!("{HEADER}{line}\n")
}

#[test]
fn a_run_that_died_before_its_first_turn_blocks_no_other() {
    let Some(host) = TestHost::try_new() else { return };
    for text in [HEADER, &format!("{HEADER}{{\"entry\":\"intent\",\"seq\":1,\"kn")] {
        plant(&host, text);
        let mut agent = host.agent(5000);
        assert_eq!(agent.ask("start").unwrap(), "ok", "{text}");
        agent.ask("restore");
        plant(&host, text);
        let report = host.undo();
        assert!(report.clean && host.journals().is_empty(), "{report:?}");
    }
}

#[test]
fn the_agent_removes_the_remains_of_a_guardian_that_died_at_once() {
    let Some(host) = TestHost::try_new() else { return };
    plant(&host, HEADER);
    let refused = host.agent(5000).ask("start-with /bin/false").unwrap();
    assert!(refused.contains("the guardian died"), "{refused}");
    assert!(host.journals().is_empty());
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    plant(&host, &with_header(intent));
    host.agent(5000).ask("start-with /bin/false").unwrap();
    assert_eq!(host.journals().len(), 1, "there is something to undo");
    let refused = host.agent(5000).ask("start-with /no/such/program").unwrap();
    assert!(refused.contains("cannot be started"), "{refused}");
}

#[test]
fn hostile_lines_are_refused_and_the_others_restored() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let hostile = [
        r#"{"entry":"intent","seq":1,"knob":"../../etc/passwd","device":null,"before":"1","to":"0"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"1\n2","to":"0"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"5","to":"1"}"#,
        r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"../v0","ifindex":3,"permanent_mac":null},"before":"1500","to":"3000"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1","disturbed":{"sysctls":{"kernel.core_pattern":"|/bin/sh"}}}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"1","to":"0"}
{"entry":"seen","id":1,"device":0,"seen":{"kinds":[],"running":false,"items":[[{"sysctl":"kernel.core_pattern"},{"text":"|/bin/sh"}]]}}"#,
        r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"v0","ifindex":3,"permanent_mac":null},"before":"3000","to":"1500"}
{"entry":"seen","id":1,"device":3,"seen":{"kinds":[],"running":false,"items":[[{"device-sysctl":"ipv4/conf/../../../kernel/core_pattern"},{"text":"x"}]]}}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"1","to":"0"}
{"entry":"net","id":1,"net":{"values":[],"changes":[[[3,{"device-sysctl":"ipv4/conf/rp_filter"}],{"before":{"text":"1"},"after":{"text":"2"},"was_orphan":false}]]}}"#,
        r#"{"entry":"net","id":1,"net":{"values":[[1,"1"]],"changes":[]}}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1","run":"/bin/sh"}"#,
        r#"{"entry":"also","seq":9,"to":"1"}"#,
        r#"{"entry":"header","format":1}"#,
        "\u{1b}[2J",
        "[[[[[[",
    ];
    for line in hostile {
        let path = plant(&host, &with_header(line));
        let mut agent = host.agent(5000);
        assert!(agent.ask("start").unwrap().contains("landspeed undo"), "{line}");
        let report = host.undo();
        assert!(!report.clean && path.exists(), "{line}: {report:?}");
        assert!(!report.lines.iter().any(|l| l.contains('\u{1b}')), "{report:?}");
        assert_same(&host.picture(), &before, line);
    }
    let good = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    plant(&host, &with_header(&format!("{}\n{good}", hostile[0])));
    let report = host.undo();
    assert!(!report.clean && report.lines.contains(&"sack: 1 -> 0".to_owned()), "{report:?}");
}

#[test]
fn a_journal_of_another_boot_is_reported_and_not_applied() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"1","to":"0"}"#;
    let other = with_header(intent).replace("BOOT", "01234567-0123-0123-0123-0123456789ab");
    plant(&host, &other);
    assert!(host.agent(5000).ask("start").unwrap().contains("landspeed undo"));
    let report = host.undo();
    assert!(report.clean && report.lines[0].contains("earlier boot"), "{report:?}");
    assert!(report.lines[1].contains("sack (no device) had been 1"), "{report:?}");
    assert!(host.journals().is_empty());
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn a_device_that_is_gone_took_its_settings_along() {
    let Some(host) = TestHost::try_new() else { return };
    let intent = r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"v0","ifindex":999,"permanent_mac":null},"before":"1500","to":"3000"}"#;
    plant(&host, &with_header(intent));
    let report = host.undo();
    assert!(report.clean && report.lines[0].contains("the device is gone"), "{report:?}");
    assert!(host.picture().contains("mtu 3000"), "the new device of this name is left alone");
}

#[test]
fn a_journal_of_another_boot_id_is_kept_where_a_setting_reads_as_it_left_it() {
    let Some(host) = TestHost::try_new() else { return };
    let before = host.picture();
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    let path = plant(&host, &with_header(intent).replace("BOOT", "01234567-0123-0123-0123-0123456789ab"));
    host.inside(|| assert_eq!(fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap(), "1\n"));
    let report = host.undo();
    assert!(!report.clean && path.exists(), "{report:?}");
    assert!(
        report.lines.iter().any(|l| l.contains("sack is 1, as that run left it; it had been 0")),
        "{report:?}"
    );
    assert_same(&host.picture(), &before, "nothing is written");
}

#[test]
fn a_journal_that_lost_its_header_is_kept() {
    let Some(host) = TestHost::try_new() else { return };
    for text in ["", "{\"entry\":\"hea", "\0\0\0\0"] {
        let path = plant(&host, text);
        assert!(host.agent(5000).ask("start").unwrap().contains("landspeed undo"), "{text:?}");
        let report = host.undo();
        assert!(!report.clean && path.exists(), "{text:?}: {report:?}");
        assert!(report.lines.iter().any(|line| line.contains("does not add up")), "{report:?}");
        fs::remove_file(path).unwrap();
    }
    // A journal that never got its final name has recorded no change, so it is removed.
    let draft = plant(&host, HEADER);
    fs::rename(&draft, draft.with_extension("jsonl.new")).unwrap();
    let report = host.undo();
    assert!(report.clean && host.journals().is_empty(), "{report:?}");
}

#[test]
fn no_journal_behind_a_symlink() {
    let Some(host) = TestHost::try_new() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), host.state()).unwrap();
    let refused = host.agent(5000).ask("start").unwrap();
    assert!(refused.contains("symbolic link"), "{refused}");
    assert!(host.inside(|| undo_with(false, &host.state(), lookup)).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn undo_reaches_other_namespaces_and_knows_those_that_are_gone() {
    let Some(host) = TestHost::try_new() else { return };
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    plant(&host, &with_header(intent));
    let from_here = |all| undo_with(all, &host.state(), lookup).unwrap();
    let report = from_here(false);
    assert!(report.lines[0].contains("without --here") && host.journals().len() == 1, "{report:?}");
    {
        let _named = NamedNetns::new(host.netns());
        let report = from_here(true);
        // The side effects of a restoring write are restored too.
        let lines = ["sack: 1 -> 0", "net.ipv4.tcp_dsack: 0 -> 1"].map(str::to_owned);
        assert_eq!((report.clean, report.lines), (true, lines.into()));
    }
    assert!(host.picture().contains("tcp_sack=0"));

    let path = plant(&host, &with_header(intent));
    let gone = path.with_file_name("net-987654321.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let cookie = path.file_stem().unwrap().to_str().unwrap().trim_start_matches("net-").to_owned();
    fs::write(&path, text.replace(&format!("\"netns_cookie\":{cookie}"), "\"netns_cookie\":987654321"))
        .unwrap();
    fs::rename(&path, &gone).unwrap();
    let report = from_here(true);
    assert!(report.clean && report.lines[0].contains("is gone: its settings went with it"), "{report:?}");
    assert!(host.journals().is_empty());
}

#[test]
fn settings_that_cannot_be_restored_are_shown_and_given_up_on_demand() {
    let Some(host) = TestHost::try_new() else { return };
    let good = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    let path = plant(&host, &with_header(&format!("{good}\n[[[[")));
    let before = host.picture();
    let asked = |agree| {
        let forget = Undo { all: false, state_dir: host.state(), lookup, ..Undo::default() };
        let mut shown = Vec::new();
        let report = host.inside(|| {
            forget.forget(|lines| {
                shown = lines.to_vec();
                agree
            })
        });
        (report.unwrap(), shown)
    };
    let (kept, shown) = asked(false);
    assert!(!kept.clean && path.exists(), "{kept:?}");
    assert!(shown.contains(&"  sack is 1, was 0".to_owned()), "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("line 4 is not understood")), "{shown:?}");
    assert_same(&host.picture(), &before, "nothing is changed");
    // However often it runs, undo restores what it can, keeps the rest in the journal, and reports the remaining work.
    for _ in 0..2 {
        let report = host.undo();
        assert!(!report.clean && report.lines.last().unwrap().contains("undo --forget"), "{report:?}");
    }
    let (gone, shown) = asked(true);
    assert!(gone.clean && host.journals().is_empty(), "{gone:?}");
    assert!(shown.contains(&"  sack is 0, was 0".to_owned()), "{shown:?}");
    assert_eq!(host.agent(5000).ask("start").unwrap(), "ok");
    // A run in progress keeps its journal.
    let mut agent = host.started(60_000);
    agent.ask("turn sack 1");
    let (refused, shown) = asked(true);
    assert!(refused.lines[0].contains("a run is in progress") && shown.is_empty(), "{refused:?}");
    assert_eq!(host.journals().len(), 1);
    // Nothing is wrong with this journal, so undo does not advise to forget it.
    let report = host.undo();
    assert!(!report.clean && !report.lines.iter().any(|line| line.contains("--forget")), "{report:?}");
}

#[test]
fn a_journal_of_another_version_is_named_and_not_misread() {
    let Some(host) = TestHost::try_new() else { return };
    let intent =
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1","disturbed":{}}"#;
    let old = with_header(intent).replace("\"format\":3", "\"format\":2");
    plant(&host, &old);
    let before = host.picture();
    assert!(host.agent(5000).ask("start").unwrap().contains("landspeed undo"));
    let report = host.undo();
    assert!(!report.clean && report.lines[0].contains("another version of landspeed"), "{report:?}");
    assert_same(&host.picture(), &before, "afterwards");
    // After the next boot its settings no longer exist.
    plant(&host, &old.replace("BOOT", "01234567-0123-0123-0123-0123456789ab"));
    let report = host.undo();
    assert!(report.clean && report.lines[0].contains("earlier boot"), "{report:?}");
    assert!(host.journals().is_empty());
}
