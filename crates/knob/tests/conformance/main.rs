//! Tests of the table against the running kernel, in a private namespace with a veth pair. They check every promise
//! for each row that can be written there, and that each check notices a knob that breaks its promise.
//!
//! ```text
//! thread's namespace: [ v0 ===== v1 ]     (v0: 4 queues; nothing else sees either)
//! ```

#[path = "../journal/another.rs"]
mod another;
mod broken;
mod kernel;
mod namespace;
mod promises;

use landspeed_knob::{Knob, KnobTarget, all};

use broken::{FAULTS, KnobDefect, broken};
use namespace::in_namespace;
use promises::PROMISES;

/// Returns the promises that a row breaks.
fn breaks(knob: &Knob, target: &KnobTarget) -> Vec<String> {
    let broken = PROMISES.iter().filter_map(|(promise, keeps)| Some((promise, keeps(knob, target).err()?)));
    broken.map(|(promise, why)| format!("{}: {promise}: {why}", knob.factor.name)).collect()
}

#[test]
fn every_knob_keeps_every_promise() {
    in_namespace(|target| {
        let settable = all().filter(|knob| knob.probe(target).skip.is_none()).count();
        assert!(settable > 50, "a veth has most of the table, and here {settable} rows can be turned");
        let broken: Vec<_> = all().flat_map(|knob| breaks(knob, target)).collect();
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    });
}

#[test]
fn each_broken_promise_is_noticed() {
    in_namespace(|target| {
        assert_eq!(breaks(&broken(KnobDefect::None), target), Vec::<String>::new());
        for (fault, promise) in FAULTS {
            let lines = breaks(&broken(*fault), target);
            let is_found = lines.iter().any(|line| line.contains(&format!(": {promise}: ")));
            assert!(is_found, "{fault:?}: {lines:?}");
        }
        for (promise, _) in PROMISES {
            assert!(FAULTS.iter().any(|(_, broken)| broken == promise), "no fault breaks \"{promise}\"");
        }
    });
}
