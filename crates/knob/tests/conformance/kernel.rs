//! Tests of behaviour that only some rows have.

use landspeed_kernel::netlink::{Ethtool, Rtnl};
use landspeed_knob::{FactorScope, KnobTarget, all, find, probe};

use crate::namespace::in_namespace;

/// Writes a knob by name and returns the value that it then reads.
fn turn(target: &KnobTarget, name: &str, value: &str) -> String {
    landspeed_knob::check(name, value).unwrap();
    let turn = find(name).unwrap().setting;
    turn.write(target, value).unwrap_or_else(|e| panic!("{name}={value}: {e}"));
    turn.read(target).unwrap()
}

fn value(target: &KnobTarget, name: &str) -> String {
    find(name).unwrap().setting.read(target).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn a_value_is_the_active_state_and_off_clears_the_wanted_state_too() {
    in_namespace(|target| {
        assert_eq!(value(target, "tso"), "on");
        turn(target, "tx-checksum", "off");
        assert_eq!(value(target, "tso"), "off", "wanted, but not active");
        turn(target, "tso", "off");
        assert_eq!(turn(target, "tx-checksum", "on"), "on");
        assert_eq!(value(target, "tso"), "off", "does not come back by itself");
        turn(target, "scatter-gather", "off");
        assert_eq!(turn(target, "tso", "on"), "off", "reads off for want of scatter-gather");
        turn(target, "scatter-gather", "on");
        assert_eq!(value(target, "tso"), "on");
    });
}

#[test]
fn queues_that_differ_go_back_as_they_were() {
    in_namespace(|target| {
        assert_eq!(value(target, "rps"), "none");
        for name in ["rps", "xps"] {
            assert_eq!(turn(target, name, "0;none;0;none"), "0;none;0;none", "{name}");
            assert_eq!(turn(target, name, "0"), "0");
            assert_eq!(turn(target, name, "0;none;0;none"), "0;none;0;none", "{name}");
            let wrong = find(name).unwrap().setting.write(target, "0;0").unwrap_err();
            assert!(wrong.to_string().contains("4 joined"), "{wrong}");
        }
        assert_eq!(turn(target, "rfs", "64;0;128;0"), "64;0;128;0");
    });
}

#[test]
fn features_that_differ_go_back_as_they_were() {
    in_namespace(|target| {
        let one_off = [("tx-tcp6-segmentation", false)];
        Ethtool::open().unwrap().set_features("v0", one_off).unwrap();
        let mixed = value(target, "tso");
        assert!(mixed.contains("on") && mixed.contains("off"), "{mixed}");
        assert_eq!(turn(target, "tso", "off"), "off");
        assert_eq!(turn(target, "tso", &mixed), mixed);
    });
}

#[test]
fn a_probe_gives_the_reason() {
    in_namespace(|target| {
        let states = probe(target);
        assert_eq!(states.len(), all().count(), "every knob has its line");
        for state in &states {
            let is_hosts = find(&state.knob).unwrap().factor.scope == FactorScope::Host;
            assert!(!is_hosts || state.skip.is_some(), "{state:?} is not this namespace's");
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

#[test]
fn a_veth_is_polled_by_threads_once_it_is_polled() {
    in_namespace(|target| {
        turn(target, "gro", "on");
        assert_eq!(turn(target, "threaded-napi", "on"), "on");
        // With GRO off, the threads could not be switched off any more.
        let refused = find("gro").unwrap().setting.write(target, "off").unwrap_err().to_string();
        assert!(refused.contains("turn it off first"), "{refused}");
        assert_eq!(turn(target, "threaded-napi", "off"), "off");
        assert_eq!(turn(target, "gro", "off"), "off");
    });
}

#[test]
fn a_qdisc_that_somebody_configured_is_left_alone() {
    in_namespace(|target| {
        let skip = |states: &[landspeed_record::KnobState]| {
            states.iter().find(|s| s.knob == "qdisc").and_then(|s| s.skip.clone())
        };
        assert_eq!(skip(&probe(target)), None);
        Rtnl::open().unwrap().replace_root_qdisc("v0", "pfifo").unwrap();
        assert!(skip(&probe(target)).unwrap().contains("pfifo"));
    });
}

#[test]
fn a_device_that_is_not_there_is_a_reason_not_a_panic() {
    in_namespace(|_| {
        for device in ["nosuch0", "", "../../../etc", "a/b"] {
            let states = probe(&KnobTarget { device: device.into() });
            let mtu = states.iter().find(|s| s.knob == "mtu").unwrap();
            assert!(mtu.value.is_none() && mtu.skip.is_some(), "{device:?}");
            let rps = states.iter().find(|s| s.knob == "rps").unwrap();
            assert!(rps.value.is_none() && rps.skip.is_some(), "{device:?}");
        }
    });
}
