//! The names of network devices, which arrive over the network.

/// Returns true if `name` is a valid device name (dev_valid_name in the kernel) and is safe as one component of a path.
/// It also rejects some names that the kernel accepts: `all`, `default`, and names with non-ASCII bytes.
pub(crate) fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b':';
    // "all" and "default" have other meanings below /proc/sys/net, so settings of such devices cannot be reached there.
    let reserved = [".", "..", "all", "default"];
    (1..=15).contains(&name.len()) && !reserved.contains(&name) && name.bytes().all(good)
}

/// Returns true for an interface name that needs no quotes in a shell, a path or a configuration file. The kernel
/// allows nearly any byte in a name.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=15).contains(&name.len())
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
