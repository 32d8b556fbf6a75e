//! The queue in front of a link: its length and its qdisc.

use std::collections::HashSet;
use std::sync::OnceLock;

use landspeed_kernel::netlink::LinkChange;
use landspeed_record::units::Nanos;

use super::{LINK, LinkAttribute, reach};
use crate::device::refused;
use crate::{
    Condition, Domain, Error, FactorPlacement, FactorView, HostKnob, Knob, KnobLimits, KnobTarget,
    PersistMethod, Proposal, SideEffect, SystemSetting, SystemdSpelling,
};
use landspeed_record::factor::{each, next_to, unless};

/// The qdisc knob's value for a qdisc that the kernel chose by default.
const DEFAULT: &str = "default";
/// Kinds of qdiscs that need no options.
const KINDS: &[&str] = &["fq", "fq_codel", "pfifo", "pfifo_fast", "cake"];

pub(super) const KNOBS: &[Knob] = &[
    knob!(LINK, "txqueuelen", LinkAttribute(|link| Some(link.txqlen), LinkChange::TxQueueLen), {
        system: SystemSetting::Link("txqueuelen"),
        persist: &[PersistMethod::Link(&["TransmitQueueLength"], SystemdSpelling::Number(0, 0xffff_fffe), 248)],
        about: "packets that may wait in the device's queue",
        on: FactorPlacement::Sender,
        domain: Domain::Int(1, 1_000_000),
        disturbs: &[SideEffect::Qdisc],
        placebo: Some(|view| next_to(view.current, 1_000_000)),
        interacts: &["qdisc", "limit-output-bytes"],
        source: "feng-2003 3.3 (little to none), 4.1 (10000 on a path of 180 ms)",
        propose: |view| {
            let reason = "the device has no queue (noqueue): packets go straight through";
            unless(unqueued(view), reason, each(&["10000"], 650))
        },
    }),
    knob!(LINK, "qdisc", RootQdisc(), {
        system: SystemSetting::Qdisc,
        decides: Some(Condition::Qdisc),
        about: "queueing discipline at the root of the device; 'default' is the kernel's choice",
        on: FactorPlacement::Sender,
        domain: Domain::Name,
        toggle: Nanos::millis(100),
        disturbs: &[SideEffect::Qdisc],
        interacts: &["congestion-control", "txqueuelen", "pacing-rate", "limit-output-bytes"],
        source: "tc-fq(8); ESnet fasterdata (fq for paced flows); RFC 8290 (FQ-CoDel)",
        propose: |view| {
            let bbr = view.is_set_to("congestion-control", "bbr");
            vec![Proposal::new("fq", if bbr { 98 } else { 410 }), Proposal::new("fq_codel", 640)]
        },
    }),
];

/// Returns true if the sender's device has no queue by the kernel's default (IFF_NO_QUEUE).
fn unqueued(view: &FactorView) -> bool {
    let driver = view.sender_link.driver.as_str();
    matches!(driver, "veth" | "bridge" | "macvlan" | "ipvlan") && view.is_set_to("qdisc", DEFAULT)
}

struct RootQdisc(&'static str);

impl RootQdisc {
    const fn new(knob: &'static str) -> RootQdisc {
        RootQdisc(knob)
    }
}

impl HostKnob for RootQdisc {
    fn read(&self, target: &KnobTarget) -> Result<String, Error> {
        let (rtnl, device) = reach(self.0, target)?;
        let failed = |e| refused(self.0, e);
        let qdiscs = rtnl.qdiscs(rtnl.index_of(device).map_err(failed)?).map_err(failed)?;
        let root = qdiscs.into_iter().find(|qdisc| qdisc.is_root());
        Ok(root.filter(|root| !root.is_default()).map_or_else(|| DEFAULT.into(), |root| root.kind))
    }

    fn write(&self, target: &KnobTarget, value: &str) -> Result<(), Error> {
        let (rtnl, device) = reach(self.0, target)?;
        let written = match value {
            DEFAULT => match rtnl.delete_root_qdisc(device) {
                Err(e) if e.is_absent() => Ok(()),
                deleted => deleted,
            },
            kind => rtnl.replace_root_qdisc(device, kind),
        };
        written.map_err(|e| refused(self.0, e))
    }

    /// Returns `None` for the kernel's default, which `tc qdisc replace` cannot set.
    fn spelled(&self, value: &str) -> Option<String> {
        (value != DEFAULT).then(|| value.to_owned())
    }

    /// Returns an error for a qdisc that a user configured, because setting its kind again would not restore its
    /// options, classes and filters.
    fn can_write(&self, target: &KnobTarget) -> Result<(), Error> {
        match self.read(target)?.as_str() {
            DEFAULT => Ok(()),
            kind => Err(Error::Unavailable(format!(
                "{} has a {kind} qdisc that a user configured: it is left alone",
                target.device
            ))),
        }
    }

    fn limits(&self, _: &KnobTarget) -> Result<KnobLimits, Error> {
        let mut choices = vec![DEFAULT.to_owned()];
        choices.extend(kinds_of_this_kernel());
        Ok(KnobLimits { choices, ..KnobLimits::default() })
    }
}

/// Returns those of [`KINDS`] that this kernel has built in, loaded, or as a module that it would load. The kernel has
/// no list of qdiscs, but each kind has an enqueue function among the kernel's symbols, and a module is named after it.
/// The result is computed once, because the list of symbols is long.
fn kinds_of_this_kernel() -> Vec<String> {
    static KNOWN: OnceLock<Vec<String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let names: HashSet<&str> =
            symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        let modules = loadable_modules();
        let has = |kind: &&str| {
            let enqueue = [format!("{kind}_enqueue"), format!("{kind}_qdisc_enqueue")];
            enqueue.iter().any(|name| names.contains(name.as_str()))
                || modules.contains(&format!("/sch_{kind}.ko"))
        };
        KINDS.iter().copied().filter(has).map(str::to_owned).collect()
    });
    known.clone()
}

/// Returns the list of modules that the kernel could load; empty if it loads none.
fn loadable_modules() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let loads = std::path::Path::new("/proc/sys/kernel/modprobe").exists();
    let list = loads.then(|| std::fs::read_to_string(format!("/lib/modules/{release}/modules.dep")));
    list.and_then(Result::ok).unwrap_or_default()
}
