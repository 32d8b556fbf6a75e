//! The agent's side of a role: starts, watches and ends the role's process.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use landspeed_record::units::{EscapedText, Nanos};

use crate::app::figure::tail;
use crate::app::fill::{DIR, HELPERS, OWN};
use crate::app::play::{InitMessage, PATH};
use crate::app::{
    Application, ApplicationRole, Error, PlaceholderValues, RoleOrder, check, fill, framed, helpers,
};

/// Interval at which a waiting call checks if it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit for a role to report its output.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Time limit for a role's namespace to end after the pipe of orders was closed. After that, the role's process is
/// killed.
const GOING: Duration = Duration::from_secs(2);
/// The longest line that is read from the init, in bytes.
const MOST_LINE: u64 = 64 << 20;

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandResult {
    /// Standard output of the command.
    pub(crate) output: String,
    /// Running time of the command.
    pub(crate) took: Nanos,
}

/// A role that runs on this host. Dropping it ends all its processes and removes its files.
#[derive(Debug)]
pub(crate) struct RoleProcess {
    name: String,
    within: Nanos,
    process: Child,
    /// The pipe of orders; closing it ends the role.
    orders: Option<ChildStdin>,
    messages: Receiver<InitMessage>,
    ends_within: Duration,
}

impl RoleProcess {
    /// Starts the role's process, which prepares the role's directory and runs the commands that precede the role's
    /// own.
    ///
    /// # Errors
    /// Returns an error if a program is not on this host, or if the process cannot be started.
    pub(crate) fn start(
        application: &Application,
        role: &ApplicationRole,
        placeholders: &PlaceholderValues<'_>,
        cores: &[u32],
    ) -> Result<RoleProcess, Error> {
        let order = order(application, role, placeholders, cores);
        lacks(application, &order)?;
        let path = application.value(check::PATH, placeholders.parameters);
        let order = over(order, path, role.is_service(), placeholders.token);
        let failed = |source| Error::Start { role: role.name.clone(), source };
        let mut process = Command::new("/proc/self/exe")
            .arg0("landspeed")
            .arg("play-role")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut orders = process.stdin.take().expect("piped");
        let messages = listen(process.stdout.take().expect("piped"));
        let sent = framed::send(&mut orders, &order);
        let role = RoleProcess {
            name: role.name.clone(),
            within: role.within,
            process,
            orders: Some(orders),
            messages,
            ends_within: role.end.within_ns.into(),
        };
        sent.map_err(failed)?;
        Ok(role)
    }

    /// Waits until the command can begin.
    ///
    /// # Errors
    /// Returns an error if a step of the preparation failed or takes too long, with the output of that step.
    pub(crate) fn prepared(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        match self.hear("to prepare", cancelled)? {
            InitMessage::Prepared {} => Ok(()),
            other => Err(self.wrong(other)),
        }
    }

    /// Lets the command begin.
    pub(crate) fn go(&mut self) {
        self.order(b'g');
    }

    /// Waits until the service is ready.
    ///
    /// # Errors
    /// Returns an error if the service has ended or takes too long, with what it printed last.
    pub(crate) fn ready(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), Error> {
        match self.hear("to be ready", cancelled)? {
            InitMessage::Ready {} => Ok(()),
            other => Err(self.wrong(other)),
        }
    }

    /// Returns the result of a command that runs to its end; `None` if the command still runs after `wait`. `so_far`
    /// is its running time until now, which is compared with the role's time limit.
    ///
    /// # Errors
    /// Returns an error if the command did not exit with 0 or takes too long, with what it printed last.
    pub(crate) fn ended(&mut self, wait: Duration, so_far: Duration) -> Result<Option<CommandResult>, Error> {
        match self.messages.recv_timeout(wait) {
            Ok(InitMessage::Ended { wrong, took_ns, output, .. }) if wrong.is_empty() => {
                Ok(Some(CommandResult { output, took: took_ns }))
            }
            Ok(other) => Err(self.wrong(other)),
            Err(RecvTimeoutError::Timeout) if so_far > Duration::from(self.within) => {
                Err(self.slow("to end"))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
        }
    }

    /// Checks that a service still runs.
    ///
    /// # Errors
    /// Returns an error with the reason if the service has ended, and with the last lines of its output.
    pub(crate) fn check_serving(&self) -> Result<(), Error> {
        match self.messages.try_recv() {
            Err(std::sync::mpsc::TryRecvError::Empty) => Ok(()),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Err(self.gone()),
            Ok(said) => Err(self.wrong(said)),
        }
    }

    /// Ends the role: a service by its signal, and after the time limit of its file by SIGKILL.
    pub(crate) fn end(mut self) {
        self.order(b's');
        self.leave(self.ends_within);
    }

    fn order(&mut self, byte: u8) {
        if let Some(orders) = &mut self.orders {
            // An error is ignored, because a failed role reports the reason itself.
            let _ = orders.write_all(&[byte]).and_then(|()| orders.flush());
        }
    }

    fn hear(&mut self, doing: &'static str, cancelled: &dyn Fn() -> bool) -> Result<InitMessage, Error> {
        let until = Instant::now() + Duration::from(self.within);
        loop {
            match self.messages.recv_timeout(LOOK) {
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if cancelled() => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Timeout) if Instant::now() > until => return Err(self.slow(doing)),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the error of a role that takes too long, with its output so far.
    fn slow(&mut self, doing: &'static str) -> Error {
        self.order(b'w');
        let said = match self.messages.recv_timeout(LAST_WORDS) {
            Ok(InitMessage::Printed { text }) => text,
            _ => String::new(),
        };
        Error::Slow { role: self.name.clone(), within: self.within, doing, said }
    }

    fn gone(&self) -> Error {
        Error::Role { role: self.name.clone(), why: "its process was killed".to_owned() }
    }

    fn wrong(&self, said: InitMessage) -> Error {
        let why = match said {
            InitMessage::Failed { why } => EscapedText::from(why).to_string(),
            InitMessage::Ended { wrong, output, errors, .. } => {
                format!("{wrong}{}", tail(&(output + "\n" + &errors)))
            }
            InitMessage::Prepared {} | InitMessage::Ready {} | InitMessage::Printed { .. } => {
                "it said something out of turn".to_owned()
            }
        };
        Error::Role { role: self.name.clone(), why }
    }

    /// Waits up to `patience` for the role to end, then ends its namespace, and returns once the role's process has
    /// ended.
    fn leave(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        while Instant::now() < until && !self.has_gone() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Closing the pipe of orders ends the init, and with it the namespace.
        self.orders = None;
        let until = Instant::now() + GOING;
        while !self.has_gone() {
            if Instant::now() > until {
                let _ = self.process.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_gone(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        self.leave(Duration::ZERO);
    }
}

/// Returns the order of a role, with all placeholders filled in.
fn order(
    application: &Application,
    role: &ApplicationRole,
    placeholders: &PlaceholderValues<'_>,
    cores: &[u32],
) -> RoleOrder {
    let fill = |text: &str| fill(text, placeholders, &application.parameters);
    let all = |words: &Vec<String>| words.iter().map(|word| fill(word)).collect::<Vec<_>>();
    let files = role.files.iter().map(|file| crate::app::Fixture {
        path: file.path.clone(),
        content: match &file.content {
            crate::app::FixtureContent::Text(text) => crate::app::FixtureContent::Text(fill(text)),
            seeded => seeded.clone(),
        },
    });
    let ready = role.ready.as_ref().map(|ready| match ready {
        crate::app::ReadyCondition::Port(at) => crate::app::ReadyCondition::Port(fill(at)),
        crate::app::ReadyCondition::Command(words) => crate::app::ReadyCondition::Command(all(words)),
        line => line.clone(),
    });
    RoleOrder {
        command: all(&role.command),
        before: role.before.iter().map(all).collect(),
        files: files.collect(),
        env: role.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
        user: role.user.clone(),
        disk: role.disk,
        hides: role.hides.clone(),
        host_name: format!("host{}", placeholders.number),
        ready,
        cores: cores.to_vec(),
        end: role.end,
    }
}

/// Options of a path for a role that fails if one of its connections stays on TCP. It waits longer than other programs
/// for a service that accepts late, as on a busy host.
const STRICT: [&str; 3] = ["--require", "--patience", "1s"];

/// Changes the order so that the command's connections use the path `path`. A role that runs to its end fails if one of
/// its connections stayed on TCP. A service does not fail in this case, because other programs may connect to it. The
/// trial's `token` is the name of the path's network. Only the roles of this trial have this name, and their hosts have
/// distinct addresses.
fn over(mut order: RoleOrder, path: &str, is_service: bool, token: &str) -> RoleOrder {
    let plain = landspeed_path::find(path).is_none_or(|path| path.rules().is_empty());
    if plain {
        return order;
    }
    let strict = (!is_service).then_some(STRICT).into_iter().flatten();
    let words = [OWN, "exec", "--path", path].into_iter().chain(strict).chain(["--"]).map(str::to_owned);
    order.env.push((landspeed_path::NET.to_owned(), token.to_owned()));
    RoleOrder { command: words.chain(order.command).collect(), ..order }
}

/// Returns an error if this host does not have a program of the role's commands. The error names the package.
fn lacks(application: &Application, order: &RoleOrder) -> Result<(), Error> {
    if order.calls(HELPERS) && helpers::open().is_none() {
        let package = "it beside landspeed itself (in a clone: cargo build -p landspeed-helpers)".to_owned();
        return Err(Error::Missing { program: helpers::NAME.to_owned(), package });
    }
    let mut programs = order.before.iter().chain([&order.command]).map(|words| words[0].as_str());
    let is_own = |program: &&str| program.starts_with(OWN) || program.starts_with(HELPERS);
    let Some(program) = programs.find(|program| !is_own(program) && !is_there(program)) else {
        return Ok(());
    };
    let need = application.needs.iter().find(|need| need.command == program);
    let package = need.map_or("it, or name the whole path of the program", |need| need.package.as_str());
    Err(Error::Missing { program: program.to_owned(), package: package.to_owned() })
}

fn is_there(program: &str) -> bool {
    // A relative path is in the role's directory, which is made later.
    program.contains('/')
        && (!program.starts_with('/') || std::path::Path::new(program).exists() || program.starts_with(DIR))
        || PATH.split(':').any(|folder| std::path::Path::new(folder).join(program).exists())
}

/// Returns the init's messages as they arrive; the channel closes once the init has ended.
fn listen(output: ChildStdout) -> Receiver<InitMessage> {
    let (tell, messages) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while (&mut output).take(MOST_LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let Ok(word) = serde_json::from_slice(&line) else { break };
            if tell.send(word).is_err() {
                break;
            }
            line.clear();
        }
    });
    messages
}
