//! Opens sessions with agents on the hosts of a topology.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landspeed_agent::session::{AgentLaunch, Invite, Options, Session, SharedStart, SshHost, Ticket, Token};
use landspeed_lab::topology::{self, ReachMethod, TopologyHost, with_namespace};

use crate::{Error, Host};

/// Options for reaching hosts. They apply to all hosts of a command line.
#[derive(Debug, Clone, Default)]
pub struct ReachOptions {
    /// True if knobs will be set, which needs root on the host.
    pub tune: bool,
    /// True if no agent becomes root by sudo, even if knobs will be set. Such an agent also reads and writes files,
    /// which must happen only with the rights of the login user.
    pub as_login: bool,
    /// Path of the landspeed to run on hosts reached by ssh. If `None`, an installed landspeed of this build is run, or
    /// else this landspeed is copied there.
    pub remote_path: Option<String>,
    /// True if a copy of the program that was sent to a host stays there, so that later sessions need not send it
    /// again.
    pub keep_agent: bool,
    /// Options for ssh, each in the format of the argument of -o.
    pub ssh_options: Vec<String>,
    /// File with the tokens of agents that were started by hand: the lines that they printed, or only a token. If
    /// `None`, the user is asked.
    pub tokens: Option<PathBuf>,
    /// Path of the landspeed that runs as the agent on this machine. If `None`, it is the running program, which must
    /// then be landspeed itself.
    pub agent: Option<PathBuf>,
    pub options: Options,
}

/// Texts in the errors of hosts that need an answer of the user: a password, a host key, or an agent's token.
const QUESTIONS: [&str; 4] =
    ["Permission denied", "Host key verification failed", "password is required", UNASKED];
const UNASKED: &str = "its token was not asked for";

impl ReachOptions {
    /// Reaches all hosts in parallel, each for itself. Hosts that need an answer of the user are tried again afterwards,
    /// one at a time, so that there is one question at a time.
    pub fn hosts(&self, places: &[TopologyHost]) -> Vec<Result<Host, Error>> {
        self.each(places, vec![None; places.len()])
    }

    /// Reaches hosts that are all needed, as [`Self::hosts`] does, but sends landspeed to none before all passed the
    /// cheap checks.
    pub fn hosts_together(&self, places: &[TopologyHost]) -> Vec<Result<Host, Error>> {
        self.each(places, SharedStart::of(places.len()).into_iter().map(Some).collect())
    }

    fn each(&self, places: &[TopologyHost], starts: Vec<Option<SharedStart>>) -> Vec<Result<Host, Error>> {
        let asks = places.len() > 1 && std::io::stdin().is_terminal();
        let reached: Vec<_> = std::thread::scope(|scope| {
            let one = |(place, start)| scope.spawn(move || self.reach(place, !asks, start));
            let reaching: Vec<_> = places.iter().zip(starts).map(one).collect();
            reaching.into_iter().map(|one| one.join().expect("reaching does not panic")).collect()
        });
        let again = |(place, reached): (&TopologyHost, Result<Host, Error>)| match reached {
            Err(error) if asks && wants_to_ask(&error) => self.host(place),
            other => other,
        };
        places.iter().zip(reached).map(again).collect()
    }

    /// Reaches one host. It may ask the user for an answer.
    pub fn host(&self, place: &TopologyHost) -> Result<Host, Error> {
        self.reach(place, true, None)
    }

    fn reach(&self, place: &TopologyHost, may_ask: bool, start: Option<SharedStart>) -> Result<Host, Error> {
        let options = Options { start: start.clone(), ..self.options.clone() };
        let session = self.session(place, may_ask, &options);
        match (&session, start) {
            // The user is asked later.
            (Err(error), Some(start)) if may_ask || !wants_to_ask(error) => start.fail(&place.name),
            (_, Some(start)) => start.pass(),
            (_, None) => {}
        }
        let mut host = Host::probe(session?)?;
        host.undo_command = undo_command(place);
        if let ReachMethod::Guest(_) = place.reach {
            // The session has the name of the login.
            host.name.clone_from(&place.name);
        }
        Ok(host)
    }

    /// Opens a session with the agent of a host. If `may_ask` is false, a question to the user becomes an error.
    fn session(&self, host: &TopologyHost, may_ask: bool, options: &Options) -> Result<Session, Error> {
        let failed = |source| Error::Reach { source };
        match &host.reach {
            ReachMethod::Namespace(name) => {
                // Only this process can name the remedy: the agent's own message would arrive as that of a program that
                // failed.
                if !topology::exists(name) {
                    return Err(topology::Error::NoNamespace(name.clone()).into());
                }
                let agent = self.child(&["--netns", name])?;
                Session::over_child(&host.name, agent, options).map_err(failed)
            }
            ReachMethod::Local => {
                let agent = self.child(&[])?;
                Session::over_child(&host.name, agent, options).map_err(failed)
            }
            ReachMethod::Ssh(destination) => self.ssh(destination, &[], may_ask, options).map_err(failed),
            ReachMethod::Guest(login) => {
                let ssh = || self.ssh(&login.destination, &login.options, false, options);
                with_namespace(&login.netns, ssh)?.map_err(failed)
            }
            ReachMethod::Invite(line) => self.invited(line.line(), may_ask).map_err(failed),
        }
    }

    /// Returns the command that starts an agent on this machine. It has its own process group, so that Ctrl-C reaches
    /// only the controller, which then ends the session properly.
    fn child(&self, extra: &[&str]) -> Result<Command, Error> {
        let mut command = match self.is_root() && !rustix::process::geteuid().is_root() {
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

    /// Returns the path of the agent's program. The default is this program, by a path that is valid even if the file
    /// was replaced or deleted.
    fn own(&self) -> &Path {
        self.agent.as_deref().unwrap_or(Path::new("/proc/self/exe"))
    }

    /// Returns true if agents are started as root, by sudo where the login is another user.
    fn is_root(&self) -> bool {
        self.tune && !self.as_login
    }

    /// Returns the arguments of the agent.
    fn words(&self) -> &'static [&'static str] {
        if self.tune { &["agent", "--stdio", "--allow-tune"] } else { &["agent", "--stdio"] }
    }

    /// Opens a session over ssh. Its options `own` take precedence over the user's.
    fn ssh(
        &self,
        destination: &str,
        own: &[String],
        may_ask: bool,
        options: &Options,
    ) -> Result<Session, landspeed_agent::session::Error> {
        let all = own.iter().chain(&self.ssh_options);
        let words: Vec<&str> = all.flat_map(|option| ["-o", option]).collect();
        let host = SshHost::new(destination)?.with_options(&words);
        let host = if may_ask { host } else { host.with_questions(false) };
        let host = match &self.remote_path {
            Some(path) => host.with_remote_path(path)?,
            None => host,
        };
        let launch =
            AgentLaunch { words: self.words(), root: self.is_root(), own: self.own(), keep: self.keep_agent };
        Session::over_ssh(&host, &launch, options)
    }

    /// Opens a session with the agent that printed `line`. If the line has no token, the token is read from the file of
    /// tokens, or the user is asked.
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
        // Its settings end with it.
        ReachMethod::Guest(_) => "landspeed lab down".to_owned(),
        // A namespace without a device is not a lab's. The hosts of a lab have devices, and the end of the lab restores
        // them.
        ReachMethod::Namespace(_) if place.device.is_none() => format!("landspeed undo {}", place.name),
        ReachMethod::Namespace(_) | ReachMethod::Local => "landspeed undo".to_owned(),
        ReachMethod::Invite(_) => format!("run `landspeed undo` on {}", place.name),
    }
}

fn wants_to_ask(error: &Error) -> bool {
    let text = error.to_string();
    QUESTIONS.iter().any(|question| text.contains(question))
}
