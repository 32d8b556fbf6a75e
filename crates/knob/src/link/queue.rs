//! The queue in front of a link: its length and its qdisc.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use landspeed_kernel::netlink::LinkChange;
use landspeed_record::units::Nanos;

use super::attribute::{LINK, LinkAttribute, reach};
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
/// no list of qdiscs, but each kind has an enqueue function, and a module is named after it. The result is computed once.
fn kinds_of_this_kernel() -> Vec<String> {
    static KNOWN: OnceLock<Vec<String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let functions = enqueue_functions();
        let modules = loadable_modules();
        let has = |kind: &&str| {
            let enqueue = [format!("{kind}_enqueue"), format!("{kind}_qdisc_enqueue")];
            enqueue.iter().any(|name| functions.contains(name))
                || Path::new(&format!("/sys/module/sch_{kind}")).exists()
                || modules.contains(&format!("/sch_{kind}.ko"))
        };
        KINDS.iter().copied().filter(has).map(str::to_owned).collect()
    });
    known.clone()
}

/// Returns the names of those functions of the kernel that end in "_enqueue". Its type information (BTF) has them. Where
/// that is missing they come from its symbols, which the kernel takes 50 ms to print.
fn enqueue_functions() -> HashSet<String> {
    let read = |path: &str| fs::read(path).unwrap_or_default();
    let btf = read("/sys/kernel/btf/vmlinux");
    let text = btf_strings(&btf).map_or_else(|| read("/proc/kallsyms"), <[u8]>::to_vec);
    let names = text.split(|byte| byte.is_ascii_whitespace() || *byte == 0);
    names
        .filter(|name| name.ends_with(b"_enqueue"))
        .map(|name| String::from_utf8_lossy(name).into())
        .collect()
}

/// Returns the names in type information, each with a zero after it (Documentation/bpf/btf.rst, section 2); `None` if it is
/// not valid.
fn btf_strings(btf: &[u8]) -> Option<&[u8]> {
    let field = |at: usize| Some(u32::from_ne_bytes(btf.get(at..at + 4)?.try_into().ok()?) as usize);
    let [header_length, offset, length] = [field(4)?, field(16)?, field(20)?];
    let begin = header_length.checked_add(offset)?;
    btf.get(begin..begin.checked_add(length)?)
}

/// Returns the list of modules that the kernel could load; empty if it loads none.
fn loadable_modules() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let loads = Path::new("/proc/sys/kernel/modprobe").exists();
    let list = loads.then(|| fs::read_to_string(format!("/lib/modules/{release}/modules.dep")));
    list.and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_information_and_symbols_name_the_same_qdiscs() {
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let has = |kind: &str| symbols.lines().any(|line| line.ends_with(&format!(" {kind}_enqueue")));
        let found = kinds_of_this_kernel();
        for kind in KINDS {
            assert!(!has(kind) || found.iter().any(|one| one == kind), "{kind} is missing in {found:?}");
        }
    }

    #[test]
    fn invalid_type_information_has_no_names() {
        let header = |offset: u32, length: u32| {
            let fields = [0x0001_eb9f_u32, 24, 0, 0, offset, length].map(u32::to_ne_bytes);
            [fields.as_flattened(), b"\0a_enqueue\0"].concat()
        };
        assert_eq!(btf_strings(&header(0, 11)), Some(&b"\0a_enqueue\0"[..]));
        for wrong in [header(0, 12), header(u32::MAX, u32::MAX), Vec::new(), vec![0; 20]] {
            assert_eq!(btf_strings(&wrong), None);
        }
    }
}
