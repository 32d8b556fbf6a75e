//! Reports of `landspeed explain`, and a flow of another program for it to watch.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use landspeed_record::ExplainReport;

use super::schema::checked;
use super::{LANDSPEED, text};

/// Returns the report of `landspeed explain ARGS --json`.
pub(crate) fn explain(args: &[&str]) -> ExplainReport {
    explain_by(Command::new(LANDSPEED), args)
}

/// Returns the report of a command that is landspeed, with what comes before it, and these arguments of `explain`.
pub(crate) fn explain_by(mut command: Command, args: &[&str]) -> ExplainReport {
    let output = command.arg("explain").args(args).arg("--json").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_value(checked("explain", &text(&output).0)).unwrap()
}

/// Another program's flow: it writes 100 bytes at a time with a pause after each, and reads them elsewhere.
pub(crate) struct BackgroundFlow {
    pub(crate) at: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl BackgroundFlow {
    pub(crate) fn new(pause: Duration) -> BackgroundFlow {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let mut out = TcpStream::connect(at).unwrap();
        let mut into = listener.accept().unwrap().0;
        out.set_nodelay(true).unwrap();
        std::thread::spawn(move || while into.read(&mut [0; 65_536]).is_ok_and(|read| read > 0) {});
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        // The first write is over when this returns: the thread may get its first turn late.
        out.write_all(&[1; 100]).unwrap();
        let write = move || {
            std::thread::sleep(pause);
            while !ended.load(Ordering::Relaxed) && out.write_all(&[1; 100]).is_ok() {
                std::thread::sleep(pause);
            }
        };
        std::thread::spawn(write);
        BackgroundFlow { at, stop }
    }
}

impl Drop for BackgroundFlow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
