//! Finds programs that may overwrite settings while landspeed tunes them.
//!
//! Only daemons that write settings repeatedly are in the table. NetworkManager and systemd-networkd write a link's
//! settings only when the link is activated. One-shot tuners (cpupower, ethtool hooks) have already run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use landspeed_record::ConflictingProgram;

use crate::procfile;

/// A program, and the knobs that it writes. The program's name is the one in /proc/PID/comm, which has at most 15
/// characters.
struct Rewriter {
    program: &'static str,
    knobs: &'static [&'static str],
}

const REWRITERS: &[Rewriter] = &[
    // irqbalance(1): moves interrupts every 10 s.
    Rewriter { program: "irqbalance", knobs: &["irq-affinity"] },
    // tuned(8): its profiles (network-throughput, network-latency, throughput-performance, ...) set these knobs. Its
    // dynamic tuning and its rollback write them again.
    Rewriter {
        program: "tuned",
        knobs: &[
            "governor",
            "c-states",
            "tcp-rmem",
            "tcp-wmem",
            "rmem-max",
            "wmem-max",
            "netdev-max-backlog",
            "netdev-budget",
            "net-busy-poll",
            "net-busy-read",
            "default-qdisc",
            "ring-rx",
            "ring-tx",
        ],
    },
    // bpftune(8): separate tuners write the buffers, the backlog and budget, and the congestion control.
    Rewriter {
        program: "bpftune",
        knobs: &[
            "tcp-rmem",
            "tcp-wmem",
            "tcp-mem",
            "rmem-max",
            "wmem-max",
            "congestion-control",
            "netdev-max-backlog",
            "netdev-budget",
            "mtu-probing",
        ],
    },
    Rewriter { program: "power-profiles-", knobs: &["governor"] },
    Rewriter { program: "auto-cpufreq", knobs: &["governor"] },
    Rewriter { program: "tlp", knobs: &["governor"] },
];

/// Returns the programs of the table that run now, ordered by process id. Only processes of root count. Processes of
/// other users cannot write these settings, and must not be able to prevent tuning by choosing such a name. `proc` is
/// the path of /proc.
pub(super) fn running(proc: &Path) -> Vec<ConflictingProgram> {
    let mut found: Vec<ConflictingProgram> = Vec::new();
    for pid in procfile::numbered(proc).unwrap_or_default() {
        let folder = proc.join(pid.to_string());
        let Some(row) = procfile::word(folder.join("comm")).and_then(|name| row(&name)) else { continue };
        let by_root = fs::metadata(&folder).is_ok_and(|meta| meta.uid() == 0);
        // Children of a daemon often have its name. Each program is listed only once.
        if by_root && found.iter().all(|conflict| conflict.program != row.program) {
            let knobs = row.knobs.iter().map(|knob| (*knob).to_owned()).collect();
            found.push(ConflictingProgram { program: row.program.to_owned(), pid, knobs });
        }
    }
    found
}

fn row(comm: &str) -> Option<&'static Rewriter> {
    REWRITERS.iter().find(|row| row.program == comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_runs_is_found_once_and_lookalikes_are_not() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIP: files of root cannot be made without being root");
            return;
        }
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm) in
            [("9", "bash"), ("12", "irqbalance"), ("13", "irqbalance"), ("700", "tuned-gui"), ("x", "tuned")]
        {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), format!("{comm}\n")).unwrap();
        }
        std::os::unix::fs::chown(proc.path().join("12"), Some(1000), None).unwrap();
        let found = running(proc.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].program.as_str(), found[0].pid), ("irqbalance", 13));
        assert_eq!(found[0].knobs, ["irq-affinity"]);
    }

    #[test]
    fn names_fit_into_comm() {
        assert!(REWRITERS.iter().all(|row| row.program.len() <= 15 && !row.knobs.is_empty()));
    }

    #[test]
    fn a_proc_that_is_not_there_has_no_programs() {
        assert!(running(Path::new("/no-such-folder")).is_empty());
    }
}
