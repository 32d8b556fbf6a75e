//! Two guests of `lab:vm`, and commands on them and between them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landspeed_lab::topology::vm::{self, Accelerator, GuestLogin};
use landspeed_lab::topology::{Lab, ReachMethod};

use super::command::said;
use super::subject::Subject;

/// The time that a command on a guest or between guests may take, unless its check gives it more.
const COMMAND: Duration = Duration::from_secs(15 * 60);
/// The time that a guest which runs may take to say so.
const ANSWER: Duration = Duration::from_secs(120);
/// The address of guest 2 for data.
const DATA: &str = "198.18.0.2";

/// The kernel and the driver of two guests.
#[derive(Debug, Clone)]
pub(super) struct GuestPair {
    pub(super) kernel: String,
    pub(super) driver: String,
}

impl GuestPair {
    /// Returns the name of a file of this pair, which ends with `what`.
    pub(super) fn file(&self, what: &str) -> String {
        format!("{}-{}.{what}", self.kernel, self.driver)
    }
}

impl fmt::Display for GuestPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kernel, self.driver)
    }
}

/// Two running guests. They end when the value is dropped.
pub(super) struct Guests {
    lab: Lab,
    pair: GuestPair,
    /// The folder of records and other files of this run.
    pub(super) work: tempfile::TempDir,
    landspeed: PathBuf,
    snapshot: String,
    /// What the results are of.
    subject: Subject,
    accelerator: Accelerator,
    /// When every command ends.
    deadline: Instant,
}

impl Guests {
    pub(super) fn boot(
        scripts: &Path,
        landspeed: &Path,
        pair: &GuestPair,
        subject: &Subject,
        deadline: Instant,
    ) -> Result<Guests> {
        let lab = Lab::open(&format!("lab:vm:{},driver={}", pair.kernel, pair.driver))?;
        Ok(Guests {
            accelerator: lab.guests().context("a lab of guests")?.accelerator(),
            deadline,
            lab,
            pair: pair.clone(),
            work: tempfile::tempdir()?,
            landspeed: landspeed.to_owned(),
            snapshot: fs::read_to_string(scripts.join("snapshot"))?,
            subject: subject.clone(),
        })
    }

    /// Cuts the power of a guest, and waits until it has booted again. Only what was on its disk is there then.
    pub(super) fn cut_power(&self, number: u32) -> Result<()> {
        let guests = self.lab.guests().context("a lab of guests")?;
        Ok(guests.cut_power(number as usize)?)
    }

    pub(super) fn release(&self) -> &str {
        &self.subject.release
    }

    /// Returns what runs the guests' instructions.
    pub(super) fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Returns the time until every command ends.
    pub(super) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns a file of this kernel and driver, which outlives the guests.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        vm::folder().join(self.pair.file(name))
    }

    /// Returns what a result of these guests is of.
    pub(super) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns how a guest is logged in to.
    fn login(&self, number: u32) -> &GuestLogin {
        match &self.lab.hosts()[number as usize - 1].reach {
            ReachMethod::Guest(login) => login,
            other => unreachable!("bug: a guest is reached by {other:?}"),
        }
    }

    /// Runs a command line on a guest, and returns what it said. Returns an error if it fails or takes too long.
    pub(super) fn on(&self, number: u32, command: &str) -> Result<String> {
        let output = self.try_on(number, command)?;
        ensure!(output.status.success(), "guest {number}: {command}: {}", said(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a command line on a guest, whatever its end.
    pub(super) fn try_on(&self, number: u32, command: &str) -> Result<Output> {
        self.ssh(COMMAND, number, command).output().context("run ssh")
    }

    /// Runs a command line on both guests. Returns an error if it fails or takes too long on one.
    pub(super) fn on_both(&self, command: &str) -> Result<()> {
        (1..=2).try_for_each(|number| self.on(number, command).map(drop))
    }

    /// Runs a command line on both guests, whatever its end.
    pub(super) fn try_on_both(&self, command: &str) -> Result<()> {
        // Where one has gone, the other one is tidied all the same.
        let [first, second] = [1, 2].map(|number| self.try_on(number, command));
        first.and(second).map(drop)
    }

    /// Starts a command line on a guest. What it says is not kept.
    pub(super) fn start_on(&self, number: u32, command: &str) -> Result<Child> {
        let mut ssh = self.ssh(COMMAND, number, command);
        ssh.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("run ssh")
    }

    /// Returns an error if a guest has ended, with what its kernel said last.
    pub(super) fn are_up(&self) -> Result<()> {
        Ok(self.lab.guests().context("a lab of guests")?.check()?)
    }

    /// Returns an error if a guest has ended, or if it no longer runs commands.
    pub(super) fn answer(&self) -> Result<()> {
        self.are_up()?;
        for number in 1..=2 {
            let output = self.ssh(ANSWER, number, "true").output().context("run ssh")?;
            // What the deadline cut off says nothing.
            let answers = output.status.success() || self.time_left().is_zero();
            ensure!(answers, "guest {number} no longer answers: {}", said(&output));
        }
        Ok(())
    }

    fn ssh(&self, limit: Duration, number: u32, command: &str) -> Command {
        let (mut ssh, login) = (self.here("ssh", limit), self.login(number));
        for option in &login.options {
            ssh.args(["-o", option]);
        }
        ssh.arg(&login.destination).arg(command);
        ssh
    }

    /// Returns a command that runs in the namespace, for at most this time and until the deadline.
    fn here(&self, program: impl AsRef<std::ffi::OsStr>, limit: Duration) -> Command {
        // timeout(1) takes 0 for no limit.
        let limit = limit.min(self.time_left()).as_secs().max(1);
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.login(1).netns, "timeout", "--kill-after", "10"])
            .arg(limit.to_string())
            .arg(program);
        // Wide enough for every column of a table.
        command.env("COLUMNS", "1000").env("XDG_DATA_HOME", self.work.path()).stdin(Stdio::null());
        command
    }

    /// Returns a command of landspeed on this host that has both guests as its hosts, and sends data over d0.
    pub(super) fn landspeed(&self, words: &[&str]) -> Command {
        self.landspeed_within(COMMAND, words)
    }

    /// Returns a command of landspeed like [`Guests::landspeed`], which may take this time.
    pub(super) fn landspeed_within(&self, limit: Duration, words: &[&str]) -> Command {
        self.between(limit, DATA, words)
    }

    /// Returns a command of landspeed like [`Guests::landspeed`], which sends to this address of guest 2.
    pub(super) fn landspeed_to(&self, address: &str, words: &[&str]) -> Command {
        self.between(COMMAND, address, words)
    }

    fn between(&self, limit: Duration, address: &str, words: &[&str]) -> Command {
        let mut command = self.here(&self.landspeed, limit);
        command.args(words).args(self.destinations()).args(["--address", address]);
        self.reached(command)
    }

    /// Returns `landspeed undo` for both guests.
    pub(super) fn undo(&self) -> Command {
        let mut command = self.here(&self.landspeed, COMMAND);
        command.arg("undo").args(self.destinations());
        self.reached(command)
    }

    fn destinations(&self) -> [&str; 2] {
        [1, 2].map(|number| self.login(number).destination.as_str())
    }

    fn reached(&self, mut command: Command) -> Command {
        for option in &self.login(1).options {
            command.args(["--ssh-option", option]);
        }
        command
    }

    /// Copies the program to a guest, and returns its path there.
    pub(super) fn installed(&self, number: u32) -> Result<&'static str> {
        self.copied(&self.landspeed, number, "/run/landspeed")?;
        Ok("/run/landspeed")
    }

    /// Copies a file of this host to a guest.
    pub(super) fn copied(&self, file: &Path, number: u32, to: &str) -> Result<()> {
        let (mut scp, login) = (self.here("scp", COMMAND), self.login(number));
        scp.arg("-q");
        for option in &login.options {
            scp.args(["-o", option]);
        }
        let output = scp.arg(file).arg(format!("{}:{to}", login.destination)).output()?;
        ensure!(output.status.success(), "copy {} to guest {number}: {}", file.display(), said(&output));
        Ok(())
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
