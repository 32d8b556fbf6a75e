//! What a person sees of a record on terminals of two widths, in a pipe, without colours and in ASCII.

mod support;

use std::process::Command;

use support::LANDSPEED;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/records/tune.jsonl");

/// What `landspeed show` prints, with `setting` of the environment, on a terminal of so many columns or in a pipe.
fn shown(columns: Option<u16>, setting: (&str, &str)) -> String {
    let mut command = match columns {
        Some(columns) => {
            let mut command = Command::new("script");
            command.args([
                "-qefc",
                &format!("stty cols {columns}; exec {LANDSPEED} show {RECORD}"),
                "/dev/null",
            ]);
            command
        }
        None => {
            let mut command = Command::new(LANDSPEED);
            command.args(["show", RECORD]);
            command
        }
    };
    for name in ["LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR"] {
        command.env_remove(name);
    }
    let output = command.env("TERM", "xterm").env(setting.0, setting.1).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n");
    // Where the project lies is no part of what is shown.
    text.replace(RECORD, "tune.jsonl")
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + part.split_once('m').expect("a colour").1)
}

const UTF_8: (&str, &str) = ("LC_ALL", "C.UTF-8");

#[test]
fn a_record_on_a_terminal_and_elsewhere() {
    let [at_80, at_120] = [80, 120].map(|columns| shown(Some(columns), UTF_8));
    insta::assert_snapshot!("show_at_80_columns", without_colours(&at_80));
    insta::assert_snapshot!("show_at_120_columns", without_colours(&at_120));
    let ascii = without_colours(&shown(Some(80), ("LC_ALL", "C")));
    assert!(ascii.is_ascii());
    insta::assert_snapshot!("show_in_ascii", ascii);
    assert!(at_80.contains("\u{1b}["), "a terminal gets colours");
    assert_eq!(shown(Some(80), ("NO_COLOR", "1")), without_colours(&at_80));
    let piped = shown(None, UTF_8);
    insta::assert_snapshot!("show_in_a_pipe", piped);
    for text in [&without_colours(&at_80), &without_colours(&at_120), &piped] {
        assert!(text.starts_with("RESULT   "), "{text}");
        assert!(text.lines().count() <= 45, "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()), "spaces at the end: {text}");
    }
}
