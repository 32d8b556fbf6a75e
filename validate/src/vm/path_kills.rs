//! The checks that nothing hangs when a program over SMC or rsockets, or landspeed beneath it, is killed on a guest.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::battery::{Check, keeps_settings};
use super::command::succeeded;
use super::exec_counts::{ExecCounts, can_exec};
use super::guests::Guests;
use super::soft_rdma::{RSOCKET, RdmaPath, SMC};
use super::wait::{started, until, until_counted};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "25 kills over SMC",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| kills(guests, &SMC)),
    },
    Check {
        name: "25 kills over rsockets",
        is_short: false,
        look: |guests| keeps_settings(guests, |guests| kills(guests, &RSOCKET)),
    },
];

/// The kills of each check.
const KILLS: usize = 25;
/// The program's ends, on guests 1 and 2. The client ends by itself after two seconds.
const CLIENT: &str = "iperf --client 198.18.0.2 --port 5010 --time 2";
const SERVER: &str = "iperf --server --bind 198.18.0.2 --port 5010";
/// What an end prints on its guest, and landspeed of it.
const LOG: &str = "/run/path-kills";
const LISTENS: &str = "{ ss -ltn | grep -q :5010 || rdma resource show cm_id | grep -q LISTEN; }";
/// Ends the program; landspeed then ends by itself.
const END: &str = "pkill -KILL -x iperf";
const GONE: &str = "! pgrep -x iperf >/dev/null && ! pgrep -f '[l]andspeed exec|[k]eep-path' >/dev/null";
/// Kills landspeed, whose keeper then takes over, or the keeper with it.
const SUPERVISOR: &str = "pkill -KILL -f '[l]andspeed exec'";
const KEEPER_TOO: &str = "pkill -KILL -f '[l]andspeed exec|[k]eep-path'";

/// What is killed: the guest, and the command line that kills there.
const VICTIMS: [(u32, &str); 6] =
    [(1, END), (1, SUPERVISOR), (1, KEEPER_TOO), (2, END), (2, SUPERVISOR), (2, KEEPER_TOO)];
/// How long after its client's start a run goes on before the kill, by turns: these shares of the time of a program
/// that is not killed. Without KVM, a program takes seconds to start.
const MOMENTS: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.9];
/// The kills on the client's guest, 13 in all, that must meet what they kill. A server runs until it is killed.
const MET: usize = 5;

fn kills(guests: &Guests, path: &RdmaPath) -> Result<String> {
    guests.installed(1)?;
    let landspeed = guests.installed(2)?;
    let survived = path.with_devices(guests, || {
        let survived = all_killed(guests, landspeed, path.name);
        guests.try_on_both(END)?;
        survived
    })?;
    Ok(survived.unwrap_or_else(|| "not on this kernel".to_owned()))
}

fn all_killed(guests: &Guests, landspeed: &str, path: &str) -> Result<String> {
    can_exec(guests, landspeed, path)?;
    // The first connection takes longer: it sets the link between the two kernels up.
    carries(guests, landspeed, path).context("before the first kill")?;
    let took = carries(guests, landspeed, path).context("before the first kill")?;
    let mut met = 0;
    for kill in 0..KILLS {
        let (victim, share) = (VICTIMS[kill % VICTIMS.len()], MOMENTS[kill % MOMENTS.len()]);
        let moment = took.mul_f64(share);
        let has_met = killed(guests, landspeed, path, victim, moment).with_context(|| {
            format!("kill {} of {KILLS}, {} on guest {} after {moment:?}", kill + 1, victim.1, victim.0)
        })?;
        met += usize::from(has_met && victim.0 == 1);
    }
    ensure!(met >= MET, "only {met} kills met a client, which ran for {took:?} when it was left alone");
    carries(guests, landspeed, path).context("after the last kill")?;
    Ok(format!("nothing hangs, {met} kills met a client"))
}

/// Kills processes of a run, and waits until nothing of it is left on either guest. Returns true if there was one to
/// kill.
fn killed(
    guests: &Guests,
    landspeed: &str,
    path: &str,
    victim: (u32, &str),
    moment: Duration,
) -> Result<bool> {
    serve(guests, landspeed, path)?;
    let client = format!("setsid {landspeed} exec --path {path} --json -- {CLIENT} >{LOG} 2>&1 </dev/null &");
    // Both log in at the same time, so that the moment counts from the client's start.
    let mut killer =
        guests.start_on(victim.0, &format!("sleep {:.2}; {}", moment.as_secs_f64(), victim.1))?;
    // A kill at that moment may meet the shell that starts the client.
    let started = guests.try_on(1, &client);
    let has_met = killer.wait()?.success();
    started?;
    guests.on(1, &until(GONE, LOG)).context("the client hangs")?;
    guests.on(2, &format!("{END}; {}", until(GONE, LOG))).context("the server hangs")?;
    Ok(has_met)
}

/// Starts the server on guest 2, and waits until it listens.
fn serve(guests: &Guests, landspeed: &str, path: &str) -> Result<()> {
    let server = format!("{landspeed} exec --path {path} --json -- {SERVER}");
    guests.on(2, &started(&server, LISTENS, LOG)).context("the server").map(drop)
}

/// Checks that a run that is not killed is carried, and returns how long its client ran.
fn carries(guests: &Guests, landspeed: &str, path: &str) -> Result<Duration> {
    serve(guests, landspeed, path)?;
    let client = format!("timeout 120 {landspeed} exec --path {path} --json -- {CLIENT} 2>&1 </dev/null");
    let client = succeeded(guests.try_on(1, &client)?)?;
    guests.on(2, &format!("{END}; {}", until_counted(LOG)))?;
    let counts = ExecCounts::read(&String::from_utf8_lossy(&client.stdout))?;
    ensure!(counts.carried == counts.all && counts.all == 1, "{} carried, {}", counts.carried, counts.left);
    Ok(counts.took)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_victim_is_killed_twice_at_one_moment() {
        let pairs = (0..KILLS).map(|kill| (kill % VICTIMS.len(), kill % MOMENTS.len()));
        let pairs: BTreeSet<_> = pairs.collect();
        assert_eq!(pairs.len(), KILLS);
        let of = |victim| pairs.iter().filter(|pair| pair.0 == victim).count();
        assert!((0..VICTIMS.len()).all(|victim| of(victim) >= 4), "{pairs:?}");
        let at_client = (0..KILLS).filter(|kill| VICTIMS[kill % VICTIMS.len()].0 == 1).count();
        assert_eq!(at_client, 13);
    }
}
