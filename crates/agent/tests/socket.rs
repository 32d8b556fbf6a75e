//! Sessions over a socket, with both ends in this process.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use landspeed_agent::session::{
    Error, Options, Reply, Request, RequestHandler, ServeOptions, Session, serve_socket,
};

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
