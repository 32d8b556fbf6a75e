//! The guest: one virtual machine without a network, whose clock counts instructions. It runs this program, writes what it
//! found to a disk, and ends.
//!
//! An idle guest's clock goes on to the next timer at once (`sleep=off`), so that nothing that this machine does is seen in
//! a delay.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use landspeed_lab::topology::vm::{drive, folder, kernel};

/// QEMU's arguments for the guest. With counted instructions there is one thread for all processors.
const MACHINE: &str = "-M q35 -accel tcg,thread=single -cpu max -smp 1 -m 1024M -display none -monitor none -serial stdio \
                       -nic none -no-reboot -device virtio-rng-pci";
/// The first process of the guest, what follows it, and this program: files of the initrd.
const FILES: [&str; 3] = ["netem-init", "netem-guest", "validate"];
/// Time limit for the guest to end.
const LIMIT: Duration = Duration::from_secs(2 * 60 * 60);
/// Size of the disk for what the guest finds. It takes as much of this machine's disk as is written.
const DISK_BYTES: u64 = 4 << 30;

/// A guest to boot.
#[derive(Debug)]
pub(super) struct StudyGuest<'a> {
    /// The name of its kernel's folder.
    pub(super) kernel: &'a str,
    /// What QEMU's -icount says.
    pub(super) icount: &'a str,
    /// The folder of its scripts.
    pub(super) scripts: &'a Path,
    /// The file for what it prints.
    pub(super) console: PathBuf,
    /// The words that this program gets there.
    pub(super) words: String,
}

impl StudyGuest<'_> {
    /// Boots the guest, waits for its end, and returns what it wrote to its disk, as text.
    pub(super) fn found(&self) -> Result<String> {
        ensure!(cfg!(target_feature = "crt-static"), "build the static program first: make netem-agreement");
        let work = tempfile::tempdir()?;
        let disk = work.path().join("disk");
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let said = File::create(&self.console)?;
        let mut qemu = self.command(work.path(), &disk)?;
        qemu.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let ended = wait(&mut qemu.spawn().context("run qemu-system-x86_64: make setup-vm")?);
        let status = ended.with_context(|| self.printed())?;
        ensure!(status.success(), "the guest ended ({status}): {}", self.printed());
        written(&disk).with_context(|| self.printed())
    }

    /// Returns the last lines that the guest printed.
    pub(super) fn printed(&self) -> String {
        format!("{}: {}", self.console.display(), last_lines(&self.console))
    }

    fn command(&self, work: &Path, disk: &Path) -> Result<Command> {
        let images = folder();
        let kernel = kernel(self.kernel, &images).map_err(anyhow::Error::msg)?;
        let mut command = Command::new("qemu-system-x86_64");
        command.args(MACHINE.split_whitespace()).args(["-icount", self.icount]);
        command.arg("-kernel").arg(kernel.join("vmlinuz"));
        command.arg("-initrd").arg(self.initrd(&kernel, work)?);
        command
            .args(drive("root", &images.join("root.sqfs"), "on"))
            .args(drive("modules", &kernel.join("modules.sqfs"), "on"))
            .args(drive("found", disk, "off"))
            .arg("-append")
            .arg(format!(
                "console=ttyS0 panic=-1 mitigations=off quiet rdinit=/{} -- {}",
                FILES[0], self.words
            ));
        Ok(command)
    }

    /// Returns the initrd of all guests behind one with the files of this study. The kernel unpacks both.
    fn initrd(&self, kernel: &Path, work: &Path) -> Result<PathBuf> {
        let files = work.join("files");
        fs::create_dir(&files)?;
        for script in &FILES[..2] {
            fs::copy(self.scripts.join(script), files.join(script))
                .with_context(|| format!("copy {script} from {}", self.scripts.display()))?;
        }
        fs::copy(std::env::current_exe()?, files.join(FILES[2]))?;
        let initrd = work.join("initrd");
        let mut archive = File::create(&initrd)?;
        pack(&files, &archive)?;
        std::io::copy(&mut File::open(kernel.join("initrd"))?, &mut archive)?;
        Ok(initrd)
    }
}

/// Packs the files of the study with cpio.
fn pack(files: &Path, archive: &File) -> Result<()> {
    let mut cpio = Command::new("cpio");
    cpio.args(["-o", "-H", "newc", "--quiet"]).current_dir(files).stdin(Stdio::piped());
    let mut cpio = cpio.stdout(archive.try_clone()?).spawn().context("run cpio: make setup-vm")?;
    if let Some(mut names) = cpio.stdin.take() {
        names.write_all((FILES.join("\n") + "\n").as_bytes())?;
    }
    ensure!(cpio.wait()?.success(), "cpio failed");
    Ok(())
}

/// Waits for the end of QEMU, and ends it if that takes too long.
fn wait(qemu: &mut Child) -> Result<ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = qemu.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            qemu.kill()?;
            qemu.wait()?;
            bail!("the guest has not ended within {} minutes", LIMIT.as_secs() / 60);
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Returns the text at the start of a disk, which is zero behind it.
fn written(disk: &Path) -> Result<String> {
    let mut text = Vec::new();
    BufReader::new(File::open(disk)?).read_until(0, &mut text)?;
    text.pop_if(|last| *last == 0);
    Ok(String::from_utf8(text)?)
}

/// Returns the last lines of the guest's console.
fn last_lines(console: &Path) -> String {
    let printed = fs::read(console).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let last: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).rev().take(8).collect();
    last.into_iter().rev().collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_wrote_ends_where_its_disk_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        fs::write(&disk, "{}\n{}\n").unwrap();
        assert_eq!(written(&disk).unwrap(), "{}\n{}\n");
        File::options().write(true).open(&disk).unwrap().set_len(1 << 20).unwrap();
        assert_eq!(written(&disk).unwrap(), "{}\n{}\n");
    }

    #[test]
    fn a_console_tells_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let console = folder.path().join("console");
        let lines: String = (0..20).map(|line| format!("{line}\n\n")).collect();
        fs::write(&console, lines).unwrap();
        assert_eq!(last_lines(&console), "12 / 13 / 14 / 15 / 16 / 17 / 18 / 19");
    }
}
