//! Tests of names on the command line: the system's names, near misses, and the lists of names, for people and
//! scripts.

mod support;

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::schema::checked;
use support::{LANDSPEED, needs_root, sh, text};

fn landspeed(args: &[&str]) -> Output {
    let mut command = Command::new(LANDSPEED);
    command.args(args).stdin(Stdio::null()).output().expect("landspeed runs")
}

fn json(schema: &str, args: &[&str]) -> Value {
    let output = landspeed(&[args, &["--json"]].concat());
    // `doctor` ends with 1 if something is wrong on this machine.
    let is_done = output.status.success() || (args[0] == "doctor" && output.status.code() == Some(1));
    assert!(is_done, "{args:?}: {output:?}");
    checked(schema, &text(&output).0)
}

#[test]
fn a_near_miss_is_answered_with_the_name_in_one_line() {
    for (args, wanted) in [
        (&["tune", "--only", "mtuu"][..], "did you mean mtu?"),
        (&["tune", "--skip", "mtu, gor"], "did you mean gro?"),
        (&["tune", "--against", "mtv=9000"], "did you mean mtu?"),
        (&["measure", "stream", "--set", "write_sise=64K"], "did you mean write-size?"),
        (&["measure", "stream", "--set", "transport=udt"], "--transport udt"),
        (&["measure", "stream", "--set", "udt-burst=1ms"], "--transport chooses"),
        (
            &["measure", "stream", "--set", "write-size=4K", "--set", "write-size=8K"],
            "twice, to 4096 and to 8192",
        ),
        (
            &["measure", "stream", "--set", "nodelay=on", "--set", "write_sise=64K"],
            "did you mean write-size?",
        ),
        (&["measure", "stream", "lab:swich:3"], "did you mean lab:switch?"),
        (&["measure", "stream", "lab:wan:rat=1G"], "did you mean rate?"),
        (&["compare", "--simulate", "-p", "cubik"], "did you mean cubic?"),
        (&["cc", "load", "westwod"], "did you mean westwood?"),
        (&["lab", "faults", "randomloss"], "did you mean random-loss?"),
        (&["knobs", "mttu"], "did you mean mtu?"),
        (&["knobs", "eth99"], "this host has"),
        (&["doctor", "eth99"], "this host has"),
    ] {
        let output = landspeed(args);
        let (out, err) = text(&output);
        assert_eq!((output.status.code(), out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(wanted) && err.lines().count() == 1, "{args:?}: {err}");
    }
}

#[test]
fn a_setting_is_shown_under_the_systems_name() {
    for name in ["tcp-rmem", "net.ipv4.tcp_rmem", "tcp_rmem"] {
        let (out, _) = text(&landspeed(&["knobs", name]));
        assert!(out.contains("net.ipv4.tcp_rmem") && out.contains("sysctl -w"), "{name}: {out}");
    }
    let (out, _) = text(&landspeed(&["knobs", "ethtool:gro"]));
    assert!(out.contains("generic-receive-offload") && out.contains("gro VALUE"), "{out}");
    let document = json("knobs", &["knobs", "tcp-rmem,nodelay"]);
    let [rmem, nodelay] = document["knobs"].as_array().expect("a list").as_slice() else {
        panic!("{document}")
    };
    let now = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").expect("a Linux kernel");
    let now: Vec<&str> = now.split_whitespace().collect();
    assert_eq!(rmem["here"][0]["value"], now.join(" "));
    assert_eq!((&nodelay["read_command"], &nodelay["default"]), (&Value::Null, &"off".into()));
    let filtered = json("knobs", &["knobs", "tcp"])["knobs"].as_array().expect("a list").len();
    assert!(filtered > 5 && filtered < json("knobs", &["knobs"])["knobs"].as_array().expect("a list").len());
}

#[test]
fn every_list_is_one_document() {
    needs_root!();
    for (args, list) in [
        (&["knobs", "lo"][..], "knobs"),
        (&["doctor"], "findings"),
        (&["cc", "list"], "controls"),
        (&["lab", "list"], "labs"),
        (&["lab", "faults"], "faults"),
    ] {
        let schema = args.join("-");
        let document = json(schema.trim_end_matches("-lo"), args);
        assert!(document["format"] == 1 && document[list].is_array(), "{args:?}: {document}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("knobs.csv");
    let output = landspeed(&["knobs", "--all", "--csv", &file.display().to_string()]);
    let csv = std::fs::read_to_string(&file).expect("written");
    assert!(output.status.success() && csv.starts_with("knob,the system's name,"), "{csv}");
    let (out, _) = text(&landspeed(&["knobs"]));
    assert!(out.contains("now (") && out.contains("because") && out.contains("--all"), "{out}");
    assert!(!out.contains("write-size"), "a flow's own: {out}");
}

#[test]
fn without_root_settings_are_listed_with_their_values() {
    needs_root!();
    let out = sh(&format!("setpriv --reuid=65534 --regid=65534 --clear-groups {LANDSPEED} knobs"));
    // The table of those that can be changed is not empty, and the missing right is no setting's own reason.
    assert!(out.contains("now (") && out.contains("no setting can be changed now: not root"), "{out}");
    assert_eq!(out.matches("not root").count(), 1, "{out}");
}
