//! The accept loop of the servers that run until their process ends.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The pause after a failed accept. Without it, a process without free descriptors would spin.
const PAUSE: Duration = Duration::from_millis(10);
/// The stack size of a connection's thread, in bytes.
const STACK: usize = 256 << 10;

/// Calls `answer` for each connection on its own thread, with at most `most` connections at a time. Further connections
/// are closed immediately. Never returns.
pub(crate) fn serve_each(
    listener: &TcpListener,
    most: usize,
    answer: impl Fn(TcpStream) + Clone + Send + 'static,
) {
    let places = Arc::new(());
    loop {
        // The connection was closed before it was accepted, or no descriptors are left. A later accept may succeed.
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        let (place, answer) = (Arc::clone(&places), answer.clone());
        if Arc::strong_count(&places) > most + 1 {
            continue;
        }
        let serving = thread::Builder::new().stack_size(STACK).spawn(move || {
            answer(stream);
            drop(place);
        });
        if serving.is_err() {
            thread::sleep(PAUSE);
        }
    }
}
