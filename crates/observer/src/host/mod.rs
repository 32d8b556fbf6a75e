//! Describes a host: its system, processors and links, and programs that may overwrite settings.
//!
//! A fact that cannot be read stays empty, and a note in [`HostFacts::notes`] names it.

mod conflicts;
mod irqs;
mod link_states;
mod links;
pub(crate) mod namespace;
mod processor;
mod system;
mod virtualization;

use std::path::Path;

use landspeed_record::HostFacts;

use crate::cpu::{accounting, interrupt_time_is_apart};
use crate::files::SystemFiles;

pub use self::link_states::link_states;

/// Returns a description of this host. Its links are those of the calling thread's network namespace.
///
/// The fields `landspeed`, `may_tune` and `may_not_tune_because` stay empty, because only the agent knows its version
/// and its permission.
pub fn probe() -> HostFacts {
    let root = &SystemFiles::default();
    let mut facts = HostFacts::default();
    namespace::fill(&mut facts);
    system::fill(root, &mut facts);
    processor::fill(root, &mut facts);
    facts.virtualization = virtualization::detect(root);
    match links::all(root) {
        Ok(found) => {
            facts.links = found.links;
            facts.notes.extend(found.notes);
        }
        Err(error) => facts.notes.push(format!("links: {error}")),
    }
    facts.conflicts = conflicts::running(Path::new("/proc"));
    let apart = interrupt_time_is_apart();
    if apart.is_none() {
        facts.notes.push(
            "processor time: no kernel configuration in /proc/config.gz or /boot, so it is taken from /proc/stat".into(),
        );
    }
    let up: Vec<_> = facts.links.iter().filter(|link| link.up).cloned().collect();
    facts.cpu_accounting = accounting(apart, &up);
    facts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a temporary folder with these files. Each is given as (path, text).
    pub(crate) fn files_below<P: AsRef<Path>>(files: &[(P, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    #[test]
    fn this_host_is_known() {
        let facts = probe();
        assert!(
            !facts.hostname.is_empty() && !facts.kernel.is_empty() && !facts.cpu_model.is_empty(),
            "{facts:#?}"
        );
        assert_eq!(facts.boot_id.len(), 36, "{facts:#?}");
        assert!(facts.cpus >= 1 && facts.numa_nodes >= 1 && facts.memory_bytes.0 > 1 << 20, "{facts:#?}");
        assert!(facts.netns_cookie != 0, "{facts:#?}");
        assert!(facts.congestion_available.iter().any(|name| name == "reno"), "{facts:#?}");
        assert!(!facts.may_tune, "leave is the agent's to say");
        assert!(facts.links.iter().all(|link| link.name != "lo"), "{facts:#?}");
    }
}
