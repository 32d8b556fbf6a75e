//! Reads the kernel memory that connections take, and the memory that is left.

use landspeed_record::units::Bytes;

use crate::Error;

/// Returns the size of the kernel's slabs (/proc/meminfo, proc(5)), which contain the sockets; zero if the file does
/// not list it.
pub(super) fn kernel() -> Result<Bytes, Error> {
    read("Slab:")
}

/// Returns the memory that can be taken without swapping (MemAvailable of /proc/meminfo); zero if the file does not list
/// it.
pub(crate) fn available() -> Result<Bytes, Error> {
    read("MemAvailable:")
}

fn read(name: &str) -> Result<Bytes, Error> {
    const PATH: &str = "/proc/meminfo";
    let text = std::fs::read_to_string(PATH).map_err(|source| Error::refused("read", PATH, source))?;
    Ok(Bytes(kib(&text, name) * 1024))
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_found() {
        assert_eq!(kib("MemTotal: 1 kB\nSlab:      52 kB\n", "Slab:"), 52);
        assert!(kernel().expect("proc").0 > 1 << 20 && available().expect("proc").0 > 1 << 20);
    }
}
