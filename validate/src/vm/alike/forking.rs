//! A server that answers a connection in a process of its own, and its client, which sees whether that works.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use libc::POLLIN;
use socket2::Socket;

use super::end::{AlikeCheck, End, PATIENCE, check, named, polled, text, wrong};

pub(super) const FORKING: &[AlikeCheck] = &[check("forking", answers_in_a_child, asks)];

/// Forks, as servers of a process a connection do: the child answers, and the server closes its own descriptor.
fn answers_in_a_child(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    // SAFETY: this process has one thread, so its child may do all that a program may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => std::process::exit(i32::from(answer(&socket).is_err())),
        child => {
            drop(socket);
            reaped(child)
        }
    }
}

fn answer(mut socket: &Socket) -> io::Result<()> {
    let said = text(socket, 5)?;
    socket.write_all(said.as_bytes())
}

/// Waits for the end of a child, and ends it if that takes too long.
fn reaped(child: libc::pid_t) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes the status of a child of this process, which nothing else waits for.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => thread::sleep(Duration::from_millis(100)),
            0 => {
                // SAFETY: the child has not been waited for, so its ID is still its own.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // SAFETY: as above.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                return Ok(());
            }
            -1 => return Err(io::Error::last_os_error()),
            _ => return Ok(()),
        }
    }
}

/// Asks, and notes what came: an answer, an error, or nothing within the time.
fn asks(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    let asked = socket.write_all(b"hello").and_then(|()| match polled(&socket, POLLIN, PATIENCE)?.as_str() {
        "none" => Err(wrong("nothing")),
        _ => text(&socket, 5),
    });
    end.saw("reads", asked.unwrap_or_else(|error| named(&error)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn over_tcp_the_child_answers() {
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = End::server(at).unwrap();
        let client = thread::spawn(move || {
            let client = End::client(at);
            asks(&client).unwrap();
            client.taken()
        });
        let accepted = server.open().unwrap();
        answer(&accepted).unwrap();
        assert_eq!(client.join().unwrap(), [("reads", "hello".to_owned())]);
    }

    #[test]
    fn a_child_is_waited_for() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        reaped(child.id() as libc::pid_t).unwrap();
        assert!(child.try_wait().is_err(), "the child was left");
    }
}
