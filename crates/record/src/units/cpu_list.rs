//! Parser for processor lists in the form of /sys and /proc.

/// Parses a set of processors or NUMA nodes in the kernel's format, such as "0-3,8"
/// (Documentation/admin-guide/cputopology.rst). Returns `None` for malformed text and for numbers of 65536 and above,
/// so that an absurd range is not expanded.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 65_536;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_processors_is_read_as_the_kernel_prints_it() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for bad in ["3-1", "0-4294967295", "x", "-1", "1-", "0-99999999999999"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
    }
}
