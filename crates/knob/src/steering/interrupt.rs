//! Interrupt affinity: the processors that a device interrupts.

use landspeed_record::units::Nanos;

use super::{STEERING, spread};
use crate::device::{Sysfs, name};
use crate::file::{FileEncoding, FileSetting, MemberFiles};
use crate::{Error, FactorView, Knob, KnobTarget, Proposal, SystemSetting};

pub(super) const KNOBS: &[Knob] =
    &[knob!(STEERING, "irq-affinity", FileSetting(FileEncoding::List, interrupts), {
        system: SystemSetting::Interrupts,
        about: "processors that the device's interrupts go to, by interrupt",
        toggle: Nanos::millis(200),
        interacts: &["placement", "rps", "rfs", "channels", "rx-usecs", "threaded-napi"],
        source: "feng-2003 3.3.1 (one processor against two: 10 to 25 %); \
                 Documentation/core-api/irq/irq-affinity.rst",
        propose: propose,
    })];

/// Returns the affinity files of the device's interrupts. Those of a virtio device are one level up, at its bus.
fn interrupts(target: &KnobTarget) -> Result<MemberFiles, Error> {
    let device = name(target)?;
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
        false => Ok(MemberFiles(None, paths)),
    }
}

/// Proposes one processor for all interrupts, as in feng-2003, and one processor for each interrupt, round-robin.
fn propose(view: &FactorView) -> Vec<Proposal> {
    let one_core = view.receiver.cpus < 2;
    let reason = "one processor takes every interrupt";
    let one = Proposal::new("0", 170).pointless_if(one_core, reason);
    let each = Proposal::new(spread(view.members, view.receiver.cpus), 172).pointless_if(one_core, reason);
    if view.members > 1 { vec![one, each] } else { vec![one] }
}
