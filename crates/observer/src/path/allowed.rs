//! Whether this host lets the tracer work; the reason and the remedy where not.

use landspeed_bpf::Capability;

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Asks the host, changes nothing, leaves nothing behind.
pub(super) fn allowed() -> Result<(), String> {
    landspeed_bpf::allowed(&[Capability::BPF, Capability::PERFMON])?;
    open_kernel(&std::fs::read_to_string(LOCKDOWN).unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockdown_matters_only_where_it_hides_memory() {
        assert_eq!(open_kernel("none [integrity] confidentiality\n"), Ok(()));
        assert_eq!(open_kernel(""), Ok(()));
        assert!(
            open_kernel("none integrity [confidentiality]\n").unwrap_err().contains("lockdown=integrity")
        );
    }
}
