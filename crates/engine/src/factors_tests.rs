//! Tests of the candidates on a path as in the lab: two namespaces of one machine, with a veth pair between them.

use landspeed_knob::all;
use landspeed_record::factor::{CandidatePlanner, FactorPlacement, FactorScope, KnobSelection, PathView};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Candidate, Cell, ConflictingProgram, HostFacts, KnobState, LinkFacts, Side};

use super::*;

/// Values of the knobs that a veth has.
const VETH: &[(&str, &str)] = &[
    ("mtu", "1500"),
    ("tx-checksum", "on"),
    ("scatter-gather", "on"),
    ("tso", "on"),
    ("gso", "on"),
    ("gro", "off"),
    ("rx-checksum", "on"),
    ("gso-max-size", "65536"),
    ("gso-ipv4-max-size", "65536"),
    ("gro-max-size", "65536"),
    ("gro-ipv4-max-size", "65536"),
    ("tcp-rmem", "4096 131072 33554432"),
    ("tcp-wmem", "4096 16384 4194304"),
    ("congestion-control", "cubic"),
    ("window-scaling", "on"),
    ("tcp-moderate-rcvbuf", "on"),
    ("timestamps", "1"),
    ("rps", "none"),
    ("txqueuelen", "1000"),
    ("notsent-lowat", "4294967295"),
    ("qdisc", "default"),
    ("gro-flush-timeout", "0"),
    ("napi-defer-hard-irqs", "0"),
    ("rps-sock-flow-entries", "0"),
    ("rfs", "0"),
];

fn states() -> Vec<KnobState> {
    all()
        .map(|knob| {
            let value =
                VETH.iter().find(|(name, _)| *name == knob.factor.name).map(|(_, value)| (*value).to_owned());
            let skip = value.is_none().then(|| "a veth has none".to_owned());
            let most = (knob.factor.name == "mtu").then_some(65_535);
            KnobState { knob: knob.factor.name.into(), value, skip, most, members: 1, ..KnobState::default() }
        })
        .collect()
}

fn tcp() -> &'static dyn Transport {
    find("tcp").unwrap()
}

fn is_on(on: FactorPlacement, side: Side) -> bool {
    match on {
        FactorPlacement::Flow => false,
        FactorPlacement::Sender => side == Side::A,
        FactorPlacement::Receiver => side == Side::B,
        FactorPlacement::Both => true,
    }
}

struct TestHosts {
    facts: HostFacts,
    link: LinkFacts,
    a: Vec<KnobState>,
    b: Vec<KnobState>,
    rtt: Nanos,
    in_lab: bool,
}

impl TestHosts {
    fn new() -> Self {
        let facts = HostFacts {
            boot_id: "one".into(),
            kernel: "6.18.44".into(),
            may_tune: true,
            cpus: 2,
            memory_bytes: Bytes::mib(8192),
            congestion_available: ["reno", "cubic", "bbr"].map(str::to_owned).into(),
            congestion_defaults: ["reno", "cubic", "bbr"].map(str::to_owned).into(),
            ..HostFacts::default()
        };
        let link = LinkFacts { driver: "veth".into(), mtu_bytes: 1500, ..LinkFacts::default() };
        TestHosts { facts, link, a: states(), b: states(), rtt: Nanos::micros(50), in_lab: true }
    }

    fn ask<T>(&self, cell: &Cell, question: impl FnOnce(&CandidatePlanner<'_>) -> T) -> T {
        let path = PathView {
            ipv6: false,
            sender: &self.facts,
            receiver: &self.facts,
            sender_link: &self.link,
            receiver_link: &self.link,
            sender_states: &self.a,
            receiver_states: &self.b,
            rtt: self.rtt,
            in_lab: self.in_lab,
        };
        let transport = transport_of(&cell.flow).unwrap();
        question(&CandidatePlanner::new(&factors(transport), &path, cell))
    }

    fn found(&self) -> Cell {
        let read = |states: &[KnobState]| -> Settings {
            states.iter().filter_map(|s| Some((s.knob.clone(), s.value.clone()?))).collect()
        };
        Cell { a: read(&self.a), b: read(&self.b), flow: flow(tcp(), &Settings::new()).unwrap() }
    }

    /// Returns the settings with which SC'03 started, without those that this veth lacks.
    fn sc03(&self) -> Cell {
        let mut cell = self.found();
        for (name, value) in crate::tune::sc03() {
            let factor = factors(tcp()).find(name).unwrap();
            if factor.on == FactorPlacement::Flow {
                cell.flow.insert(name.into(), value.clone());
            }
            for side in Side::BOTH {
                if let Some(now) = cell.host_mut(side).get_mut(name).filter(|_| is_on(factor.on, side)) {
                    *now = value.clone();
                }
            }
        }
        cell
    }

    /// Returns a UDP flow with `set`, from the settings with which SC'03 started.
    fn datagrams(&self, set: &[(&str, &str)]) -> Cell {
        let udp = find("udp").unwrap();
        let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Cell { flow: flow(udp, &set).unwrap(), ..self.sc03() }
    }

    fn candidates(&self, start: &Cell) -> Vec<Candidate> {
        self.ask(start, |planner| planner.candidates(&KnobSelection::default())).unwrap()
    }
}

fn named<'a>(candidates: &'a [Candidate], knob: &str) -> &'a Candidate {
    candidates.iter().find(|c| c.knob == knob).unwrap_or_else(|| panic!("no candidate for {knob}"))
}

#[test]
fn virtual_devices_have_nothing_to_reset() {
    let toggle = |driver: &str| {
        let mut lab = TestHosts::new();
        lab.link.driver = driver.into();
        let all = lab.candidates(&lab.sc03());
        all.iter().find(|candidate| candidate.knob == "mtu").unwrap().toggle_ns
    };
    assert_eq!((toggle("veth"), toggle("mlx5_core")), (Nanos::millis(5), Nanos::millis(300)));
}

#[test]
fn the_papers_ladder_comes_first() {
    let lab = TestHosts::new();
    let candidates = lab.candidates(&lab.sc03());
    let tried: Vec<&str> = candidates.iter().filter(|c| c.skip.is_none()).map(|c| c.knob.as_str()).collect();
    let first = ["placement", "write-size", "mtu", "tcp-rmem", "tx-checksum", "tso", "gro"];
    assert_eq!(tried[..first.len()], first);
    // MSG_ZEROCOPY is among the dozen candidates that fit into five minutes.
    assert!(tried.iter().position(|knob| *knob == "zerocopy-send").unwrap() < 12);
}

#[test]
fn behind_tso_one_jumbo_size_is_tried_once_windows_can_grow() {
    let lab = TestHosts::new();
    let mut start = lab.sc03();
    start.a.insert("tso".into(), "on".into());
    let candidates = lab.candidates(&start);
    let open: Vec<&Candidate> = candidates.iter().filter(|c| c.knob == "mtu" && c.skip.is_none()).collect();
    assert_eq!(open.iter().map(|c| c.value.as_str()).collect::<Vec<_>>(), ["9000"]);
    assert!(open[0].rank > named(&candidates, "tcp-rmem").rank, "{}", open[0].rank);
}

#[test]
fn tso_brings_what_it_needs_as_one_step() {
    let lab = TestHosts::new();
    let candidates = lab.candidates(&lab.sc03());
    let tso = named(&candidates, "tso");
    assert_eq!(tso.with, ["tx-checksum=on", "scatter-gather=on"]);
    let all_on = ["scatter-gather", "tso", "tx-checksum"].map(|knob| (knob.to_owned(), "on".to_owned()));
    assert_eq!(tso.change, Cell { a: Settings::from(all_on), ..Cell::default() });
    assert_eq!(named(&lab.candidates(&lab.found()), "gro").with, Vec::<String>::new());
}

#[test]
fn windows_are_reopened_by_tso_whichever_row_says_so() {
    let lab = TestHosts::new();
    let candidates = lab.candidates(&lab.sc03());
    assert!(named(&candidates, "tcp-rmem").interacts.contains(&"tso".to_owned()));
    assert!(named(&candidates, "tso").interacts.contains(&"tcp-rmem".to_owned()));
    let windows = named(&candidates, "tcp-rmem");
    assert!(windows.change.b.contains_key("tcp-rmem") && windows.change.a.contains_key("tcp-wmem"));
}

#[test]
fn a_change_without_an_effect_has_the_reason() {
    let lab = TestHosts::new();
    let candidates = lab.candidates(&lab.sc03());
    for (knob, word) in [
        ("gso-max-size", "TSO is off"),
        ("busy-poll", "veth"),
        ("txqueuelen", "no queue"),
        ("gro-flush-timeout", "GRO is on"),
        ("zerocopy-receive", "pages"),
        ("socket-congestion", "congestion-control"),
    ] {
        let candidate = named(&candidates, knob);
        assert!(candidate.cannot_matter, "{knob}");
        assert!(candidate.skip.as_ref().unwrap().contains(word), "{:?}", candidate.skip);
    }
    let zerocopy = named(&candidates, "zerocopy-send");
    assert_eq!(zerocopy.skip, None, "the ladder is to see for itself that the kernel copies");
}

#[test]
fn a_congestion_control_that_a_namespace_may_not_default_to_is_asked_for_by_the_socket() {
    let mut lab = TestHosts::new();
    lab.facts.congestion_defaults = vec!["reno".into(), "bbr".into()];
    let candidates = lab.candidates(&lab.sc03());
    let tried = |knob: &str| -> Vec<_> {
        let of = candidates.iter().filter(|c| c.knob == knob && c.skip.is_none());
        of.map(|c| c.value.as_str()).collect()
    };
    assert_eq!((tried("congestion-control"), tried("socket-congestion")), (vec!["bbr"], vec!["cubic"]));
}

#[test]
fn the_machine_is_not_a_labs_to_turn() {
    let lab = TestHosts::new();
    let candidates = lab.candidates(&lab.found());
    for knob in all().filter(|knob| knob.factor.scope == FactorScope::Host) {
        let candidate = named(&candidates, knob.factor.name);
        assert!(candidate.skip.as_ref().unwrap().contains("a lab does not touch it"), "{}", knob.factor.name);
        assert!(!candidate.cannot_matter && candidate.change == Cell::default());
    }
    let rfs = named(&candidates, "rfs");
    assert!(rfs.skip.as_ref().unwrap().contains("rps-sock-flow-entries"), "{:?}", rfs.skip);
}

#[test]
fn programs_that_would_turn_it_back_are_named() {
    let mut lab = TestHosts::new();
    lab.facts.conflicts = vec![ConflictingProgram {
        program: "tuned".into(),
        pid: 7,
        knobs: vec!["tcp-rmem".into(), "tcp-wmem".into()],
    }];
    let reason = named(&lab.candidates(&lab.sc03()), "tcp-rmem").skip.clone().unwrap();
    assert!(reason.contains("tuned (pid 7)"), "{reason}");
}

#[test]
fn a_knob_that_one_host_lacks_is_skipped_only_where_it_is_needed() {
    let mut lab = TestHosts::new();
    let broken = |states: &mut Vec<KnobState>, knob: &str| {
        let state = states.iter_mut().find(|s| s.knob == knob).unwrap();
        state.skip = Some("eth0 has it fixed off".into());
    };
    broken(&mut lab.b, "tso");
    assert_eq!(named(&lab.candidates(&lab.sc03()), "tso").skip, None, "TSO is the sender's");
    broken(&mut lab.b, "mtu");
    let reason = named(&lab.candidates(&lab.sc03()), "mtu").skip.clone().unwrap();
    assert_eq!(reason, "host B: eth0 has it fixed off");
    broken(&mut lab.a, "tx-checksum");
    let reason = named(&lab.candidates(&lab.sc03()), "tso").skip.clone().unwrap();
    assert_eq!(reason, "it needs tx-checksum=on: host A: eth0 has it fixed off");
}

#[test]
fn filters_go_by_name_and_a_name_asked_for_is_always_answered() {
    let lab = TestHosts::new();
    let start = lab.found();
    let [mtu, tso, wrong] = ["mtu", "tso", "no-such"].map(|name| vec![name.to_owned()]);
    let filtered = |only: &[String], skip: &[String]| {
        lab.ask(&start, |planner| planner.candidates(&KnobSelection { only, skip }))
    };
    let only = |only: &[String]| filtered(only, &[]).unwrap();
    assert!(only(&mtu).iter().all(|c| c.knob == "mtu"));
    let [answer] = &only(&tso)[..] else { panic!("one answer") };
    assert!(answer.cannot_matter && answer.skip.as_ref().unwrap().contains("is set to on"));
    let skipped = filtered(&[], &mtu).unwrap();
    assert_eq!(named(&skipped, "mtu").skip.as_deref(), Some("left out by --skip or --set"));
    let error = filtered(&wrong, &[]).unwrap_err();
    assert!(error.to_string().contains("no-such"));
}

/// Whatever the hosts report, each proposal is in its domain and differs from the current value.
#[test]
fn proposals_lie_in_their_domains_on_any_path() {
    for cpus in [0, 1, 2, 64] {
        for (rtt, speed) in
            [(Nanos(0), None), (Nanos::micros(50), Some(10_000)), (Nanos::secs(10), Some(u64::MAX))]
        {
            for start in [TestHosts::new().found(), TestHosts::new().sc03(), Cell::default()] {
                let mut lab = TestHosts::new();
                (lab.facts.cpus, lab.link.speed_mbps) = (cpus, speed);
                lab.facts.memory_bytes = Bytes(if cpus == 0 { 0 } else { 1 << 40 });
                (lab.rtt, lab.in_lab) = (rtt, false);
                lab.candidates(&start).iter().for_each(|candidate| check_change(candidate, &start));
            }
        }
    }
}

fn check_change(candidate: &Candidate, start: &Cell) {
    if candidate.change == Cell::default() {
        assert!(candidate.skip.is_some(), "{candidate:?}");
        return;
    }
    let change = &candidate.change;
    for (name, value) in change.a.iter().chain(&change.b).chain(&change.flow) {
        all_factors().check(name, value).unwrap_or_else(|e| panic!("{}: {e}", candidate.knob));
    }
    assert_ne!(&start.with(change), start, "{candidate:?} changes nothing");
}

#[test]
fn a_named_value_becomes_a_candidate_where_the_table_does_not_know_better() {
    let lab = TestHosts::new();
    let start = lab.sc03();
    let named_value = |only: &[String], skip: &[String], wanted: (&str, &str)| {
        lab.ask(&start, |planner| planner.named(&KnobSelection { only, skip }, wanted.0, wanted.1))
    };
    let write = named_value(&[], &[], ("write-size", "32768")).expect("the knob takes it");
    assert_eq!((write.from.as_str(), write.rank, write.skip.as_deref()), ("8192", 999, None));
    assert_eq!(write.change.flow, Settings::from([("write-size".to_owned(), "32768".to_owned())]));
    for (knob, value, why) in [
        ("write-size", "65536", "the table proposes it"),
        ("write-size", "8192", "it is the current value"),
        ("write-size", "large", "the knob does not take it"),
        ("write-size", "", "the table chooses"),
        ("no-such", "1", "no knob"),
        ("", "", "a person must do it"),
        ("txqueuelen", "20000", "the link has no queue, says the table"),
        ("rmem-max", "1000000", "the whole machine's"),
        ("ring-rx", "64", "a veth has none"),
    ] {
        assert_eq!(named_value(&[], &[], (knob, value)), None, "{knob}={value}: {why}");
    }
    let own = ["write-size".to_owned()];
    assert_eq!(named_value(&[], &own, ("write-size", "32768")), None);
    assert!(named_value(&own, &[], ("write-size", "32768")).is_some());
    assert_eq!(named_value(&own, &[], ("tso", "on")), None);
}

/// Returns the changes of the placebos for a cell, by scope, or the reasons why there are none.
fn placebos_of(lab: &TestHosts, cell: &Cell, skip: &[String]) -> Vec<(FactorScope, Result<Cell, String>)> {
    let placebos = lab.ask(cell, |planner| planner.placebos(skip));
    placebos.into_iter().map(|placebo| (placebo.scope, placebo.change.map(|change| change.change))).collect()
}

#[test]
fn placebos_of_three_scopes_go_to_another_value_that_cannot_matter() {
    let lab = TestHosts::new();
    let host = |knob: &str, value: &str| Cell {
        a: Settings::from([(knob.to_owned(), value.to_owned())]),
        ..Cell::default()
    };
    let flow = Settings::from([("socket-notsent-lowat".to_owned(), "2147483647".to_owned())]);
    let found = placebos_of(&lab, &lab.found(), &[]);
    let wanted = [
        (FactorScope::Flow, Ok(Cell { flow, ..Cell::default() })),
        (FactorScope::Namespace, Ok(host("notsent-lowat", "4294967294"))),
        (FactorScope::Device, Ok(host("txqueuelen", "1001"))),
    ];
    assert_eq!(found, wanted);
    for (_, change) in found {
        assert_ne!(lab.found().with(&change.unwrap()), lab.found(), "it writes at each toggle");
    }
}

#[test]
fn a_placebo_follows_the_current_value_or_has_the_reason_for_none() {
    let mut lab = TestHosts::new();
    let mut cell = lab.found();
    cell.a.insert("notsent-lowat".into(), "131072".into());
    cell.a.insert("txqueuelen".into(), "10000".into());
    let device = lab.a.iter_mut().find(|state| state.knob == "txqueuelen").unwrap();
    device.skip = Some("no such file".into());
    let found = placebos_of(&lab, &cell, &[]);
    let reasons: Vec<&str> =
        found.iter().filter_map(|(_, change)| change.as_ref().err()).map(String::as_str).collect();
    assert_eq!(
        reasons,
        [r#"no value is known to be as good as "0""#, "host A: no such file"],
        "the system limits flows now"
    );
    assert_eq!(found[1].1.as_ref().unwrap().a["notsent-lowat"], "131073");
    let skip = ["txqueuelen".to_owned()];
    assert_eq!(placebos_of(&lab, &cell, &skip).len(), 2, "left out by --skip");
}

#[test]
fn every_factor_is_whole_and_has_a_name_of_its_own() {
    let table = all_factors();
    let knobs = landspeed_knob::table::factors().count();
    let mut names: Vec<_> = table.all().map(|factor| factor.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), table.all().count());
    assert!(names.len() > knobs);
    for factor in table.all() {
        let name = factor.name;
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        assert!(name.bytes().all(plain), "{name}");
        assert!(!factor.source.is_empty() && !factor.about.is_empty(), "{name}");
        assert!(!factor.interacts.is_empty(), "{name} depends on nothing?");
        assert_eq!(factor.scope == FactorScope::Flow, factor.on == FactorPlacement::Flow, "{name}");
        for other in factor.interacts {
            assert!(table.find(other).is_ok() && *other != name, "{name} interacts with {other}");
        }
    }
}

#[test]
fn a_setting_answers_to_the_systems_names_and_no_two_to_one() {
    let table = all_factors();
    for (given, name) in [
        ("net.ipv4.tcp_rmem", "tcp-rmem"),
        ("/proc/sys/net/ipv4/tcp_rmem", "tcp-rmem"),
        (" tcp_sack ", "sack"),
        ("net.core.busy_poll", "net-busy-poll"),
        ("SO_BUSY_POLL", "busy-poll"),
        ("generic-receive-offload", "gro"),
        ("ethtool:gro", "gro"),
        ("ethtool -K rx", "rx-checksum"),
        ("ethtool -G rx", "ring-rx"),
        ("ip link mtu", "mtu"),
        ("queues/rx-*/rps_cpus", "rps"),
        ("rps_cpus", "rps"),
        ("scaling_governor", "governor"),
        ("TCP_NODELAY", "nodelay"),
    ] {
        assert_eq!(table.named(given).unwrap().name, name, "{given}");
    }
    // A name that fits two settings would find only the first.
    for factor in table.all() {
        for name in factor.names() {
            assert_eq!(
                table.named(&name).unwrap().name,
                factor.name,
                "{name} is also called {}",
                factor.name
            );
        }
    }
    let error = |name| table.named(name).err().expect("no such setting").to_string();
    assert!(error("mtuu").contains("did you mean mtu?"), "{}", error("mtuu"));
    assert!(error("net.ipv4.tcp_rmen").contains("did you mean net.ipv4.tcp_rmem?"));
    assert!(!error("warp-drive").contains("did you mean"));
    // Names from a peer or a file have only one form.
    assert!(table.check("tcp_rmem", "4096 87380 6291456").is_err());
}

#[test]
fn a_flow_starts_from_the_defaults_of_its_transport() {
    for transport in TRANSPORTS {
        let settings = flow(*transport, &Settings::new()).unwrap();
        assert_eq!(settings["transport"], transport.name());
        assert_eq!(table(*transport).check_all(&settings), Ok(()));
        assert_eq!(transport.can_run(&settings), Ok(()));
        assert_eq!(transport_of(&settings).unwrap().name(), transport.name());
    }
    let udp = find("udp").unwrap();
    assert_eq!(flow(udp, &Settings::new()).unwrap()["write-size"], "1472");
    let set = Settings::from([("nodelay".to_owned(), "on".to_owned())]);
    assert!(flow(udp, &set).is_err() && flow(tcp(), &set).is_ok());
}

/// A knob of TCP affects no flow over UDP.
#[test]
fn each_transport_has_the_knobs_of_its_protocol() {
    let udp = factors(find("udp").unwrap());
    for (name, over_udp) in
        [("tcp-rmem", false), ("sack", false), ("mtu", true), ("rmem-max", true), ("datagram-send", true)]
    {
        assert_eq!(udp.find(name).is_ok(), over_udp, "{name}");
    }
    assert!(factors(tcp()).find("sack").is_ok() && factors(tcp()).find("datagram-send").is_err());
}

/// Returns the values proposed for a knob: "value" if the value is tried, "value: why" if it is skipped.
fn proposed(candidates: &[Candidate], knob: &str) -> Vec<String> {
    let of_knob = candidates.iter().filter(|candidate| candidate.knob == knob);
    let said = |c: &Candidate| c.skip.as_ref().map_or(c.value.clone(), |why| format!("{}: {why}", c.value));
    of_knob.map(said).collect()
}

#[test]
fn overheads_of_datagrams_are_steps() {
    let lab = TestHosts::new();
    let plain = lab.candidates(&lab.datagrams(&[]));
    assert_eq!(proposed(&plain, "datagram-send"), ["gso", "batch", "uring"]);
    assert_eq!(proposed(&plain, "datagram-receive"), ["gro", "batch"]);
    assert_eq!(proposed(&plain, "write-size"), ["8972", "8192"]);
    assert_eq!(named(&plain, "write-size").with, ["mtu=9000"]);
    assert!(proposed(&plain, "mtu").iter().all(|said| said.ends_with("fits the link already")), "{plain:?}");
    for of_tcp in ["tso", "gso", "lro", "gso-max-size", "nodelay"] {
        assert!(plain.iter().all(|candidate| candidate.knob != of_tcp), "{of_tcp}");
    }
    let joined = lab.candidates(&lab.datagrams(&[("datagram-send", "gso"), ("pacing-rate", "970000000")]));
    let as_many = ["batch", "uring"].map(|way| format!("{way}: UDP_SEGMENT hands over as many at once"));
    assert_eq!(proposed(&joined, "datagram-send"), as_many);
    assert!(proposed(&joined, "flows").iter().all(|said| said.ends_with("at the pace of one")));
    assert!(proposed(&joined, "pacing-rate").is_empty(), "it is searched for");
}

#[test]
fn datagrams_that_are_cut_are_made_to_fit_either_way() {
    let lab = TestHosts::new();
    let cut = lab.candidates(&lab.datagrams(&[("write-size", "8192")]));
    assert_eq!(proposed(&cut, "mtu"), ["9000", "16000", "8160"]);
    assert_eq!(proposed(&cut, "write-size"), ["8972", "1472"]);
    assert!(proposed(&cut, "datagram-send")[0].contains("fragments"), "{cut:?}");
}

#[test]
fn segments_bring_the_checksums_without_which_no_device_cuts_them() {
    let lab = TestHosts::new();
    let send = |cell: &Cell| named(&lab.candidates(cell), "datagram-send").with.clone();
    assert_eq!(send(&lab.datagrams(&[])), ["tx-checksum=on"]);
    let mut summed = lab.datagrams(&[]);
    summed.a.insert("tx-checksum".into(), "on".into());
    assert!(send(&summed).is_empty());
}

#[test]
fn a_setting_of_another_transport_is_named_as_its() {
    let set = Settings::from([("tls-cipher".to_owned(), "aes-128-gcm".to_owned())]);
    let error = flow(find("tcp").unwrap(), &set).unwrap_err().to_string();
    let of = "tls and tls-udt and tls-mptcp and tls-unix";
    assert_eq!(error, format!("tls-cipher is a setting of {of}, and these flows go over tcp"));
    let unknown = Settings::from([("tls-cypher".to_owned(), "x".to_owned())]);
    assert!(
        flow(find("tcp").unwrap(), &unknown).unwrap_err().to_string().starts_with("no setting is called")
    );
}

#[test]
fn a_workload_of_ours_has_the_settings_of_its_flows_and_not_those_of_a_streams_calls() {
    let tls = find("tls").expect("a transport");
    let names = ["write-size", "read-size", "flows", "rcvbuf", "tls-cipher", "placement", "tcp-rmem", ""];
    let affect = |workload: Option<&Workload>| names.map(|name| affects(name, workload, tls));
    assert_eq!(affect(None), [true; 8]);
    let [copy, program] = ["copy", "app:redis"].map(Workload::new);
    assert_eq!(affect(Some(&copy)), [false, false, true, true, true, true, true, true]);
    assert_eq!(affect(Some(&program)), [false, false, false, false, false, true, true, true]);
}
