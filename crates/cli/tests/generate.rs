//! Tests of `landspeed generate`: it writes a page for each command that help lists, completions for each shell, and the
//! schemas of documents.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::schema::{CompiledSchema, checked};
use support::{LANDSPEED, text};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_command_of_the_help_has_a_page_and_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = Command::new(LANDSPEED).arg("generate").arg(folder.path()).status().expect("landspeed runs");
    assert!(ended.success());
    let completions = ["bash-completion/completions/landspeed.bash", "zsh/site-functions/_landspeed"];
    let completions = completions.into_iter().chain(["fish/vendor_completions.d/landspeed.fish"]);
    let completions: Vec<String> = completions.map(|path| read(&folder.path().join(path))).collect();
    let pages = folder.path().join("man/man1");
    let main = read(&pages.join("landspeed.1"));

    let help = Command::new(LANDSPEED).arg("--help").output().expect("landspeed runs").stdout;
    let help = String::from_utf8(help).expect("text");
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: Vec<&str> = commands.into_iter().filter(|name| !["", "help"].contains(name)).collect();
    assert!(commands.contains(&"tune"), "{help}");
    for name in commands {
        let page = read(&pages.join(format!("landspeed-{name}.1")));
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        assert!(main.contains(&format!("landspeed\\-{name}(1)")), "landspeed(1) does not name {name}");
        assert!(completions.iter().all(|shell| shell.contains(name)), "a shell does not complete {name}");
    }
    assert!(!pages.join("landspeed-guardian.1").exists(), "a hidden command has a page");
    assert!(completions.iter().all(|shell| !shell.contains("guardian")), "a hidden command is completed");
}

fn recorded(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/records").join(file)
}

#[test]
fn documents_are_as_their_schemas_say() {
    let [tune, compare, all] =
        ["tune.jsonl", "compare.jsonl", ""].map(|file| recorded(file).display().to_string());
    let commands: [(&str, &[&str]); 12] = [
        ("app-list", &["app", "list"]),
        ("cc-recovery", &["cc", "recovery", "--rate", "100M", "--rtt", "20ms", "--within", "5s", "reno"]),
        ("compare", &["show", &compare]),
        ("diff", &["diff", &tune, &tune]),
        ("doctor", &["doctor"]),
        ("experiments", &["experiments"]),
        ("knobs", &["knobs", "lo"]),
        ("lab-faults", &["lab", "faults"]),
        ("persist", &["persist", &tune, "--host", "a", "--lab"]),
        ("records", &["records", "--data-dir", &all]),
        ("tune", &["show", &tune]),
        ("verify", &["verify", &tune, "--interface", "lo"]),
    ];
    for (name, args) in commands {
        let output = Command::new(LANDSPEED).args(args).arg("--json").output().expect("landspeed runs");
        let (out, err) = text(&output);
        assert!(!out.is_empty(), "{args:?}: {err}");
        checked(name, &out);
    }
}

#[test]
fn documents_of_older_versions_lack_only_members_that_were_added_later() {
    // Recorded studies are left out, because the member that names a contestant was renamed.
    let [record, explain, measure] = ["record", "explain", "measure"].map(CompiledSchema::of_older);
    for (schema, file) in [
        (&explain, "explain.json"),
        (&explain, "flow.json"),
        (&explain, "sizes.json"),
        (&measure, "connect.json"),
        (&measure, "pingpong.json"),
        (&measure, "stream.json"),
        (&measure, "sweep.json"),
        (&record, "tune.jsonl"),
    ] {
        let text = read(&recorded(file));
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        for (number, value) in values.enumerate() {
            assert_eq!(schema.wrong(&value.expect("JSON")), None, "{file}: value {number}");
        }
    }
}

#[test]
fn a_document_of_another_shape_is_refused() {
    let tune = CompiledSchema::of("tune");
    let (shown, _) = text(
        &Command::new(LANDSPEED)
            .args(["show", "--json"])
            .arg(recorded("tune.jsonl"))
            .output()
            .expect("landspeed runs"),
    );
    let shown: Value = serde_json::from_str(&shown).expect("one document");
    let changes: [fn(&mut Value); 4] = [
        |summary| summary["took_ns"] = "long".into(),
        |summary| summary["steps"][0]["answer"] = "perhaps".into(),
        |summary| summary["gain"]["rate"] = 1.into(),
        |summary| drop(summary.as_object_mut().map(|summary| summary.remove("restored"))),
    ];
    for change in changes {
        let mut changed = shown.clone();
        change(&mut changed);
        assert!(tune.wrong(&changed).is_some(), "{changed}");
    }
}
