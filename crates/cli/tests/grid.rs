//! Tests of `landspeed measure --vary`: real trials in labs and on hosts by ssh, interrupted and resumed, and
//! one-line errors for mistakes.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use landspeed_record::{
    ExpectationAgreement, GridCurves, GridEndReason, GridFactor, GridReport, GridSettingTarget, Line,
    OccasionsReport,
};
use rustix::process::Signal;
use support::hosts::TestHosts;
use support::ours::{TestHome, processes, signal, within};
use support::schema::checked;
use support::{LANDSPEED, controls_in_kernel, needs_root, text};

fn report(output: &Output) -> GridReport {
    let (out, err) = text(output);
    assert!(output.status.success(), "{err}");
    serde_json::from_value(checked("run", &out)).expect("a grid")
}

/// Returns the number of trials of each cell, in the cells' order.
fn trials(report: &GridReport) -> Vec<u32> {
    report.figures[0].cells.iter().map(|cell| cell.trials).collect()
}

/// Returns the only record of a folder.
fn only_record(folder: &Path) -> Option<PathBuf> {
    let mut all = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    all.find(|path| path.extension().is_some())
}

#[test]
fn every_combination_is_measured_in_every_block_and_the_lab_goes() {
    needs_root!();
    let place = TestHome::new();
    let vary = ["--vary", "tso=on,off", "--vary", "write-size=1K,64K", "--vary", "transport=tcp,unix"];
    let args =
        [&["measure", "stream", "-t", "50ms", "--blocks", "4", "--factorial", "--json"][..], &vary].concat();
    let found = report(&place.landspeed(&args).output().expect("landspeed runs"));
    assert_eq!((found.blocks, found.trials, found.failed), (4, 32, 0));
    assert_eq!((trials(&found), found.ended), (vec![4; 8], Some(GridEndReason::Blocks)));
    assert_eq!(found.void, None);
    let curves = &found.figures[0];
    let cell = |values: [&str; 3]| curves.cells.iter().find(|cell| cell.values == values).expect("a cell");
    // Sixty-four times as many calls per byte cost more than noise can hide. How wide the interval is depends on what else runs.
    let gain = cell(["on", "65536", "tcp"]).ratio.expect("an interval");
    assert!(gain.ratio > 1.0, "{gain:?}");
    assert!(curves.cells[0].ratio.is_none(), "the reference has no ratio to itself");
    let alone = curves.factorial.iter().find(|one| one.factors == ["write-size"] && one.given == "alone");
    assert!(alone.expect("an effect").ratio.ratio > 1.0);
    // The settings reached the kernel, because an agent reads back each tso that it writes. Processor time is
    // reported too.
    assert!(found.figures.len() >= 2, "cost beside goodput");
    // A keeper checks for labs once more before it exits.
    assert!(
        within(Duration::from_secs(60), || processes(place.path()).is_empty()),
        "{:?}",
        processes(place.path())
    );
}

#[test]
fn a_grid_that_was_stopped_is_shown_and_goes_on_where_it_was() {
    needs_root!();
    let place = TestHome::new();
    let args = [
        "measure",
        "stream",
        "-t",
        "100ms",
        "--vary",
        "mtu=1500,9000",
        "--vary",
        "flows=1,2",
        "--blocks",
        "50",
    ];
    let child =
        place.landspeed(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let record = || only_record(&place.path().join("data/landspeed"));
    let written = |trials: usize| {
        let text = record().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(r#"{"line":"grid-trial""#)).count() >= trials
    };
    assert!(within(Duration::from_secs(60), || written(18)), "no trials are written");
    let ids = place.labs_of(child.id());
    signal(child.id() as i32, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let (out, err) = text(&output);
    assert!(output.status.success() && out.contains("unfinished: it was stopped"), "{out}{err}");
    assert!(
        within(Duration::from_secs(60), || place.left(&ids, &[]).is_empty()),
        "{:?}",
        place.left(&ids, &[])
    );

    let again = ["measure", "stream", "--resume", "last", "--blocks", "7", "--json"];
    let found = report(&place.landspeed(&again).output().expect("landspeed runs"));
    assert_eq!(found.ended, Some(GridEndReason::Blocks));
    assert!(found.blocks >= 6 && trials(&found).iter().all(|count| *count >= 6), "{:?}", trials(&found));
    let shown = place.landspeed(&["show", "last"]).output().expect("landspeed runs");
    let (out, err) = text(&shown);
    assert!(out.contains("mtu") && out.contains("to the first") && !out.contains("unfinished"), "{out}{err}");
    let listed = text(&place.landspeed(&["records"]).output().expect("landspeed runs")).0;
    assert!(listed.contains("grid") && listed.contains("4 cells of stream"), "{listed}");
    // A grid of another workload is not resumed by mistake.
    let other =
        place.landspeed(&["measure", "pingpong", "--resume", "last"]).output().expect("landspeed runs");
    assert_eq!((other.status.code(), text(&other).1.contains("of stream, not of pingpong")), (Some(2), true));
}

#[test]
fn the_labs_link_is_a_factor_too() {
    needs_root!();
    let place = TestHome::new();
    // Without a size and a time, each trial has four sizes, each over 70 round trips of 40 ms.
    let short = ["--sizes", "1", "-t", "400ms", "--blocks", "6", "--json"];
    let args = ["measure", "pingpong", "lab:wan:rate=1G", "--vary", "rtt=2ms,40ms"];
    let found = report(&place.landspeed(&[&args[..], &short].concat()).output().expect("landspeed runs"));
    let curves = &found.figures[0];
    let medians: Vec<f64> = curves.cells.iter().filter_map(|cell| Some(cell.mean? / 1e6)).collect();
    // The link delays by the configured time, and a busy machine only adds to it.
    assert!(medians[0] >= 2.0 && medians[1] >= 40.0, "{medians:?}");
    assert!(curves.effects[0].has_effect && found.factors[0].is_slow);
}

/// Tests a fan over ports of 20 Mb/s: a single host receives no more than two clients send.
#[test]
fn a_fan_is_a_factor_too() {
    needs_root!();
    let place = TestHome::new();
    let lab = "lab:switch:3,port=20M,trunk=1G";
    let args = ["measure", "stream", lab, "-t", "500ms", "--vary", "fan=in,out", "--blocks", "4", "--json"];
    let found = report(&place.landspeed(&args).output().expect("landspeed runs"));
    let rates: Vec<f64> = found.figures[0].cells.iter().filter_map(|cell| Some(cell.mean? / 1e6)).collect();
    assert!(rates.len() == 2 && rates.iter().all(|rate| (22.0..48.0).contains(rate)), "{rates:?}");
    let file = only_record(&place.path().join("data/landspeed")).expect("one record");
    let record = landspeed_record::read(&file).expect("a record");
    let others = record.lines.iter().filter_map(|line| match line {
        Line::GridTrial(trial) => Some(trial.others.len()),
        _ => None,
    });
    assert_eq!(others.collect::<Vec<_>>(), [1; 8], "what the second client saw is in the record");
}

#[test]
fn hosts_by_ssh_are_as_they_were() {
    needs_root!();
    let hosts = TestHosts::new();
    let before = hosts.snapshot();
    let reach = hosts.reach();
    let reach: Vec<&str> = reach.iter().map(String::as_str).collect();
    let args = [
        "measure",
        "stream",
        "-t",
        "100ms",
        "--vary",
        "mtu@a=1500,1400",
        "--vary",
        "gro@b=on,off",
        "--blocks",
        "3",
    ];
    let asked = hosts.landspeed(&[&args[..], &reach].concat()).output().expect("landspeed runs");
    assert!(!asked.status.success() && text(&asked).1.contains("--yes"), "it asks before it changes hosts");
    let done = hosts.landspeed(&[&args[..], &["--yes", "--json"], &reach].concat()).output().expect("runs");
    let found = report(&done);
    assert_eq!((found.trials, found.void), (12, None));
    assert_eq!(hosts.differences(&before), Vec::<String>::new());
}

#[test]
fn each_mistake_is_reported_in_a_line() {
    let place = TestHome::new();
    let refused = |vary: &[&str], words: &[&str]| {
        let args = [&["measure", "stream"], vary].concat();
        let output = place.landspeed(&args).output().expect("landspeed runs");
        let (out, err) = text(&output);
        assert_eq!(
            (output.status.code(), err.trim_end().lines().count()),
            (Some(2), 1),
            "{vary:?}: {out}{err}"
        );
        words.iter().for_each(|word| assert!(err.contains(word), "{vary:?}: no '{word}' in {err}"));
    };
    refused(&["--vary", "mtu"], &["mtu", "FACTOR=VALUE"]);
    refused(&["--vary", "mtuu=1500"], &["mtuu", "did you mean mtu?"]);
    refused(&["--vary", "mtu=1500,90"], &["mtu", "'90'", "1280"]);
    refused(&["--vary", "mtu=9000..1500"], &["mtu", "goes up"]);
    refused(&["--vary", "flows@b=1,2"], &["flows@b", "@a or @b"]);
    refused(&["--vary", "mtu=1500,9000", "--vary", "mtu@a=1500,9000"], &["mtu", "twice"]);
    refused(&["--vary", "rtt=1ms,2ms"], &["rtt"]);
    refused(&["--vary", "mtu=1500,9000", "--by", "tso"], &["--by tso", "not varied"]);
    refused(&["--vary", "mtu=1500,2000,9000", "--factorial"], &["--factorial", "mtu", "3"]);
    refused(&["--vary", "transport=tcp,udp", "--vary", "nodelay=on,off"], &["transport=udp", "nodelay"]);
    refused(&["--vary", "reverse=on,off", "--vary", "bidir=on,off"], &["bidir"]);
    refused(&["--vary", "flows=1..256", "--vary", "write-size=1..1M+4K"], &["combinations"]);
}

#[test]
fn without_root_it_names_what_it_lacks() {
    needs_root!();
    let place = support::for_anybody();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", LANDSPEED, "measure", "stream"]);
    command.args(["--vary", "mtu=1500,9000"]).stdin(Stdio::null());
    for (folder, lacks) in [(place.path(), "root"), (Path::new("/nonexistent"), "--data-dir")] {
        let output = command.env("XDG_DATA_HOME", folder).output().expect("setpriv runs");
        let (_, err) = text(&output);
        let is_line = err.trim_end().lines().count() == 1;
        assert!(!output.status.success() && err.contains(lacks) && is_line, "{err}");
    }
}

/// Tests an experiment's file: values that the lab lacks are reported and left out, and each claim gets an answer
/// with figures.
#[test]
fn a_file_is_measured_and_set_beside_what_was_published() {
    needs_root!();
    let place = TestHome::new();
    let file = place.path().join("mine.toml");
    let text = r#"
        title = "What batching is worth"
        workload = "stream"
        as-found = ["congestion-control", "windows", "offloads", "qdisc", "timestamps", "placement"]
        set = { time = "100ms" }
        vary = [
            { factor = "write-size", values = "1K,64K" },
            { factor = "step", level = [
                { name = "stock", set = { mtu = 1500 } },
                { name = "coalescing", set = { rx-usecs = 100 } },
            ] },
        ]
        stop = { blocks = 6 }
        [[expect]]
        claim = "Large writes carry more"
        source = "here"
        order = [{ write-size = "1K" }, { write-size = "64K" }]
        [[expect]]
        claim = "Large writes carry less"
        source = "a rumour"
        order = [{ write-size = "64K" }, { write-size = "1K" }]
        otherwise = "it was made up"
        [[expect]]
        claim = "Coalescing doubles it"
        source = "hardware"
        ratio = 2.0
        from = { step = "stock" }
        to = { step = "coalescing" }
    "#;
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let checked = place.landspeed(&["run", "--check", &file]).output().expect("landspeed runs");
    assert!(checked.status.success() && text_of(&checked).contains("4 cells, 3 expectations"), "{checked:?}");
    let found =
        report(&place.landspeed(&["run", &file, "--anyway", "--json"]).output().expect("landspeed runs"));
    let came_out: Vec<ExpectationAgreement> = found.expected.iter().map(|one| one.agreement).collect();
    assert_eq!(
        came_out,
        [ExpectationAgreement::Reproduces, ExpectationAgreement::Differs, ExpectationAgreement::NotHere],
        "{:?}",
        found.expected
    );
    assert!(found.expected[1].why.ends_with("it was made up"), "{:?}", found.expected[1]);
    assert!(found.expected[2].why.contains("rx-usecs"), "{:?}", found.expected[2]);
    assert_eq!((found.missing.len(), trials(&found)), (1, vec![6, 6]));
    let shown = text_of(&place.landspeed(&["show", "last"]).output().expect("landspeed runs"));
    assert!(shown.contains("1 of 3 reproduce, 1 differ, 1 not on this hardware"), "{shown}");
}

/// An expectation of a design with writes of 1K and 64K.
const LARGE_WRITES: &str = r#"
        claim = "Large writes carry more"
        source = "here"
        order = [{ write-size = "1K" }, { write-size = "64K" }]
    "#;

/// Writes an experiment of three blocks over these sizes of writes, with one expectation, and returns its file.
fn design(place: &TestHome, sizes: &str, expectation: &str) -> String {
    let file = place.path().join("design.toml");
    let text = format!(
        r#"
        title = "Writes"
        workload = "stream"
        as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
        set = {{ time = "100ms" }}
        vary = [{{ factor = "write-size", values = "{sizes}" }}]
        stop = {{ blocks = 3 }}
        [[expect]]
        {expectation}
        "#
    );
    std::fs::write(&file, text).expect("written");
    file.display().to_string()
}

/// Tests a design on two occasions, and its two records shown together. Each occasion has the conditions of its hosts, and the
/// control that `--set` asked for.
#[test]
fn a_design_on_two_occasions_is_pooled() {
    needs_root!();
    let place = TestHome::new();
    let file = design(&place, "1K,64K", LARGE_WRITES);
    let words = ["run", &file, "--occasions", "2", "--set", "socket-congestion=reno", "--json"];
    let output = place.landspeed(&words).output().expect("landspeed runs");
    let pooled = |output: &Output| -> OccasionsReport {
        let (out, err) = text(output);
        assert!(output.status.success(), "{err}");
        serde_json::from_value(checked("run-occasions", &out)).expect("occasions")
    };
    let found = pooled(&output);
    assert_eq!((found.occasions.len(), found.boots), (2, 1), "{found:?}");
    assert!(found.occasions.iter().all(|one| one.controls == ["reno"]), "{found:?}");
    let cell = &found.figures[0].cells[0];
    assert!(cell.ratios.len() == 2 && cell.mean.is_some() && cell.another.is_some(), "{cell:?}");
    assert!(found.expected[0].is_today && !found.expected[0].is_firm, "{:?}", found.expected);
    let records: Vec<&str> = found.occasions.iter().map(|one| one.record.as_str()).collect();
    let again =
        place.landspeed(&["show", records[0], records[1], "--json"]).output().expect("landspeed runs");
    assert_eq!(pooled(&again).figures, found.figures);
    let one = report(&place.landspeed(&["show", records[0], "--json"]).output().expect("landspeed runs"));
    for condition in ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps"] {
        assert!(one.host_a.conditions.contains_key(condition), "{condition}: {:?}", one.host_a.conditions);
    }
    let shown = text_of(&place.landspeed(&["show", records[0]]).output().expect("landspeed runs"));
    assert!(
        shown.contains("conditions found on both hosts: ") && shown.contains("the flows used reno"),
        "{shown}"
    );
}

/// Tests that a file whose only question is too fine for any machine is refused before a record is begun, and is
/// measured if the user says so.
#[test]
fn a_question_that_this_machine_cannot_answer_is_refused() {
    needs_root!();
    let place = TestHome::new();
    let finest = r#"
        claim = "Nothing changes at all"
        source = "here"
        from = { write-size = "32K" }
        to = { write-size = "64K" }
        ratio = 1.0
        within = "0.0001%"
    "#;
    let file = design(&place, "32K,64K", finest);
    let refused = place.landspeed(&["run", &file]).output().expect("landspeed runs");
    let (_, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(7), "{err}");
    assert!(err.contains("this machine is too noisy now") && err.contains("blocks could answer it"), "{err}");
    assert!(err.trim_end().ends_with("--anyway measures without a look at the machine"), "{err}");
    assert_eq!(only_record(&place.path().join("data/landspeed")), None);
    let measured = place.landspeed(&["run", &file, "--anyway", "--json"]).output().expect("landspeed runs");
    assert!(!text(&measured).1.contains("spread by"), "it does not look at the machine");
    assert_eq!((report(&measured).blocks, report(&measured).placebos.len()), (3, 1), "{measured:?}");
    let series = ["run", &file, "--occasions", "2", "--with", "last"];
    let series = place.landspeed(&series).output().expect("landspeed runs");
    assert_eq!(series.status.code(), Some(7), "{series:?}");
    assert!(text(&series).1.contains("go on with: landspeed run"), "the first occasion counts: {series:?}");
    // The look at the machine sets the knobs too, and restores them: the run sets them again.
    let set = ["--set", "congestion-control@a=reno", "--set", "congestion-control@b=reno"];
    let file = design(&place, "32K,64K", &finest.replace("0.0001%", "900%"));
    let looked =
        place.landspeed(&[&["run", &file, "--json"][..], &set].concat()).output().expect("landspeed runs");
    assert!(text(&looked).1.contains("can decide something"), "{looked:?}");
    assert_eq!(report(&looked).blocks, 3, "{looked:?}");
    let shown = text_of(&place.landspeed(&["show", "last"]).output().expect("landspeed runs"));
    assert!(shown.contains("the flows used reno"), "{shown}");
}

/// Tests that a series continues from the records of its earlier occasions, and that records of another design are
/// refused.
#[test]
fn a_series_goes_on_with_earlier_records() {
    needs_root!();
    let place = TestHome::new();
    let vary = |sizes: &str| {
        let words = ["measure", "stream", "-t", "100ms", "--blocks", "3", "--vary", sizes, "--json"];
        report(&place.landspeed(&words).output().expect("landspeed runs")).record.expect("a record")
    };
    let file = design(&place, "1K,64K", LARGE_WRITES);
    let run = |earlier: &str| {
        let words = ["run", &file, "--occasions", "2", "--with", earlier, "--json"];
        place.landspeed(&words).output().expect("landspeed runs")
    };
    let earlier = vary("write-size=1K,64K");
    let (out, err) = text(&run(&earlier));
    let found: OccasionsReport = serde_json::from_value(checked("run-occasions", &out)).expect("occasions");
    assert_eq!(found.occasions.len(), 2, "{err}");
    assert_eq!(found.occasions[0].record, earlier);
    assert!(err.contains("occasion 2 of 2") && !err.contains("occasion 1 of 2"), "{err}");
    assert!(found.placebos_by_chance.is_some(), "every grid has placebos");
    let (_, err) = text(&run(&vary("write-size=1K,8K")));
    assert!(err.contains("do not vary the same values"), "{err}");
}

/// Tests that a grid of the command line can have occasions, like that of a file.
#[test]
fn a_grid_of_the_command_line_has_occasions() {
    let place = TestHome::new();
    let refused =
        place.landspeed(&["measure", "stream", "--occasions", "2"]).output().expect("landspeed runs");
    assert!(!refused.status.success() && text(&refused).1.contains("--vary"), "{refused:?}");
    needs_root!();
    let grid = ["measure", "stream", "-t", "100ms", "--blocks", "3", "--vary", "write-size=1K,64K"];
    let words = [&grid[..], &["--occasions", "2", "--json"]].concat();
    let (out, err) = text(&place.landspeed(&words).output().expect("landspeed runs"));
    let document = checked("measure-vary-occasions", &out);
    let found: OccasionsReport = serde_json::from_value(document).expect("occasions");
    assert_eq!((found.occasions.len(), found.figures[0].cells[0].ratios.len()), (2, 2), "{err}");
}

/// Returns the congestion controls that this machine permits to every namespace.
fn allowed_controls() -> String {
    let path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    std::fs::read_to_string(path).expect("a Linux kernel").trim().to_owned()
}

/// Tests that a lab can have any loaded congestion control as its default. The machine's list is restored at the end of
/// the run, and after a kill of everything that can be killed at once.
#[test]
fn a_lab_may_use_any_control_and_the_list_is_restored() {
    needs_root!();
    let place = TestHome::new();
    let before = allowed_controls();
    let Some(closed) =
        controls_in_kernel().into_iter().find(|name| !before.split(' ').any(|one| one == name))
    else {
        eprintln!("skipped: this machine allows every loaded congestion control already");
        return;
    };
    let vary = format!("congestion-control=reno,{closed}");
    let args = ["measure", "stream", "-t", "100ms", "--blocks", "3", "--json", "--vary", &vary];
    let found = report(&place.landspeed(&args).output().expect("landspeed runs"));
    assert_eq!((found.failed, trials(&found)), (0, vec![3, 3]));
    assert_eq!(allowed_controls(), before);

    let long = ["measure", "stream", "-t", "100ms", "--blocks", "300", "--vary", &vary];
    let mut child =
        place.landspeed(&long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    assert!(within(Duration::from_secs(60), || allowed_controls() != before), "the list is not opened");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(within(Duration::from_secs(60), || allowed_controls() == before), "{}", allowed_controls());
}

/// Returns the report of an experiment with landspeed's `workload` beside the application `app`.
fn beside(workload: &str, app: &str) -> GridReport {
    let place = TestHome::new();
    let file = place.path().join("beside.toml");
    let text = format!(
        r#"
        title = "A workload beside a program"
        workload = "{workload}"
        topology = "lab:back-to-back"
        as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
        set = {{ time = "100ms" }}
        [[vary]]
        factor = "tool"
        level = [
          {{ name = "program", workload = "app:{app}", set = {{ load-time = "200ms" }} }},
          {{ name = "landspeed" }},
        ]
        [stop]
        blocks = 4
    "#
    );
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    report(&place.landspeed(&["run", &file, "--anyway", "--json"]).output().expect("landspeed runs"))
}

#[test]
fn a_program_is_measured_beside_a_workload_by_the_workloads_own_figures() {
    needs_root!();
    let streams = beside("stream", "sockets-stream");
    let pings = beside("pingpong", "sockets-pingpong");
    for (found, name) in [(&streams, "goodput_bps"), (&streams, "bytes_per_cpu_s"), (&pings, "p50_ns")] {
        assert_eq!((found.blocks, found.failed), (4, 0), "{found:?}");
        let figure = |one: &&GridCurves| serde_json::to_value(one.figure).expect("a word") == name;
        let curves = found.figures.iter().find(figure).unwrap_or_else(|| panic!("no {name}: {found:?}"));
        // A wrong unit would be a factor of a thousand.
        let ratio = curves.cells[1].ratio.expect("an interval").ratio;
        assert!((0.02..50.0).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn experiments_that_ship_are_listed_and_looked_through() {
    let place = TestHome::new();
    let listed = text_of(&place.landspeed(&["experiments"]).output().expect("landspeed runs"));
    assert!(listed.contains("balaji/latency"), "{listed}");
    let checked = place.landspeed(&["run", "--check", "balaji/latency"]).output().expect("landspeed runs");
    assert!(checked.status.success(), "{checked:?}");
    let unknown = place.landspeed(&["run", "balaji/latencies"]).output().expect("landspeed runs");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown).1.contains("did you mean balaji/latency?"), "{unknown:?}");
}

/// Where a block has two labs with several cells each, intervals need six blocks, and with more labs four
/// (`landspeed_stats::grid::least_blocks`).
#[test]
fn experiments_that_ship_have_enough_blocks_for_intervals() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let papers = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = papers.flat_map(|paper| std::fs::read_dir(paper).expect("a folder"));
    let mut seen = 0;
    for path in files.map(|entry| entry.expect("an entry").path()) {
        let text = std::fs::read_to_string(&path).expect("a file");
        for short in [false, true] {
            let grid = landspeed_engine::read_experiment(&path, &text, short).expect("an experiment").grid;
            let of_lab =
                |one: &GridFactor| one.settings().any(|one| one.place == GridSettingTarget::Topology);
            let slow = grid.factors.iter().filter(|one| of_lab(one));
            let labs: usize = slow.map(|one| one.levels.len()).product();
            let is_split = labs > 1 && !grid.factors.iter().all(of_lab);
            let least = if labs > 2 { 4 } else { 6 };
            let is_answered = path.to_string_lossy().contains("/bench/")
                || grid.blocks.is_none_or(|blocks| blocks >= least);
            assert!(is_answered || !is_split, "{}: {:?} blocks", path.display(), grid.blocks);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

fn text_of(output: &Output) -> String {
    text(output).0
}
