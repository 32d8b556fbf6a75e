//! Which processor a device interrupts.

use landspeed_units::Nanos;

use super::{STEERING, spread};
use crate::device::{Sysfs, name};
use crate::file::KernelFile;
use crate::{Error, Factor, HostKnob, Knob, Limits, Persist, Place, Proposal, View};
use landspeed_factor::{join, parse_cpus, print_cpus, split};

pub(super) const KNOBS: &[Knob] = &[Knob {
    factor: Factor {
        name: "irq-affinity",
        persist: &[Persist::Interrupts],
        about: "processors that the device's interrupts go to, by interrupt",
        toggle: Nanos::millis(200),
        interacts: &["placement", "rps", "rfs", "channels", "rx-usecs", "threaded-napi"],
        source: "feng-2003 3.3.1 (one processor against two: 10 to 25 %); \
                 Documentation/core-api/irq/irq-affinity.rst",
        propose,
        ..STEERING
    },
    setting: &Affinity,
}];

struct Affinity;

impl Affinity {
    /// The affinity files of the device's interrupts. A virtio device has them one step up, at its bus.
    fn paths(place: &Place) -> Result<Vec<String>, Error> {
        let device = name(place)?;
        let sysfs = Sysfs::open()?;
        let folders = ["device/msi_irqs", "device/../msi_irqs"];
        let numbers = folders.iter().find_map(|f| sysfs.list(&format!("class/net/{device}/{f}")).ok());
        let paths: Vec<String> = numbers
            .unwrap_or_default()
            .iter()
            .filter(|number| number.bytes().all(|b| b.is_ascii_digit()))
            .map(|number| format!("/proc/irq/{number}/smp_affinity_list"))
            .filter(|path| std::path::Path::new(path).exists())
            .collect();
        match paths.is_empty() {
            true => Err(Error::Unavailable(format!("{device} has no interrupts of its own"))),
            false => Ok(paths),
        }
    }
}

impl HostKnob for Affinity {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let list = |path: &String| {
            let text = KernelFile::absolute("irq-affinity", path).read()?;
            let odd = || Error::Unavailable(format!("{path} holds '{}', no list", text.escape_default()));
            parse_cpus(&text).map(|cpus| print_cpus(&cpus)).ok_or_else(odd)
        };
        let values = Self::paths(place)?.iter().map(list).collect::<Result<Vec<_>, _>>()?;
        join(&values).ok_or_else(|| Error::Unavailable(format!("{} has no interrupts", place.device)))
    }

    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let paths = Self::paths(place)?;
        let wrong =
            || Error::value("irq-affinity", value, format!("one list, or {} joined by ';'", paths.len()));
        let lists = split(value, paths.len()).filter(|lists| !lists.contains(&"none")).ok_or_else(wrong)?;
        paths
            .iter()
            .zip(lists)
            .try_for_each(|(path, list)| KernelFile::absolute("irq-affinity", path).write(list))
    }

    fn can_write(&self, place: &Place) -> Result<(), Error> {
        let paths = Self::paths(place)?;
        paths.iter().try_for_each(|path| KernelFile::absolute("irq-affinity", path).writable())
    }

    fn limits(&self, place: &Place) -> Result<Limits, Error> {
        let members = u32::try_from(Self::paths(place)?.len()).unwrap_or(u32::MAX);
        Ok(Limits { members, ..Limits::default() })
    }
}

/// All on one processor, as the paper's machines had it, or one after the other over all.
fn propose(view: &View) -> Vec<Proposal> {
    let one_core = view.receiver.cpus < 2;
    let reason = "one processor takes every interrupt";
    let one = Proposal::new("0", 170).pointless_if(one_core, reason);
    let each = Proposal::new(spread(view.members, view.receiver.cpus), 172).pointless_if(one_core, reason);
    if view.members > 1 { vec![one, each] } else { vec![one] }
}
