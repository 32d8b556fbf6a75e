//! Checks what every workload promises, for each row of the table over each transport that it takes, and that each
//! check notices a workload that breaks its promise.

mod broken;
#[path = "../../../../tests/mostly.rs"]
mod mostly;
mod promises;
mod trial;

use std::thread;

use landspeed_transport::{TRANSPORTS, Transport};
use landspeed_workload::{WORKLOADS, WorkloadRunner};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use broken::{BrokenWorkload, FAULTS};
use promises::{PROMISES, PromiseCheck, PromiseKeeper, is_checked};
use trial::{TrialLength, WorkloadSubject, trial};

/// Returns the promises that a row breaks over a transport. The first check takes longer than all others together, and
/// only waits.
fn breaks(row: &dyn WorkloadSubject, transport: &dyn Transport) -> Vec<String> {
    let (name, over) = (row.runner().name(), transport.name());
    let broken = |(promise, _, keeps): &(_, PromiseKeeper, PromiseCheck)| {
        keeps(row, transport).err().map(|why| format!("{name} over {over}: {promise}: {why}"))
    };
    let (first, others) = PROMISES.split_at(1);
    thread::scope(|scope| {
        let first = scope.spawn(move || first.iter().find_map(broken));
        let others = others.iter().filter(|(_, keeper, _)| is_checked(*keeper, transport));
        let mut broken: Vec<_> = others.filter_map(broken).collect();
        broken.extend(first.join().expect("no panic"));
        broken
    })
}

#[test]
fn every_workload_keeps_every_promise() {
    // The agent raises its limit of open files in the same way.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("the hard limit");
    // An application runs programs that this host may not have; `make applications` runs each.
    let own: Vec<&'static dyn WorkloadRunner> =
        WORKLOADS.iter().map(|row| &**row).filter(|row| row.application().is_none()).collect();
    let rows = own.iter().flat_map(|row| TRANSPORTS.iter().map(move |transport| (row, *transport)));
    let (taken, refused): (Vec<_>, Vec<_>) =
        rows.partition(|(row, transport)| trial(*row, *transport, TrialLength::Short).is_ok());
    for (row, transport) in refused {
        println!("SKIP {} over {}", row.name(), transport.name());
    }
    for row in &own {
        assert!(
            taken.iter().any(|(taken, _)| taken.name() == row.name()),
            "{} takes no transport",
            row.name()
        );
    }
    let broken: Vec<String> = thread::scope(|scope| {
        let checks: Vec<_> =
            taken.iter().map(|(row, transport)| scope.spawn(move || breaks(*row, *transport))).collect();
        checks.into_iter().flat_map(|check| check.join().expect("no panic")).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_broken_promise_is_noticed() {
    let tcp = landspeed_transport::find("tcp").expect("in the table");
    let is_kept = |(fault, promise): &(_, &str)| {
        let (.., keeps) = PROMISES.iter().find(|(name, ..)| name == promise).expect("a promise");
        keeps(&BrokenWorkload(*fault), tcp).is_ok()
    };
    thread::scope(|scope| {
        let checks: Vec<_> =
            FAULTS.iter().map(|fault| (fault, scope.spawn(move || is_kept(fault)))).collect();
        for (fault, check) in checks {
            assert!(!check.join().expect("no panic"), "{fault:?} is not noticed");
        }
    });
    for (promise, ..) in PROMISES {
        assert!(FAULTS.iter().any(|(_, broken)| broken == promise), "no fault breaks \"{promise}\"");
    }
}
