//! Heat: `thermal_throttle` of each processor (Documentation/ABI/testing/sysfs-devices-system-cpu).

use std::path::{Path, PathBuf};

use landspeed_units::Nanos;

use crate::procfile;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// The counters of all processors of this machine.
pub(super) fn find() -> Vec<PathBuf> {
    below(Path::new(PROCESSORS))
}

/// The time for which it was too hot so far.
pub(super) fn read(file: &Path) -> Option<Nanos> {
    let ms: u64 = procfile::word(file)?.parse().ok()?;
    Some(Nanos(ms.saturating_mul(1_000_000)))
}

fn below(processors: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(processors).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = folders.flat_map(|folder| {
        ["core", "package"].map(|part| folder.join(format!("thermal_throttle/{part}_throttle_total_time_ms")))
    });
    files.filter(|file| file.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_that_counts_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let counter = tree.path().join("cpu1/thermal_throttle/core_throttle_total_time_ms");
        std::fs::create_dir_all(counter.parent().unwrap()).unwrap();
        std::fs::create_dir_all(tree.path().join("cpu0")).unwrap();
        std::fs::write(&counter, "120\n").unwrap();
        assert_eq!(below(tree.path()), std::slice::from_ref(&counter));
        assert_eq!(read(&counter), Some(Nanos::millis(120)));
    }
}
