//! What a later run or `undo` makes of what it finds, friendly or not.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use landspeed_knob::journal::{UndoReport, undo_with};

use super::host::{Host, assert_same, can_run};
use super::knobs::lookup;

fn undo(host: &Host) -> UndoReport {
    host.inside(|| undo_with(false, &host.state(), lookup)).unwrap()
}

/// Puts a journal there for this host, as some other program might.
fn plant(host: &Host, lines: &str) -> PathBuf {
    let folder = host.state().join("journal");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let cookie = host.inside(|| landspeed_netlink::netns_cookie().unwrap());
    let path = folder.join(format!("net-{cookie}.jsonl"));
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let lines = lines.replace("BOOT", boot.trim()).replace("COOKIE", &cookie.to_string());
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, lines.as_bytes()).unwrap();
    path
}

const HEADER: &str = r#"{"entry":"header","format":1,"boot_id":"BOOT","netns_cookie":COOKIE,"agent":{"pid":1,"start_ticks":0},"guardian":{"pid":1,"start_ticks":0}}
{"entry":"turning","seq":"0000000000"}
"#;

fn with_header(line: &str) -> String {
    format!("{HEADER}{line}\n")
}

#[test]
fn a_run_that_died_before_its_first_turn_blocks_nobody() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    for text in ["", "{\"entry\":\"hea", HEADER, &format!("{HEADER}{{\"entry\":\"intent\",\"seq\":1,\"kn")] {
        plant(&host, text);
        let mut agent = host.agent(5000);
        assert_eq!(agent.ask("start").unwrap(), "ok", "{text}");
        agent.ask("restore");
        plant(&host, text);
        let report = undo(&host);
        assert!(report.clean && host.journals().is_empty(), "{report:?}");
    }
}

#[test]
fn the_agent_clears_away_what_a_guardian_left_that_died_at_once() {
    if !can_run() {
        return;
    }
    let host = Host::new();
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
    if !can_run() {
        return;
    }
    let host = Host::new();
    let before = host.picture();
    let hostile = [
        r#"{"entry":"intent","seq":1,"knob":"../../etc/passwd","device":null,"before":"1","to":"0"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"1\n2","to":"0"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"5","to":"1"}"#,
        r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"../v0","ifindex":3,"permanent_mac":null},"before":"1500","to":"3000"}"#,
        r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1","disturbed":{"sysctls":{"kernel.core_pattern":"|/bin/sh"}}}"#,
        r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"v0","ifindex":3,"permanent_mac":null},"before":"1500","to":"3000","disturbed":{"device_sysctls":{"ipv4/conf/../../../kernel/core_pattern":"x"}}}"#,
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
        let report = undo(&host);
        assert!(!report.clean && path.exists(), "{line}: {report:?}");
        assert!(!report.lines.iter().any(|l| l.contains('\u{1b}')), "{report:?}");
        assert_same(&host.picture(), &before, line);
    }
    let good = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    plant(&host, &with_header(&format!("{}\n{good}", hostile[0])));
    let report = undo(&host);
    assert!(!report.clean && report.lines.contains(&"sack: 1 -> 0".to_owned()), "{report:?}");
}

#[test]
fn another_boot_is_told_and_not_written() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let before = host.picture();
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    let other = with_header(intent).replace("BOOT", "01234567-0123-0123-0123-0123456789ab");
    plant(&host, &other);
    assert!(host.agent(5000).ask("start").unwrap().contains("landspeed undo"));
    let report = undo(&host);
    assert!(report.clean && report.lines[0].contains("earlier boot"), "{report:?}");
    assert!(report.lines[1].contains("sack (no device) had been 0"), "{report:?}");
    assert!(host.journals().is_empty());
    assert_same(&host.picture(), &before, "afterwards");
}

#[test]
fn a_device_that_is_gone_took_its_settings_along() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let intent = r#"{"entry":"intent","seq":1,"knob":"mtu","device":{"name":"v0","ifindex":999,"permanent_mac":null},"before":"1500","to":"3000"}"#;
    plant(&host, &with_header(intent));
    let report = undo(&host);
    assert!(report.clean && report.lines[0].contains("the device is gone"), "{report:?}");
    assert!(host.picture().contains("mtu 3000"), "the new device of this name is left alone");
}

#[test]
fn no_journal_behind_a_symlink() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), host.state()).unwrap();
    let refused = host.agent(5000).ask("start").unwrap();
    assert!(refused.contains("symbolic link"), "{refused}");
    assert!(host.inside(|| undo_with(false, &host.state(), lookup)).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A name for a namespace, as `ip netns` gives them; taken back when dropped.
struct Named(PathBuf);

impl Named {
    fn new(host: &Host) -> Named {
        use std::os::fd::AsRawFd;
        let path = Path::new("/run/netns").join(format!("lsj-{}", std::process::id()));
        fs::create_dir_all("/run/netns").unwrap();
        fs::write(&path, "").unwrap();
        let handle = format!("/proc/self/fd/{}", host.netns().as_raw_fd());
        rustix::mount::mount_bind(handle, &path).unwrap();
        Named(path)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn undo_reaches_other_namespaces_and_knows_those_that_are_gone() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let intent = r#"{"entry":"intent","seq":1,"knob":"sack","device":null,"before":"0","to":"1"}"#;
    plant(&host, &with_header(intent));
    let from_here = |all| undo_with(all, &host.state(), lookup).unwrap();
    let report = from_here(false);
    assert!(report.lines[0].contains("undo --all") && host.journals().len() == 1, "{report:?}");
    {
        let _named = Named::new(&host);
        let report = from_here(true);
        assert_eq!((report.clean, report.lines), (true, vec!["sack: 1 -> 0".to_owned()]));
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
