//! The server of the benchmark.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use landspeed_proof::Secret;

use crate::accept::serve_each;
use crate::sockets::hello::{ConnectionTask, TrafficKind, receive_task};
use crate::sockets::stream::PollableStream;

/// The largest number of connections at a time.
const MOST: usize = 512;

/// Serves at the address `at` until the process is killed.
///
/// # Errors
/// Returns an error if it cannot listen on the address.
pub fn serve(at: SocketAddr, token: Secret) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    // A failed peer ends its own connection only.
    serve_each(&listener, MOST, move |socket| drop(answer(socket, token)));
    Ok(())
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

/// Receives until the client has sent everything, and reports the number of bytes.
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

/// Sends until the client closes the connection.
fn give(stream: &mut PollableStream, task: ConnectionTask) -> io::Result<()> {
    let bytes = vec![0x5a; task.size];
    loop {
        stream.write_all(&bytes)?;
    }
}
