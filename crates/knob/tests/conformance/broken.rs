//! A sysctl that breaks one promise at a time. It is tcp_base_mss, because that variable belongs to a namespace.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_knob::{Domain, Error, Factor, HostKnob, Knob, Place, SystemSetting};

const FILE: &str = "/proc/sys/net/ipv4/tcp_base_mss";
const OTHER: &str = "/proc/sys/net/ipv4/tcp_probe_threshold";

/// The promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    SaysNothing,
    DoesNotLast,
    SaysTwoLines,
    ChangesItsMind,
    WritesWhenRead,
    TakesAnything,
    Lies,
    HidesItsName,
    RefusesItsOwn,
    SticksInPart,
}

/// The faults, each with the promise that it breaks.
pub(crate) static FAULTS: &[(Fault, &str)] = &[
    (Fault::SaysNothing, "all is said of it"),
    (Fault::DoesNotLast, "all is said of it"),
    (Fault::SaysTwoLines, "a probe has its value or a reason"),
    (Fault::ChangesItsMind, "probing changes nothing"),
    (Fault::WritesWhenRead, "probing changes nothing"),
    (Fault::TakesAnything, "values that make no sense are refused"),
    (Fault::Lies, "it is as written, or says why not"),
    (Fault::HidesItsName, "it is as written, or says why not"),
    (Fault::RefusesItsOwn, "it takes what it reads"),
    (Fault::SticksInPart, "it goes back exactly"),
];

/// Returns the sysctl with one promise broken.
pub(crate) fn broken(fault: Fault) -> Knob {
    let factor = Factor {
        name: "base-mss",
        about: if fault == Fault::SaysNothing { "" } else { "of the tests" },
        domain: if fault == Fault::TakesAnything { Domain::Text(64) } else { Domain::Int(48, 65_535) },
        source: "none",
        system: if fault == Fault::DoesNotLast {
            SystemSetting::Own
        } else {
            SystemSetting::Sysctl("net/ipv4/tcp_base_mss")
        },
        ..Factor::KNOB
    };
    Knob { factor, setting: Box::leak(Box::new(Broken(fault))) }
}

struct Broken(Fault);

fn read(path: &str) -> u64 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Returns another number each time.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl HostKnob for Broken {
    fn read(&self, _: &Place) -> Result<String, Error> {
        match self.0 {
            Fault::SaysTwoLines => return Err(Error::Unavailable("it is\nnot there".into())),
            Fault::ChangesItsMind => return Ok(next().to_string()),
            Fault::WritesWhenRead => fs::write(OTHER, next().to_string()).unwrap(),
            _ => {}
        }
        Ok(read(FILE).to_string())
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        let stands = value == read(FILE).to_string();
        match self.0 {
            Fault::HidesItsName if !stands => return Err(Error::Unavailable("no".into())),
            Fault::RefusesItsOwn if stands => return Err(Error::Unavailable("base-mss: it stands".into())),
            Fault::SticksInPart => fs::write(OTHER, next().to_string()).unwrap(),
            _ => {}
        }
        fs::write(FILE, if self.0 == Fault::Lies && !stands { "600" } else { value }).unwrap();
        Ok(())
    }
}
