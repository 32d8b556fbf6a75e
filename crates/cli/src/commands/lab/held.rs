//! `landspeed lab up` and `lab enter`: a lab for a user's own programs.
//!
//! A separate process holds the lab. It outlives the command that started it, and ends with `lab down`. If it dies, its
//! keeper removes the lab, as with any lab.

use std::fs::File;
use std::io::{PipeWriter, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Error, Result, bail};
use landspeed_kernel::daemon;
use landspeed_lab::topology::lab::{self, Lab, LabInfo};
use landspeed_lab::topology::{self, LabHost, ReachMethod};
use landspeed_report::quoted;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::failure::{in_one_line, not_started};
use crate::labs;
use crate::output::{out, usage};

/// Starts the process that makes and holds the lab, and returns when the lab can be used.
pub(crate) fn up(words: &[String]) -> Result<ExitCode> {
    let (name, lab) = named(words)?;
    lab::plan_held(&lab, &name)?;
    labs::sweep();
    let (mut answer, teller) = std::io::pipe().context("cannot make a pipe")?;
    let mut command = daemon::own_command("hold-lab");
    command.extend([&name].into_iter().chain(&lab).map(Into::into));
    daemon::spawn(&command, &teller).context("cannot start the process that holds the lab")?;
    drop(teller);
    let mut reply = String::new();
    answer.read_to_string(&mut reply)?;
    match reply.strip_prefix(UP) {
        Some(hosts) => out(&format!(
            "lab {name} is up\n{hosts}\nrun something there  landspeed lab enter {name} HOST -- COMMAND\nremove it            landspeed lab down {name}"
        ))?,
        None if reply.is_empty() => bail!("the process that holds the lab ended at once"),
        None => bail!("{}", reply.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The first line of the answer from the process that holds a lab, if it succeeds. The hosts follow.
const UP: &str = "up\n";

/// Returns the name of the lab and its words, by default "lab" and "lab:back-to-back".
fn named(words: &[String]) -> Result<(String, Vec<String>)> {
    let is_lab = |word: &String| word == "lab" || word.starts_with("lab:");
    let (name, lab): (Vec<String>, Vec<String>) = words.iter().cloned().partition(|word| !is_lab(word));
    match (name.as_slice(), lab.as_slice()) {
        ([] | [_], [] | [_]) => {
            let lab = if lab.is_empty() { vec!["lab:back-to-back".to_owned()] } else { lab };
            Ok((name.into_iter().next().unwrap_or_else(|| "lab".to_owned()), lab))
        }
        _ => Err(usage("expected a name and a lab: landspeed lab up mine lab:wan:rate=1G,rtt=20ms")),
    }
}

/// Makes a lab and holds it until SIGTERM, in the process that `lab up` started.
pub(crate) fn hold(name: &str, words: &[String]) -> Result<ExitCode> {
    let Some(teller) = daemon::inherited(is_pipe) else {
        eprintln!("landspeed hold-lab is started by `landspeed lab up`, not by hand");
        return Ok(ExitCode::from(2));
    };
    // If this fails, the process is easier to kill. The failure cannot be reported.
    let _ = daemon::daemonize("lab");
    // SIGTERM is handled before the lab exists, so that the signal never ends this process without removing the lab.
    let mut signals = Signals::new([SIGTERM])?;
    let mut teller = PipeWriter::from(teller);
    let lab = match lab::hold(words, name) {
        Ok(lab) => lab,
        Err(error) => {
            writeln!(teller, "{}", in_one_line(&Error::from(error)))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    // A failure is ignored: if the command that waits for the answer has ended, the lab is still held, and `lab list`
    // shows it.
    let _ = write!(teller, "{UP}{}", hosts(&lab));
    drop(teller);
    signals.forever().next();
    drop(lab);
    Ok(ExitCode::SUCCESS)
}

fn is_pipe(fd: BorrowedFd<'_>) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_fifo = |file: File| file.metadata().is_ok_and(|about| about.file_type().is_fifo());
    fd.try_clone_to_owned().is_ok_and(|fd| is_fifo(File::from(fd)))
}

fn hosts(lab: &Lab) -> String {
    let place = |host: &LabHost| match &host.reach {
        ReachMethod::Guest(login) => login.to_string(),
        _ => format!("netns:{}", host.netns),
    };
    lab.hosts()
        .iter()
        .map(|host| format!("  {}  {}  {}  {}\n", host.name, host.v4, host.v6, place(host)))
        .collect()
}

/// Replaces this process by a shell or a command on a host of a lab.
pub(crate) fn enter(words: &[String], command: &[String]) -> Result<ExitCode> {
    let (lab, host) = place(words)?;
    let host = host_of(&lab, host.as_deref())?;
    topology::enter(&host.netns)?;
    if command.is_empty() {
        eprintln!(
            "host {} of lab {}: `exit` leaves it",
            host.name,
            lab.name.as_deref().unwrap_or_default().escape_default()
        );
    }
    let mut command = within(&host, command);
    let error = command.exec();
    let program = command.get_program().to_string_lossy();
    Ok(not_started(&error, &format!("cannot run {program}: {error}")))
}

/// Returns the command that runs a shell, or `command`, on a host of a lab, whose namespace this process has entered.
fn within(host: &LabHost, command: &[String]) -> Command {
    let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    match (&host.reach, command) {
        (ReachMethod::Guest(login), words) => {
            let mut ssh = Command::new("ssh");
            ssh.args(login.options.iter().flat_map(|option| ["-o", option])).arg(&login.destination);
            // The guest's shell reads the words again.
            ssh.args(words.iter().map(|word| quoted(word)));
            ssh
        }
        (_, []) => Command::new(shell()),
        (_, [program, arguments @ ..]) => {
            let mut own = Command::new(program);
            own.args(arguments);
            own
        }
    }
}

/// Returns the lab that the words name, or the only lab that is up, and the host if one is named.
fn place(words: &[String]) -> Result<(LabInfo, Option<String>)> {
    match words {
        [] => Ok((lab::find_held(None)?, None)),
        [lab, host] => Ok((lab::find_held(Some(lab.as_str()))?, Some(host.clone()))),
        [word, ..] => match lab::find_held(Some(word.as_str())) {
            Ok(lab) => Ok((lab, None)),
            // The word may be a host of the only lab.
            Err(error) => match lab::find_held(None) {
                Ok(lab) if host_of(&lab, Some(word.as_str())).is_ok() => Ok((lab, Some(word.clone()))),
                _ => Err(error.into()),
            },
        },
    }
}

/// Returns the host of this name, or the first host if it is `None`.
fn host_of(lab: &LabInfo, host: Option<&str>) -> Result<LabHost> {
    let hosts = lab::hosts(lab)?;
    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let found = hosts.iter().find(|one| host.is_none_or(|name| name == one.name));
    let found = found.with_context(|| {
        format!(
            "the lab has no host {}: it has {}",
            host.unwrap_or_default().escape_default(),
            names.join(", ")
        )
    })?;
    Ok(found.clone())
}

/// Returns a remark on the labs that are up, or an empty text if there are none.
pub(crate) fn still_up() -> Result<String> {
    let all = lab::list()?;
    let names: Vec<&str> = all.iter().filter_map(|lab| lab.name.as_deref()).collect();
    match names.as_slice() {
        [] => Ok(String::new()),
        [first, ..] => Ok(format!("; up: {}. `landspeed lab down {first}` removes it", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_lab_come_in_any_order() {
        let read = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            named(&words)
                .map(|(name, lab)| format!("{name} {}", lab.join(" ")))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read("").as_deref(), Ok("lab lab:back-to-back"));
        assert_eq!(read("mine").as_deref(), Ok("mine lab:back-to-back"));
        assert_eq!(read("lab:switch:3").as_deref(), Ok("lab lab:switch:3"));
        assert_eq!(read("mine lab:switch:3"), read("lab:switch:3 mine"));
        assert!(read("mine yours").is_err() && read("lab lab:switch:3").is_err());
    }
}
