//! The init of a role's namespace: prepares the role, runs it, reaps its processes and reports the result.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::app::figure::tail;
use crate::app::play::InitMessage;
use crate::app::play::children::{self, ChildProgram};
use crate::app::play::directory::{self, furnish};
use crate::app::play::user::RoleUser;
use crate::app::{ReadyCondition, RoleOrder};

/// Interval at which orphans are reaped and a service's readiness is checked.
const LOOK: Duration = Duration::from_millis(10);
/// Pause between two readiness probes that run a command.
const AGAIN: Duration = Duration::from_millis(100);
/// Time limit of a probe of a port.
const PROBE: Duration = Duration::from_millis(200);
/// How long to wait for the rest of the output once a program has ended, because its children may still hold the pipe.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The longest line that is matched for readiness, in bytes.
const LINE: usize = 64 << 10;

/// Runs a role to its end. The namespace ends after this function returns.
pub(super) fn run(order: &RoleOrder) {
    if let Err(why) = RoleInit::prepared(order).and_then(RoleInit::play) {
        InitMessage::Failed { why }.say();
    }
    directory::abort_fuse();
}

struct RoleInit<'a> {
    order: &'a RoleOrder,
    user: RoleUser,
}

/// The agent's next order on the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentCommand {
    Nothing,
    Go,
    Stop,
    /// Report what the program has printed.
    Printed,
    /// The agent has closed the pipe.
    Gone,
}

impl<'a> RoleInit<'a> {
    fn prepared(order: &'a RoleOrder) -> Result<Self, String> {
        let user = RoleUser::find(&order.user)?;
        rustix::system::sethostname(order.host_name.as_bytes())
            .map_err(|error| format!("cannot name the host: {error}"))?;
        furnish(order, &user)?;
        Ok(RoleInit { order, user })
    }

    fn play(self) -> Result<(), String> {
        for words in &self.order.before {
            let program = children::start(words, self.order, &self.user, true)?;
            if self.to_the_end(program, true)?.is_none() {
                return Ok(());
            }
        }
        InitMessage::Prepared {}.say();
        loop {
            match hear(None).command {
                AgentCommand::Go => break,
                AgentCommand::Stop | AgentCommand::Gone => return Ok(()),
                AgentCommand::Nothing | AgentCommand::Printed => drop(children::reap()),
            }
        }
        let is_service = self.order.ready.is_some();
        let program = children::start(&self.order.command, self.order, &self.user, !is_service)?;
        match &self.order.ready {
            Some(ready) => self.serve(program, ready),
            None => {
                if let Some(ended) = self.to_the_end(program, false)? {
                    ended.say();
                }
                Ok(())
            }
        }
    }

    /// Waits for a program to end, and returns the message with its result; `None` if the agent orders the role to
    /// end first. If `must_succeed` is true, an unsuccessful exit is an error.
    fn to_the_end(
        &self,
        mut program: ChildProgram,
        must_succeed: bool,
    ) -> Result<Option<InitMessage>, String> {
        loop {
            match hear(Some(&mut program)).command {
                AgentCommand::Stop | AgentCommand::Gone => return Ok(None),
                AgentCommand::Printed => tell(&program),
                AgentCommand::Go | AgentCommand::Nothing => {}
            }
            if program.output.overflowed {
                return Err("it printed more than 4 MiB: have it print its figures only".to_owned());
            }
            if let Some(status) = status_of(program.pid) {
                let took_ns = program.began.elapsed().into();
                last_words(&mut program);
                let (wrong, output, errors) =
                    (children::wrong(status), program.output.text(), program.errors.text());
                if must_succeed && !wrong.is_empty() {
                    return Err(format!("a command before it: {wrong}{}", tail(&(output + "\n" + &errors))));
                }
                return Ok(Some(InitMessage::Ended { wrong, took_ns, output, errors }));
            }
        }
    }

    /// Runs a service until the agent ends it. Reports when the service is ready. Returns an error if the service
    /// ends by itself.
    fn serve(&self, mut program: ChildProgram, ready: &ReadyCondition) -> Result<(), String> {
        let mut probe = ReadinessProbe::new(ready)?;
        let mut is_ready = false;
        loop {
            let input = hear(Some(&mut program));
            match input.command {
                AgentCommand::Gone => return Ok(()),
                AgentCommand::Stop => return self.end(program),
                AgentCommand::Printed => tell(&program),
                AgentCommand::Go | AgentCommand::Nothing => {}
            }
            for (pid, status) in children::reap() {
                probe.ended(pid, status);
                if pid == program.pid {
                    last_words(&mut program);
                    let said = tail(&(program.output.text() + "\n" + &program.errors.text()));
                    let when = if is_ready { "while it served" } else { "before it was ready" };
                    let how = match children::wrong(status) {
                        wrong if wrong.is_empty() => {
                            "it ended (a service must stay in the foreground)".to_owned()
                        }
                        wrong => wrong,
                    };
                    return Err(format!("{how} {when}{said}"));
                }
            }
            if !is_ready && probe.is_over(&input.printed, self)? {
                is_ready = true;
                InitMessage::Ready {}.say();
            }
        }
    }

    /// Sends the service its end signal, and waits until the service ends, for at most the time limit of the
    /// application's file. Remaining processes end with the namespace.
    fn end(&self, mut program: ChildProgram) -> Result<(), String> {
        let until = Instant::now() + Duration::from(self.order.end.within_ns);
        let signal = Signal::from_named_raw(self.order.end.signal).unwrap_or(Signal::TERM);
        if let Some(pid) = Pid::from_raw(program.pid) {
            let _ = kill_process(pid, signal);
        }
        while Instant::now() < until && status_of(program.pid).is_none() {
            if hear(Some(&mut program)).command == AgentCommand::Gone {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Reaps all children that have ended, and returns the wait status of the program `pid` if it is among them.
fn status_of(pid: i32) -> Option<i32> {
    children::reap().into_iter().find(|(reaped, _)| *reaped == pid).map(|(_, status)| status)
}

/// Reports the last lines of a program's output so far to the agent.
fn tell(program: &ChildProgram) {
    InitMessage::Printed { text: tail(&(program.output.text() + "\n" + &program.errors.text())) }.say();
}

/// Reads the rest of the output of a program that has ended, for at most [`LAST_WORDS`].
fn last_words(program: &mut ChildProgram) {
    let until = Instant::now() + LAST_WORDS;
    while (program.output.pipe.is_some() || program.errors.pipe.is_some()) && Instant::now() < until {
        let read = program.output.read().len() + program.errors.read().len();
        if read == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The order and the output that the init received during one wait.
struct InitInput {
    command: AgentCommand,
    /// Output of the program, from both pipes.
    printed: Vec<u8>,
}

/// Waits up to [`LOOK`] for an order of the agent, or for `program` to print or to end. Returns the order and the
/// output.
fn hear(program: Option<&mut ChildProgram>) -> InitInput {
    let input = std::io::stdin();
    let is_there = {
        let mut fds = vec![PollFd::new(&input, PollFlags::IN)];
        if let Some(program) = &program {
            let pipes: [Option<BorrowedFd<'_>>; 2] = [
                program.output.pipe.as_ref().map(AsFd::as_fd),
                program.errors.pipe.as_ref().map(AsFd::as_fd),
            ];
            fds.extend(pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
            fds.push(PollFd::new(&program.ended, PollFlags::IN));
        }
        let timeout = Timespec::try_from(LOOK).unwrap_or_default();
        let _ = poll(&mut fds, Some(&timeout));
        !fds[0].revents().is_empty()
    };
    let printed =
        program.map_or_else(Vec::new, |program| [program.output.read(), program.errors.read()].concat());
    let command = if is_there { command_of(&input) } else { AgentCommand::Nothing };
    InitInput { command, printed }
}

/// Reads the agent's next order. The caller has checked that the input is readable, so the read does not wait.
fn command_of(input: &std::io::Stdin) -> AgentCommand {
    let mut byte = [0];
    match rustix::io::read(input, &mut byte) {
        Ok(0) | Err(_) => AgentCommand::Gone,
        Ok(_) if byte == *b"g" => AgentCommand::Go,
        Ok(_) if byte == *b"s" => AgentCommand::Stop,
        Ok(_) if byte == *b"w" => AgentCommand::Printed,
        Ok(_) => AgentCommand::Nothing,
    }
}

/// The check whether a service is ready, with the state that its readiness condition needs.
enum ReadinessProbe<'a> {
    Port(SocketAddr),
    Line { expression: Regex, line: Vec<u8> },
    Command { words: &'a [String], running: Option<i32>, succeeded: bool, next: Instant },
}

impl<'a> ReadinessProbe<'a> {
    fn new(ready: &'a ReadyCondition) -> Result<Self, String> {
        Ok(match ready {
            ReadyCondition::Port(at) => {
                ReadinessProbe::Port(at.parse().map_err(|_| format!("'{at}' is no address and port"))?)
            }
            ReadyCondition::Line(line) => ReadinessProbe::Line {
                expression: Regex::new(line).map_err(|error| error.to_string())?,
                line: Vec::new(),
            },
            ReadyCondition::Command(words) => {
                ReadinessProbe::Command { words, running: None, succeeded: false, next: Instant::now() }
            }
        })
    }

    /// Records the exit of the probe's command if its process is `pid`.
    fn ended(&mut self, pid: i32, status: i32) {
        if let ReadinessProbe::Command { running, succeeded, next, .. } = self
            && *running == Some(pid)
        {
            (*running, *succeeded, *next) = (None, status == 0, Instant::now() + AGAIN);
        }
    }

    /// Returns true if the service is ready. `new` is the output since the last call.
    fn is_over(&mut self, new: &[u8], init: &RoleInit<'_>) -> Result<bool, String> {
        match self {
            ReadinessProbe::Port(at) => Ok(TcpStream::connect_timeout(at, PROBE).is_ok()),
            ReadinessProbe::Line { expression, line } => {
                line.extend(new);
                let text = String::from_utf8_lossy(line).into_owned();
                if text.lines().any(|line| expression.is_match(line)) {
                    return Ok(true);
                }
                // Drops the complete lines, which did not match, and truncates an unfinished line to `LINE` bytes.
                let rest = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                line.drain(..rest);
                line.truncate(LINE);
                Ok(false)
            }
            ReadinessProbe::Command { succeeded: true, .. } => Ok(true),
            ReadinessProbe::Command { words, running, next, .. } => {
                if running.is_none() && Instant::now() >= *next {
                    *running = Some(children::probe(words, init.order, &init.user)?);
                }
                Ok(false)
            }
        }
    }
}
