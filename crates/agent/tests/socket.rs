//! Sessions over a socket, with both ends in this process.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use landspeed_agent::session::{
    Error, Options, Reply, Request, RequestHandler, ServeOptions, Session, serve_socket,
};
use landspeed_record::units::Nanos;

/// An agent that waits twice at a barrier with each answer, and counts the ends of its sessions.
struct BarrierAgent {
    answers: Barrier,
    gone: AtomicUsize,
}

impl RequestHandler for BarrierAgent {
    fn handle(&self, _: Request) -> Reply {
        // The test learns that the request came, then lets the agent answer.
        self.answers.wait();
        self.answers.wait();
        Reply::Done {}
    }

    fn gone(&self, _: &str) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }
}

fn session(options: &Options) -> (Arc<BarrierAgent>, UnixStream, Session, JoinHandle<Result<(), Error>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let agent = Arc::new(BarrierAgent { answers: Barrier::new(2), gone: AtomicUsize::new(0) });
    let handler: Arc<dyn RequestHandler> = Arc::clone(&agent) as Arc<dyn RequestHandler>;
    let served = std::thread::spawn(move || serve_socket(theirs, handler, &ServeOptions::default()));
    let handle = ours.try_clone().unwrap();
    (agent, handle, Session::over_socket("agent", ours, options).unwrap(), served)
}

/// The session may notice the end of either direction first.
#[test]
fn an_agent_that_cannot_write_its_answer_ends_in_order() {
    for _ in 0..50 {
        let (agent, socket, session, served) = session(&Options::default());
        let answer = session.start(&Request::Probe {}).unwrap();
        agent.answers.wait();
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        agent.answers.wait();
        drop(answer);
        let why = served.join().expect("no panic").unwrap_err().to_string();
        assert!(why.starts_with("the session ended: "), "{why}");
        assert_eq!(agent.gone.load(Ordering::Relaxed), 1);
    }
}

/// The time that a slow agent takes to start. It answers in half of it.
const SLOW: Duration = Duration::from_secs(1);

struct SlowAgent;

impl RequestHandler for SlowAgent {
    fn handle(&self, _: Request) -> Reply {
        std::thread::sleep(SLOW / 2);
        Reply::Done {}
    }

    fn gone(&self, _: &str) {}
}

#[test]
fn an_agent_that_was_slow_to_start_has_more_time_to_answer() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let served = std::thread::spawn(move || {
        std::thread::sleep(SLOW);
        serve_socket(theirs, Arc::new(SlowAgent), &ServeOptions::default())
    });
    let options = Options { call: Nanos::millis(200), ..Options::default() };
    let session = Session::over_socket("slow", ours, &options).unwrap();
    // Eight times the least limit, because four times what it took is more.
    assert_eq!(session.call_limit(), Duration::from_millis(1600));
    assert_eq!(session.call(&Request::Probe {}).unwrap(), Reply::Done {});
    session.close();
    served.join().expect("no panic").unwrap();
}

#[test]
fn an_agent_that_restores_nothing_outlasts_a_silence_that_its_controller_would_outlast() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let lease = Nanos::millis(100);
    let options = ServeOptions { lease, must_restore: false, ..ServeOptions::default() };
    let served = std::thread::spawn(move || serve_socket(theirs, Arc::new(SlowAgent), &options));
    let mut say = |json: &str| {
        let length = u32::try_from(json.len()).unwrap().to_be_bytes();
        ours.write_all(&[&length[..], json.as_bytes()].concat()).unwrap();
    };
    say(r#"{"hello":{"protocol":10,"lease_ns":60000000000}}"#);
    std::thread::sleep(Duration::from_millis(500));
    say(r#"{"end":"done"}"#);
    served.join().expect("no panic").unwrap();
}
