//! Whether this host loads congestion controls; the reason and the remedy where not.

use std::io;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{MapHandle, MapType, libbpf_sys};

/// The kernel's own types, without which no program can be fitted to it.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const STATUS: &str = "/proc/thread-self/status";

/// `CAP_*` of linux/capability.h.
const NET_ADMIN: u64 = 1 << 12;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Asks the host, changes nothing, leaves nothing behind.
///
/// # Errors
/// The reason why no congestion control can be loaded, with the remedy.
pub fn can_load() -> Result<(), String> {
    let status = std::fs::read_to_string(STATUS).map_err(|error| format!("cannot read {STATUS}: {error}"))?;
    capable(effective(&status).unwrap_or(0))?;
    std::fs::File::open(BTF).map_err(|error| {
        format!("the kernel tells nothing of its types ({BTF}: {error}): it must be built with CONFIG_DEBUG_INFO_BTF, \
                 as distributions' kernels are")
    })?;
    try_bpf().map_err(|error| refused(&error))?;
    let btf = Btf::from_vmlinux().map_err(|error| format!("cannot read {BTF}: {error}"))?;
    supports(|name| btf.type_by_name::<Struct<'_>>(name).is_some())
}

/// This thread's effective capabilities.
fn effective(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

/// kernel/bpf/syscall.c, bpf_prog_load and map_create: a congestion control is BPF, reads kernel memory, and is network.
fn capable(effective: u64) -> Result<(), String> {
    let wanted = [
        ("CAP_BPF", BPF | SYS_ADMIN),
        ("CAP_PERFMON", PERFMON | SYS_ADMIN),
        ("CAP_NET_ADMIN", NET_ADMIN | SYS_ADMIN),
    ];
    let missing: Vec<_> =
        wanted.iter().filter(|(_, any)| effective & any == 0).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("{} is missing: run landspeed as root", missing.join(" and ")))
}

/// What the kernel's types say that it can do.
fn supports(has: impl Fn(&str) -> bool) -> Result<(), String> {
    if !has("bpf_struct_ops_tcp_congestion_ops") {
        return Err(
            "this kernel has no BPF congestion controls: it needs Linux 5.6 or later with CONFIG_BPF_JIT"
                .into(),
        );
    }
    // Without it a control would outlive its owner.
    if !has("bpf_struct_ops_link") {
        return Err(
            "this kernel cannot tie a congestion control to its owner: that takes Linux 6.4 or later".into(),
        );
    }
    Ok(())
}

/// Makes the smallest map there is, and lets it go.
fn try_bpf() -> io::Result<()> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let made = MapHandle::create(MapType::Array, Some("cc_try"), 4, 4, 1, &options);
    made.map(drop).map_err(|_| io::Error::last_os_error())
}

fn refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no bpf(): it needs CONFIG_BPF_SYSCALL".into(),
        Some(libc::EPERM | libc::EACCES) => format!(
            "bpf() is refused ({error}): a container's seccomp profile or user namespace forbids it; run landspeed on \
             the host itself"
        ),
        _ => format!("bpf() fails: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_a_remedy() {
        assert_eq!(capable(BPF | PERFMON | NET_ADMIN), Ok(()));
        assert_eq!(capable(SYS_ADMIN), Ok(()), "which held them all before Linux 5.8");
        assert!(capable(BPF | NET_ADMIN).unwrap_err().starts_with("CAP_PERFMON is missing"));
        let all = capable(0).unwrap_err();
        assert!(
            all.starts_with("CAP_BPF and CAP_PERFMON and CAP_NET_ADMIN") && all.contains("as root"),
            "{all}"
        );
    }

    #[test]
    fn capabilities_are_read_as_the_kernel_prints_them() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\nCapBnd:\t1\n";
        assert_eq!(effective(status), Some(BPF | PERFMON));
        assert_eq!(effective("Name:\tx\n"), None);
    }

    #[test]
    fn a_kernel_without_struct_ops_or_its_link_is_told_apart() {
        assert!(supports(|_| false).unwrap_err().contains("Linux 5.6"));
        assert!(
            supports(|name| name == "bpf_struct_ops_tcp_congestion_ops").unwrap_err().contains("Linux 6.4")
        );
        assert_eq!(supports(|_| true), Ok(()));
    }

    #[test]
    fn each_refusal_has_its_words() {
        let says = |errno, part: &str| {
            let words = refused(&io::Error::from_raw_os_error(errno));
            assert!(words.contains(part), "{words}");
        };
        says(libc::ENOSYS, "CONFIG_BPF_SYSCALL");
        says(libc::EPERM, "seccomp");
        says(libc::ENOMEM, "fails");
    }
}
