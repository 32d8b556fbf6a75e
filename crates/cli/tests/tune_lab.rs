//! Tests of `landspeed tune` in the lab, as a new user runs it, but shorter.

mod support;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use support::schema::{CompiledSchema, checked};
use support::terminal::{Terminal, lasting};
use support::{LANDSPEED, needs_root, sh, text};

/// Returns the settings outside the lab that a run could have changed, one per line.
fn outside() -> BTreeSet<String> {
    let parts =
        ["sysctl -a --pattern ^net 2>/dev/null | grep -v conntrack_count", "ip -o link | cut -d' ' -f2-"];
    parts.iter().flat_map(|part| sh(part).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Runs `tune` with one seed, and with another one if the first run is void: by chance, on a busy machine, a placebo may look
/// useful. `run` returns the summary, what was printed, and the exit code, as this function does without the code. A void run,
/// too, restores everything and says by its exit code that it is void.
fn counted(run: impl Fn(&str) -> (Value, String, Option<i32>)) -> (Value, String) {
    let one = |seed| {
        let (summary, printed, code) = run(seed);
        let is_void = !summary["void"].is_null();
        assert_eq!(code, Some(i32::from(is_void)), "{summary}: {printed}");
        assert_eq!(summary["restored"], true, "{summary}");
        (!is_void).then_some((summary, printed))
    };
    ["7", "8"].into_iter().find_map(one).expect("a placebo looks useful with every seed")
}

#[test]
fn tune_climbs_in_the_lab_and_leaves_nothing() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let (data, page) = (folder.path().join("data"), folder.path().join("page.html"));
    let before = outside();
    // The final check and the late placebo take 45 s of the budget. On a busy machine, the first placebo takes 20 s.
    let (summary, out) = counted(|seed| {
        let result = Command::new(LANDSPEED)
            .args(["tune", "--json", "--budget", "100s", "--seed", seed])
            .args(["--against", "mtu=9000,write-size=65536,tx-checksum=on,scatter-gather=on,tso=on"])
            .arg("--data-dir")
            .arg(&data)
            .arg("--html")
            .arg(&page)
            .stdin(Stdio::null())
            .output()
            .expect("landspeed runs");
        let (out, err) = text(&result);
        eprintln!("{err}");
        (checked("tune", &out), out, result.status.code())
    });
    for field in ["start", "final", "gain", "steps", "restored", "record", "against"] {
        assert!(!summary[field].is_null(), "no {field} in {out}");
    }
    // The size of the gain is not checked, because other tests run at the same time. But the kept steps must agree with
    // the report.
    let steps = summary["steps"].as_array().expect("steps");
    let measured = steps.iter().filter(|step| step["blocks"].as_u64() > Some(0));
    assert!(measured.count() >= 2, "{out}");
    for step in steps.iter().filter(|step| step["kept"] == true) {
        assert_eq!(step["answer"], "helps", "{step}");
        assert!(step["rate"]["low"].as_f64().is_some_and(|low| low > 1.0), "{step}");
    }
    let kept = steps.iter().any(|step| step["kept"] == true);
    assert_eq!(kept, summary["start_cell"] != summary["final_cell"], "{out}");
    assert!(summary["final"]["loaded_latency_ns"].as_u64() > Some(0), "{out}");
    // A placebo reveals the effect of toggling only if it toggles as a candidate does.
    let lines = lines(summary["record"].as_str().expect("a path"));
    let placebos = steps.iter().filter(|step| step["placebo"] == true && step["blocks"].as_u64() > Some(0));
    for placebo in placebos {
        let of_it = lines.iter().filter(|line| line["line"] == "trial" && line["step"] == placebo["id"]);
        let cells: BTreeSet<String> = of_it.map(|trial| trial["cell"].to_string()).collect();
        assert_eq!(cells.len(), 2, "{placebo}");
    }
    let host_wide = steps.iter().find(|step| step["knob"] == "rmem-max").expect("host-wide knobs are listed");
    assert_eq!(host_wide["answer"], "skipped");
    assert!(host_wide["reason"].as_str().is_some_and(|r| r.contains("lab")), "{host_wide}");
    // The page and `show` take everything from the record.
    let record = summary["record"].as_str().expect("a path");
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("data-chart=\"ladder\"") && !html.contains("http://"), "not self-contained");
    let shown = sh(&format!("{LANDSPEED} show {record}"));
    let (what, result) = shown.split_once('\n').expect("lines");
    assert!(what.starts_with("tune · lab:back-to-back · "), "{shown}");
    assert!(result.starts_with("RESULT   ") && shown.lines().count() <= 45, "{shown}");
    assert!(shown.contains("Everything was restored and read back."), "{shown}");
    let same = sh(&format!("{LANDSPEED} diff {record} {record}"));
    assert!(!same.is_empty());
    let persisted = sh(&format!("{LANDSPEED} persist --lab --unconfirmed {record}"));
    assert_eq!(!persisted.contains("the run kept no setting"), kept, "what was kept can last: {persisted}");
    let changed: Vec<String> = outside().symmetric_difference(&before).cloned().collect();
    assert!(changed.is_empty(), "something outside the lab changed: {changed:?}");
}

#[test]
fn the_verdict_decides_the_order_and_is_compared_with_the_result() {
    needs_root!();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display();
    let (summary, seen) = counted(|seed| {
        let mut run = Command::new(LANDSPEED);
        run.args(["tune", "--budget", "2m", "--seed", seed, "--only", "write-size,tso", "--data-dir"])
            .arg(folder.path());
        run.env("LC_ALL", "C.UTF-8");
        let (code, seen) = Terminal::start(&run).end();
        let out = sh(&format!("{LANDSPEED} show last --json --data-dir {data}"));
        (serde_json::from_str(&out).expect("one JSON document"), seen, code)
    });
    shape(&lasting(&seen));
    let lines = lines(summary["record"].as_str().expect("a path"));
    let line = CompiledSchema::of("record");
    lines.iter().for_each(|value| assert_eq!(line.wrong(value), None, "{value}"));
    let verdicts: Vec<&Value> = lines.iter().filter(|line| line["line"] == "verdict").collect();
    assert_eq!(summary["expectations"]["verdicts"], verdicts.len(), "{summary}");
    let first = verdicts.first().expect("it looked before the first step");
    assert_eq!((&first["number"], &first["after"]), (&0.into(), &"".into()));
    // The record has the observations of both ends, so verdicts can be recomputed anywhere.
    let watched =
        lines.iter().find(|line| line["step"] == "watch 0" && line["line"] == "trial").expect("a trial");
    for end in ["a", "b"] {
        let flows = watched[end]["observed"]["flows"].as_array();
        assert!(flows.is_some_and(|flows| !flows.is_empty()), "{}", watched[end]["observed"]["unseen"]);
    }
    let steps = summary["steps"].as_array().expect("steps");
    for step in steps.iter().filter(|step| !step["advised"].is_null()) {
        let said = &step["advised"];
        let verdict =
            verdicts.iter().find(|verdict| verdict["number"] == said["verdict"]).expect("in the record");
        let remedies: Vec<&Value> = named(verdict, step);
        assert!(
            remedies.iter().any(|remedy| remedy["expected_ratio"] == said["expected_ratio"]),
            "{step} {verdict}"
        );
    }
    // The start has all offloads off, which must be a named cause even on a busy machine.
    let tso = steps.iter().find(|step| step["knob"] == "tso").expect("it is listed");
    assert!(!named(first, tso).is_empty(), "{first}");
    assert!(tso["advised"]["verdict"] == 0, "{tso}");
    let shown = sh(&format!("{LANDSPEED} show --full {}", summary["record"].as_str().expect("a path")));
    assert!(shown.contains("held the path back"), "{shown}");
    for observer in ["flows", "snmp"] {
        let printed = |line: &str| line.starts_with(&format!("{observer} "));
        assert!(shown.lines().any(printed), "no figures of {observer} in {shown}");
    }
}

/// Checks a run on a terminal: two introductory lines, a line per step, and a result that begins with the answer, in
/// a screen or two.
fn shape(seen: &str) {
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines.len() <= 45, "{} lines:\n{seen}", lines.len());
    // Commands are never broken, so that they can be copied.
    let fits = |line: &&str| line.chars().count() <= 80 || line.contains(":  landspeed ");
    assert!(lines.iter().all(|line| fits(line) && *line == line.trim_end()), "{seen}");
    assert!(lines[0].contains(" -> ") && lines[0].contains("RTT "), "{seen}");
    assert!(lines[1].contains(" settings can matter; time for about "), "{seen}");
    let result = lines.iter().position(|line| line.starts_with("RESULT   ")).expect("a result");
    let marks = ["✓", "✗", "?", "~", "bottleneck:"];
    let is_step = |line: &&str| line.starts_with("  ") || line.is_empty();
    assert!(lines[2..result].iter().all(is_step), "{seen}");
    let steps =
        lines[2..result].iter().filter(|line| marks.iter().any(|mark| line.trim_start().starts_with(mark)));
    assert!(steps.count() >= 2, "{seen}");
    for start in ["  rate ", "TRIED ", "LEFT ", "Everything was restored and read back."] {
        assert!(lines[result..].iter().any(|line| line.starts_with(start)), "no '{start}' in {seen}");
    }
}

fn lines(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the record");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns a verdict's remedies with a step's knob, and with its value or none.
fn named<'a>(verdict: &'a Value, step: &Value) -> Vec<&'a Value> {
    let findings = verdict["verdict"]["findings"].as_array().expect("findings");
    let remedies = findings.iter().flat_map(|finding| finding["try"].as_array().expect("remedies"));
    let fits = |remedy: &&Value| {
        remedy["knob"] == step["knob"] && (remedy["value"] == step["value"] || remedy["value"] == "")
    };
    remedies.filter(fits).collect()
}

#[test]
fn the_plan_says_whether_it_will_look() {
    needs_root!();
    let plan = |more: &str| sh(&format!("{LANDSPEED} tune --dry-run --only tso {more}"));
    assert!(plan("").contains("bottleneck"));
    assert!(!plan("--no-explain").contains("bottleneck"));
    assert!(!plan("--for latency").contains("bottleneck"), "it says nothing of the round trip");
}
