//! The guests of `lab:vm`, as a command line specifies them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use landspeed_record::units::{Bytes, did_you_mean};

use crate::emulator::Parameter;
use crate::topology::error::Error;

/// The name of the topology.
pub(super) const NAME: &str = "lab:vm";
/// The drivers that the link of the data can have, as QEMU calls their devices. The first one is the default.
pub(super) const DRIVERS: [&str; 4] = ["virtio-net", "e1000e", "vmxnet3", "igb"];
const DRIVER: &str = "driver";
const MEMORY: &str = "memory";
/// The memory of a guest in MiB, where none is given.
const USUAL_MIB: u64 = 1024;
/// The memory that a guest can have, in MiB. With less, its root file system in memory does not hold landspeed.
const MEMORIES_MIB: std::ops::RangeInclusive<u64> = 512..=65_536;

/// The kernels of the two guests, and their hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestSpec {
    /// The kernels of A and of B, by the names of their folders.
    pub(super) kernels: [String; 2],
    /// The driver of the data's link.
    pub(super) driver: &'static str,
    /// The memory of each guest, in MiB.
    pub(super) memory_mib: u64,
}

/// Returns the parameters for help.
pub(super) fn parameters() -> Vec<Parameter> {
    let driver = Parameter {
        name: DRIVER,
        values: "virtio-net, e1000e, vmxnet3 or igb",
        default: DRIVERS[0],
        about: "the driver of the link that carries the data; igb needs QEMU 8",
    };
    let memory = Parameter {
        name: MEMORY,
        values: "a size from 512M to 64G",
        default: "1GiB",
        about: "the memory of each guest. A guest has two processors",
    };
    vec![driver, memory]
}

impl FromStr for GuestSpec {
    type Err = Error;

    /// Parses words such as "6.1,6.12,driver=igb". A single kernel is used for both guests.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (pairs, kernels): (Vec<&str>, Vec<&str>) = text.split(',').partition(|word| word.contains('='));
        let kernels = match kernels[..] {
            [both] => [both, both],
            [a, b] => [a, b],
            _ => return Err(wrong(text, "expected a kernel for both guests, or one for each")),
        };
        if let Some(other) = kernels.into_iter().find(|kernel| !is_kernel(kernel)) {
            return Err(wrong(other, "expected a kernel, such as 6.12 or newest"));
        }
        let mut given = BTreeMap::new();
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if given.insert(name, value).is_some() {
                return Err(wrong(pair, &format!("{name} is given twice: leave one out")));
            }
        }
        let spec = GuestSpec {
            kernels: kernels.map(str::to_owned),
            driver: given.remove(DRIVER).map_or(Ok(DRIVERS[0]), driver)?,
            memory_mib: given.remove(MEMORY).map_or(Ok(USUAL_MIB), memory_mib)?,
        };
        match given.into_keys().next() {
            Some(name) => {
                let near = did_you_mean(name, [DRIVER, MEMORY]);
                Err(wrong(name, &format!("expected driver=NAME or memory=SIZE{near}")))
            }
            None => Ok(spec),
        }
    }
}

impl fmt::Display for GuestSpec {
    /// Writes the words that parse to the same guests. Equal guests have equal words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.kernels;
        f.write_str(a)?;
        if a != b {
            write!(f, ",{b}")?;
        }
        if self.driver != DRIVERS[0] {
            write!(f, ",{DRIVER}={}", self.driver)?;
        }
        if self.memory_mib != USUAL_MIB {
            write!(f, ",{MEMORY}={}M", self.memory_mib)?;
        }
        Ok(())
    }
}

/// Returns true if a folder of images may have this name, which then stays within the folder of all images.
fn is_kernel(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_version = name.starts_with(|c: char| c.is_ascii_digit());
    name == "newest" || (is_version && name.len() <= 40 && name.chars().all(allowed))
}

fn driver(given: &str) -> Result<&'static str, Error> {
    let found = DRIVERS.into_iter().find(|driver| *driver == given);
    found.ok_or_else(|| {
        let near = did_you_mean(given, DRIVERS);
        wrong(given, &format!("expected one of the drivers {}{near}", DRIVERS.join(", ")))
    })
}

fn memory_mib(given: &str) -> Result<u64, Error> {
    let size = given.parse::<Bytes>().ok().map(|bytes| bytes.0 >> 20);
    let size = size.filter(|mib| MEMORIES_MIB.contains(mib));
    size.ok_or_else(|| wrong(given, "expected a memory from 512M to 64G"))
}

fn wrong(what: &str, why: &str) -> Error {
    let what: String = what.chars().take(40).collect();
    Error::Hosts(format!("{NAME}: '{}': {why}", what.escape_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_read_as_they_print() {
        for (text, printed) in [
            ("6.12", "6.12"),
            ("6.1,6.12", "6.1,6.12"),
            ("newest,newest", "newest"),
            ("5.10,driver=virtio-net,memory=1G", "5.10"),
            ("memory=2GiB,5.10,driver=igb", "5.10,driver=igb,memory=2048M"),
        ] {
            let spec: GuestSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), printed);
            assert_eq!(printed.parse::<GuestSpec>().unwrap(), spec);
        }
    }

    #[test]
    fn words_that_are_no_guests_are_refused_with_the_remedy() {
        for (text, words) in [
            ("", "such as 6.12"),
            ("driver=igb", "for both guests"),
            ("6.1,6.12,5.10", "one for each"),
            ("no-such", "such as 6.12"),
            ("6/../../etc", "such as 6.12"),
            ("..", "such as 6.12"),
            ("6.1,driver=e1000", "did you mean e1000e?"),
            ("6.1,memory=64M", "from 512M to 64G"),
            ("6.1,memory=65G", "from 512M to 64G"),
            ("6.1,memroy=1G", "did you mean memory?"),
            ("6.1,driver=igb,driver=igb", "driver is given twice"),
        ] {
            let error = text.parse::<GuestSpec>().unwrap_err().to_string();
            assert!(error.contains(words) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
