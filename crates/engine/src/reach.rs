//! Opening sessions with agents on the hosts of a topology.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_agent::session::{AgentLaunch, Invite, Options, Session, SshHost, Ticket, Token};
use landspeed_lab::topology::{ReachMethod, TopologyHost};

use crate::{Error, Host};

/// How to reach hosts: the same for all hosts of a command line.
#[derive(Debug, Clone, Default)]
pub struct ReachOptions {
    /// True if knobs will be turned, which needs root on the host.
    pub tune: bool,
    /// The landspeed to run on hosts reached by ssh. If `None`, an installed one of this build runs; without one,
    /// this landspeed is sent.
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

/// Parts of the errors of hosts that want to ask their user: for a password, a host key, or an agent's token.
const QUESTIONS: [&str; 4] =
    ["Permission denied", "Host key verification failed", "password is required", UNASKED];
const UNASKED: &str = "its token was not asked for";

impl ReachOptions {
    /// Reaches all hosts side by side. A host that wants to ask its user something is reached again afterwards, alone,
    /// so that the user answers one question at a time.
    pub fn hosts(&self, places: &[TopologyHost]) -> Vec<Result<Host, Error>> {
        let asks = places.len() > 1 && std::io::stdin().is_terminal();
        let reached: Vec<_> = std::thread::scope(|scope| {
            let reaching: Vec<_> =
                places.iter().map(|place| scope.spawn(move || self.reach(place, !asks))).collect();
            reaching.into_iter().map(|one| one.join().expect("reaching does not panic")).collect()
        });
        let again = |(place, reached): (&TopologyHost, Result<Host, Error>)| match reached {
            Err(error) if asks && wants_to_ask(&error) => self.host(place),
            other => other,
        };
        places.iter().zip(reached).map(again).collect()
    }

    /// Reaches one host.
    pub fn host(&self, place: &TopologyHost) -> Result<Host, Error> {
        self.reach(place, true)
    }

    fn reach(&self, place: &TopologyHost, may_ask: bool) -> Result<Host, Error> {
        let mut host = Host::probe(self.session(place, may_ask)?)?;
        host.undo_command = undo_command(place);
        Ok(host)
    }

    /// Opens a session with the agent of a host. Without `may_ask`, an error takes the place of a question to the user.
    fn session(&self, host: &TopologyHost, may_ask: bool) -> Result<Session, Error> {
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
            ReachMethod::Ssh(destination) => self.ssh(destination, may_ask).map_err(failed),
            ReachMethod::Invite(line) => self.invited(line.line(), may_ask).map_err(failed),
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

    fn ssh(&self, destination: &str, may_ask: bool) -> Result<Session, landspeed_agent::session::Error> {
        let options: Vec<&str> = self.ssh_options.iter().flat_map(|option| ["-o", option]).collect();
        let host = SshHost::new(destination)?.with_options(&options);
        let host = if may_ask { host } else { host.with_questions(false) };
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
    fn invited(&self, line: &str, may_ask: bool) -> Result<Session, landspeed_agent::session::Error> {
        if line.contains('@') {
            let Ticket { invite, token } = line.parse()?;
            return Session::over_tls(&invite, &token, &self.options);
        }
        let invite: Invite = line.parse()?;
        let token = match &self.tokens {
            Some(path) => Token::from_file(path, &invite)?,
            None if !may_ask => {
                let (name, why) = (invite.address.to_string(), UNASKED.to_owned());
                return Err(landspeed_agent::session::Error::Unready { name, why });
            }
            None => Token::prompt(&invite)?,
        };
        Session::over_tls(&invite, &token, &self.options)
    }
}

/// Returns the command that restores a host of a topology after an interrupted run.
fn undo_command(place: &TopologyHost) -> String {
    match &place.reach {
        ReachMethod::Ssh(_) => format!("landspeed undo {}", place.name),
        // The hosts of a lab come with their links; the lab's own end restores them.
        ReachMethod::Namespace(_) if place.device.is_none() => format!("landspeed undo {}", place.name),
        ReachMethod::Namespace(_) | ReachMethod::Local => "landspeed undo".to_owned(),
        ReachMethod::Invite(_) => format!("run `landspeed undo` on {}", place.name),
    }
}

fn wants_to_ask(error: &Error) -> bool {
    let text = error.to_string();
    QUESTIONS.iter().any(|question| text.contains(question))
}
