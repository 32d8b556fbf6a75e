//! Two guests in QEMU, joined by bridges in a network namespace of this host.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// The time in which guests boot.
const BOOT: Duration = Duration::from_secs(240);
/// The time that a command on a guest or between guests may take.
const COMMAND: &str = "900";
/// The two networks: data, by the driver under test, and management.
const NETWORKS: [&str; 2] = ["77", "78"];

/// The kernel and the driver of two guests.
#[derive(Debug, Clone)]
pub(super) struct GuestPair {
    pub(super) kernel: String,
    pub(super) driver: String,
}

impl fmt::Display for GuestPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kernel, self.driver)
    }
}

/// Two running guests. They end when the value is dropped.
pub(super) struct Guests {
    pub(super) pair: GuestPair,
    namespace: String,
    /// The folder of the kernels, the root file system and the key.
    folder: PathBuf,
    /// The folder of records, consoles and other files of this run.
    pub(super) work: tempfile::TempDir,
    landspeed: PathBuf,
    snapshot: String,
    release: String,
    machines: Vec<Child>,
}

impl Guests {
    pub(super) fn boot(folder: &Path, scripts: &Path, landspeed: &Path, pair: &GuestPair) -> Result<Guests> {
        has_device(&pair.driver)?;
        let release = folder.join(&pair.kernel).join("release");
        let release = fs::read_to_string(release).context("the mirror does not have this kernel")?;
        let mut guests = Guests {
            pair: pair.clone(),
            namespace: format!("ls-vm-{}", std::process::id()),
            folder: folder.canonicalize()?,
            work: tempfile::tempdir()?,
            landspeed: landspeed.to_owned(),
            snapshot: fs::read_to_string(scripts.join("snapshot"))?,
            release: release.trim().to_owned(),
            machines: Vec::new(),
        };
        guests.join()?;
        for number in 1..=2 {
            let machine = guests.machine(number)?;
            guests.machines.push(machine);
        }
        guests.wait()?;
        Ok(guests)
    }

    pub(super) fn release(&self) -> &str {
        &self.release
    }

    /// Makes the namespace, its bridges and the guests' tap devices.
    fn join(&self) -> Result<()> {
        let name = &self.namespace;
        ip(&format!("netns add {name}"))?;
        ip(&format!("-n {name} link set lo up"))?;
        for network in NETWORKS {
            ip(&format!("-n {name} link add br{network} type bridge"))?;
            ip(&format!("-n {name} addr add 10.{network}.0.254/24 dev br{network}"))?;
            ip(&format!("-n {name} link set br{network} mtu 9000 up"))?;
            for number in 1..=2 {
                ip(&format!("-n {name} tuntap add dev tap{network}{number} mode tap"))?;
                ip(&format!("-n {name} link set tap{network}{number} mtu 9000 master br{network} up"))?;
            }
        }
        Ok(())
    }

    fn console(&self, number: u32) -> PathBuf {
        self.work.path().join(format!("console-{number}"))
    }

    fn machine(&self, number: u32) -> Result<Child> {
        let kernel = self.folder.join(&self.pair.kernel);
        let console = self.console(number);
        let device = match self.pair.driver.as_str() {
            "virtio-net" => "virtio-net-pci,host_mtu=9000",
            driver => driver,
        };
        let disk = |id: &str, file: PathBuf| {
            [
                "-drive".to_owned(),
                format!("file={},if=none,id={id},format=raw,readonly=on", file.display()),
                "-device".to_owned(),
                format!("virtio-blk-pci,drive={id}"),
            ]
        };
        let link = |network: &str, device: &str| {
            [
                "-netdev".to_owned(),
                format!("tap,id=n{network},ifname=tap{network}{number},script=no,downscript=no"),
                "-device".to_owned(),
                format!("{device},netdev=n{network},mac=52:54:00:00:{network}:0{number}"),
            ]
        };
        Command::new("ip")
            .args(["netns", "exec", &self.namespace, "nice", "qemu-system-x86_64"])
            .args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1G"])
            .args(["-display", "none", "-no-reboot", "-monitor", "none", "-nic", "none"])
            .args(["-serial", &format!("file:{}", console.display())])
            .args(["-device", "virtio-rng-pci"])
            .arg("-kernel")
            .arg(kernel.join("vmlinuz"))
            .arg("-initrd")
            .arg(kernel.join("initrd"))
            .args(disk("root", self.folder.join("root.sqfs")))
            .args(disk("modules", kernel.join("modules.sqfs")))
            .args(link("77", device))
            .args(link("78", "virtio-net-pci"))
            .arg("-append")
            .arg(format!("console=ttyS0 panic=-1 mitigations=off net.ifnames=0 quiet guest={number}"))
            .stdin(Stdio::null())
            .stdout(fs::File::create(self.work.path().join(format!("qemu-{number}")))?)
            .stderr(fs::File::create(self.work.path().join(format!("qemu-{number}.err")))?)
            .spawn()
            .context("start qemu-system-x86_64")
    }

    /// Waits until both guests have said that they are ready.
    fn wait(&mut self) -> Result<()> {
        let end = Instant::now() + BOOT;
        for number in 1..=2 {
            let console = self.console(number);
            let is_ready = || {
                let said = fs::read(&console).unwrap_or_default();
                String::from_utf8_lossy(&said).contains(&format!("READY {number} "))
            };
            while !is_ready() {
                let ended = self.machines.iter_mut().find_map(|machine| machine.try_wait().ok().flatten());
                if let Some(status) = ended {
                    bail!("a guest ended before it was ready ({status}): {}", self.last_words(number));
                }
                ensure!(
                    Instant::now() < end,
                    "guest {number} is not ready after {BOOT:?}: {}",
                    self.last_words(number)
                );
                thread::sleep(Duration::from_millis(500));
            }
        }
        Ok(())
    }

    fn last_words(&self, number: u32) -> String {
        let read = |file: PathBuf| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
        let said = read(self.console(number)) + &read(self.work.path().join(format!("qemu-{number}.err")));
        said.lines().rev().take(5).collect::<Vec<_>>().join(" / ")
    }

    /// The options by which ssh reaches the guests.
    fn ssh_options(&self) -> Vec<String> {
        let key = self.folder.join("id");
        let file = format!("IdentityFile={}", key.display());
        let options =
            ["BatchMode=yes", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"];
        options.map(str::to_owned).into_iter().chain([file]).collect()
    }

    /// Runs a command line on a guest, and returns what it said. Returns an error if it fails or takes too long.
    pub(super) fn on(&self, number: u32, command: &str) -> Result<String> {
        let output = self.try_on(number, command)?;
        ensure!(output.status.success(), "guest {number}: {command}: {}", said(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command line on a guest, whatever its end.
    pub(super) fn try_on(&self, number: u32, command: &str) -> Result<Output> {
        let mut ssh = self.here("ssh");
        for option in self.ssh_options() {
            ssh.args(["-o", &option]);
        }
        ssh.arg(format!("root@10.78.0.{number}")).arg(command);
        ssh.output().context("run ssh")
    }

    /// Returns a command that runs in the namespace, for a limited time.
    fn here(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace, "timeout", "--kill-after", "10", COMMAND])
            .arg(program);
        // Wide enough for every column of a table.
        command.env("COLUMNS", "1000").env("XDG_DATA_HOME", self.work.path()).stdin(Stdio::null());
        command
    }

    /// Returns a command of landspeed on this host that has both guests as its hosts, and sends data over d0.
    pub(super) fn landspeed(&self, words: &[&str]) -> Command {
        self.landspeed_to("10.77.0.2", words)
    }

    /// Returns a command of landspeed like [`Guests::landspeed`], which sends to this address of guest 2.
    pub(super) fn landspeed_to(&self, address: &str, words: &[&str]) -> Command {
        let mut command = self.here(&self.landspeed);
        command.args(words);
        command.args(["root@10.78.0.1", "root@10.78.0.2", "--address", address]);
        self.reached(command)
    }

    /// Returns `landspeed undo` for both guests.
    pub(super) fn undo(&self) -> Command {
        let mut command = self.here(&self.landspeed);
        command.args(["undo", "root@10.78.0.1", "root@10.78.0.2"]);
        self.reached(command)
    }

    fn reached(&self, mut command: Command) -> Command {
        for option in self.ssh_options() {
            command.args(["--ssh-option", &option]);
        }
        command
    }

    /// Copies the program to a guest, and returns its path there.
    pub(super) fn installed(&self, number: u32) -> Result<&'static str> {
        let mut scp = self.here("scp");
        scp.arg("-q");
        for option in self.ssh_options() {
            scp.args(["-o", &option]);
        }
        let output =
            scp.arg(&self.landspeed).arg(format!("root@10.78.0.{number}:/run/landspeed")).output()?;
        ensure!(output.status.success(), "copy landspeed to guest {number}: {}", said(&output));
        Ok("/run/landspeed")
    }

    /// Returns every setting of both guests as text.
    pub(super) fn settings(&self) -> Result<String> {
        let of = |number| -> Result<String> {
            let command = format!("bash -s d0 <<'END'\n{}\nEND", self.snapshot);
            Ok(format!("guest {number}\n{}", self.on(number, &command)?))
        };
        Ok(of(1)? + &of(2)?)
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        for machine in &mut self.machines {
            let _ = machine.kill();
            let _ = machine.wait();
        }
        let _ = ip(&format!("netns delete {}", self.namespace));
    }
}

/// Returns an error if this QEMU emulates no device for a driver: igb came with QEMU 8.
fn has_device(driver: &str) -> Result<()> {
    let output = Command::new("qemu-system-x86_64").args(["-device", "help"]).output();
    let devices = output.context("run qemu-system-x86_64")?.stdout;
    let name = format!("name \"{driver}");
    ensure!(String::from_utf8_lossy(&devices).contains(&name), "this QEMU has no device {driver}");
    Ok(())
}

/// Returns the last lines that a command said.
pub(super) fn said(output: &Output) -> String {
    let all =
        [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat();
    let last: Vec<&str> = all.lines().filter(|line| !line.trim().is_empty()).rev().take(4).collect();
    format!("{}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" / "))
}

fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).output().context("run ip")?;
    ensure!(output.status.success(), "ip {words}: {}", said(&output));
    Ok(())
}
