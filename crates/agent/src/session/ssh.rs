//! The command line of the user's own ssh.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use landspeed_record::units::{Nanos, quoted};

use crate::session::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    destination: String,
    remote_path: Option<String>,
    options: Vec<String>,
    may_ask: bool,
}

impl SshHost {
    /// Returns the host with the ssh destination `[user@]host`, where `host` may be an alias from the user's ssh
    /// configuration.
    ///
    /// # Errors
    /// Returns an error for a name that ssh or a ProxyCommand's shell could take for something else (CVE-2017-1000117,
    /// CVE-2023-51385): one with a leading `-`, white space, control characters or shell metacharacters.
    pub fn new(destination: &str) -> Result<SshHost, Error> {
        check(destination).map_err(|why| Error::Host { host: destination.to_owned(), why })?;
        Ok(SshHost {
            destination: destination.to_owned(),
            remote_path: None,
            options: Vec::new(),
            may_ask: std::io::stdin().is_terminal(),
        })
    }

    /// Sets the path of the landspeed to run on the host, whatever its version is. This landspeed is then not sent. A
    /// leading `~/` means the home directory.
    pub fn with_remote_path(self, path: &str) -> Result<SshHost, Error> {
        let usable = !path.is_empty() && !path.starts_with('-') && !path.chars().any(char::is_control);
        if usable {
            return Ok(SshHost { remote_path: Some(path.to_owned()), ..self });
        }
        let why = "its landspeed path must not be empty, begin with '-' or hold control characters";
        Err(Error::Host { host: self.destination, why })
    }

    /// Sets options for ssh itself, such as `-F FILE` or `-o NAME=VALUE`. They come before all others and so take
    /// precedence.
    pub fn with_options(self, options: &[&str]) -> SshHost {
        SshHost { options: options.iter().map(|&o| o.to_owned()).collect(), ..self }
    }

    /// Sets whether ssh may ask for passwords and host keys. By default it may if stdin is a terminal.
    pub fn with_questions(self, may_ask: bool) -> SshHost {
        SshHost { may_ask, ..self }
    }

    /// Returns `[user@]host`.
    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    pub(crate) fn may_ask(&self) -> bool {
        self.may_ask
    }

    /// Returns the path of landspeed on the host, quoted as one word for its /bin/sh; an empty word if none was set.
    pub(crate) fn remote_path(&self) -> String {
        let path = self.remote_path.as_deref().unwrap_or_default();
        match path.strip_prefix("~/") {
            Some(rest) => format!("~/{}", quoted(rest)),
            None => quoted(path),
        }
    }
}

fn check(destination: &str) -> Result<(), &'static str> {
    let host = destination.rsplit('@').next().unwrap_or_default();
    if host.is_empty() {
        return Err("a host name is missing");
    }
    if destination.starts_with('-') || host.starts_with('-') {
        return Err("a name that begins with '-' would be an option to ssh; give the host's address");
    }
    let plain = |c: char| c.is_alphanumeric() || "._-@:[]%+/~".contains(c);
    if !destination.chars().all(plain) {
        return Err(
            "only letters, digits and . _ - @ : [ ] % + are taken; give it an alias in ~/.ssh/config",
        );
    }
    Ok(())
}

/// Returns the command `ssh HOST exec /bin/sh`. Any login shell understands it, also fish and csh, which do not read
/// POSIX scripts. The script comes on the standard input of /bin/sh.
///
/// The user's ssh configuration applies, except for terminals, forwardings and a RemoteCommand, which would disturb the
/// frames. Ctrl-C does not reach ssh, because the controller ends the session in order. An ssh that may not ask connects
/// within half of `limit`, the time limit of a login.
pub(crate) fn ssh_command(host: &SshHost, limit: Nanos) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(&host.options);
    ssh.args(["-T", "-x", "-a", "-oClearAllForwardings=yes", "-oRemoteCommand=none"]);
    if !host.may_ask {
        let half = (Duration::from(limit).as_secs() / 2).max(1);
        ssh.args(["-oBatchMode=yes", &format!("-oConnectTimeout={half}")]);
    }
    ssh.args(["--", &host.destination, "exec /bin/sh"]);
    keep_from_interrupts(&mut ssh, host.may_ask);
    ssh
}

/// Keeps Ctrl-C from ending `ssh`. An ssh that may ask the user must stay in the terminal's foreground process group to
/// read from the terminal. It ignores SIGINT instead, and ssh does not change an ignored SIGINT (clientloop.c). An ssh
/// that may not ask gets a separate process group.
fn keep_from_interrupts(ssh: &mut Command, may_ask: bool) {
    if !may_ask {
        ssh.process_group(0);
        return;
    }
    let ignore = || {
        // SAFETY: signal(2) is async-signal-safe (signal-safety(7)) and takes no pointers here.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one async-signal-safe call and touches no memory of the parent.
    unsafe { ssh.pre_exec(ignore) };
}

#[cfg(test)]
mod tests;
