//! Opening a session with an agent on a host of a topology.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_agent::session::{AgentLaunch, Invite, Options, Session, SshHost, Ticket, Token};
use landspeed_lab::topology::{ReachMethod, TopologyHost};

use crate::Error;

/// How to reach hosts: the same for all hosts of a command line.
#[derive(Debug, Clone, Default)]
pub struct ReachOptions {
    /// True if knobs will be turned, which needs root on the host.
    pub tune: bool,
    /// The landspeed to run on hosts reached by ssh. If `None`, an installed one of this build, or else one that is
    /// sent.
    pub remote_path: Option<String>,
    /// True if a landspeed that was sent stays on the host for the next time.
    pub keep_agent: bool,
    /// Options for ssh, each as after its -o.
    pub ssh_options: Vec<String>,
    /// File with the lines of agents started by hand; if `None`, the user is asked.
    pub tokens: Option<PathBuf>,
    /// The landspeed that runs as the agent on this machine. If `None`, this very program, which must then be
    /// landspeed itself.
    pub agent: Option<PathBuf>,
    pub options: Options,
}

impl ReachOptions {
    pub fn session(&self, host: &TopologyHost) -> Result<Session, Error> {
        let failed = |source| Error::Reach { source };
        match &host.reach {
            ReachMethod::Namespace(name) => {
                let agent = self.child(&["--netns", name])?;
                Session::over_child(&host.name, agent, &self.options).map_err(failed)
            }
            ReachMethod::Local => {
                let agent = self.child(&[])?;
                Session::over_child(&host.name, agent, &self.options).map_err(failed)
            }
            ReachMethod::Ssh(destination) => self.ssh(destination).map_err(failed),
            ReachMethod::Invite(line) => self.invited(line.line()).map_err(failed),
        }
    }

    /// Returns the command of an agent on this machine. It has its own process group, so that Ctrl-C reaches the
    /// controller, which ends the session in order.
    fn child(&self, extra: &[&str]) -> Result<Command, Error> {
        let mut command = match self.tune && !rustix::process::geteuid().is_root() {
            true => {
                let named = std::env::current_exe();
                let named = named.map_err(|e| Error::Other(format!("cannot find landspeed itself: {e}")));
                let mut sudo = Command::new("sudo");
                sudo.arg("-n").arg("--").arg(self.agent.clone().map_or_else(|| named, Ok)?);
                sudo
            }
            false => {
                let mut own = Command::new(self.own());
                own.arg0("landspeed");
                own
            }
        };
        command.args(self.words()).args(extra).process_group(0);
        Ok(command)
    }

    /// Returns the path of this very program, valid even if its file was replaced or deleted.
    fn own(&self) -> &Path {
        self.agent.as_deref().unwrap_or(Path::new("/proc/self/exe"))
    }

    /// Returns the arguments of the agent.
    fn words(&self) -> &'static [&'static str] {
        if self.tune { &["agent", "--stdio", "--allow-tune"] } else { &["agent", "--stdio"] }
    }

    fn ssh(&self, destination: &str) -> Result<Session, landspeed_agent::session::Error> {
        let options: Vec<&str> = self.ssh_options.iter().flat_map(|option| ["-o", option]).collect();
        let host = SshHost::new(destination)?.with_options(&options);
        let host = match &self.remote_path {
            Some(path) => host.with_remote_path(path)?,
            None => host,
        };
        let launch =
            AgentLaunch { words: self.words(), root: self.tune, own: self.own(), keep: self.keep_agent };
        Session::over_ssh(&host, &launch, &self.options)
    }

    /// Opens a session by an agent's line. A line without its token is for users who keep the token from others on
    /// this host.
    fn invited(&self, line: &str) -> Result<Session, landspeed_agent::session::Error> {
        if line.contains('@') {
            let Ticket { invite, token } = line.parse()?;
            return Session::over_tls(&invite, &token, &self.options);
        }
        let invite: Invite = line.parse()?;
        let token = match &self.tokens {
            Some(path) => Token::from_file(path, &invite)?,
            None => Token::prompt(&invite)?,
        };
        Session::over_tls(&invite, &token, &self.options)
    }
}
