//! The start of MPI's ranks on other hosts, without ssh: `landspeed-helpers spawn`.
//!
//! Open MPI can start its daemon on another host by any program that is called as `AGENT HOST COMMAND...`
//! (mca_plm_rsh_agent). [`run`] is that program. It sends a request to [`serve`], which runs on the other host. The
//! server starts Open MPI's daemon and nothing else, and only for clients that prove the trial's token.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use landspeed_proof::{DeadlineStream, Secret, receive_request, verify_server};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::accept::serve_each;

/// The only program that the server starts.
const DAEMON: &str = "orted";
/// Time limit for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between two checks of a running daemon.
const LOOK: Duration = Duration::from_millis(10);
/// The time limit for a daemon to end after SIGTERM.
const IN_ORDER: Duration = Duration::from_secs(3);
/// The first reply, which is sent once the daemon runs. The daemon's exit status follows.
const STARTED: u8 = b'+';
/// The longest request, in bytes.
const MOST: u32 = 64 << 10;
/// The largest number of requests that are served at a time.
const AT_ONCE: usize = 64;

/// Serves requests at the address `at` until this process ends.
///
/// # Errors
/// Returns an error if it cannot listen on the address.
pub fn serve(at: SocketAddr, secret: Secret) -> Result<(), String> {
    let listener = TcpListener::bind(at).map_err(|error| format!("cannot listen on {at}: {error}"))?;
    serve_on(&listener, secret, DAEMON);
    Ok(())
}

fn serve_on(listener: &TcpListener, secret: Secret, daemon: &str) {
    let daemon = daemon.to_owned();
    serve_each(listener, AT_ONCE, move |stream| {
        // A client that only probes the port sends no request, which is no error.
        if let Err(why) = answer(stream, secret, &daemon) {
            eprintln!("spawn: {why}");
        }
    });
}

/// Starts the daemon for one client's request, and sends the client the daemon's exit status.
fn answer(mut stream: TcpStream, secret: Secret, daemon: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let request = match receive_request(&mut DeadlineStream::new(&stream, PATIENCE), secret, MOST) {
        Ok(request) => request,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
        Err(error) => return Err(format!("a request was refused: {error}")),
    };
    let words: Vec<String> = landspeed_record::decode(&request)
        .map_err(|error| format!("a request that cannot be read: {error}"))?;
    let mut child = Command::new(daemon)
        .args(&words)
        .env_remove("LANDSPEED_TOKEN")
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot run {daemon}: {error}"))?;
    stream.write_all(&[STARTED]).map_err(failed)?;
    let code = ended(&mut child, &stream);
    let code = code.inspect_err(|_| {
        end(&mut child);
    })?;
    stream.write_all(&[code]).map_err(failed)
}

/// Waits for the end of a child and returns its exit status. Returns an error if the client first closes the connection
/// or sends anything.
fn ended(child: &mut Child, stream: &TcpStream) -> Result<u8, String> {
    stream.set_nonblocking(true).map_err(|error| error.to_string())?;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            stream.set_nonblocking(false).map_err(|error| error.to_string())?;
            return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX));
        }
        match stream.peek(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Ok(0) | Err(_) => return Err("the client hung up: what it had started was ended".to_owned()),
            Ok(_) => return Err("the client said something out of turn".to_owned()),
        }
    }
}

/// Ends a daemon by SIGTERM, so that it ends its ranks, which have their own process groups. After [`IN_ORDER`], it
/// is ended by SIGKILL.
fn end(child: &mut Child) {
    let Some(group) = Pid::from_raw(child.id().cast_signed()) else { return };
    let until = Instant::now() + IN_ORDER;
    let _ = kill_process_group(group, Signal::TERM);
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(LOOK);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Requests from the server at `host` the command that mpirun passes in `words`, and returns the command's exit
/// status.
///
/// # Errors
/// Returns an error if the host cannot be reached or closes the connection, or if the words start a program other than
/// the daemon.
pub fn run(host: SocketAddr, secret: Secret, words: &[String]) -> Result<u8, String> {
    let words = plain(words)?;
    let mut stream = TcpStream::connect_timeout(&host, PATIENCE).map_err(|error| {
        format!("cannot connect to {host}, where `landspeed-helpers spawn --listen` must run: {error}")
    })?;
    ask(&mut stream, secret, &words).map_err(|error| format!("cannot ask {host}: {error}"))?;
    let mut code = [0];
    let started = stream.read_exact(&mut code);
    started.map_err(|error| format!("{host} starts nothing: {error}"))?;
    let waits = stream.set_read_timeout(None);
    waits.map_err(|error| format!("cannot wait for {host}: {error}"))?;
    stream.read_exact(&mut code).map_err(|error| format!("{host} ended without an answer: {error}"))?;
    Ok(code[0])
}

/// Sends a request for a daemon with the arguments `words`.
fn ask(stream: &mut TcpStream, secret: Secret, words: &[String]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = serde_json::to_vec(words).map_err(std::io::Error::other)?;
    verify_server(stream, secret, &request)?.confirm(stream)
}

/// Returns the daemon's arguments. mpirun quotes them for a shell, and may pass them as one line.
fn plain(words: &[String]) -> Result<Vec<String>, String> {
    let line = words.join(" ");
    let words = shlex::split(&line).ok_or_else(|| format!("the quotes of '{line}' do not match"))?;
    match words.split_first() {
        // A daemon that detaches from its parent seems to have ended, although its ranks still run.
        Some((_, rest)) if rest.iter().any(|word| word == "--daemonize") => {
            Err("mpirun needs --leave-session-attached".to_owned())
        }
        Some((daemon, rest)) if daemon.rsplit('/').next() == Some(DAEMON) => Ok(rest.to_vec()),
        _ => Err(format!("only {DAEMON} is started on other hosts, not '{line}'")),
    }
}

#[cfg(test)]
mod tests {
    use landspeed_proof::ANSWER;

    use super::*;
    use crate::relay::{relay, replay};

    fn secret(token: &str) -> Secret {
        Secret::of(token, "spawn").unwrap()
    }

    /// Starts a server that runs `sh` in place of the daemon.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || serve_on(&listener, secret("secret"), "sh"));
        at
    }

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn who_knows_the_token_gets_the_exit_status() {
        let at = server();
        drop(TcpStream::connect(at).unwrap());
        assert_eq!(run(at, secret("secret"), &words(&[" orted", "-c", "\"exit 7\""])), Ok(7));
        assert!(
            run(at, secret("another"), &words(&["orted", "-c", "'exit 7'"]))
                .unwrap_err()
                .contains("does not know this run's token")
        );
        assert_eq!(run(at, secret("secret"), &words(&["orted -c 'exit 0'"])), Ok(0));
        assert!(run(at, secret("secret"), &words(&["sh", "-c", "true"])).unwrap_err().contains("only orted"));
    }

    #[test]
    fn the_token_is_never_sent_and_a_replay_starts_nothing() {
        let (at, folder) = (server(), tempfile::tempdir().unwrap());
        let (ear, relay) = relay(at);
        let file = folder.path().join("started");
        let asked = format!("'echo >> {}'", file.display());
        assert_eq!(run(ear, secret("secret"), &words(&["orted", "-c", &asked])), Ok(0));
        let said = relay.join().unwrap();
        assert!(!said.windows(6).any(|part| part == b"secret"));
        assert_eq!(replay(&said, at).len(), ANSWER, "the server's answer to a hello, and no more");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "\n", "it was started again");
    }

    #[test]
    fn a_child_ends_when_its_client_hangs_up() {
        let (at, folder) = (server(), tempfile::tempdir().unwrap());
        let file = folder.path().join("pid");
        let line = format!("echo $$ > {}; exec sleep 60", file.display());
        let mut stream = TcpStream::connect(at).unwrap();
        ask(&mut stream, secret("secret"), &words(&["-c", &line])).unwrap();
        let pid = || std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let until = |holds: &dyn Fn() -> bool| {
            (0..1000).any(|_| {
                holds() || {
                    std::thread::sleep(LOOK);
                    false
                }
            })
        };
        assert!(until(&|| pid().is_some()));
        let process = format!("/proc/{}", pid().unwrap());
        assert!(std::path::Path::new(&process).exists());
        drop(stream);
        assert!(until(&|| !std::path::Path::new(&process).exists()));
    }
}
