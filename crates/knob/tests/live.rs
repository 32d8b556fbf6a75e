//! The table against the running kernel: a namespace with a pair of veths of the test's own.
//!
//! ```text
//! thread's namespace: [ v0 ===== v1 ]     (v0: 4 queues; nothing else sees either)
//! ```

use landspeed_knob::{Place, Scope, all, find, probe};
use landspeed_netlink::{Ethtool, LinkChange, Rtnl, VethEnd};

/// Runs `test` on a thread in a namespace of its own, which is gone with the thread, failed or not.
fn in_namespace(test: fn(&Place)) {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP: not root");
        return;
    }
    let alone = move || {
        // SAFETY: the new network namespace is this thread's alone, and the call touches no memory.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a namespace of the test's own");
        let rtnl = Rtnl::open().unwrap();
        let end = |name, queues| VethEnd { name, mac: None, netns: None, queues };
        rtnl.create_veth(&end("v0", 4), &end("v1", 4)).unwrap();
        for device in ["v0", "v1"] {
            rtnl.set_link(device, LinkChange::Up(true)).unwrap();
        }
        test(&Place { device: "v0".into() });
    };
    std::thread::spawn(alone).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Turns a knob by name; the value read back.
fn turn(place: &Place, name: &str, value: &str) -> String {
    landspeed_knob::check(name, value).unwrap();
    let turn = find(name).unwrap().setting;
    turn.write(place, value).unwrap_or_else(|e| panic!("{name}={value}: {e}"));
    turn.read(place).unwrap()
}

fn value(place: &Place, name: &str) -> String {
    find(name).unwrap().setting.read(place).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Values that a veth in a namespace takes, other than it starts with.
const TURNS: &[(&str, &str)] = &[
    ("tcp-rmem", "4096 131072 131072"),
    ("tcp-wmem", "4096 16384 1048576"),
    ("window-scaling", "off"),
    ("tcp-moderate-rcvbuf", "off"),
    ("timestamps", "0"),
    ("sack", "off"),
    ("no-metrics-save", "on"),
    ("notsent-lowat", "131072"),
    ("congestion-control", "reno"),
    ("mtu-probing", "1"),
    ("slow-start-after-idle", "off"),
    ("limit-output-bytes", "1048577"),
    ("autocorking", "off"),
    ("tcp-ecn", "1"),
    ("tso-win-divisor", "8"),
    ("min-tso-segs", "4"),
    ("mtu", "9000"),
    ("txqueuelen", "500"),
    ("gso-max-size", "32768"),
    ("gso-ipv4-max-size", "100000"),
    ("gro-max-size", "32768"),
    ("gro-ipv4-max-size", "100000"),
    ("qdisc", "pfifo"),
    ("tso", "off"),
    ("scatter-gather", "off"),
    ("tx-checksum", "off"),
    ("rx-checksum", "off"),
    ("gso", "off"),
    ("gro", "on"),
    ("tx-nocache-copy", "on"),
    ("rx-gro-list", "on"),
    ("gro-flush-timeout", "50000"),
    ("napi-defer-hard-irqs", "2"),
    ("rps", "0"),
    ("rfs", "64"),
    ("xps", "0"),
];

#[test]
fn values_read_back_as_written_and_go_back_exactly() {
    in_namespace(|place| {
        for (name, asked) in TURNS {
            let links = Rtnl::open().unwrap().link("v0").unwrap();
            let before = value(place, name);
            assert_ne!(before, *asked, "{name} stands there already");
            assert_eq!(turn(place, name, asked), *asked, "{name}");
            assert_eq!(turn(place, name, &before), before, "{name}");
            let after = Rtnl::open().unwrap().link("v0").unwrap();
            assert_eq!(
                (links.mtu, links.gso_ipv4_max_size, links.gro_ipv4_max_size, links.qdisc),
                (after.mtu, after.gso_ipv4_max_size, after.gro_ipv4_max_size, after.qdisc),
                "{name}"
            );
        }
    });
}

#[test]
fn a_value_is_what_is_active_and_off_takes_the_wish_too() {
    in_namespace(|place| {
        assert_eq!(value(place, "tso"), "on");
        turn(place, "tx-checksum", "off");
        assert_eq!(value(place, "tso"), "off", "wanted, but not active");
        turn(place, "tso", "off");
        assert_eq!(turn(place, "tx-checksum", "on"), "on");
        assert_eq!(value(place, "tso"), "off", "does not come back by itself");
        turn(place, "scatter-gather", "off");
        assert_eq!(turn(place, "tso", "on"), "off", "reads off for want of scatter-gather");
        turn(place, "scatter-gather", "on");
        assert_eq!(value(place, "tso"), "on");
    });
}

#[test]
fn queues_that_differ_go_back_as_they_were() {
    in_namespace(|place| {
        assert_eq!(value(place, "rps"), "none");
        for name in ["rps", "xps"] {
            assert_eq!(turn(place, name, "0;none;0;none"), "0;none;0;none", "{name}");
            assert_eq!(turn(place, name, "0"), "0");
            assert_eq!(turn(place, name, "0;none;0;none"), "0;none;0;none", "{name}");
            let wrong = find(name).unwrap().setting.write(place, "0;0").unwrap_err();
            assert!(wrong.to_string().contains("4 joined"), "{wrong}");
        }
        assert_eq!(turn(place, "rfs", "64;0;128;0"), "64;0;128;0");
    });
}

#[test]
fn features_that_differ_go_back_as_they_were() {
    in_namespace(|place| {
        let one_off = [("tx-tcp6-segmentation", false)];
        Ethtool::open().unwrap().set_features("v0", one_off).unwrap();
        let mixed = value(place, "tso");
        assert!(mixed.contains("on") && mixed.contains("off"), "{mixed}");
        assert_eq!(turn(place, "tso", "off"), "off");
        assert_eq!(turn(place, "tso", &mixed), mixed);
    });
}

#[test]
fn probing_changes_nothing_and_says_why_not() {
    in_namespace(|place| {
        let features = || Ethtool::open().unwrap().features("v0").unwrap();
        let (before, states) = (features(), probe(place));
        assert_eq!(probe(place), states);
        assert_eq!(features(), before);
        let system = all().count();
        assert_eq!(states.len(), system, "every system knob has its line");
        for state in &states {
            assert!(state.value.is_some() || state.skip.is_some(), "{state:?}");
            let knob = find(&state.knob).unwrap();
            if knob.factor.scope == Scope::Host {
                assert!(state.skip.is_some(), "{state:?} is not this namespace's");
            }
            if let Some(value) = &state.value {
                landspeed_knob::check(&state.knob, value).unwrap();
            }
        }
        let skip =
            |name: &str| states.iter().find(|s| s.knob == name).unwrap().skip.clone().unwrap_or_default();
        assert_eq!(skip("mtu"), "");
        assert_eq!(skip("tso"), "");
        assert!(skip("threaded-napi").contains("GRO"), "{}", skip("threaded-napi"));
        assert!(skip("lro").contains("fixed off"), "{}", skip("lro"));
        assert!(skip("rx-usecs").contains("coalescing"), "{}", skip("rx-usecs"));
        assert!(skip("irq-affinity").contains("no interrupts"), "{}", skip("irq-affinity"));
        let mtu = states.iter().find(|s| s.knob == "mtu").unwrap();
        assert_eq!(mtu.most, Some(65_535));
    });
}

/// Everything that a probe calls turnable takes its own value back.
#[test]
fn what_can_be_turned_takes_what_it_reads() {
    in_namespace(|place| {
        let states = probe(place);
        let open = states.iter().filter(|state| state.skip.is_none());
        assert!(open.clone().count() > 50, "a veth has most of the table");
        for state in open {
            let stands = state.value.as_deref().unwrap();
            assert_eq!(turn(place, &state.knob, stands), stands, "{}", state.knob);
        }
        assert_eq!(probe(place), states);
    });
}

#[test]
fn a_veth_is_polled_by_threads_once_it_is_polled() {
    in_namespace(|place| {
        turn(place, "gro", "on");
        assert_eq!(turn(place, "threaded-napi", "on"), "on");
        assert_eq!(turn(place, "threaded-napi", "off"), "off");
    });
}

#[test]
fn a_qdisc_that_somebody_configured_is_left_alone() {
    in_namespace(|place| {
        let skip = |states: &[landspeed_record::KnobState]| {
            states.iter().find(|s| s.knob == "qdisc").and_then(|s| s.skip.clone())
        };
        assert_eq!(skip(&probe(place)), None);
        Rtnl::open().unwrap().replace_root_qdisc("v0", "pfifo").unwrap();
        assert!(skip(&probe(place)).unwrap().contains("pfifo"));
    });
}

#[test]
fn a_device_that_is_not_there_is_a_reason_not_a_panic() {
    in_namespace(|_| {
        for device in ["nosuch0", "", "../../../etc", "a/b"] {
            let states = probe(&Place { device: device.into() });
            let mtu = states.iter().find(|s| s.knob == "mtu").unwrap();
            assert!(mtu.value.is_none() && mtu.skip.is_some(), "{device:?}");
            let rps = states.iter().find(|s| s.knob == "rps").unwrap();
            assert!(rps.value.is_none() && rps.skip.is_some(), "{device:?}");
        }
    });
}
