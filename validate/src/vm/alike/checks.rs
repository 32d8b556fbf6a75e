//! What the program of `make vm` does with its sockets: each check has a half for either end. Bytes that arrive changed
//! are an error; all else is noted, and compared with what TCP does.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;

use libc::{MSG_PEEK, MSG_WAITALL, POLLIN, POLLOUT};
use socket2::Socket;

use super::bulk::{both_ways, give_messages, give_much, take_messages, take_much};
use super::end::{AlikeCheck, End, PATIENCE, at_its_end, check, named, polled, text, told, wrong};

pub(super) const CHECKS: &[AlikeCheck] = &[
    check("names", names, names),
    check("echo", echo, ask),
    check("peek", peek, is_heard),
    check("wait-for-all", wait_for_all, in_two_parts),
    check("nothing", |end| reads(end, 1), nothing),
    check("half-close", after_the_end, half_close),
    check("peer-closes", |end| end.open().map(drop), peer_closes),
    check("close-with-unread-data", close_unread, unread_elsewhere),
    check("do-not-wait", echo, do_not_wait),
    check("full-buffer", reads_once_told, full_buffer),
    check("polling", polled_by_the_other, polling),
    check("connect-without-waiting", echo, connect_without_waiting),
    check("refused", |_| Ok(()), refused),
    check("no-delay", no_delay, no_delay),
    check("many-messages", take_messages, give_messages),
    check("large-transfer", take_much, give_much),
    check("both-ways-at-once", both_ways, both_ways),
    check(
        "many-connections",
        |end| (0..MANY).try_for_each(|_| echo(end)),
        |end| (0..MANY).try_for_each(|_| ask(end)),
    ),
];

/// A port without a listener.
const NOBODY: u16 = 1;
/// The connections of a check that opens many, one after the other.
const MANY: usize = 20;
/// A pause that is longer than a message is under way.
const PAUSE: Duration = Duration::from_millis(500);
/// The bytes of a call, and the most such pieces that two hosts may hold of what is not read.
const PIECE: usize = 64 << 10;
const MOST_PIECES: usize = 2048;

fn names(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    let addresses = [socket.local_addr()?, socket.peer_addr()?].map(|address| address.as_socket());
    for (what, address) in ["own", "peer"].into_iter().zip(addresses) {
        let address = address.ok_or_else(|| wrong("no address of IP"))?;
        // Ports of clients differ from one run to the next.
        let port = if address.port() == end.at().port() { "the server's" } else { "another" };
        end.saw(what, format!("{} {port}", address.ip()));
    }
    // Both ends have asked before one of them closes.
    socket.write_all(b"x")?;
    text(&socket, 1).map(drop)
}

fn echo(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    let said = text(&socket, 5)?;
    end.saw("reads", &said);
    socket.write_all(said.as_bytes())?;
    at_its_end(&socket)
}

fn ask(end: &End) -> io::Result<()> {
    said_and_heard(end, &end.open()?)
}

fn said_and_heard(end: &End, mut socket: &Socket) -> io::Result<()> {
    socket.write_all(b"hello")?;
    end.saw("reads", text(socket, 5)?);
    Ok(())
}

fn peek(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    let mut bytes = [MaybeUninit::<u8>::uninit(); 5];
    end.saw("peeks", told(socket.recv_with_flags(&mut bytes, MSG_PEEK)));
    end.saw("reads", text(&socket, 5)?);
    Ok(())
}

fn is_heard(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.write_all(b"hello")?;
    at_its_end(&socket)
}

fn wait_for_all(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    let mut bytes = [MaybeUninit::<u8>::uninit(); 10];
    end.saw("receives", told(socket.recv_with_flags(&mut bytes, MSG_WAITALL)));
    Ok(())
}

fn in_two_parts(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.write_all(b"hello")?;
    thread::sleep(PAUSE);
    socket.write_all(b"again")?;
    at_its_end(&socket)
}

fn reads(end: &End, count: usize) -> io::Result<()> {
    let socket = end.open()?;
    end.saw("reads", text(&socket, count)?);
    Ok(())
}

fn nothing(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    end.saw("sends", told(socket.send(b"")));
    socket.write_all(b"x")?;
    at_its_end(&socket)
}

fn after_the_end(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    let mut all = Vec::new();
    end.saw("reads", told(socket.read_to_end(&mut all)));
    socket.write_all(b"late")
}

fn half_close(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.write_all(b"abc")?;
    socket.shutdown(Shutdown::Write)?;
    end.saw("sends", told(socket.send(b"d")));
    end.saw("reads", text(&socket, 4)?);
    end.saw("then", told(socket.read(&mut [0])));
    Ok(())
}

fn peer_closes(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    end.saw("reads", told(socket.read(&mut [0])));
    end.saw("events", polled(&socket, POLLIN | POLLOUT, PATIENCE)?);
    end.saw("first-send", told(socket.send(b"a")));
    thread::sleep(PAUSE);
    end.saw("second-send", told(socket.send(b"b")));
    Ok(())
}

fn close_unread(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    polled(&socket, POLLIN, PATIENCE).map(drop)
}

fn unread_elsewhere(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.write_all(b"hello")?;
    end.saw("reads", told(socket.read(&mut [0])));
    Ok(())
}

fn do_not_wait(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.set_nonblocking(true)?;
    end.saw("reads-early", told(socket.read(&mut [0])));
    socket.set_nonblocking(false)?;
    said_and_heard(end, &socket)
}

/// Writes until the connection takes no more, on one connection, and tells the server by another.
fn full_buffer(end: &End) -> io::Result<()> {
    let (mut socket, mut word) = (end.open()?, end.open()?);
    socket.set_nonblocking(true)?;
    let mut sent = 0_u64;
    let full = loop {
        match socket.write(&[0; PIECE]) {
            Ok(count) => sent += count as u64,
            Err(error) => break named(&error),
        }
        if sent > (MOST_PIECES * PIECE) as u64 {
            break "never".to_owned();
        }
    };
    end.saw("full", full);
    socket.set_nonblocking(false)?;
    word.write_all(b"x")?;
    socket.shutdown(Shutdown::Write)?;
    let mut taken = [0; 8];
    socket.read_exact(&mut taken)?;
    if u64::from_be_bytes(taken) == sent { Ok(()) } else { Err(wrong("not all of it arrived")) }
}

fn reads_once_told(end: &End) -> io::Result<()> {
    let (mut socket, word) = (end.open()?, end.open()?);
    text(&word, 1)?;
    let (mut bytes, mut taken) = (vec![0; PIECE], 0_u64);
    loop {
        match socket.read(&mut bytes)? {
            0 => break,
            count => taken += count as u64,
        }
    }
    socket.write_all(&taken.to_be_bytes())?;
    at_its_end(&socket)
}

fn polled_by_the_other(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    text(&socket, 1)?;
    socket.write_all(b"hello")?;
    text(&socket, 1).map(drop)
}

fn polling(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    end.saw("before", polled(&socket, POLLIN, Duration::ZERO)?);
    end.saw("writable", polled(&socket, POLLOUT, PATIENCE)?);
    socket.write_all(b"x")?;
    end.saw("after", polled(&socket, POLLIN, PATIENCE)?);
    end.saw("reads", text(&socket, 5)?);
    end.saw("read-empty", polled(&socket, POLLIN, Duration::ZERO)?);
    socket.write_all(b"x")?;
    end.saw("closed", polled(&socket, POLLIN, PATIENCE)?);
    Ok(())
}

fn connect_without_waiting(end: &End) -> io::Result<()> {
    let socket = end.unconnected()?;
    socket.set_nonblocking(true)?;
    let connected = socket.connect(&end.at().into());
    end.saw("connect", told(connected.map(|()| 0)));
    end.saw("events", polled(&socket, POLLOUT, PATIENCE)?);
    end.saw("error", socket.take_error()?.map_or("none".to_owned(), |error| named(&error)));
    socket.set_nonblocking(false)?;
    said_and_heard(end, &socket)
}

fn refused(end: &End) -> io::Result<()> {
    let nobody = SocketAddr::new(end.at().ip(), NOBODY);
    let connected = end.unconnected()?.connect(&nobody.into());
    end.saw("connect", told(connected.map(|()| 0)));
    Ok(())
}

fn no_delay(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.set_tcp_nodelay(true)?;
    end.saw("reads-back", socket.tcp_nodelay()?);
    socket.write_all(b"x")?;
    text(&socket, 1).map(drop)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::super::end::Half;
    use super::*;

    /// What an end saw, by check.
    type Lines = Vec<(String, String)>;

    fn all(end: &End, half: fn(&AlikeCheck) -> Half) -> Lines {
        let mut lines = Lines::new();
        for check in CHECKS {
            half(check)(end).unwrap_or_else(|error| panic!("{}: {error}", check.name));
            lines.extend(end.taken().into_iter().map(|(what, saw)| (format!("{} {what}", check.name), saw)));
        }
        lines
    }

    /// Returns what the client and the server see over TCP within this host.
    fn seen() -> (Lines, Lines) {
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = End::server(at).unwrap();
        // An end that fails would leave the other one waiting for it.
        let (client_told, of_client) = mpsc::channel();
        thread::spawn(move || client_told.send(all(&End::client(at), |check| check.client)));
        let (server_told, of_server) = mpsc::channel();
        thread::spawn(move || server_told.send(all(&server, |check| check.server)));
        let lines =
            |end: mpsc::Receiver<Lines>| end.recv_timeout(PATIENCE).expect("an end that does not fail");
        (lines(of_client), lines(of_server))
    }

    #[test]
    fn over_tcp_the_checks_see_what_tcp_does() {
        let (client, server) = seen();
        let value = |end: &[(String, String)], what: &str| {
            end.iter().find(|(name, _)| name == what).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        for (what, expected) in [
            ("names own", "127.0.0.1 another"),
            ("half-close then", "0"),
            ("half-close sends", "EPIPE"),
            ("peer-closes reads", "0"),
            ("peer-closes second-send", "EPIPE"),
            ("close-with-unread-data reads", "ECONNRESET"),
            ("do-not-wait reads-early", "EAGAIN"),
            ("full-buffer full", "EAGAIN"),
            ("polling before", "none"),
            ("polling after", "IN"),
            ("connect-without-waiting error", "none"),
            ("refused connect", "ECONNREFUSED"),
            ("no-delay reads-back", "true"),
            ("large-transfer reads", "ok"),
        ] {
            assert_eq!(value(&client, what), expected, "{what}");
        }
        assert_eq!(value(&server, "wait-for-all receives"), "10");
        assert_eq!(value(&server, "peek peeks"), "5");
        assert_eq!(value(&server, "names own"), "127.0.0.1 the server's");
    }
}
