//! The promises that every transport keeps, checked for each row of the table; and that each check fails for a
//! transport that breaks its promise. A transport that cannot run on this host is skipped, with its reason.

mod broken;
mod flood;
mod loopback;
mod promises;
mod transfer;

use landspeed_transport::TRANSPORTS;

use parking_lot::Mutex;

use broken::{BrokenTransport, FAULTS};
use promises::PROMISES;

/// The lock that each test holds, because a flood counts the descriptors of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_transport_keeps_every_promise() {
    let _alone = ALONE.lock();
    let mut broken = Vec::new();
    for transport in TRANSPORTS {
        if let Err(reason) = transport.can_run(&loopback::settings(*transport)) {
            println!("SKIP {}: {reason}", transport.name());
            continue;
        }
        for (promise, keeps) in PROMISES {
            if let Err(why) = keeps(*transport) {
                broken.push(format!("{}: {promise}: {why}", transport.name()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn each_broken_promise_is_noticed() {
    let _alone = ALONE.lock();
    let is_kept = |(fault, promise): &(_, &str)| {
        let (_, keeps) = PROMISES.iter().find(|(name, _)| name == promise).expect("a promise");
        keeps(&BrokenTransport(*fault)).is_ok()
    };
    // In parallel, because the checks mostly wait.
    std::thread::scope(|scope| {
        let checks: Vec<_> =
            FAULTS.iter().map(|fault| (fault, scope.spawn(move || is_kept(fault)))).collect();
        for (fault, check) in checks {
            assert!(!check.join().expect("no panic"), "{fault:?} is kept");
        }
    });
    for (promise, _) in PROMISES {
        assert!(FAULTS.iter().any(|(_, broken)| broken == promise), "no fault breaks \"{promise}\"");
    }
}
