use landspeed_record::{Settings, StepLine};

use super::*;

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(knob, value)| ((*knob).into(), (*value).into())).collect()
}

fn eth0() -> LinkFacts {
    LinkFacts {
        name: "eth0".into(),
        driver: "ixgbe".into(),
        mac: "02:00:5e:10:00:ff".into(),
        ..LinkFacts::default()
    }
}

fn table() -> FactorTable<'static> {
    let flows = landspeed_transport::TRANSPORTS.iter().flat_map(|transport| transport.factors());
    let every = landspeed_transport::settings::EVERY_FLOW.iter().copied();
    FactorTable::of(crate::table::factors().chain(every).chain(flows))
}

/// Persists host A's changes from `start` to `end`.
fn run(
    start: &[(&str, &str)],
    end: &[(&str, &str)],
    link: Option<&LinkFacts>,
) -> Result<PersistPlan, PersistError> {
    let start = Cell { a: settings(start), ..Cell::default() };
    let end = Cell { a: settings(end), ..Cell::default() };
    let kept = PersistInput {
        start: &start,
        end: &end,
        side: Side::A,
        link,
        origin: "run of 2026-01-02, /r/1.jsonl",
    };
    persist(&kept, &table())
}

#[test]
fn sysctls_go_to_sysctl_d() {
    let start = [("tcp-rmem", "4096 87380 65536"), ("sack", "on"), ("congestion-control", "reno")];
    let end = [("tcp-rmem", "4096 131072 33554432"), ("sack", "off"), ("congestion-control", "reno")];
    let persisted = run(&start, &end, None).unwrap();
    assert_eq!((persisted.files.len(), persisted.left_out.len()), (1, 0));
    let file = &persisted.files[0];
    insta::assert_snapshot!(
        "sysctl",
        format!("{} {:o}\n{}\n{}", file.path, file.mode, file.text, file.remove.join("\n"))
    );
}

#[test]
fn a_links_settings_go_to_a_link_file_that_keeps_the_devices_name() {
    let end = [
        ("mtu", "9000"),
        ("tso", "on"),
        ("gro", "off"),
        ("ring-rx", "4096"),
        ("channels", "8"),
        ("rx-usecs", "50"),
        ("txqueuelen", "10000"),
    ];
    let persisted = run(&[("mtu", "1500")], &end, Some(&eth0())).unwrap();
    assert_eq!((persisted.files.len(), persisted.left_out.len()), (1, 0));
    let file = &persisted.files[0];
    insta::assert_snapshot!(
        "link",
        format!("{} {:o}\n{}\n{}", file.path, file.mode, file.text, file.apply.join("\n"))
    );
}

/// Returns true if the shell accepts the script's syntax, without running it (`sh -n`).
fn a_shell_reads(script: &str) -> bool {
    use std::io::Write;
    let mut shell = std::process::Command::new("sh")
        .arg("-n")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    shell.stdin.take().expect("its input").write_all(script.as_bytes()).expect("write to the shell");
    shell.wait().expect("the shell ends").success()
}

#[test]
fn the_rest_goes_to_a_script_and_its_unit() {
    let end = [
        ("rps", "0-3"),
        ("xps", "0;1;none;33"),
        ("irq-affinity", "0;1"),
        ("threaded-napi", "on"),
        ("gro-flush-timeout", "200000"),
        ("gro-max-size", "185000"),
        ("gso-max-size", "185000"),
        ("scatter-gather", "on"),
        ("qdisc", "fq"),
        ("rx-usecs", "0"),
        ("governor", "performance"),
        ("c-states", "off"),
    ];
    let link = LinkFacts { name: "br-0".into(), driver: "bridge".into(), ..eth0() };
    let persisted = run(&[], &end, Some(&link)).unwrap();
    assert_eq!(persisted.left_out, []);
    let [script, unit] = persisted.files.as_slice() else { panic!("{persisted:#?}") };
    assert_eq!((script.mode, unit.mode), (0o755, 0o644));
    assert!(a_shell_reads(&script.text), "{}", script.text);
    insta::assert_snapshot!(
        "script",
        format!("{}\n{}\n{}\n{}", script.path, script.text, unit.path, unit.text)
    );
}

#[test]
fn flow_settings_become_advice_for_the_application() {
    let start = Cell { flow: settings(&[("write-size", "8192"), ("flows", "1")]), ..Cell::default() };
    let end = Cell {
        flow: settings(&[("write-size", "65536"), ("flows", "1"), ("nodelay", "on")]),
        ..Cell::default()
    };
    let kept = PersistInput { start: &start, end: &end, side: Side::B, link: None, origin: "" };
    let persisted = persist(&kept, &table()).unwrap();
    assert!(persisted.files.is_empty());
    insta::assert_snapshot!("application", persisted.application);
}

/// Some kept values are what a program has by default, such as placement=free and sndbuf=0. For these, the advice does
/// not ask the program to set anything.
#[test]
fn a_value_that_a_program_has_by_itself_asks_nothing_of_it() {
    let advice = |knob: &str, from: &str, to: &str| {
        let cell = |value: &str| Cell { flow: settings(&[(knob, value)]), ..Cell::default() };
        let (start, end) = (cell(from), cell(to));
        let kept = PersistInput { start: &start, end: &end, side: Side::B, link: None, origin: "" };
        persist(&kept, &table()).unwrap().application
    };
    for (knob, from, to, says, never) in [
        ("placement", "same-core", "free", "leave the threads to the scheduler", "pin the"),
        ("placement", "free", "same-core", "pin the", "leave the threads"),
        ("sndbuf", "65536", "0", "do not set SO_SNDBUF", "setsockopt"),
        ("sndbuf", "0", "65536", "setsockopt", "do not set"),
    ] {
        let text = advice(knob, from, to);
        assert!(text.contains(says) && !text.contains(never), "{knob}={to}: {text}");
    }
}

#[test]
fn settings_that_no_file_can_hold_are_reported() {
    let end = [
        ("mtu", "9000"),
        ("rps", "0-3"),
        ("qdisc", "default"),
        ("lro", "on;off"),
        ("scatter-gather", "on;off"),
        ("no-such", "64"),
    ];
    let left = |link: Option<&LinkFacts>| {
        let persisted = run(&[], &end, link).unwrap();
        let mut knobs: Vec<String> = persisted.left_out.iter().map(|left| left.knob.clone()).collect();
        knobs.sort();
        (persisted.files.len(), knobs)
    };
    let with = |knobs: &[&str]| knobs.iter().map(|knob| (*knob).to_owned()).collect::<Vec<_>>();
    assert_eq!(left(Some(&eth0())), (3, with(&["lro", "no-such", "qdisc", "scatter-gather"])));
    assert_eq!(left(None), (0, with(&["lro", "mtu", "no-such", "qdisc", "rps", "scatter-gather"])));
}

#[test]
fn nothing_kept_makes_no_files() {
    let same = [("mtu", "9000"), ("tcp-rmem", "1 2 3")];
    assert_eq!(run(&same, &same, Some(&eth0())), Ok(PersistPlan::default()));
}

#[test]
fn hostile_values_are_refused_whole() {
    const BAD: [&str; 14] = [
        "",
        "on\n[Service]",
        "1\nkernel.core_pattern = |/bin/sh",
        "$(reboot)",
        "`reboot`",
        "1; reboot",
        "fq root; reboot",
        "../../etc",
        "on%n",
        "a'b",
        "\u{1b}[2J",
        "-1",
        "0-999999999",
        "\u{0661}",
    ];
    for knob in [
        "tcp-rmem",
        "mtu",
        "tso",
        "ring-rx",
        "rx-usecs",
        "rps",
        "xps",
        "rfs",
        "irq-affinity",
        "threaded-napi",
        "gro-flush-timeout",
        "gro-max-size",
        "qdisc",
        "governor",
        "c-states",
        "rx-frames",
    ] {
        for bad in BAD {
            let answer = run(&[("sack", "on")], &[("sack", "off"), (knob, bad)], Some(&eth0()));
            let lines = answer
                .as_ref()
                .map(|persisted| persisted.files.iter().map(|f| f.text.clone()).collect::<String>());
            // These two values are harmless in a sysctl, where they cannot leave their line.
            let harmless = matches!((knob, bad), ("tcp-rmem", "-1" | "0-999999999"));
            assert_eq!(answer.is_err(), !harmless, "{knob} {bad:?}: {lines:?}");
            if let Err(error) = answer {
                let text = error.to_string();
                assert!(text.contains(knob) && !text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
}

#[test]
fn hostile_names_flows_and_origins_are_refused_or_escaped() {
    for name in ["eth0\nx", "../x", "", "a b", "$(x)", "-x"] {
        let link = LinkFacts { name: name.into(), ..eth0() };
        assert!(matches!(run(&[], &[("mtu", "9000")], Some(&link)), Err(PersistError::Link(_))), "{name:?}");
    }
    let change = KeptChange { knob: "sack", from: None, to: "1" };
    assert!(sysctl::line(&change, "kernel.core_pattern").is_err(), "only sysctls below net");
    let odd_mac = LinkFacts { mac: "x\ny".into(), ..eth0() };
    let file = &run(&[], &[("mtu", "9000")], Some(&odd_mac)).unwrap().files[0];
    assert!(file.text.contains("\nOriginalName=eth0\n"), "{}", file.text);
    let (start, end) = (Cell::default(), Cell { flow: settings(&[("flows", "1\n2")]), ..Cell::default() });
    let kept = PersistInput { start: &start, end: &end, side: Side::A, link: None, origin: "" };
    assert!(persist(&kept, &table()).is_err());
    let end = Cell { a: settings(&[("sack", "off")]), ..Cell::default() };
    let kept =
        PersistInput { start: &start, end: &end, side: Side::A, link: None, origin: "x\nkernel.panic=1" };
    let text = &persist(&kept, &table()).unwrap().files[0].text;
    assert!(!text.lines().any(|line| line.starts_with("kernel.panic")), "{text}");
}

/// Returns a kept step of host A, as the record has it.
fn kept(settings: &[(&str, &str)], standing: &Cell, confirmed: Option<bool>) -> StepLine {
    let candidate = standing.with(&Cell { a: self::settings(settings), ..Cell::default() });
    let (knob, value) = settings[0];
    let text = format!(
        r#"{{"id":"{knob}","knob":"{knob}","value":"{value}","from":"","with":[],"answer":"helps","kept":true,
        "placebo":false,"reopened":false,"rate":null,"cost":null,"latency":null,"left_out":null,"blocks":9,
        "discarded":0,"reason":"helps"}}"#
    );
    let mut summary: landspeed_record::StepSummary = serde_json::from_str(&text).expect("a step");
    summary.confirmed = confirmed;
    StepLine { summary, incumbent: standing.clone(), candidate }
}

/// Returns what is confirmed of two kept steps, as (settings, left out). `doubt` is the confirmation of the first.
fn sure(
    first: &[(&str, &str)],
    second: &[(&str, &str)],
    doubt: Option<bool>,
) -> (Settings, Vec<UnpersistedSetting>) {
    let start =
        Cell { a: settings(&[("tso", "off"), ("tx-checksum", "off"), ("mtu", "1500")]), ..Cell::default() };
    let first = kept(first, &start, doubt);
    let second = kept(second, &first.candidate, Some(true));
    let needs: KnobNeeds<'_> = &|knob| if knob == "tso" { &[("tx-checksum", "on")] } else { &[] };
    let (end, left_out) = confirmed(&start, &second.candidate, &[&first, &second], needs);
    (end.a, left_out)
}

#[test]
fn a_step_that_was_not_confirmed_is_left_out_and_named() {
    let (end, left_out) = sure(&[("mtu", "9000")], &[("tso", "on"), ("tx-checksum", "on")], Some(false));
    assert_eq!(end, settings(&[("tso", "on"), ("tx-checksum", "on"), ("mtu", "1500")]));
    assert_eq!((left_out.len(), left_out[0].knob.as_str()), (1, "mtu"));
    assert!(left_out[0].why.contains("not confirmed") && left_out[0].why.contains("--unconfirmed"));
}

#[test]
fn prerequisites_of_a_confirmed_step_are_written() {
    let (end, left_out) = sure(&[("tx-checksum", "on")], &[("tso", "on")], Some(false));
    assert_eq!(end, settings(&[("tso", "on"), ("tx-checksum", "on"), ("mtu", "1500")]));
    assert_eq!(left_out.len(), 1);
}

#[test]
fn all_of_an_older_record_counts() {
    let (end, left_out) = sure(&[("mtu", "9000")], &[("tso", "on"), ("tx-checksum", "on")], None);
    assert_eq!(end, settings(&[("tso", "on"), ("tx-checksum", "on"), ("mtu", "9000")]));
    assert_eq!(left_out, []);
}
