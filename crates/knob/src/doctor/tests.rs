use landspeed_record::ConflictingProgram;
use landspeed_record::units::{BitRate, Nanos};

use super::*;

fn link() -> LinkFacts {
    LinkFacts {
        name: "eth0".into(),
        driver: "ixgbe".into(),
        mtu_bytes: 9000,
        speed_mbps: Some(10_000),
        rx_queues: 4,
        tx_queues: 4,
        irq_cpus: vec![0, 1, 2, 3],
        local_cpus: vec![0, 1, 2, 3],
        up: true,
        ..LinkFacts::default()
    }
}

fn host() -> HostFacts {
    HostFacts { cpus: 8, numa_nodes: 2, governor: "performance".into(), ..HostFacts::default() }
}

fn states(values: &[(&str, &str)]) -> Vec<KnobState> {
    let state = |(knob, value): &(&str, &str)| KnobState {
        knob: (*knob).into(),
        value: Some((*value).into()),
        ..KnobState::default()
    };
    values.iter().map(state).collect()
}

/// Returns (severity, knob) of all findings.
fn found(facts: &HostFacts, link: Option<&LinkFacts>, states: &[KnobState]) -> Vec<(Severity, &'static str)> {
    doctor(facts, link, states, DoctorPath::default())
        .iter()
        .map(|finding| (finding.severity, finding.knob))
        .collect()
}

const WELL: &[(&str, &str)] = &[
    ("tcp-rmem", "4096 131072 268435456"),
    ("tcp-wmem", "4096 65536 268435456"),
    ("window-scaling", "on"),
    ("tcp-moderate-rcvbuf", "on"),
    ("sack", "on"),
    ("timestamps", "on"),
    ("no-metrics-save", "on"),
    ("slow-start-after-idle", "off"),
    ("mtu-probing", "1"),
    ("congestion-control", "bbr"),
    ("qdisc", "fq"),
    ("tso", "on"),
    ("gso", "on"),
    ("gro", "on"),
    ("tx-checksum", "on"),
    ("rx-checksum", "on"),
    ("scatter-gather", "on"),
    ("rps", "none"),
    ("adaptive-rx", "on"),
    ("rx-usecs", "0"),
    ("txqueuelen", "1000"),
    ("netdev-max-backlog", "1000"),
    ("rmem-max", "67108864"),
    ("wmem-max", "67108864"),
    ("governor", "performance"),
];

#[test]
fn a_host_that_is_set_up_well_has_no_findings() {
    assert_eq!(found(&host(), Some(&link()), &states(WELL)), []);
}

#[test]
fn each_bad_value_is_found_by_its_own_rule_and_nothing_else() {
    for (knob, value, severity) in [
        ("tcp-rmem", "4096 131072 6291456", Severity::Warning),
        ("tcp-wmem", "4096 16384 33554432", Severity::Hint),
        ("window-scaling", "off", Severity::Fault),
        ("tcp-moderate-rcvbuf", "off", Severity::Warning),
        ("sack", "off", Severity::Warning),
        ("timestamps", "off", Severity::Hint),
        ("no-metrics-save", "off", Severity::Hint),
        ("slow-start-after-idle", "on", Severity::Hint),
        ("mtu-probing", "0", Severity::Hint),
        ("congestion-control", "reno", Severity::Warning),
        ("tso", "off;on", Severity::Warning),
        ("gro", "off", Severity::Warning),
        ("tx-checksum", "off", Severity::Warning),
        ("rx-checksum", "off", Severity::Warning),
        ("scatter-gather", "off", Severity::Warning),
        ("txqueuelen", "100", Severity::Hint),
        ("rmem-max", "212992", Severity::Hint),
        ("governor", "performance;powersave", Severity::Warning),
        ("governor", "schedutil", Severity::Hint),
    ] {
        let mut states = states(WELL);
        states.iter_mut().filter(|s| s.knob == knob).for_each(|s| s.value = Some(value.into()));
        assert_eq!(found(&host(), Some(&link()), &states), [(severity, knob)], "{knob} {value}");
    }
}

#[test]
fn a_device_is_held_against_its_own_maxima() {
    let mut states = states(&[("ring-rx", "512"), ("ring-tx", "4096"), ("channels", "1")]);
    (states[0].most, states[1].most, states[2].most) = (Some(4096), Some(4096), Some(63));
    assert_eq!(
        found(&host(), Some(&link()), &states),
        [(Severity::Warning, "channels"), (Severity::Hint, "ring-rx")]
    );
    assert!(
        doctor(&host(), Some(&link()), &states, DoctorPath::default())[0].remedy.ends_with("channels to 8")
    );
}

#[test]
fn interrupts_far_from_the_device_or_on_one_processor_stand_out() {
    let far = LinkFacts { irq_cpus: vec![0, 4, 5, 1], ..link() };
    let one = LinkFacts { irq_cpus: vec![2, 2], ..link() };
    for (link, word) in [(far, "2 of 4 interrupts"), (one, "same processor")] {
        let findings = doctor(&host(), Some(&link), &[], DoctorPath::default());
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].what.contains(word), "{findings:?}");
    }
    // If the NUMA node of the device is unknown, nothing is reported.
    let unknown = LinkFacts { irq_cpus: vec![0, 4], local_cpus: vec![], ..link() };
    assert_eq!(found(&host(), Some(&unknown), &[]), []);
}

#[test]
fn links_that_are_down_slow_or_small_stand_out() {
    let down = LinkFacts { up: false, ..link() };
    let slow = LinkFacts { speed_mbps: Some(100), ..link() };
    let small = LinkFacts { mtu_bytes: 1000, addresses: vec!["fe80::1".parse().unwrap()], ..link() };
    let ethernet = LinkFacts { mtu_bytes: 1500, ..link() };
    let single = LinkFacts { rx_queues: 1, driver: "virtio_net".into(), speed_mbps: None, ..link() };
    assert_eq!(found(&host(), Some(&down), &[]), [(Severity::Fault, "")]);
    assert_eq!(found(&host(), Some(&slow), &[]), [(Severity::Warning, "")]);
    assert_eq!(found(&host(), Some(&small), &[]), [(Severity::Fault, "mtu")]);
    assert_eq!(found(&host(), Some(&ethernet), &[]), [(Severity::Hint, "mtu")]);
    assert_eq!(found(&host(), Some(&single), &states(&[("rps", "none")])), [(Severity::Hint, "rps")]);
}

#[test]
fn an_unknown_speed_is_called_assumed_and_gives_no_warning() {
    let unstated = LinkFacts { speed_mbps: None, ..link() };
    let findings = doctor(
        &host(),
        Some(&unstated),
        &states(&[("tcp-rmem", "4096 131072 6291456")]),
        DoctorPath::default(),
    );
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, Severity::Hint);
    assert!(findings[0].what.contains("assumed"), "{findings:?}");
}

#[test]
fn without_a_link_only_general_rules_apply() {
    let bad = states(&[("tcp-rmem", "4096 131072 6291456"), ("window-scaling", "off"), ("tso", "off")]);
    assert_eq!(found(&host(), None, &bad), [(Severity::Fault, "window-scaling"), (Severity::Warning, "tso")]);
}

#[test]
fn an_offload_that_the_device_lacks_is_no_finding() {
    let mut states = states(&[("tso", "off")]);
    states[0].skip = Some("the driver has no TSO".into());
    assert_eq!(found(&host(), Some(&link()), &states), []);
}

#[test]
fn programs_that_turn_settings_back_are_named_and_hostile_text_is_escaped() {
    let mut facts = host();
    facts.conflicts = vec![ConflictingProgram {
        program: "tuned\u{1b}[31m".into(),
        pid: 7,
        knobs: vec!["governor".into()],
    }];
    facts.governor = "power\nsave".into();
    let odd = states(&[("tcp-rmem", "\u{1b}x 1 99999999999999999999"), ("congestion-control", "reno\n")]);
    let findings = doctor(&facts, Some(&link()), &odd, DoctorPath::default());
    assert_eq!(findings.len(), 2, "{findings:?}");
    for finding in &findings {
        let text = format!("{}{}{}", finding.now, finding.what, finding.remedy);
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

#[test]
fn a_kernel_without_namespace_cookies_is_named() {
    let kernel = |netns_cookie| HostFacts {
        boot_id: "b".into(),
        netns_cookie,
        kernel: "5.10.0-36-amd64".into(),
        ..host()
    };
    let old =
        |findings: &[SettingFinding]| findings.iter().filter(|one| one.now == "5.10.0-36-amd64").count();
    let far = DoctorPath { rate: Some(BitRate(1e9)), rtt: Some(Nanos::millis(1)) };
    for path in [DoctorPath::default(), far] {
        let findings = |netns_cookie| doctor(&kernel(netns_cookie), None, &states(WELL), path);
        assert_eq!((old(&findings(0)), old(&findings(7))), (1, 0), "{path:?}");
        assert!(findings(0).iter().any(|one| one.remedy.contains("Linux 5.14")), "{:?}", findings(0));
    }
}

#[test]
fn every_rule_names_its_source_and_a_knob_of_the_table() {
    for rule in TABLES.iter().flat_map(|rules| rules.iter()) {
        assert!(!rule.source.is_empty(), "{}", rule.knob);
        assert!(rule.knob.is_empty() || crate::find(rule.knob).is_ok(), "{}", rule.knob);
    }
}

/// Returns (severity, knob, command) of the findings for a path.
fn on_path(rate: f64, rtt: Nanos, values: &[(&str, &str)]) -> Vec<(Severity, &'static str, Option<String>)> {
    let path = DoctorPath { rate: Some(BitRate(rate)), rtt: Some(rtt) };
    let findings = doctor(&host(), Some(&link()), &states(values), path).into_iter();
    findings.map(|finding| (finding.severity, finding.knob, finding.command)).collect()
}

#[test]
fn a_path_decides_what_is_wrong_and_which_value_is_right() {
    let values =
        [("tcp-rmem", "4096 131072 6291456"), ("slow-start-after-idle", "on"), ("rmem-max", "212992")];
    // 500 Mb/s over 80 ms are 5 MB in flight, and a window needs twice as much memory.
    let command = r#"sysctl -w net.ipv4.tcp_rmem="4096 131072 10000000""#.to_owned();
    let far = [(Severity::Warning, "tcp-rmem", Some(command))];
    assert_eq!(on_path(500e6, Nanos::millis(80), &values), far);
    assert_eq!(on_path(500e6, Nanos::millis(10), &values), [], "nothing is wrong for that path");
    assert_eq!(
        on_path(500e6, Nanos::millis(10), &[("sack", "off")])[0].2.as_deref(),
        Some("sysctl -w net.ipv4.tcp_sack=1")
    );
    assert_eq!(
        on_path(500e6, Nanos::millis(10), &[("tso", "off")])[0].2.as_deref(),
        Some("ethtool -K eth0 tso on")
    );
}
