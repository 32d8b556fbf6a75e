//! Two guests in QEMU, which bridges in a network namespace of this machine join.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{LinkChange, Rtnl};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, memfd_create};

use super::accelerator::{ACCELERATOR_VARIABLE, Accelerator};
use super::images;
use super::spec::{GuestSpec, NAME};
use crate::failure::FailureContext;
use crate::topology::error::Error;
use crate::topology::namespace::with_namespace;

/// Time limit for both guests to boot.
const BOOT: Duration = Duration::from_secs(240);
/// Time limit for a started QEMU to create its network devices.
const APPEARS: Duration = Duration::from_secs(20);
/// Size of a guest's own disk, on which /etc lies.
const DISK_BYTES: u64 = 64 << 20;
/// The largest MTU that a guest can use.
const MTU: u32 = 9000;
/// QEMU's arguments for every guest. The guest's console is QEMU's standard output.
const MACHINE: &str = "-M q35 -cpu max -smp 2 -display none -monitor none -serial stdio -nic none -no-reboot \
                       -device virtio-rng-pci";

/// A network of the guests.
#[derive(Debug)]
pub(crate) struct GuestNetwork {
    /// The bridge that joins the guests, in the lab's namespace.
    pub(crate) bridge: &'static str,
    /// The fifth byte of the guests' MAC addresses there, in hexadecimal digits. A guest knows its networks by it.
    byte: &'static str,
}

/// The data network, with the requested driver, and the network of ssh.
pub(crate) const NETWORKS: [GuestNetwork; 2] =
    [GuestNetwork { bridge: "ls-data", byte: "77" }, GuestNetwork { bridge: "ls-ssh", byte: "78" }];

/// The two guests of a lab. They end when the value is dropped.
#[derive(Debug)]
pub struct Guests {
    namespace: String,
    spec: GuestSpec,
    /// The folder of the images.
    images: PathBuf,
    qemu: PathBuf,
    accelerator: Accelerator,
    machines: Mutex<Vec<Guest>>,
}

/// A guest whose QEMU was started.
#[derive(Debug)]
struct Guest {
    number: usize,
    /// Its own disk, which survives a power cycle.
    disk: File,
    /// The output of the guest and of its QEMU since power-on.
    console: File,
    qemu: Child,
}

impl Guests {
    /// Returns the accelerator of the guests. Where this machine has KVM, each kernel is tried with it first.
    pub(crate) fn accelerator_for(spec: &GuestSpec) -> Result<Accelerator, Error> {
        let images = images::folder();
        let mut kernels = spec.kernels.to_vec();
        kernels.dedup();
        let kernels = kernels.iter().map(|kernel| images::kernel(kernel, &images));
        let chosen = kernels
            .collect::<Result<Vec<_>, _>>()
            .and_then(|kernels| Accelerator::choose(&images::qemu(spec.driver, &images)?, &kernels));
        chosen.map_err(cannot_run)
    }

    /// Starts both guests in a namespace that has their bridges. [`Guests::wait`] returns when they have booted.
    pub(crate) fn start(namespace: &str, spec: &GuestSpec, accelerator: Accelerator) -> Result<Self, Error> {
        let images = images::folder();
        let qemu = images::qemu(spec.driver, &images).map_err(cannot_run)?;
        let (namespace, machines) = (namespace.to_owned(), Mutex::default());
        let guests = Guests { namespace, spec: spec.clone(), images, qemu, accelerator, machines };
        for number in 1..=2 {
            let disk = in_memory("disk")?;
            disk.set_len(DISK_BYTES).during(|| "make a guest's disk in memory".into())?;
            let (console, qemu) = guests.power_on(number, &disk)?;
            guests.machines.lock().push(Guest { number, disk, console, qemu });
        }
        (1..=2).try_for_each(|number| guests.attach(number))?;
        Ok(guests)
    }

    /// Returns the accelerator of the guests.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Waits until both guests have booted.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let deadline = Instant::now() + BOOT;
        loop {
            self.check()?;
            let late =
                |guest: &Guest| guest.failure(&format!("has not booted within {BOOT:?}{}", self.remedy()));
            let late = self.machines.lock().iter().find(|guest| !guest.is_ready()).map(late);
            match late {
                None => return Ok(()),
                Some(error) if Instant::now() >= deadline => return Err(error),
                Some(_) => thread::sleep(Duration::from_millis(500)),
            }
        }
    }

    /// Cuts the power of a guest, counted from 1, and waits until it has booted again. Only the data on its disk
    /// survive.
    pub fn cut_power(&self, number: usize) -> Result<(), Error> {
        let mut machines = self.machines.lock();
        let guest = &mut machines[number - 1];
        guest.end();
        (guest.console, guest.qemu) = self.power_on(number, &guest.disk)?;
        drop(machines);
        self.attach(number)?;
        self.wait()
    }

    /// Starts the QEMU of a guest. Returns its output and its process.
    fn power_on(&self, number: usize, disk: &File) -> Result<(File, Child), Error> {
        let console = in_memory("console")?;
        let said = || console.try_clone().during(|| "keep a guest's console".into());
        let mut qemu = self.command(number, disk)?;
        // Ctrl-C is for the controller, which ends the lab in order.
        qemu.stdin(Stdio::null()).stdout(said()?).stderr(said()?).process_group(0);
        let started = with_namespace(&self.namespace, || qemu.spawn())?;
        Ok((console, started.during(|| format!("start {}", self.qemu.display()))?))
    }

    fn command(&self, number: usize, disk: &File) -> Result<Command, Error> {
        let kernel = images::kernel(&self.spec.kernels[number - 1], &self.images).map_err(cannot_run)?;
        let disk = format!("/proc/{}/fd/{}", std::process::id(), disk.as_raw_fd());
        let [data, login] = &NETWORKS;
        // Guests have a lower priority than the programs that wait for them, such as ssh.
        let mut command = Command::new("nice");
        command.arg(&self.qemu).args(MACHINE.split(' ')).args(["-accel", self.accelerator.argument()]);
        command.args(["-m", &format!("{}M", self.spec.memory_mib)]);
        command.arg("-kernel").arg(kernel.join("vmlinuz")).arg("-initrd").arg(kernel.join("initrd"));
        command
            .args(drive("root", &self.images.join("root.sqfs"), "on"))
            .args(drive("modules", &kernel.join("modules.sqfs"), "on"))
            .args(drive("keep", Path::new(&disk), "off"))
            .args(data.card(number, &card(self.spec.driver)))
            .args(login.card(number, "virtio-net-pci"))
            .arg("-append")
            .arg(format!("console=ttyS0 panic=-1 mitigations=off net.ifnames=0 quiet guest={number}"));
        Ok(command)
    }

    /// Joins the devices that a guest's QEMU creates to the guests' bridges.
    fn attach(&self, number: usize) -> Result<(), Error> {
        let joined = with_namespace(&self.namespace, || {
            let rtnl = Rtnl::open()?;
            NETWORKS.iter().try_for_each(|network| network.join(&rtnl, number))
        })?;
        // QEMU's output, if it has ended, explains why there is no device.
        joined.map_err(|error| self.check().err().unwrap_or(error))
    }

    /// Returns the remedy where KVM boots a kernel alone, but not the whole guest.
    fn remedy(&self) -> String {
        match self.accelerator {
            Accelerator::Kvm => format!(" with KVM ({ACCELERATOR_VARIABLE}=tcg does without)"),
            Accelerator::Tcg => String::new(),
        }
    }

    /// Returns an error if the QEMU of a guest has ended.
    pub fn check(&self) -> Result<(), Error> {
        let mut machines = self.machines.lock();
        let ended = |guest: &mut Guest| {
            let status = guest.qemu.try_wait().ok().flatten()?;
            Some(guest.failure(&format!("ended ({status}){}", self.remedy())))
        };
        machines.iter_mut().find_map(ended).map_or(Ok(()), Err)
    }
}

impl Guest {
    fn is_ready(&self) -> bool {
        self.printed().contains(&format!("READY {} ", self.number))
    }

    fn printed(&self) -> String {
        let printed = fs::read(format!("/proc/self/fd/{}", self.console.as_raw_fd())).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Returns an error about this guest, with the last lines that it printed.
    fn failure(&self, why: &str) -> Error {
        let printed = self.printed();
        let last: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).rev().take(5).collect();
        let last = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
        Error::Guest { number: self.number, why: why.to_owned(), last }
    }

    fn end(&mut self) {
        // Errors do not matter here: a QEMU that has ended is reaped.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
    }
}

impl GuestNetwork {
    /// Returns the name of the device by which a guest is joined to this network.
    fn tap(&self, number: usize) -> String {
        format!("{}-{number}", self.bridge)
    }

    /// Returns QEMU's arguments for a guest's network card.
    fn card(&self, number: usize, device: &str) -> [String; 4] {
        let GuestNetwork { bridge, byte } = self;
        let tap = self.tap(number);
        [
            "-netdev".to_owned(),
            format!("tap,id={bridge},ifname={tap},script=no,downscript=no"),
            "-device".to_owned(),
            format!("{device},netdev={bridge},mac=52:54:00:00:{byte}:0{number}"),
        ]
    }

    /// Waits for the device of a guest, and joins it to the bridge.
    fn join(&self, rtnl: &Rtnl, number: usize) -> Result<(), Error> {
        let (tap, deadline) = (self.tap(number), Instant::now() + APPEARS);
        while rtnl.index_of(&tap).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        let bridge = rtnl.index_of(self.bridge)?;
        for change in [LinkChange::Mtu(MTU), LinkChange::Master(bridge), LinkChange::Up(true)] {
            rtnl.set_link(&tap, change)?;
        }
        Ok(())
    }
}

/// Returns QEMU's device for a driver.
fn card(driver: &str) -> String {
    match driver {
        "virtio-net" => format!("virtio-net-pci,host_mtu={MTU}"),
        driver => driver.to_owned(),
    }
}

/// Returns QEMU's arguments for a disk, which a guest may only read if `is_read_only` is "on". In a file's name, QEMU takes
/// two commas for one.
pub fn drive(id: &str, file: &Path, is_read_only: &str) -> [String; 4] {
    let file = file.display().to_string().replace(',', ",,");
    [
        "-drive".to_owned(),
        format!("file={file},if=none,id={id},format=raw,readonly={is_read_only}"),
        "-device".to_owned(),
        format!("virtio-blk-pci,drive={id}"),
    ]
}

/// Returns a file without a name, which ends with the processes that have it open.
fn in_memory(name: &str) -> Result<File, Error> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC).map(File::from);
    Ok(file.during(|| format!("make a guest's {name} in memory"))?)
}

/// Returns the error for guests that cannot be booted here.
fn cannot_run(why: String) -> Error {
    Error::CannotRun { topology: NAME, why }
}
