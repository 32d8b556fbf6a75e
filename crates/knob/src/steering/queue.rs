//! RPS, RFS and XPS: files under queues/ of a device.

use landspeed_record::CpuAccounting;

use super::{STEERING, all_cpus, spread};
use crate::device::{Sysfs, name};
use crate::{Disturbs, Domain, Error, Factor, HostKnob, Knob, Limits, On, Persist, Place, Proposal, View};
use landspeed_factor::{MAX_CPU, join, parse_cpus, print_cpus, split};

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        factor: Factor {
            name: "rps",
            persist: &[Persist::Queues("rx", "rps_cpus")],
            about: "processors that received packets are handed to, by queue",
            disturbs: &[Disturbs::Queues],
            interacts: &["gro", "tso", "placement", "rfs", "irq-affinity", "netdev-max-backlog", "channels"],
            source: "Documentation/networking/scaling.rst (RPS); Herbert (2010)",
            propose: |view| {
                let one = view.receiver.cpus < 2;
                let all = Proposal::new(all_cpus(view.receiver.cpus), 95);
                vec![
                    all.pointless_if(unseen(view), UNSEEN)
                        .pointless_if(one, "one processor: nowhere to hand packets to"),
                ]
            },
            ..STEERING
        },
        setting: &QueueFile { knob: "rps", side: "rx-", file: "rps_cpus", mask: true },
    },
    Knob {
        factor: Factor {
            name: "rfs",
            persist: &[Persist::Queues("rx", "rps_flow_cnt")],
            about: "flows that a receive queue remembers the reader's processor of; 0 is off",
            domain: Domain::Each(&Domain::Int(0, 1 << 20)),
            disturbs: &[Disturbs::Queues],
            interacts: &["rps", "rps-sock-flow-entries", "irq-affinity", "placement"],
            source: "Documentation/networking/scaling.rst (RFS); Herbert (2010)",
            propose: |view| {
                let one = view.receiver.cpus < 2;
                let p = Proposal::new("4096", 162)
                    .pointless_if(unseen(view), UNSEEN)
                    .pointless_if(one, "one processor: nowhere to steer to");
                let unset = view.receiver_settings.get("rps-sock-flow-entries").is_none_or(|n| n == "0");
                vec![if unset { p.with("rps-sock-flow-entries", "32768") } else { p }]
            },
            ..STEERING
        },
        setting: &QueueFile { knob: "rfs", side: "rx-", file: "rps_flow_cnt", mask: false },
    },
    Knob {
        factor: Factor {
            name: "xps",
            persist: &[Persist::Queues("tx", "xps_cpus")],
            about: "processors that send over a queue, by queue",
            on: On::Sender,
            disturbs: &[Disturbs::Queues],
            interacts: &["channels", "irq-affinity", "flows"],
            source: "Documentation/networking/scaling.rst (XPS); Herbert (2010)",
            propose: transmit,
            ..STEERING
        },
        setting: &QueueFile { knob: "xps", side: "tx-", file: "xps_cpus", mask: true },
    },
];

struct QueueFile {
    knob: &'static str,
    side: &'static str,
    file: &'static str,
    mask: bool,
}

impl QueueFile {
    /// The file's path in each queue, in the queues' order.
    fn paths(&self, sysfs: &Sysfs, place: &Place) -> Result<Vec<String>, Error> {
        let folder = format!("class/net/{}/queues", name(place)?);
        let queues = sysfs.list(&folder)?.into_iter().filter(|queue| queue.starts_with(self.side));
        let paths: Vec<String> = queues.map(|queue| format!("{folder}/{queue}/{}", self.file)).collect();
        match paths.is_empty() {
            true => Err(Error::Unavailable(format!("{} shows no {} queues", place.device, self.side))),
            false => Ok(paths),
        }
    }
}

impl HostKnob for QueueFile {
    fn read(&self, place: &Place) -> Result<String, Error> {
        let sysfs = Sysfs::open()?;
        let value = |path: &String| {
            let text = sysfs.file(self.knob, path).read()?;
            let odd = || Error::Unavailable(format!("{path} holds '{}', no mask", text.escape_default()));
            if self.mask { mask_to_list(&text).ok_or_else(odd) } else { Ok(text) }
        };
        let values = self.paths(&sysfs, place)?.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        join(&values).ok_or_else(|| Error::Unavailable(format!("{} has no queues", place.device)))
    }

    fn write(&self, place: &Place, value: &str) -> Result<(), Error> {
        let sysfs = Sysfs::open()?;
        let paths = self.paths(&sysfs, place)?;
        let wrong = || Error::value(self.knob, value, format!("one value, or {} joined by ';'", paths.len()));
        for (path, value) in paths.iter().zip(split(value, paths.len()).ok_or_else(wrong)?) {
            let text = if self.mask { list_to_mask(value).ok_or_else(wrong)? } else { value.to_owned() };
            sysfs.file(self.knob, path).write(&text)?;
        }
        Ok(())
    }

    fn can_write(&self, place: &Place) -> Result<(), Error> {
        let sysfs = Sysfs::open()?;
        self.paths(&sysfs, place)?.iter().try_for_each(|path| sysfs.file(self.knob, path).writable())
    }

    fn limits(&self, place: &Place) -> Result<Limits, Error> {
        let members = self.paths(&Sysfs::open()?, place)?.len();
        Ok(Limits { members: u32::try_from(members).unwrap_or(u32::MAX), ..Limits::default() })
    }
}

/// A bitmap as the kernel prints it (%*pb: 32-bit words in hex, the highest first, joined by commas).
fn mask_to_list(mask: &str) -> Option<String> {
    let mut cpus = Vec::new();
    for (n, word) in mask.split(',').rev().enumerate() {
        let bits = u32::from_str_radix(word, 16).ok()?;
        let first = u32::try_from(n).ok()? * 32;
        cpus.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| first + bit));
    }
    cpus.last().is_none_or(|last| *last <= MAX_CPU).then(|| print_cpus(&cpus))
}

/// The hexadecimal mask of a list of processors, as /sys takes it: words of 32 bits, greatest first.
pub(crate) fn list_to_mask(list: &str) -> Option<String> {
    let cpus = parse_cpus(list)?;
    let mut words = vec![0u32; cpus.last().map_or(1, |last| *last as usize / 32 + 1)];
    for cpu in cpus {
        words[cpu as usize / 32] |= 1 << (cpu % 32);
    }
    Some(words.iter().rev().map(|word| format!("{word:x}")).collect::<Vec<_>>().join(","))
}

/// Whether the receiver's accounting would not see the work that is handed to another processor: what
/// runs there is charged for it, or nobody is.
fn unseen(view: &View) -> bool {
    view.receiver.cpu_accounting == CpuAccounting::Tasks
}

const UNSEEN: &str =
    "this kernel does not account for the work that is handed over, so it would look cheaper than it is";

/// A queue a processor, so that no two contend for one.
fn transmit(view: &View) -> Vec<Proposal> {
    if view.members < 2 {
        let one = Proposal::new(all_cpus(view.sender.cpus), 168);
        return vec![one.pointless_if(true, "the device has one transmit queue")];
    }
    vec![Proposal::new(spread(view.members, view.sender.cpus), 168)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_words_of_32_bits() {
        for (list, mask) in [("none", "0"), ("0-1", "3"), ("0,33", "2,1")] {
            assert_eq!(list_to_mask(list).as_deref(), Some(mask));
        }
    }

    #[test]
    fn masks_and_lists_are_the_same_sets() {
        let pairs = [
            ("0", "none"),
            ("3", "0-1"),
            ("1,00000000", "32"),
            ("ff,00000001", "0,32-39"),
            ("80000000", "31"),
        ];
        for (mask, list) in pairs {
            assert_eq!(mask_to_list(mask).as_deref(), Some(list));
            assert_eq!(mask_to_list(&list_to_mask(list).unwrap()).as_deref(), Some(list));
        }
        assert_eq!(mask_to_list("zz"), None);
        assert_eq!(mask_to_list(""), None);
        assert_eq!(list_to_mask("3-1"), None);
    }
}
