//! A sysctl that breaks one promise at a time. It is tcp_base_mss, because that variable belongs to a namespace.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use landspeed_knob::{Domain, Error, Factor, HostKnob, Knob, KnobTarget, SystemSetting};

const FILE: &str = "/proc/sys/net/ipv4/tcp_base_mss";
const OTHER: &str = "/proc/sys/net/ipv4/tcp_probe_threshold";

/// The promise that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnobDefect {
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
    SpellsAnother,
}

/// The faults, each with the promise that it breaks.
pub(crate) static FAULTS: &[(KnobDefect, &str)] = &[
    (KnobDefect::SaysNothing, "all is said of it"),
    (KnobDefect::DoesNotLast, "all is said of it"),
    (KnobDefect::SaysTwoLines, "a probe has its value or a reason"),
    (KnobDefect::ChangesItsMind, "probing changes nothing"),
    (KnobDefect::WritesWhenRead, "probing changes nothing"),
    (KnobDefect::TakesAnything, "values that make no sense are refused"),
    (KnobDefect::Lies, "it is as written, or says why not"),
    (KnobDefect::HidesItsName, "it is as written, or says why not"),
    (KnobDefect::RefusesItsOwn, "it takes what it reads"),
    (KnobDefect::SticksInPart, "it goes back exactly"),
    (KnobDefect::SpellsAnother, "its command sets it"),
];

/// Returns the sysctl with one promise broken.
pub(crate) fn broken(fault: KnobDefect) -> Knob {
    let factor = Factor {
        name: "base-mss",
        about: if fault == KnobDefect::SaysNothing { "" } else { "of the tests" },
        domain: if fault == KnobDefect::TakesAnything { Domain::Text(64) } else { Domain::Int(48, 65_535) },
        source: "none",
        system: if fault == KnobDefect::DoesNotLast {
            SystemSetting::Own
        } else {
            SystemSetting::Sysctl("net/ipv4/tcp_base_mss")
        },
        ..Factor::KNOB
    };
    Knob { factor, setting: Box::leak(Box::new(BrokenKnob(fault))) }
}

struct BrokenKnob(KnobDefect);

fn read(path: &str) -> u64 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Returns another number each time.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(100);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl HostKnob for BrokenKnob {
    fn read(&self, _: &KnobTarget) -> Result<String, Error> {
        match self.0 {
            KnobDefect::SaysTwoLines => return Err(Error::Unavailable("it is\nnot there".into())),
            KnobDefect::ChangesItsMind => return Ok(next().to_string()),
            KnobDefect::WritesWhenRead => fs::write(OTHER, next().to_string()).unwrap(),
            _ => {}
        }
        Ok(read(FILE).to_string())
    }

    fn spelled(&self, value: &str) -> Option<String> {
        Some(if self.0 == KnobDefect::SpellsAnother { "601" } else { value }.to_owned())
    }

    fn write(&self, _: &KnobTarget, value: &str) -> Result<(), Error> {
        let is_set = value == read(FILE).to_string();
        match self.0 {
            KnobDefect::HidesItsName if !is_set => return Err(Error::Unavailable("no".into())),
            KnobDefect::RefusesItsOwn if is_set => {
                return Err(Error::Unavailable("base-mss: it is set already".into()));
            }
            KnobDefect::SticksInPart => fs::write(OTHER, next().to_string()).unwrap(),
            _ => {}
        }
        fs::write(FILE, if self.0 == KnobDefect::Lies && !is_set { "600" } else { value }).unwrap();
        Ok(())
    }
}
