//! `make vm`: landspeed on the kernels that Debian ships, with network drivers that QEMU has devices for. It boots two
//! guests for each pair of a kernel and a driver, runs a battery of checks, and prints the table of
//! docs/results/kernels.md.
//!
//! No speed is judged: the guests are slower than hardware, without KVM by far. What is judged is whether settings are
//! read, written, refused and restored as promised.
//!
//! ```text
//! namespace ls-ID-vm on this host: the controller, 10.78.0.254
//!   ls-data: d0 198.18.0.1 of guest 1 and d0 198.18.0.2 of guest 2, by the driver under test
//!   ls-ssh: m0 10.78.0.1 and m0 10.78.0.2, virtio, for ssh
//! ```

mod alike;
mod battery;
mod checks;
mod command;
mod compare;
mod devices;
mod exec_counts;
mod experiments;
mod guests;
mod kills;
mod knobs;
mod network;
mod path_kills;
mod persist;
mod programs;
mod progress;
mod rdma;
mod results;
mod rsocket;
mod smc;
mod soft_rdma;
mod subject;
mod wait;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use landspeed_lab::topology::vm;

pub(crate) use self::alike::{ProgramOptions, run as run_program};
use self::battery::CheckOutcome;
use self::checks::checks;
use self::guests::{GuestPair, Guests};
use self::results::{CheckRun, PairResults};
use self::subject::Subject;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Kernels: 5.10, 6.1, 6.12, newest
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',')]
    kernels: Vec<String>,
    /// Drivers: virtio-net, e1000e, vmxnet3, igb
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    drivers: Vec<String>,
    /// Run only checks with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// Run only the checks that take eight minutes a pair together
    #[arg(long)]
    short: bool,
    /// Run the checks again that this program passed before, and compare what they find
    #[arg(long)]
    again: bool,
    /// Minutes after which the checks of a pair end; another run goes on with the rest
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=24 * 60))]
    minutes: u64,
    /// Write what was found so far into the table of this page, and boot nothing
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The folder of the scripts that prepare the guests
    #[arg(long, default_value = "validate/vm")]
    scripts: PathBuf,
    /// The static program to test
    #[arg(long, default_value = "target/dist/landspeed")]
    landspeed: PathBuf,
}

/// The pairs of `make vm` without words: each kernel with one driver, and each driver with one kernel.
const PAIRS: [(&str, &str); 7] = [
    ("5.10", "virtio-net"),
    ("6.1", "virtio-net"),
    ("6.12", "virtio-net"),
    ("newest", "virtio-net"),
    ("6.12", "e1000e"),
    ("6.12", "vmxnet3"),
    ("6.12", "igb"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let pairs = options.pairs();
    if let Some(page) = &options.page {
        let results = pairs.iter().map(|pair| options.kept(pair)).collect::<Result<Vec<_>>>()?;
        let ran: Vec<PairResults> = results.into_iter().filter(|pair| !pair.is_empty()).collect();
        ensure!(!ran.is_empty(), "no check has run: {} has no results", vm::folder().display());
        return results::write_into(page, &ran);
    }
    let landspeed =
        options.landspeed.canonicalize().context("build the static program first: make static")?;
    prepare(options, &pairs)?;
    let mut results = Vec::new();
    for pair in pairs {
        let mut found = PairResults::of(&pair)?;
        if let Err(why) = check(options, &landspeed, &pair, &mut found) {
            eprintln!("{pair}: {why:#}");
            found.aborted = Some(format!("{why:#}"));
        }
        results.push(found);
    }
    results::print(&results);
    let failed = results.iter().filter(|pair| !pair.is_good()).count();
    ensure!(failed == 0, "{failed} pairs of kernel and driver have a check that failed");
    Ok(())
}

impl Options {
    /// Returns what was found of a pair, beside the program that is here. Without a program, all results are of others.
    fn kept(&self, pair: &GuestPair) -> Result<PairResults> {
        let mut found = PairResults::of(pair)?;
        found.subject = Subject::read(&self.scripts, &self.landspeed, &pair.kernel).ok();
        Ok(found)
    }

    fn pairs(&self) -> Vec<GuestPair> {
        let pair = |kernel: &str, driver: &str| GuestPair { kernel: kernel.into(), driver: driver.into() };
        if self.kernels.is_empty() && self.drivers.is_empty() {
            return PAIRS.iter().map(|(kernel, driver)| pair(kernel, driver)).collect();
        }
        let or = |given: &[String], usual: &str| {
            if given.is_empty() { vec![usual.to_owned()] } else { given.to_vec() }
        };
        let drivers = or(&self.drivers, "virtio-net");
        let kernels = or(&self.kernels, "6.12");
        kernels.iter().flat_map(|kernel| drivers.iter().map(move |driver| pair(kernel, driver))).collect()
    }
}

/// Fetches the kernels, a QEMU if this host's lacks a device, and makes the root file system, where they are not there
/// yet.
fn prepare(options: &Options, pairs: &[GuestPair]) -> Result<()> {
    let mut parts: Vec<&str> = pairs.iter().map(|pair| pair.kernel.as_str()).collect();
    parts.sort_unstable();
    parts.dedup();
    let has_all = pairs.iter().all(|pair| vm::has_device(&pair.driver));
    parts.extend((!has_all).then_some("qemu"));
    let status = Command::new(options.scripts.join("prepare")).arg(vm::folder()).args(parts).status();
    ensure!(status.context("run validate/vm/prepare")?.success(), "the guests could not be prepared");
    Ok(())
}

/// Boots a pair of guests and runs the checks that are due.
fn check(options: &Options, landspeed: &Path, pair: &GuestPair, found: &mut PairResults) -> Result<()> {
    let subject = Subject::read(&options.scripts, landspeed, &pair.kernel)?;
    found.subject = Some(subject.clone());
    let due = checks()
        .filter(|check| (check.is_short || !options.short) && check.name.contains(&options.only))
        .filter(|check| options.again || !found.is_settled(check.name))
        .collect::<Vec<_>>();
    if due.is_empty() {
        return Ok(());
    }
    let deadline = Instant::now() + Duration::from_secs(60 * options.minutes);
    let guests = Guests::boot(&options.scripts, landspeed, pair, &subject, deadline)?;
    eprintln!("{pair}: two guests are up, {}, {}", guests.release(), guests.accelerator());
    for check in due {
        let began = Instant::now();
        let outcome = check.run(&guests);
        let (took, has_failed) = (began.elapsed(), matches!(outcome, CheckOutcome::Failed(_)));
        let minutes = took.as_secs_f64() / 60.0;
        // What the time limit cut off says nothing.
        if has_failed && guests.time_left().is_zero() && guests.are_up().is_ok() {
            bail!(
                "{} was cut off, {minutes:.0} minutes after it began: another run goes on there, --minutes gives more",
                check.name
            );
        }
        eprintln!("{pair}: {}: {outcome} ({minutes:.1} min)", check.name);
        found.add(check, CheckRun::new(outcome, took, &guests))?;
        // Other checks must not fail because a guest's kernel died in this one.
        if has_failed {
            guests.answer().with_context(|| format!("after {}", check.name))?;
        }
    }
    Ok(())
}
