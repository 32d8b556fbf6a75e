//! Checks whether this process may load BPF programs on this host, and gives the reason and the remedy if not.

use std::io;

use libbpf_rs::{MapHandle, MapType, libbpf_sys};
use rustix::thread::{CapabilitySet, capabilities};

/// The file with the kernel's type information (BTF), which libbpf needs to adapt a CO-RE program to the running
/// kernel.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Checks that this thread has the capabilities `needed`, that the kernel exports its type information, and that bpf()
/// works. Leaves nothing in the kernel.
///
/// # Errors
/// Returns the reason and the remedy if a capability is missing, the types are not exported, or bpf() fails.
pub fn allowed(needed: CapabilitySet) -> Result<(), String> {
    let held =
        capabilities(None).map_err(|error| format!("cannot read this thread's capabilities: {error}"))?;
    capable(held.effective, needed)?;
    std::fs::File::open(BTF).map_err(|error| {
        format!(
            "the kernel tells nothing of its types ({BTF}: {error}): it must be built with CONFIG_DEBUG_INFO_BTF, as \
             distributions' kernels are"
        )
    })?;
    try_bpf().map_err(|error| refused(&error))
}

fn capable(held: CapabilitySet, needed: CapabilitySet) -> Result<(), String> {
    // For bpf(), the kernel accepts CAP_SYS_ADMIN in place of the other capabilities. Linux 5.8 added CAP_BPF and
    // CAP_PERFMON as weaker alternatives.
    let missing =
        if held.contains(CapabilitySet::SYS_ADMIN) { CapabilitySet::empty() } else { needed - held };
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = missing.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    Err(format!("no {}: run landspeed as root, or give it what is missing", missing.join(", ")))
}

/// Calls bpf() to create the smallest possible map, and closes the map.
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

    #[test]
    fn missing_capabilities_are_named_with_a_remedy() {
        use CapabilitySet as Set;
        let all = Set::BPF | Set::PERFMON | Set::NET_ADMIN;
        assert_eq!(capable(all, all), Ok(()));
        assert_eq!(
            capable(Set::BPF | Set::PERFMON, all - Set::NET_ADMIN),
            Ok(()),
            "only what is needed is asked for"
        );
        assert_eq!(capable(Set::SYS_ADMIN, all), Ok(()), "which held them all before Linux 5.8");
        assert!(capable(all - Set::PERFMON, all).unwrap_err().starts_with("no CAP_PERFMON:"));
        let none = capable(Set::empty(), all).unwrap_err();
        assert!(none.starts_with("no CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF: run landspeed as root"), "{none}");
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
