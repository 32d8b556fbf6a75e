//! Sessions over the stdio of a real process.
//!
//! ```text
//!   this test = controller -- stdin, stdout, stderr --> examples/test_agent
//! ```

mod broken;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use landspeed_agent::session::{AgentLaunch, Error, LineSink, Options, Reply, Request, Session, SshHost};
use landspeed_record::units::Nanos;
use parking_lot::Mutex;

/// Path of the test agent. Cargo builds a package's examples with its tests, beside the tests' own folder, but not if
/// only this test target is requested.
fn agent_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/test_agent");
    assert!(program.exists(), "build it first: cargo build -p landspeed-agent --examples");
    program
}

/// A test agent, and the file into which it writes the reason of its end.
struct ChildAgent {
    folder: tempfile::TempDir,
    lease_ms: u64,
}

impl ChildAgent {
    fn new() -> ChildAgent {
        ChildAgent { folder: tempfile::tempdir().unwrap(), lease_ms: 20_000 }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(agent_program());
        command.arg(self.gone_file()).arg(self.lease_ms.to_string());
        command
    }

    fn gone_file(&self) -> PathBuf {
        self.folder.path().join("gone")
    }

    fn gone(&self) -> String {
        std::fs::read_to_string(self.gone_file()).unwrap_or_default()
    }

    fn session(&self, options: &Options) -> Session {
        Session::over_child("host-a", self.command(), options).unwrap()
    }

    /// Runs an agent with `bytes` on its stdin, and returns its output. After the bytes, its stdin is closed if
    /// `then_close` is true, and otherwise stays open.
    fn raw(&self, bytes: &[u8], then_close: bool) -> Output {
        let piped = Stdio::piped;
        let mut agent = self.command().stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
        let mut stdin = agent.stdin.take().unwrap();
        // The agent may leave in the middle of an input that is too large for it.
        let _ = stdin.write_all(bytes);
        if then_close {
            drop(stdin);
            return agent.wait_with_output().unwrap();
        }
        let output = agent.wait_with_output().unwrap();
        drop(stdin);
        output
    }
}

/// Options with long limits, so that a busy machine does not end sessions.
fn options() -> Options {
    Options { lease: Nanos::secs(20), ..Options::default() }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn framed(json: &str) -> Vec<u8> {
    [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const HELLO: &str = r#"{"hello":{"protocol":10,"landspeed":"0.1.0","mood":"unknown fields are ignored"}}"#;

#[test]
fn both_ends_know_each_other_and_a_goodbye_restores_everything_first() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    assert_eq!(session.name(), "host-a");
    assert_eq!(session.peer().landspeed, env!("CARGO_PKG_VERSION"));
    session.close();
    assert_eq!(agent.gone(), "done");
}

#[test]
fn answers_overtake_each_other_and_stray_prints_do_not_reach_the_frames() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let signal = agent.folder.path().join("signal");
    let slow = session.start(&Request::Knobs { device: signal.to_str().unwrap().to_owned() }).unwrap();
    let Reply::Facts { facts } = session.call(&Request::Probe {}).unwrap() else { panic!("no facts") };
    assert_eq!(facts.hostname, "tested");
    assert_eq!(session.call(&Request::Close { port: 77 }).unwrap(), Reply::Listening { port: 77 });
    std::fs::write(&signal, "").unwrap();
    assert_eq!(slow.wait(Nanos::secs(20)).unwrap(), Reply::Done {});
}

#[test]
fn threads_may_share_a_session() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    std::thread::scope(|scope| {
        for port in 100..120 {
            let session = &session;
            scope.spawn(move || {
                let reply = session.call(&Request::Close { port }).unwrap();
                assert_eq!(reply, Reply::Listening { port });
            });
        }
    });
}

#[test]
fn a_refusal_and_a_panic_are_one_line_and_the_session_goes_on() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let error = session.call(&Request::Restore {}).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }));
    assert_eq!(error.to_string(), "no restore in tests");
    let error = session.call(&Request::Close { port: 1 }).unwrap_err().to_string();
    assert_eq!(error, "the agent panicked at close, a bug in landspeed: port one\\nis lava");
    assert!(session.call(&Request::Close { port: 9 }).is_ok());
}

#[test]
fn a_message_too_large_for_a_frame_is_refused_at_its_own_end() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let error = session.call(&Request::Knobs { device: "x".repeat(300 * 1024) }).unwrap_err().to_string();
    assert!(error.starts_with("the request cannot be sent: a frame of 307"), "{error}");
    let error = session.call(&Request::Knobs { device: "huge".to_owned() }).unwrap_err().to_string();
    assert!(error.starts_with("the agent's answer does not fit: a frame of 16777"), "{error}");
    assert!(session.call(&Request::Close { port: 9 }).is_ok());
}

#[test]
fn too_many_requests_at_once_are_refused() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let signal = agent.folder.path().join("signal");
    let wait = Request::Knobs { device: signal.to_str().unwrap().to_owned() };
    let pending: Vec<_> = (0..33).map(|_| session.start(&wait).unwrap()).collect();
    // Requests are taken in order, so an answer to this one means that all earlier ones were taken.
    let error = session.call(&Request::Close { port: 9 }).unwrap_err().to_string();
    assert!(error.starts_with("32 requests are under way"), "{error}");
    std::fs::write(&signal, "").unwrap();
    let answers = pending.into_iter().map(|pending| pending.wait(Nanos::secs(20)));
    assert_eq!(answers.filter(Result::is_ok).count(), 32);
}

#[test]
fn an_answer_that_comes_too_late_is_given_up_and_harms_nothing() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let signal = agent.folder.path().join("signal");
    let wait = Request::Knobs { device: signal.to_str().unwrap().to_owned() };
    let error = session.start(&wait).unwrap().wait(Nanos::millis(20)).unwrap_err();
    assert_eq!(error.to_string(), "no answer to knobs within 20 ms; --patience waits longer");
    std::fs::write(&signal, "").unwrap();
    assert_eq!(session.call(&wait).unwrap(), Reply::Done {});
    assert!(session.call(&Request::Close { port: 9 }).is_ok());
}

#[test]
fn an_agent_that_dies_ends_waiting_and_later_requests() {
    let agent = ChildAgent::new();
    let session = agent.session(&options());
    let died = session.call(&Request::Close { port: 2 }).unwrap_err().to_string();
    assert_eq!(died, "the session ended: the connection was closed without a goodbye");
    assert_eq!(session.call(&Request::Probe {}).unwrap_err().to_string(), died);
}

#[test]
fn a_stopped_agent_is_noticed_and_killed() {
    let agent = ChildAgent::new();
    let options = Options { lease: Nanos::millis(500), grace: Nanos::millis(100), ..Options::default() };
    let session = agent.session(&options);
    let error = session.call(&Request::Close { port: 3 }).unwrap_err().to_string();
    let silence = error.strip_prefix("the session ended: nothing was heard for ");
    let silence = silence.and_then(|rest| rest.strip_suffix(" s; --patience waits longer"));
    let silence: f64 = silence.and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
    // The limit is longer if the agent was slow to start, up to eight times, and a busy machine looks later.
    assert!((0.5..=30.0).contains(&silence), "{error}");
    // This would wait for ever if the stopped child were not killed.
    session.close();
}

#[test]
fn a_controller_that_vanishes_is_noticed() {
    let agent = ChildAgent::new();
    let output = agent.raw(&framed(HELLO), true);
    assert_eq!(agent.gone(), "the connection was closed without a goodbye");
    assert!(!output.status.success());
}

#[test]
fn a_silent_controller_loses_its_lease_and_learns_of_it() {
    let agent = ChildAgent { lease_ms: 200, ..ChildAgent::new() };
    let output = agent.raw(&framed(HELLO), false);
    assert_eq!(agent.gone(), "nothing was heard for 0.2 s");
    assert!(text(&output.stdout).ends_with(r#"{"end":"nothing was heard for 0.2 s"}"#), "{output:?}");
    assert_eq!(text(&output.stderr), "the session ended: nothing was heard for 0.2 s\n");
}

#[test]
fn a_program_that_leads_nowhere_is_quoted_with_the_remedy() {
    let open = |script| Session::over_child("far", shell(script), &options()).unwrap_err().to_string();
    let error = open("echo 'ssh: Could not resolve hostname far' >&2; exit 255");
    assert!(error.starts_with("far: ssh: Could not resolve hostname far (exit status: 255); check its name"));
    let error =
        open("echo 'No key is known for far' >&2; echo 'Host key verification failed.' >&2; exit 255");
    assert!(
        error.contains("Host key verification failed. (exit status: 255); run ssh to it once"),
        "{error}"
    );
    let error = open("echo 'ssh: connect to host far port 22: Connection timed out' >&2; exit 255");
    assert!(error.ends_with("; if it is only slow, --patience waits longer"), "{error}");
    let error = open("landspeed-is-not-here agent");
    assert!(error.contains("not found (exit status: 127); install landspeed there"), "{error}");
    let error = open("echo 'sudo: a password is required' >&2; exit 1");
    assert!(error.contains("sudo without a password there"), "{error}");
    let error = open("echo Welcome to far, user; cat >/dev/null");
    assert!(error.starts_with(r#"far: text ("Welcome to far"#), "{error}");
    let error = Session::over_child("far", Command::new("/nonexistent/agent"), &options()).unwrap_err();
    assert!(error.to_string().starts_with("cannot start /nonexistent/agent: No such file"), "{error}");
}

#[test]
fn a_controller_that_asks_and_does_not_read_is_left() {
    let agent = ChildAgent::new();
    let ask = framed(r#"{"ask":{"id":1,"request":{"request":"restore"}}}"#);
    // The agent's answers fill the pipe (64 KiB) and then its queue long before all requests are sent.
    let output = agent.raw(&[framed(HELLO), ask.repeat(20_000)].concat(), false);
    assert_eq!(
        text(&output.stderr),
        "the session ended: the controller asks and does not read the answers\n"
    );
    assert_eq!(agent.gone(), "the controller asks and does not read the answers");
}

#[test]
fn an_agent_that_beats_and_does_not_read_does_not_keep_the_controller() {
    let beat = r#"printf '\000\000\000\006"beat"'"#;
    let hello = format!(r"printf '\000\000\000\{:o}%s' '{HELLO}'", HELLO.len());
    let script = format!("{hello}; for n in $(seq 600); do {beat}; sleep 0.1; done");
    let options = Options { lease: Nanos::secs(10), grace: Nanos::millis(100), ..Options::default() };
    let session = Session::over_child("deaf", shell(&script), &options).unwrap();
    // More bytes than a pipe holds, in few enough parcels.
    let large = Request::Knobs { device: "x".repeat(200_000) };
    let pending: Vec<_> = (0..70).map(|_| session.start(&large)).collect();
    let error = pending.iter().find_map(|p| p.as_ref().err()).unwrap().to_string();
    assert_eq!(error, "64 requests wait to be sent: the agent does not read");
    // This would hang if closing waited for the goodbye to be sent.
    session.close();
}

#[test]
fn an_agent_that_says_nothing_is_given_up() {
    let options = Options { handshake: Nanos::millis(100), ..Options::default() };
    let error = Session::over_child("mute", shell("exec sleep 60"), &options).unwrap_err().to_string();
    assert_eq!(error, "mute: waited 100 ms for a session; --patience waits longer");
}

#[test]
fn an_endless_answer_does_not_delay_a_stop() {
    // A sound hello, then a frame of 16 MB whose bytes come one by one; each is a sign of life.
    let endless =
        r#"printf '\0\0\0\031{"hello":{"protocol":10}}\0\377\377\377'; while printf ' '; do sleep .05; done"#;
    let options = options();
    let session = Session::over_child("trickling", shell(endless), &options).unwrap();
    let pending = session.start(&Request::Probe {}).unwrap();
    options.stop.store(true, Ordering::Relaxed);
    let error = pending.wait(Nanos::secs(30)).unwrap_err().to_string();
    assert!(error.contains("a frame did not end within"), "{error}");
    // The controller does not wait for the request to restore either.
    let error = session.call(&Request::Restore {}).unwrap_err();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
}

#[test]
fn stderr_is_passed_on_line_by_line_and_escaped() {
    let agent = ChildAgent::new();
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&lines);
    let options =
        Options { lines: LineSink::new(move |line| sink.lock().push(line.to_owned())), ..options() };
    let mut command = shell(r#"printf 'motd \033[31m\n' >&2; exec "$@""#);
    command.arg("sh").arg(agent_program()).arg(agent.gone_file());
    let session = Session::over_child("host-a", command, &options).unwrap();
    let _ = session.call(&Request::Close { port: 1 });
    session.close();
    let lines = lines.lock();
    assert_eq!(lines[0], r"host-a: motd \u{1b}[31m");
    assert!(lines.iter().any(|line| line.contains("is lava")), "{lines:?}");
}

#[test]
fn stdio_that_is_no_pipe_is_refused() {
    let agent = ChildAgent::new();
    let output = agent.command().stdin(Stdio::null()).output().unwrap();
    assert!(text(&output.stderr).contains("by hand, use --listen"), "{output:?}");
}

#[test]
fn sockets_serve_as_sshd_gives_them() {
    let agent = ChildAgent::new();
    let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let far_too = far.try_clone().unwrap();
    let mut command = agent.command();
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(far)));
    command.stdout(Stdio::from(std::os::fd::OwnedFd::from(far_too))).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    near.write_all(&[framed(HELLO), framed(r#"{"end":"done"}"#)].concat()).unwrap();
    let mut said = Vec::new();
    near.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text(&said).contains(r#"{"hello":"#));
    assert_eq!(agent.gone(), "done");
}

#[test]
fn the_real_ssh_says_why_a_host_cannot_be_reached() {
    if !Path::new("/usr/bin/ssh").exists() {
        println!("SKIP: no ssh here");
        return;
    }
    // Port 1 on loopback has no listener.
    let host =
        SshHost::new("127.0.0.1").unwrap().with_questions(false).with_options(&["-F", "/dev/null", "-p1"]);
    let launch = AgentLaunch {
        words: &["agent", "--stdio"],
        root: false,
        own: Path::new("/proc/self/exe"),
        keep: false,
    };
    let error = Session::over_ssh(&host, &launch, &options()).unwrap_err().to_string();
    assert_eq!(
        error,
        "127.0.0.1: ssh: connect to host 127.0.0.1 port 1: Connection refused (exit status: 255); does sshd run there, on the \
         port that ssh uses?"
    );
}
