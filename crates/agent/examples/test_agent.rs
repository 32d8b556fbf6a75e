//! An agent for the tests of this crate. Its frames and pipes are real, its answers are invented.
//!
//! Arguments: the file into which `gone` writes its reason, and the lease in milliseconds.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use landspeed_agent::session::{Reply, Request, RequestHandler, ServeOptions, serve_stdio};
use landspeed_record::units::Nanos;
use landspeed_record::{HostFacts, KnobState};

struct TestAgent {
    gone_file: PathBuf,
}

impl RequestHandler for TestAgent {
    fn handle(&self, request: Request) -> Reply {
        match request {
            Request::Probe {} => {
                println!("noise where frames belong");
                Reply::Facts {
                    facts: Box::new(HostFacts { hostname: "tested".to_owned(), ..Default::default() }),
                }
            }
            Request::Knobs { device } if device == "huge" => {
                let state = KnobState { value: Some("x".repeat(1 << 24)), ..Default::default() };
                Reply::Knobs { states: vec![state] }
            }
            Request::Knobs { device } => until_exists(device.into()),
            Request::Close { port: 1 } => panic!("port one\nis lava"),
            Request::Close { port: 2 } => std::process::exit(9),
            Request::Close { port: 3 } => stop(),
            Request::Close { port } => Reply::Listening { port },
            other => Reply::Failed { why: format!("no {} in tests", other.name()) },
        }
    }

    fn gone(&self, why: &str) {
        std::fs::write(&self.gone_file, why).expect("the test's directory is writable");
    }
}

/// Waits until `file` exists, and returns the answer; a refusal if it does not exist in time.
fn until_exists(file: PathBuf) -> Reply {
    for _ in 0..1000 {
        if file.exists() {
            return Reply::Done {};
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Reply::Failed { why: "the file never came".to_owned() }
}

/// Stops this process by SIGSTOP, so that it neither ends nor sends anything more.
fn stop() -> Reply {
    // SAFETY: raise(3) takes no pointers; the process stops in it.
    unsafe { libc::raise(libc::SIGSTOP) };
    Reply::Done {}
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let gone_file = arguments.next().expect("a file for the reason").into();
    let lease = arguments.next().map_or(5000, |ms| ms.parse().expect("milliseconds"));
    let options = ServeOptions { lease: Nanos::millis(lease), ..ServeOptions::default() };
    match serve_stdio(Arc::new(TestAgent { gone_file }), &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
