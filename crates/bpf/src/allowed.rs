//! Whether this process may load BPF programs on this host; the reason and the remedy where not.

use std::io;

use libbpf_rs::{MapHandle, MapType, libbpf_sys};

/// The kernel's own types, without which no program can be fitted to it.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const STATUS: &str = "/proc/thread-self/status";
/// It held all the others before Linux 5.8, and still does.
const SYS_ADMIN: u64 = 1 << 21;

/// A capability of capabilities(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    name: &'static str,
    bit: u64,
}

impl Capability {
    /// To make maps and load programs.
    pub const BPF: Capability = Capability { name: "CAP_BPF", bit: 1 << 39 };
    /// For programs that read the kernel's memory.
    pub const PERFMON: Capability = Capability { name: "CAP_PERFMON", bit: 1 << 38 };
    /// For programs of the network stack.
    pub const NET_ADMIN: Capability = Capability { name: "CAP_NET_ADMIN", bit: 1 << 12 };
}

/// Whether this thread holds `needed`, the kernel tells its types, and bpf() answers. Changes nothing, leaves nothing
/// behind.
///
/// # Errors
/// The reason, with the remedy.
pub fn allowed(needed: &[Capability]) -> Result<(), String> {
    let status = std::fs::read_to_string(STATUS).map_err(|error| format!("cannot read {STATUS}: {error}"))?;
    capable(effective(&status).unwrap_or(0), needed)?;
    std::fs::File::open(BTF).map_err(|error| {
        format!(
            "the kernel tells nothing of its types ({BTF}: {error}): it must be built with CONFIG_DEBUG_INFO_BTF, as \
             distributions' kernels are"
        )
    })?;
    try_bpf().map_err(|error| refused(&error))
}

/// This thread's effective capabilities.
fn effective(status: &str) -> Option<u64> {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

fn capable(effective: u64, needed: &[Capability]) -> Result<(), String> {
    let lacks = |capability: &&Capability| effective & (capability.bit | SYS_ADMIN) == 0;
    let missing: Vec<&str> = needed.iter().filter(lacks).map(|capability| capability.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("{} is missing: run landspeed as root, or give it that capability", missing.join(" and ")))
}

/// Makes the smallest map there is, and lets it go.
fn try_bpf() -> io::Result<()> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let made = MapHandle::create(MapType::Array, Some("landspeed_try"), 4, 4, 1, &options);
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

    const ALL: &[Capability] = &[Capability::BPF, Capability::PERFMON, Capability::NET_ADMIN];

    #[test]
    fn what_is_missing_is_named_with_a_remedy() {
        let [bpf, perfmon, net_admin] = [ALL[0].bit, ALL[1].bit, ALL[2].bit];
        assert_eq!(capable(bpf | perfmon | net_admin, ALL), Ok(()));
        assert_eq!(capable(bpf | perfmon, &ALL[..2]), Ok(()), "what is not needed is not asked for");
        assert_eq!(capable(SYS_ADMIN, ALL), Ok(()), "which held them all before Linux 5.8");
        assert!(capable(bpf | net_admin, ALL).unwrap_err().starts_with("CAP_PERFMON is missing"));
        let all = capable(0, ALL).unwrap_err();
        assert!(
            all.starts_with("CAP_BPF and CAP_PERFMON and CAP_NET_ADMIN is missing: run landspeed as root"),
            "{all}"
        );
    }

    #[test]
    fn capabilities_are_read_as_the_kernel_prints_them() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\nCapBnd:\t1\n";
        assert_eq!(effective(status), Some(Capability::BPF.bit | Capability::PERFMON.bit));
        assert_eq!(effective("Name:\tx\n"), None);
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
