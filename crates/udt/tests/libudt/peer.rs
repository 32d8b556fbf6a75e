//! The program of peer.cpp, which runs one end of libudt: it is built, started and ended here.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Builds the program once and returns its path; `None` if this machine cannot build it.
pub(crate) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(make).as_deref()
}

fn make() -> Option<PathBuf> {
    if !Path::new("/usr/include/udt/udt.h").exists() {
        println!("SKIP: libudt-dev is not installed");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("udt-peer-{}", std::process::id()));
    let mut compiler = Command::new("g++");
    compiler.args(["-O2", "-Wall", "-Werror", "-o"]).arg(&program);
    compiler.args(["tests/libudt/peer.cpp", "-ludt", "-lpthread"]);
    match compiler.status() {
        Ok(status) => assert!(status.success(), "g++ failed"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIP: g++ is not installed");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    // A fixed name, so that programs of earlier runs do not accumulate.
    let kept = program.with_file_name("udt-peer");
    std::fs::rename(&program, &kept).expect("the folder can be written");
    Some(kept)
}

/// A running peer of libudt. It is killed when this value is dropped.
pub(crate) struct LibudtPeer {
    child: Child,
}

impl LibudtPeer {
    /// Starts a peer that listens at `at` for one connection. Also returns the peer's actual address and the data
    /// that it receives.
    pub(crate) fn listen(at: SocketAddr, mss: u32) -> (Self, SocketAddr, impl Read) {
        Self::listen_for("stream", at, mss)
    }

    /// Starts a peer that listens for a connection of the kind `kind`, "stream" or "messages".
    pub(crate) fn listen_for(kind: &str, at: SocketAddr, mss: u32) -> (Self, SocketAddr, impl Read + use<>) {
        let (mut peer, out) = Self::start(["listen", kind], at, mss);
        drop(peer.child.stdin.take());
        let mut out = BufReader::with_capacity(1 << 17, out);
        let mut line = String::new();
        out.read_line(&mut line).expect("the peer says something");
        let port = line.trim().parse().expect("the peer says its port");
        (peer, SocketAddr::new(at.ip(), port), out)
    }

    /// Starts a peer that connects to `to`. Also returns the pipe for the data that the peer sends.
    pub(crate) fn connect(to: SocketAddr, mss: u32) -> (Self, ChildStdin) {
        Self::connect_for("stream", to, mss)
    }

    /// Starts a peer that requests a connection of the kind `kind`, "stream" or "messages", from `to`.
    pub(crate) fn connect_for(kind: &str, to: SocketAddr, mss: u32) -> (Self, ChildStdin) {
        let (mut peer, _) = Self::start(["connect", kind], to, mss);
        let input = peer.child.stdin.take().expect("a pipe");
        (peer, input)
    }

    fn start([what, kind]: [&str; 2], at: SocketAddr, mss: u32) -> (Self, ChildStdout) {
        let program = program().expect("checked before");
        let (ip, port, mss) = (at.ip().to_string(), at.port().to_string(), mss.to_string());
        let mut command = Command::new(program);
        command.args([what, &ip, &port, kind, &mss]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the peer starts");
        let out = child.stdout.take().expect("a pipe");
        (LibudtPeer { child }, out)
    }

    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our child")
    }

    /// Kills the peer, so that it sends no last packet.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("our child");
        self.child.wait().expect("our child");
    }

    /// Waits until the peer ends by itself. Returns its exit status and its error messages.
    pub(crate) fn wait(&mut self, most: Duration) -> (ExitStatus, String) {
        let end = Instant::now() + most;
        loop {
            if let Some(status) = self.has_ended() {
                let mut said = String::new();
                self.child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
                return (status, said);
            }
            assert!(Instant::now() < end, "the peer does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for LibudtPeer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
