//! RPS, RFS and XPS: files under queues/ of a device.

use landspeed_record::CpuAccounting;

use super::{STEERING, all_cpus, spread};
use crate::device::{Sysfs, name};
use crate::file::{FileEncoding, FileSetting, MemberFiles};
use crate::{
    Domain, Error, FactorPlacement, FactorView, Knob, KnobTarget, Proposal, SideEffect, SystemSetting,
};

pub(super) const KNOBS: &[Knob] = &[
    knob!(STEERING, "rps", FileSetting(FileEncoding::Mask, |target| queues(target, "rx-", "rps_cpus")), {
        system: SystemSetting::Device("queues/rx-*/rps_cpus"),
        about: "processors that received packets are handed to, by queue",
        disturbs: &[SideEffect::Queues],
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
    }),
    knob!(STEERING, "rfs", FileSetting(FileEncoding::Plain, |target| queues(target, "rx-", "rps_flow_cnt")), {
        system: SystemSetting::Device("queues/rx-*/rps_flow_cnt"),
        about: "flows that a receive queue remembers the reader's processor of; 0 is off",
        domain: Domain::Each(&Domain::Int(0, 1 << 20)),
        disturbs: &[SideEffect::Queues],
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
    }),
    knob!(STEERING, "xps", FileSetting(FileEncoding::Mask, |target| queues(target, "tx-", "xps_cpus")), {
        system: SystemSetting::Device("queues/tx-*/xps_cpus"),
        about: "processors that send over a queue, by queue",
        on: FactorPlacement::Sender,
        disturbs: &[SideEffect::Queues],
        interacts: &["channels", "irq-affinity", "flows"],
        source: "Documentation/networking/scaling.rst (XPS); Herbert (2010)",
        propose: transmit,
    }),
];

/// Returns the file `file` of each queue whose name begins with `side` ("rx-" or "tx-"), in the queues' order.
fn queues(target: &KnobTarget, side: &str, file: &str) -> Result<MemberFiles, Error> {
    let sysfs = Sysfs::open()?;
    let folder = format!("class/net/{}/queues", name(target)?);
    let queues = sysfs.list(&folder)?.into_iter().filter(|queue| queue.starts_with(side));
    let paths: Vec<String> = queues.map(|queue| format!("{folder}/{queue}/{file}")).collect();
    match paths.is_empty() {
        true => Err(Error::Unavailable(format!("{} shows no {side} queues", target.device))),
        false => Ok(MemberFiles(Some(sysfs), paths)),
    }
}

/// Returns true if the receiver's CPU accounting does not count work that is handed to another processor, because that
/// work is charged to the task that runs there, or to none.
fn unseen(view: &FactorView) -> bool {
    view.receiver.cpu_accounting == CpuAccounting::Tasks
}

const UNSEEN: &str = "this kernel does not count the processor time of packets that another core takes over: it would look cheaper than it is";

/// Proposes one processor per queue, so that no two processors contend for one queue.
fn transmit(view: &FactorView) -> Vec<Proposal> {
    if view.members < 2 {
        let one = Proposal::new(all_cpus(view.sender.cpus), 168);
        return vec![one.pointless_if(true, "the device has one transmit queue")];
    }
    vec![Proposal::new(spread(view.members, view.sender.cpus), 168)]
}
