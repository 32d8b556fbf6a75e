//! Tests of records after their run: naming, listing, comparing and persisting them, and verifying the host against
//! them.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{LANDSPEED, needs_root, sh, text};

/// Records in a test's own data folder.
struct RecordFolder(tempfile::TempDir);

const TUNE: &str = "tune-20261123T093729Z-4711";
const STUDY: &str = "compare-20261122T101112Z-4712";

impl RecordFolder {
    /// Creates a folder with a tuning run and a study, as landspeed recorded them.
    fn new() -> RecordFolder {
        let folder = RecordFolder(tempfile::tempdir().expect("a folder"));
        for (name, of) in [(TUNE, "tune"), (STUDY, "compare")] {
            folder.write(name, &recorded(of));
        }
        folder
    }

    /// Writes a record whose run began at the time in the file's name.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let stamp = name.split('-').nth(1).expect("a stamp");
        let started = [0..4, 4..6, 6..11, 11..13, 13..16].map(|part| &stamp[part]);
        let [year, month, hour, minute, second] = started;
        let started = format!("\"started\":\"{year}-{month}-{hour}:{minute}:{second}\"");
        let text = match text.split_once("\"started\":\"") {
            Some((before, after)) => {
                format!("{before}{started}{}", &after[after.find('"').expect("an end") + 1..])
            }
            None => text.to_owned(),
        };
        let path = self.0.path().join(format!("{name}.jsonl"));
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Runs landspeed, and returns the exit code and both outputs.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(LANDSPEED)
            .args(args)
            .arg("--data-dir")
            .arg(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("landspeed runs");
        let (out, err) = text(&output);
        (output.status.code(), out, err)
    }

    fn json(&self, args: &[&str]) -> Value {
        let (_, out, err) = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("{args:?}: {out}{err}"))
    }

    fn refused(&self, args: &[&str], status: i32, words: &[&str]) {
        let (code, out, err) = self.run(args);
        assert_eq!(code, Some(status), "{args:?}: {out}{err}");
        assert_eq!((out.as_str(), err.trim_end().lines().count()), ("", 1), "{args:?}: {err}");
        words.iter().for_each(|word| assert!(err.contains(word), "{args:?}: no '{word}' in {err}"));
    }
}

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/records/{name}.jsonl"));
    std::fs::read_to_string(path).expect("a record")
}

/// Returns the recorded run up to its first line of this kind.
fn until(kind: &str) -> String {
    let start = format!("{{\"line\":\"{kind}\"");
    recorded("tune")
        .lines()
        .take_while(|line| !line.starts_with(&start))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn a_record_is_named_by_last_an_id_a_part_of_it_or_a_path() {
    let folder = RecordFolder::new();
    let record = |args: &[&str]| folder.json(args)["record"].as_str().map(str::to_owned);
    let tune = folder.0.path().join(format!("{TUNE}.jsonl")).display().to_string();
    for word in ["last", "1123-093729", "1123", "3729", "4711", "tune", TUNE, &tune] {
        assert_eq!(record(&["show", word]).as_deref(), Some(tune.as_str()), "{word}");
    }
    assert_eq!(record(&["show"]), Some(tune));
    folder.refused(&["show", "1124"], 2, &["'1124'", "1123-093729", "landspeed records"]);
    folder.refused(&["persist", "11"], 2, &["1123-093729", "1122-101112"]);
    folder.refused(&["compare", "--resume", "none"], 2, &["'none'"]);
    folder.refused(&["show", "/no/such/record"], 2, &["/no/such/record", "landspeed records"]);
    folder.refused(&["show", "/etc/passwd"], 2, &["/etc/passwd", "landspeed records"]);
    folder.refused(&["show", "/etc"], 2, &["is a folder", "landspeed records --data-dir /etc"]);
    folder.refused(&["diff", "last", "compare"], 2, &[STUDY, "landspeed compare", "landspeed tune"]);
}

#[test]
fn every_record_is_listed_in_any_state() {
    let folder = RecordFolder::new();
    folder.write("tune-20261121T000000Z-1", &until("restored"));
    folder.write("tune-20261120T000000Z-1", "");
    folder.write("tune-20261119T000000Z-1", "\u{1b}[31mno record\n");
    let list = folder.json(&["records"]);
    let mut rows: Vec<[&str; 4]> = list["records"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| ["id", "kind", "state", "result"].map(|field| row[field].as_str().expect("text")))
        .collect();
    rows.sort_unstable();
    assert_eq!(rows[0][2], "damaged");
    assert_eq!(rows[1][2], "damaged");
    assert_eq!(rows[2], ["1121-000000", "tune", "unfinished", "unfinished"]);
    assert_eq!(rows[3], ["1122-101112", "compare", "done", "36 of 36 runs"]);
    assert_eq!(rows[4][..3], ["1123-093729", "tune", "done"]);
    let (code, out, _) = folder.run(&["records"]);
    assert_eq!(code, Some(0));
    assert!(!out.contains('\u{1b}'), "{out}");
    // As many records as a year of use may leave. Only the beginning and the end of each are read.
    for second in 0..300 {
        let text = format!("{}{}", until("host"), "x".repeat(100_000));
        folder.write(&format!("tune-20250101T00{:02}{:02}Z-1", second / 60, second % 60), &text);
    }
    assert_eq!(folder.json(&["records"])["records"].as_array().map(Vec::len), Some(305));
}

#[test]
fn a_record_that_was_cut_off_does_not_say_that_something_is_left() {
    let folder = RecordFolder::new();
    folder.write("tune-20261124T000000Z-1", &until("restored"));
    let (_, out, _) = folder.run(&["show", "1124"]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("unfinished") && out.contains("landspeed undo") && !out.contains("NOT everything"),
        "{out}"
    );
    assert_eq!(folder.json(&["show", "1124"])["cut_off"], true);
}

#[test]
fn a_difference_comes_with_its_answer_first_and_claims_no_proof() {
    let folder = RecordFolder::new();
    let other = recorded("tune").replace("tso", "tsx");
    folder.write("tune-20261101T000000Z-1", &other);
    let (code, out, err) = folder.run(&["diff", "last", "1101"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.lines().next().is_some_and(|line| line.contains("no proof")), "{out}");
    assert!(out.contains("only in A") && !out.contains("not in it"), "{out}");
    assert!(out.lines().count() < 25, "{out}");
    assert_eq!(folder.json(&["diff", "last", "1101"])["format"], 1);
}

#[test]
fn a_labs_record_lasts_only_where_that_is_asked_for() {
    let folder = RecordFolder::new();
    folder.refused(&["persist", "last"], 1, &["lab", "--lab"]);
    let (code, out, err) = folder.run(&["persist", "last", "--lab", "--unconfirmed"]);
    assert_eq!(code, Some(0), "{err}");
    let command =
        recorded("tune").lines().next().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let command = command.expect("a header")["command"].as_str().expect("text").to_owned();
    assert!(out.contains(&format!("# {command}\n")), "the comment names the command, whole: {out}");
    for head in ["write  ", "apply  ", "verify  ", "remove  "] {
        assert!(out.lines().any(|line| line.starts_with(head)), "no {head} in {out}");
    }
    // Nothing is kept before the first step.
    folder.write("tune-20261201T000000Z-1", &until("step"));
    let (code, out, _) = folder.run(&["persist", "1201"]);
    assert_eq!((code, out.lines().next()), (Some(0), Some("nothing to persist: the run kept no setting")));
}

/// Returns the recorded run as one of real hosts, in which this host was A with the interface `link`. It kept only
/// tcp_sack and the interface's MTU.
fn of_this_host(link: &str) -> String {
    let mut lines = Vec::new();
    for line in recorded("tune").lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        match line["line"].as_str().expect("text") {
            "header" => line["topology"] = "dtn1 dtn2".into(),
            "host" => {
                let here = line["side"] == "a";
                line["facts"]["hostname"] = if here { sh("uname -n").trim().into() } else { "dtn2".into() };
                line["facts"]["links"][0]["name"] = link.into();
                line["facts"]["links"][0]["driver"] = "veth".into();
            }
            "path" => line["link_a"] = link.into(),
            "plan" => line["start"] = cell("on", "1500"),
            "step" | "trial" | "trying" | "verdict" | "summary" => continue,
            _ => {}
        }
        lines.push(line);
    }
    let summary = r#"{"id":"1-sack","knob":"sack","value":"off","from":"on","with":[],"answer":"helps","kept":true,
        "placebo":false,"reopened":false,"rate":null,"cost":null,"latency":null,"left_out":null,"confirmed":true,
        "blocks":5,"discarded":0,"reason":"helps"}"#;
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    let (start, end) = (cell("on", "1500"), cell("off", "1400"));
    lines.push(serde_json::json!({"line": "step", "summary": summary, "incumbent": start, "candidate": end}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn cell(sack: &str, mtu: &str) -> Value {
    let host = serde_json::json!({"sack": sack, "mtu": mtu});
    serde_json::json!({"a": host, "b": {}, "flow": {}})
}

/// Tests persist and verify in a separate network namespace, with an /etc that is removed with its mount namespace.
#[test]
fn kept_settings_are_written_verified_and_never_over_foreign_files() {
    needs_root!();
    let folder = RecordFolder::new();
    let path = folder.write("tune-20261201T000000Z-1", &of_this_host("rec0"));
    let data = folder.0.path().display();
    let script = format!(
        r#"set -e
        mount -t tmpfs none /etc; mount -t sysfs none /sys
        ip link add rec0 type veth peer name rec1
        landspeed() {{ {LANDSPEED} "$@" --data-dir {data}; }}
        landspeed persist last --write /
        echo "verified before: $(landspeed verify last >/tmp/{id}; echo $?)"; cat /tmp/{id}
        sysctl -qw net.ipv4.tcp_sack=0; ip link set rec0 mtu 1400
        echo "verified after: $(landspeed verify last >/dev/null; echo $?)"
        echo 'net.ipv4.tcp_sack = 1' >> /etc/sysctl.d/90-landspeed.conf
        echo "verified changed: $(landspeed verify last >/tmp/{id}; echo $?)"; cat /tmp/{id}
        echo "written again: $(landspeed persist last --write / >/dev/null; echo $?)"
        echo 'net.ipv4.tcp_sack = 1' > /etc/sysctl.d/90-landspeed.conf
        rm /etc/systemd/network/*
        echo "over another: $(landspeed persist last --write / 2>&1 >/dev/null; echo $?)"
        echo "left: $(ls -A /etc/systemd/network; cat /etc/sysctl.d/90-landspeed.conf)"
        ip link del rec0; ip link add rec0 type bridge
        echo "another driver: $(landspeed persist last 2>&1)"
        echo "another host: $(landspeed verify last 2>&1; echo $?)"
        cp {path} /etc/record.jsonl; chmod 644 /etc/record.jsonl
        nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
        echo "not root: $($nobody {LANDSPEED} persist /etc/record.jsonl --other-host --write / 2>&1)"
        rm /tmp/{id}"#,
        id = format!("landspeed-records-{}", std::process::id()),
        path = path.display(),
    );
    let output =
        Command::new("unshare").args(["-n", "-m", "bash", "-c", &script]).output().expect("unshare runs");
    let (out, err) = text(&output);
    assert!(output.status.success(), "{out}{err}");
    for said in [
        "wrote /etc/sysctl.d/90-landspeed.conf",
        "wrote /etc/systemd/network/10-landspeed-rec0.link",
        "verified before: 1",
        "2 of 2 settings differ",
        "/etc/sysctl.d/90-landspeed.conf: as written",
        "verified after: 0",
        "verified changed: 1",
        "/etc/sysctl.d/90-landspeed.conf: CHANGED",
        "written again: 0",
        "left: net.ipv4.tcp_sack = 1\n",
        "not written by landspeed; nothing was written",
        "another driver: landspeed: this host is not the one of the run: rec0 of A was of veth, and is of bridge here",
        "another host: landspeed: cannot check: this host is not the one of the run: rec0 of A was of veth",
        "name the --interface to read\n2\n",
        "not root: landspeed: --write / needs root",
    ] {
        assert!(out.contains(said), "no '{said}' in {out}{err}");
    }
}

#[test]
fn a_record_of_another_user_is_not_readable_and_not_damaged() {
    needs_root!();
    let folder = RecordFolder::new();
    let place = folder.0.path().display().to_string();
    sh(&format!("chmod 755 {place}; chmod 600 {place}/{TUNE}.jsonl"));
    let user =
        ["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "records", "--data-dir", &place];
    let listed = Command::new("setpriv").args(user).stdin(Stdio::null()).output().expect("setpriv runs");
    let (out, err) = text(&listed);
    assert!(
        out.contains("not readable") && !out.contains("damaged") && !out.contains("remove"),
        "{out}{err}"
    );
}

#[test]
fn a_record_begins_with_its_path_date_and_goal() {
    let folder = RecordFolder::new();
    let (code, out, err) = folder.run(&["show", "1123-093729"]);
    let first = out.lines().next().unwrap_or_default();
    assert_eq!(
        (code, first.replace('·', "-").as_str()),
        (Some(0), "tune - lab - 2026-11-23 09:37 UTC - for rate"),
        "{err}"
    );
    assert!(folder.run(&["show", "1123-093729", "--json"]).1.starts_with('{'));
}

#[test]
fn records_of_two_paths_are_noted_first_and_the_columns_are_full() {
    let folder = RecordFolder::new();
    let other = recorded("tune").replacen(r#""topology":"lab""#, r#""topology":"local dtn9""#, 1);
    folder.write("tune-20261124T093729Z-4713", &other);
    let (code, out, err) = folder.run(&["diff", "1123-093729", "1124-093729"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("DIFFERENT PATHS: A is lab ") && out.contains("local dtn9"), "{out}");
    let figures = folder.json(&["diff", "1123-093729", "1124-093729"]);
    assert_eq!(figures["same_path"], false);
    let rows = figures["rows"].as_array().expect("rows");
    let rate = rows.iter().find(|row| row["what"] == "final rate").expect("a final rate");
    assert!(rate["a"].as_str().is_some_and(|a| a.contains("b/s")) && rate["a"] == rate["b"], "{rate}");
}
