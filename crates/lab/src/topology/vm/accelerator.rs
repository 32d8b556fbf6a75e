//! The accelerator of guests: KVM where it boots their kernels, and QEMU's own emulation (TCG) elsewhere.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

/// The environment variable that selects the accelerator: auto, kvm or tcg.
pub const ACCELERATOR_VARIABLE: &str = "LANDSPEED_VM_ACCEL";
const DEVICE: &str = "/dev/kvm";
/// QEMU's arguments for a guest that runs one program of the initrd, and ends: a kernel panics when its first process
/// ends, and restarts.
const PROBE: &str = "-M q35 -accel kvm -cpu max -smp 2 -m 512M -display none -monitor none -serial stdio \
                     -nic none -no-reboot";
const PROBE_WORDS: &str = "console=ttyS0 panic=-1 mitigations=off quiet rdinit=/bin/sleep -- 0";
/// The kernel's output if the program ran to its end.
const ENDED: &str = "Attempted to kill init! exitcode=0x00000000";
/// Time limit of the probe, in seconds. Even emulation takes less.
const LIMIT_S: u32 = 20;

/// The accelerator of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    Kvm,
    /// QEMU translates them.
    Tcg,
}

impl Accelerator {
    /// Returns QEMU's argument of -accel.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg,thread=multi",
        }
    }

    /// Returns a caveat about figures from such guests.
    pub(crate) fn caveat(self) -> &'static str {
        match self {
            Accelerator::Kvm => "virtual machines with KVM: settings hold, speeds do not",
            Accelerator::Tcg => "virtual machines without KVM: settings hold, speeds do not",
        }
    }

    /// Returns how guests with these kernels run: as [`ACCELERATOR_VARIABLE`] says, or else by KVM if it boots each
    /// kernel to its first program. Some forms of KVM boot only kernels that were built for them.
    ///
    /// # Errors
    /// Returns the reason if the variable has another word.
    pub(super) fn choose(qemu: &Path, kernels: &[PathBuf]) -> Result<Accelerator, String> {
        let word = std::env::var_os(ACCELERATOR_VARIABLE).unwrap_or_default();
        let chosen = chosen(&word.to_string_lossy())?;
        Ok(chosen.unwrap_or_else(|| {
            let boots =
                Path::new(DEVICE).exists() && kernels.iter().all(|kernel| boots(qemu, kernel, LIMIT_S));
            if boots { Accelerator::Kvm } else { Accelerator::Tcg }
        }))
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Kvm => "KVM",
            Accelerator::Tcg => "TCG",
        })
    }
}

/// Returns the accelerator that a word chooses; `None` if detection decides.
fn chosen(word: &str) -> Result<Option<Accelerator>, String> {
    match word {
        "" | "auto" => Ok(None),
        "kvm" => Ok(Some(Accelerator::Kvm)),
        "tcg" => Ok(Some(Accelerator::Tcg)),
        other => {
            let other: String = other.chars().take(40).collect();
            Err(format!("{ACCELERATOR_VARIABLE} is '{}': expected auto, kvm or tcg", other.escape_default()))
        }
    }
}

/// Returns true if KVM boots the kernel of a folder to its first program within a time limit.
fn boots(qemu: &Path, kernel: &Path, limit_s: u32) -> bool {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", &limit_s.to_string()]).arg(qemu).args(PROBE.split(' '));
    command.arg("-kernel").arg(kernel.join("vmlinuz")).arg("-initrd").arg(kernel.join("initrd"));
    command.args(["-append", PROBE_WORDS]).stdin(Stdio::null());
    let printed = ends_with_this_process(&mut command).output();
    printed.is_ok_and(|printed| String::from_utf8_lossy(&printed.stdout).contains(ENDED))
}

/// Makes a process get SIGTERM when this one ends, as by Ctrl-C. timeout(1) passes the signal on to what it runs.
fn ends_with_this_process(command: &mut Command) -> &mut Command {
    let ask = || set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from);
    // SAFETY: between fork and exec, the closure makes one system call and touches no memory of the parent.
    unsafe { command.pre_exec(ask) }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_word_chooses_and_another_one_is_refused() {
        assert_eq!(chosen(""), Ok(None));
        assert_eq!(chosen("auto"), Ok(None));
        assert_eq!(chosen("kvm"), Ok(Some(Accelerator::Kvm)));
        assert_eq!(chosen("tcg"), Ok(Some(Accelerator::Tcg)));
        let refused = chosen("hvf").unwrap_err();
        assert!(refused.contains("'hvf'") && refused.contains("auto, kvm or tcg"), "{refused}");
    }

    #[test]
    fn the_marks_of_both_differ() {
        let [kvm, tcg] = [Accelerator::Kvm, Accelerator::Tcg].map(|one| one.caveat().split(':').next());
        assert_eq!((kvm, tcg), (Some("virtual machines with KVM"), Some("virtual machines without KVM")));
    }

    /// Creates a fake QEMU, and returns whether a kernel boots with it.
    fn boots_with(qemu: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("qemu");
        // This process does not open the file: a test that forks meanwhile would keep it open, and "busy".
        let make = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let made = Command::new("sh").args(["-c", make, "sh", qemu]).arg(&program).status().unwrap();
        assert!(made.success());
        boots(&program, folder.path(), 2)
    }

    #[test]
    fn only_a_first_program_that_ran_to_its_end_has_booted() {
        assert!(boots_with(&format!("echo 'Kernel panic - not syncing: {ENDED}'")));
        assert!(!boots_with("echo 'Kernel panic - not syncing: VFS: Unable to mount root fs'"));
        assert!(!boots_with("echo 'could not access KVM kernel module' >&2; exit 1"));
        let began = Instant::now();
        assert!(!boots_with("exec sleep 600"));
        assert!(began.elapsed() < Duration::from_secs(60), "a guest that hangs is not ended");
        assert!(!boots(Path::new("/no/such/qemu"), Path::new("/"), 2));
    }

    #[test]
    fn a_trial_boot_ends_with_its_parent() {
        // Linux sends the signal when the thread ends that started the process.
        let start = || {
            let mut command = Command::new("timeout");
            ends_with_this_process(command.args(["60", "sleep", "60"])).spawn().unwrap()
        };
        let mut tried = thread::spawn(start).join().unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while tried.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it goes on");
            thread::sleep(Duration::from_millis(20));
        }
    }
}
