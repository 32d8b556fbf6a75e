//! Whether this host lets the tracer work; the reason and the remedy where not.

use std::io;

use libbpf_rs::{MapHandle, MapType, libbpf_sys};

use crate::procfile;

/// The kernel's own types, without which no program can be fitted to it.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const STATUS: &str = "/proc/thread-self/status";

/// `CAP_*` of linux/capability.h; the two since Linux 5.8.
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Asks the host, changes nothing, leaves nothing behind.
pub(super) fn allowed() -> Result<(), String> {
    procfile::readable(BTF).map_err(|why| {
        format!("{why}: the kernel must be built with CONFIG_DEBUG_INFO_BTF, as distributions' kernels are")
    })?;
    let status = procfile::read(STATUS).map_err(|error| error.to_string())?;
    capable(effective(&status).unwrap_or(0))?;
    open_kernel(&std::fs::read_to_string(LOCKDOWN).unwrap_or_default())?;
    try_bpf().map_err(|error| refused(&error))
}

/// This thread's effective capabilities.
fn effective(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

fn capable(effective: u64) -> Result<(), String> {
    let has = |capability| effective & (capability | SYS_ADMIN) != 0;
    let missing: Vec<_> =
        [("CAP_BPF", BPF), ("CAP_PERFMON", PERFMON)].iter().filter(|(_, bit)| !has(*bit)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
    Err(format!("{} is missing: run landspeed as root, or give it that capability", names.join(" and ")))
}

/// Under "confidentiality" no program may read kernel memory (kernel_lockdown(7)).
fn open_kernel(lockdown: &str) -> Result<(), String> {
    if lockdown.contains("[confidentiality]") {
        return Err("kernel lockdown is 'confidentiality', which forbids reading kernel memory; boot with \
                    lockdown=integrity or without"
            .into());
    }
    Ok(())
}

/// Makes the smallest map there is, and lets it go.
fn try_bpf() -> io::Result<()> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let made = MapHandle::create(MapType::Array, Some("path_try"), 4, 4, 1, &options);
    made.map(drop).map_err(|_| io::Error::last_os_error())
}

fn refused(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no bpf(): it needs CONFIG_BPF_SYSCALL".into(),
        Some(libc::EPERM | libc::EACCES) => format!(
            "bpf() is refused ({error}): a container's seccomp profile or user namespace forbids it; run \
             landspeed on the host itself"
        ),
        _ => format!("bpf() fails: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_a_remedy() {
        assert_eq!(capable(BPF | PERFMON), Ok(()));
        assert_eq!(capable(SYS_ADMIN), Ok(()), "which held both before Linux 5.8");
        assert!(capable(BPF).unwrap_err().starts_with("CAP_PERFMON is missing"));
        let both = capable(0).unwrap_err();
        assert!(
            both.starts_with("CAP_BPF and CAP_PERFMON") && both.contains("run landspeed as root"),
            "{both}"
        );
    }

    #[test]
    fn capabilities_are_read_as_the_kernel_prints_them() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\nCapBnd:\t1\n";
        assert_eq!(effective(status), Some(BPF | PERFMON));
        assert_eq!(effective("Name:\tx\n"), None);
    }

    #[test]
    fn lockdown_matters_only_where_it_hides_memory() {
        assert_eq!(open_kernel("none [integrity] confidentiality\n"), Ok(()));
        assert_eq!(open_kernel(""), Ok(()));
        assert!(
            open_kernel("none integrity [confidentiality]\n").unwrap_err().contains("lockdown=integrity")
        );
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
