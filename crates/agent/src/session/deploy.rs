//! Starting an agent, over the user's ssh, on a host that need not have landspeed.
//!
//! The far side's /bin/sh reads two scripts from its standard input. `find.sh` starts the landspeed that is installed
//! there, or requests `take.sh`, which receives this landspeed. Each request of the far side is a line that begins with
//! [`ASKS`]. After `find.sh`, nothing is sent without a request, so that no shell and no `head` reads more than its own
//! input. Everything else that the far side prints before the first frame of the agent is a login shell's greeting.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use landspeed_record::units::{Bytes, Nanos, quoted};
use landspeed_workload::app::helpers;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

use crate::session::child::OutputTail;
use crate::session::error::WAIT_LONGER;
use crate::session::frame::FrameError;
use crate::session::lean::lean;
use crate::session::pace::HostPace;
use crate::session::{BUILD, Error, LineSink, Options, SharedStart, SshHost, one_line, secret};

/// Prefix of the far side's requests: "script", "file FOLDER" or "refuse WHY" on standard output, "password" on
/// standard error.
const ASKS: &str = "@landspeed ";
/// The largest number of bytes that a host may print before its agent's first frame.
const LONGEST_GREETING: usize = 64 * 1024;
/// The first bytes of a first frame; `None` matches any byte. They are a length of less than 2^24 and the beginning of
/// a JSON object with a name in it. A greeting does not contain this sequence.
const FRAME: [Option<u8>; 6] = [Some(0), None, None, None, Some(b'{'), Some(b'"')];

/// The agent to start on a host reached by ssh.
#[derive(Debug, Clone, Copy)]
pub struct AgentLaunch<'a> {
    /// Arguments of the agent, after `landspeed`.
    pub words: &'a [&'a str],
    /// True if the agent must run as root.
    pub root: bool,
    /// The landspeed to send if this build is not installed on the host.
    pub own: &'a Path,
    /// True if the landspeed that was sent stays in the cache folder of the user that the agent runs as.
    pub keep: bool,
}

/// The controller's part of starting an agent over ssh.
pub(crate) struct Deployment {
    name: String,
    find: String,
    /// The beginning of `take.sh` and the path of the file to send; `None` once the far side has requested the script.
    take: Option<(String, std::path::PathBuf)>,
    file: Option<Vec<u8>>,
    may_ask: bool,
    asked: UnboundedReceiver<()>,
    times_asked: u32,
    /// True while ssh may wait for a person who types, whose time is no pace of the host.
    ssh_may_ask: bool,
    /// Notified of each line that the far side prints on standard error.
    printed: Arc<Notify>,
    /// The step of the far side that is waited for.
    awaited: &'static str,
    /// The least time limit of a wait without progress.
    limit: Nanos,
    pace: HostPace,
    start: Option<SharedStart>,
    notices: LineSink,
    greeting: OutputTail,
}

impl Deployment {
    /// Returns a deployment, and the sink for the far side's standard error, which also carries requests for sudo's
    /// password. `pace` is the pace of the host.
    pub(crate) fn new(
        host: &SshHost,
        launch: &AgentLaunch<'_>,
        options: &Options,
        pace: &HostPace,
    ) -> (Deployment, LineSink) {
        let name = host.destination().to_owned();
        let (ask, asked) = unbounded_channel();
        let (question, lines) = (format!("{name}: {ASKS}password"), options.lines.clone());
        let printed = Arc::new(Notify::new());
        let prints = Arc::clone(&printed);
        let stderr = LineSink::new(move |line| {
            prints.notify_one();
            match line == question {
                true => drop(ask.send(())),
                false => lines.say(line),
            }
        });
        let yes = |yes| if yes { "yes" } else { "no" };
        let words: String = launch.words.iter().map(|word| format!(" {}", quoted(word))).collect();
        let find = script(
            &format!(
                "version={} machine={} given={} root={} ask={}\nset --{words}",
                quoted(BUILD),
                std::env::consts::ARCH,
                host.remote_path(),
                yes(launch.root),
                yes(host.may_ask())
            ),
            include_str!("deploy/find.sh"),
        );
        let take = format!("keep={}\nset --{words} --sent", yes(launch.keep));
        let deployment = Deployment {
            name,
            find,
            take: Some((take, launch.own.to_owned())),
            file: None,
            may_ask: host.may_ask() && launch.root,
            asked,
            times_asked: 0,
            ssh_may_ask: host.may_ask(),
            printed,
            awaited: "a login",
            limit: options.handshake,
            pace: pace.clone(),
            start: options.start.clone(),
            notices: options.notices.clone(),
            greeting: OutputTail::default(),
        };
        (deployment, stderr)
    }

    /// Keeps the far side's greeting in `greeting`, which is quoted if the far side ends early and prints no other
    /// reason.
    pub(crate) fn quoting(mut self, greeting: OutputTail) -> Self {
        self.greeting = greeting;
        self
    }

    /// Starts the agent through the connection `reader` and `writer`. Returns a reader of the agent's output that
    /// begins with its first frame.
    pub(crate) async fn run<R, W>(
        mut self,
        mut reader: R,
        writer: &mut W,
    ) -> Result<impl AsyncRead + use<R, W>, Error>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.send(writer, self.find.clone().as_bytes()).await?;
        let mut line = Vec::new();
        let mut last = [1; FRAME.len()];
        let mut greeted = 0;
        while greeted <= LONGEST_GREETING {
            greeted += 1;
            let (begun, limit) = (Instant::now(), self.pace.limit(self.limit));
            let byte = tokio::select! {
                byte = next(&mut reader) => byte.map_err(|source| self.failed(source))?,
                Some(()) = self.asked.recv() => {
                    let password = self.password()?;
                    self.send(writer, password.as_bytes()).await?;
                    continue;
                }
                // A line on standard error shows that the login makes progress.
                () = self.printed.notified() => continue,
                () = sleep(limit.into()) => return Err(self.slow(self.awaited, limit)),
            };
            if !std::mem::take(&mut self.ssh_may_ask) {
                self.pace.took(begun.elapsed());
            }
            self.awaited = "its agent to start";
            last.rotate_left(1);
            last[FRAME.len() - 1] = byte;
            if begins_frame(&last) {
                return Ok(std::io::Cursor::new(last).chain(reader));
            }
            match byte {
                b'\n' => {
                    let said = one_line(&String::from_utf8_lossy(&std::mem::take(&mut line)));
                    self.heed(&said, writer).await?;
                }
                byte => line.push(byte),
            }
        }
        let text = one_line(&String::from_utf8_lossy(&line[..line.len().min(40)]));
        Err(self.failed(FrameError::Text(text)))
    }

    /// Handles a line of the far side: fulfils a request, or keeps a line of the greeting.
    async fn heed(&mut self, said: &str, writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), Error> {
        let Some(wish) = said.strip_prefix(ASKS) else {
            if !said.is_empty() {
                self.greeting.push(said.to_owned());
            }
            return Ok(());
        };
        match (wish.split_once(' '), wish) {
            (Some(("refuse", why)), _) => {
                Err(Error::Unready { name: self.name.clone(), why: why.to_owned() })
            }
            (Some(("file", folder)), _) => {
                let file = self.file.take().ok_or_else(|| self.unasked(wish))?;
                self.await_others().await?;
                let size = Bytes(file.len() as u64);
                self.notices.say(&format!("sending landspeed ({size}) to {folder} of {} ...", self.name));
                self.send(writer, &file).await
            }
            (_, "script") => {
                let script = self.take_script()?;
                self.send(writer, script.as_bytes()).await
            }
            _ => Err(self.unasked(wish)),
        }
    }

    /// Waits until the other hosts of a start have passed their checks.
    async fn await_others(&self) -> Result<(), Error> {
        let Some(start) = &self.start else { return Ok(()) };
        match start.first_failed().await {
            Some(failed) => Err(Error::NotSent { name: self.name.clone(), failed }),
            None => Ok(()),
        }
    }

    /// Returns the script `take.sh` with the checksum and the length of the file to send. The file is read only now,
    /// because a host with this build installed never requests the script.
    fn take_script(&mut self) -> Result<String, Error> {
        let (mut head, own) = self.take.take().ok_or_else(|| self.unasked("script"))?;
        let file = sent(&own).map_err(Error::system("read landspeed's own file"))?;
        let sum = ring::digest::digest(&ring::digest::SHA256, &file);
        let _ = write!(head, "\nsha={} length={}", HEXLOWER.encode(sum.as_ref()), file.len());
        self.file = Some(file);
        Ok(script(&head, include_str!("deploy/take.sh")))
    }

    /// Returns sudo's password, read from the terminal. It never goes on a command line or into a log.
    fn password(&mut self) -> Result<String, Error> {
        if !self.may_ask {
            return Err(self.unasked("password"));
        }
        self.times_asked += 1;
        let again = if self.times_asked > 1 { "sudo did not accept it. " } else { "" };
        let line = secret::prompt(&format!("{again}{}: password for sudo: ", self.name))?;
        Ok(format!("{}\n", line.trim_end_matches('\n')))
    }

    /// Sends all of `bytes`; the time limit applies to each part that the far side takes. Returns `Ok` also if the far
    /// side is gone, because the caller next reads what the far side printed before, which explains more.
    async fn send(&self, writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), Error> {
        let (begun, mut rest) = (Instant::now(), bytes);
        while !rest.is_empty() {
            let limit = self.pace.limit(self.limit);
            match timeout(limit.into(), writer.write(rest)).await {
                Err(_) => return Err(self.slow("it to take what is sent", limit)),
                Ok(Err(_) | Ok(0)) => return Ok(()),
                Ok(Ok(taken)) => rest = &rest[taken..],
            }
        }
        // ssh holds megabytes that it has not sent yet, which take as long as the first ones.
        self.pace.took(begun.elapsed());
        Ok(())
    }

    fn failed(&self, source: FrameError) -> Error {
        Error::Handshake { name: self.name.clone(), source }
    }

    fn slow(&self, awaited: &'static str, limit: Nanos) -> Error {
        Error::Slow { name: self.name.clone(), limit, awaited, remedy: WAIT_LONGER }
    }

    fn unasked(&self, wish: &str) -> Error {
        self.failed(FrameError::Unknown(format!("it asks for \"{wish}\" where it may not")))
    }
}

/// Returns the bytes to send: the program at `own`, followed by the helpers program if it is in the same folder. Debug
/// sections, which can be three quarters of a program, are removed from both.
fn sent(own: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = lean(std::fs::read(own)?);
    if let Some(mut beside) = helpers::beside(own) {
        let mut program = Vec::new();
        std::io::copy(&mut beside, &mut program)?;
        helpers::append(&mut file, &lean(program));
    }
    Ok(file)
}

fn begins_frame(last: &[u8]) -> bool {
    last.iter().zip(FRAME).all(|(byte, wanted)| wanted.is_none_or(|wanted| wanted == *byte))
}

async fn next(reader: &mut (impl AsyncRead + Unpin)) -> Result<u8, FrameError> {
    let mut byte = [0];
    match reader.read(&mut byte).await? {
        0 => Err(FrameError::Closed),
        _ => Ok(byte[0]),
    }
}

/// Returns `head` and `body` as one compound command, which a shell reads to its end before it runs it.
fn script(head: &str, body: &str) -> String {
    format!("{{\n{head}\n{body}}}\n")
}

#[cfg(test)]
mod tests;
