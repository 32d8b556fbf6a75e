//! Versions of Linux, and the versions that parts of landspeed need.

/// A version of Linux, such as 5.14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion(pub u32, pub u32);

impl KernelVersion {
    /// The oldest version that landspeed supports: it measures and explains there.
    pub const OLDEST: KernelVersion = KernelVersion(5, 10);

    /// Returns the version of a kernel release (`uname -r`), such as "5.10.0-36-amd64". A number that is missing counts
    /// as zero.
    pub fn of(release: &str) -> KernelVersion {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
        KernelVersion(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Linux {}.{}", self.0, self.1)
    }
}

/// The kernel version that a part needs beyond [`KernelVersion::OLDEST`]. The part's row in its table declares it, and
/// docs/reference/kernels.md lists all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelNeed {
    /// The element of the row that needs it, such as one value; empty for the whole row.
    pub of: &'static str,
    /// The first version that provides it.
    pub since: KernelVersion,
    /// The replacement on an older kernel; empty if there is none.
    pub instead: &'static str,
}

impl KernelNeed {
    /// Returns the need of a whole row without a replacement on an older kernel.
    pub const fn since(major: u32, minor: u32) -> KernelNeed {
        KernelNeed { of: "", since: KernelVersion(major, minor), instead: "" }
    }

    /// Returns `name` with the part of the row that needs the kernel: "datagram-send: uring".
    pub fn named(&self, name: &str) -> String {
        let parts = [name, self.of].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_versions_compare_by_number() {
        let is_new = |release: &str| KernelVersion::of(release) >= KernelVersion(6, 6);
        assert!(is_new("6.18.44-fc") && is_new("6.6.0"));
        assert!(!is_new("6.5.13-generic") && !is_new("5.15") && !is_new(""));
        assert_eq!(KernelVersion::of("5.10.0-36-amd64").to_string(), "Linux 5.10");
    }

    #[test]
    fn a_need_is_named_by_its_row_and_its_part() {
        assert_eq!(KernelNeed::since(6, 7).named("backlog-ack-defer"), "backlog-ack-defer");
        let ring = KernelNeed { of: "uring", ..KernelNeed::since(5, 19) };
        assert_eq!(ring.named("datagram-send"), "datagram-send: uring");
        assert_eq!(ring.named(""), "uring");
    }
}
