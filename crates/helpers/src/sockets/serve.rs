//! The serving end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use landspeed_proof::Secret;

use crate::sockets::hello::{ConnectionTask, TrafficKind, receive_task};
use crate::sockets::stream::PollableStream;

/// Most connections at a time; further ones are closed immediately.
const MOST: usize = 512;
/// Wait after a failed accept: without it, a process without free descriptors would spin.
const PAUSE: Duration = Duration::from_millis(10);

/// Serves until the process is killed.
///
/// # Errors
/// Returns an error if it cannot listen on the address, or cannot start a thread.
pub fn serve(at: SocketAddr, token: Secret) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    let places = Arc::new(());
    loop {
        let socket = match listener.accept() {
            Ok((socket, _)) => socket,
            // The connection was closed before it was accepted, or no descriptors are left: later ones may succeed.
            Err(_) => {
                thread::sleep(PAUSE);
                continue;
            }
        };
        if Arc::strong_count(&places) > MOST {
            continue;
        }
        let place = Arc::clone(&places);
        thread::Builder::new().stack_size(256 << 10).spawn(move || {
            // A failed peer ends its own connection only.
            let _ = answer(socket, token);
            drop(place);
        })?;
    }
}

fn answer(socket: TcpStream, token: Secret) -> io::Result<()> {
    let mut stream = PollableStream::new(socket)?;
    let task = receive_task(&mut stream, token)?;
    let mut stream = stream.polls(task.is_polling)?;
    match task.kind {
        TrafficKind::Pingpong => echo(&mut stream, task),
        TrafficKind::Send => take(&mut stream, task),
        TrafficKind::Receive => give(&mut stream, task),
        TrafficKind::Connect => stream.write_all(&[1]),
    }
}

fn echo(stream: &mut PollableStream, task: ConnectionTask) -> io::Result<()> {
    let mut message = vec![0; task.size];
    loop {
        stream.read_exact(&mut message)?;
        stream.write_all(&message)?;
    }
}

/// Receives until the other end has sent all, and reports how much that was.
fn take(stream: &mut PollableStream, task: ConnectionTask) -> io::Result<()> {
    let (mut bytes, mut total) = (vec![0; task.size], 0_u64);
    loop {
        match stream.read(&mut bytes)? {
            0 => break,
            count => total += count as u64,
        }
    }
    stream.write_all(&total.to_be_bytes())?;
    stream.socket().shutdown(Shutdown::Write)
}

/// Sends until the other end leaves.
fn give(stream: &mut PollableStream, task: ConnectionTask) -> io::Result<()> {
    let bytes = vec![0x5a; task.size];
    loop {
        stream.write_all(&bytes)?;
    }
}
