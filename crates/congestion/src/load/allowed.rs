//! The check that this host can load congestion controls.

use landspeed_record::{KernelNeed, KernelVersion};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use rustix::thread::CapabilitySet;

/// The kernel feature that loading a control needs: the BPF link that ties a control to its owner.
pub const NEEDS: &[KernelNeed] = &[KernelNeed {
    of: "cc load, and compare with a control of landspeed's own",
    since: KernelVersion(6, 4),
    instead: "compare takes Linux's own control of that name, where it has one (its [page](cc.md) names the module), and says so; \
              compare --simulate",
}];

/// Checks if this host can load congestion controls. The check changes nothing on the host.
///
/// # Errors
/// Returns the reason and the remedy as an error if the host can load none.
pub fn can_load() -> Result<(), String> {
    // A control is a BPF program, reads kernel memory (CAP_PERFMON), and is a network program (CAP_NET_ADMIN):
    // bpf_prog_load and map_create of kernel/bpf/syscall.c.
    landspeed_kernel::bpf::allowed(CapabilitySet::BPF | CapabilitySet::PERFMON | CapabilitySet::NET_ADMIN)?;
    kernel_can_load()
}

/// Checks if this kernel can load congestion controls for any process.
///
/// # Errors
/// Returns the reason as an error if it cannot.
pub(crate) fn kernel_can_load() -> Result<(), String> {
    let btf = Btf::from_vmlinux().map_err(|error| format!("cannot read the kernel's types: {error}"))?;
    supports(|name| btf.type_by_name::<Struct<'_>>(name).is_some())
}

/// Checks that the kernel has the types that loading needs. `has` returns true for the name of a known type.
fn supports(has: impl Fn(&str) -> bool) -> Result<(), String> {
    if !has("bpf_struct_ops_tcp_congestion_ops") {
        return Err(
            "this kernel has no BPF congestion controls: it needs Linux 5.6 or later with CONFIG_BPF_JIT"
                .into(),
        );
    }
    // Without a BPF link, a control would stay loaded after its owner has ended.
    if !has("bpf_struct_ops_link") {
        let since = NEEDS[0].since;
        return Err(format!(
            "this kernel cannot tie a congestion control to its owner: that takes {since} or later"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_struct_ops_differs_from_one_without_its_link() {
        assert!(supports(|_| false).unwrap_err().contains("Linux 5.6"));
        assert!(
            supports(|name| name == "bpf_struct_ops_tcp_congestion_ops").unwrap_err().contains("Linux 6.4")
        );
        assert_eq!(supports(|_| true), Ok(()));
    }
}
