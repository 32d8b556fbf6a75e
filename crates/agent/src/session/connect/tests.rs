//! Tests with controllers that violate the protocol, against a listening agent.

use std::sync::Arc;
use std::thread::JoinHandle;

use landspeed_record::units::Nanos;
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::session::connection::OpeningResult;
use crate::session::{LineSink, Reply, Request, RequestHandler, ServeOptions, Ticket, listen};

#[derive(Default)]
struct RecordingHandler(Mutex<Vec<String>>);

impl RequestHandler for RecordingHandler {
    fn handle(&self, _request: Request) -> Reply {
        Reply::Done {}
    }

    fn gone(&self, why: &str) {
        self.0.lock().push(why.to_owned());
    }
}

struct AgentThread {
    ticket: Ticket,
    handler: Arc<RecordingHandler>,
    lines: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<Result<(), Error>>,
}

fn agent() -> AgentThread {
    let (handler, lines) = (Arc::<RecordingHandler>::default(), Arc::<Mutex<Vec<String>>>::default());
    let sink = Arc::clone(&lines);
    let lines_to = LineSink::new(move |line| sink.lock().push(line.to_owned()));
    let (lease, handshake) = (Nanos::secs(20), Nanos::secs(20));
    let options = ServeOptions { lease, handshake, lines: lines_to, ..ServeOptions::default() };
    let listening =
        listen(([127, 0, 0, 1], 0).into(), Arc::<RecordingHandler>::clone(&handler), &options).unwrap();
    let ticket = listening.ticket();
    AgentThread { ticket, handler, lines, thread: std::thread::spawn(move || listening.run()) }
}

impl AgentThread {
    /// Connects with this hello and runs `then` with the open connection.
    fn meet<T>(&self, ours: Hello, then: impl AsyncFnOnce(OpeningResult) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (invite, token) = (self.ticket.invite, self.ticket.token.clone());
        runtime.block_on(async { then(connect(invite, token, ours).await).await })
    }

    fn end(self) -> (String, Vec<String>) {
        let ended = self.thread.join().unwrap().map_or_else(|e| e.to_string(), |()| "well".to_owned());
        (ended, self.handler.0.lock().clone())
    }
}

fn hello() -> Hello {
    Hello::ours(Nanos::secs(20))
}

#[test]
fn another_version_gets_a_line_on_both_ends_and_the_agent_waits_on() {
    let agent = agent();
    // This controller claims protocol 11 but accepts protocol 10, so the agent is the end that refuses. tests/child tests
    // a refusal by the controller.
    let newer = Hello { protocol: 11, landspeed: "2.0.0".to_owned(), ..hello() };
    assert!(agent.meet(newer, async |opened| opened.is_err()));
    assert!(agent.meet(hello(), async |opened| opened.is_ok()));
    let lines = agent.lines.lock().clone();
    let line =
        "speaks protocol 11 (landspeed 2.0.0), this end protocol 10 (landspeed 0.1.0): update landspeed here";
    assert!(lines.iter().any(|l| l.ends_with(line)), "{lines:?}");
    assert_eq!(agent.end().1.len(), 1);
}

#[test]
fn a_controller_that_vanishes_is_noticed() {
    let agent = agent();
    agent.meet(hello(), async |opened| drop(opened.unwrap()));
    let (ended, gone) = agent.end();
    assert!(ended.starts_with("the session ended: "), "{ended}");
    assert_eq!(gone.len(), 1);
}

#[test]
fn an_oversized_frame_ends_the_session_with_a_line_that_arrives() {
    let agent = agent();
    let last = agent.meet(hello(), async |opened| {
        let (mut connection, _) = opened.unwrap();
        // More bytes than socket buffers hold: they must not make the agent reset the connection.
        let _ = connection.writer.write_all(&vec![0xff; 300_000]).await;
        let _ = connection.writer.flush().await;
        loop {
            match connection.reader.next().await.unwrap() {
                crate::session::wire::MessageToController::End(why) => break why,
                _ => continue,
            }
        }
    });
    assert_eq!(last, "a frame of 4294967295 bytes is over the limit of 262144");
    assert_eq!(agent.end().1, [last]);
}
