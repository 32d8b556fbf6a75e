//! Checks that settings come back when processes of landspeed are killed.

use std::fs::{self, File};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::battery::{Check, SETTLED, become_again};
use super::command::{failure, said};
use super::guests::Guests;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "kill -9 of all, undo", is_short: true, look: kill_all },
    Check { name: "kill -9 of the controller", is_short: false, look: kill_controller },
    Check { name: "kill -9 of an agent", is_short: false, look: kill_agent },
    Check { name: "kill -9 of each guardian", is_short: false, look: kill_guardians },
];

/// The time within which landspeed restores a guest without any help. What it waits for follows the host's pace.
const RESTORED: Duration = Duration::from_secs(300);
/// The time within which a run of knobs changes the first one.
const CHANGED: Duration = Duration::from_secs(600);

/// Kills every landspeed process of a guest; the brackets keep the pattern from matching its own command line.
pub(super) const KILL_ALL: &str = "pkill -9 -f '[l]andspeed'; true";

/// A run that changes the MTU of both guests again and again until it is killed.
struct EndlessRun<'a> {
    guests: &'a Guests,
    controller: Child,
    before: String,
}

impl<'a> EndlessRun<'a> {
    /// Starts the run, and returns when the MTU of guest 1 has changed.
    ///
    /// # Errors
    /// Returns the run's [`failure`] if it ends before.
    fn start(guests: &'a Guests) -> Result<Self> {
        let before = guests.settings()?;
        // It must not end within a check, nor have the MTU of before meanwhile.
        let words =
            ["measure", "stream", "-t", "300ms", "--blocks", "1000", "--yes", "--vary", "mtu=1400,1450"];
        let errors = guests.work.path().join("endless-run");
        let mut command = guests.landspeed(&words);
        command.stdout(Stdio::null()).stderr(File::create(&errors)?);
        let mut run = EndlessRun { guests, controller: command.spawn()?, before };
        let end = Instant::now() + CHANGED;
        while guests.on(1, "cat /sys/class/net/d0/mtu")?.trim() != "1400" {
            if let Some(status) = run.controller.try_wait()? {
                let output = Output { status, stdout: Vec::new(), stderr: fs::read(&errors)? };
                return Err(failure(&output));
            }
            ensure!(Instant::now() < end, "the MTU did not change within {CHANGED:?}");
            thread::sleep(Duration::from_millis(200));
        }
        Ok(run)
    }

    /// Kills the controller, which is the child of timeout(1).
    fn kill_controller(&mut self) -> Result<()> {
        Command::new("pkill").args(["-9", "-P", &self.controller.id().to_string()]).status()?;
        self.controller.wait()?;
        Ok(())
    }

    /// Waits until both guests have all settings as before, without any help. Returns how long it took.
    fn restored(&self) -> Result<String> {
        let began = Instant::now();
        become_again(self.guests, &self.before, RESTORED)?;
        Ok(format!("in {} s", began.elapsed().as_secs()))
    }
}

impl Drop for EndlessRun<'_> {
    fn drop(&mut self) {
        let _ = self.kill_controller();
    }
}

fn kill_all(guests: &Guests) -> Result<String> {
    let mut run = EndlessRun::start(guests)?;
    run.kill_controller()?;
    guests.on_both(KILL_ALL)?;
    let output = guests.undo().output()?;
    ensure!(output.status.success(), "undo: {}", said(&output));
    become_again(guests, &run.before, SETTLED)?;
    Ok(String::new())
}

fn kill_controller(guests: &Guests) -> Result<String> {
    let mut run = EndlessRun::start(guests)?;
    run.kill_controller()?;
    Ok(format!("restored by itself {}", run.restored()?))
}

fn kill_agent(guests: &Guests) -> Result<String> {
    let run = EndlessRun::start(guests)?;
    // The agent is the oldest of the guest's processes of landspeed; its guardian is left alone.
    guests.on(1, "pkill -9 -o -f '[l]andspeed.*agent'")?;
    Ok(format!("restored by its guardian {}", run.restored()?))
}

/// Kills the guardian of one guest, then that of the other one, each in a run of its own.
fn kill_guardians(guests: &Guests) -> Result<String> {
    let mut took = Vec::new();
    for number in 1..=2 {
        let run = EndlessRun::start(guests)?;
        guests.on(number, "pkill -9 -f '[l]andspeed guardian'")?;
        took.push(run.restored()?);
    }
    Ok(format!("restored by the agents {}", took.join(" and ")))
}
