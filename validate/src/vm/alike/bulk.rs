//! The checks that many bytes arrive unchanged.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread;

use socket2::Socket;

use super::end::{End, at_its_end, text, wrong};

/// The bytes of a large transfer, and of one of its calls.
const MUCH: usize = 4 << 20;
const PIECE: usize = 64 << 10;
const MESSAGES: usize = 1000;

/// Returns the byte at a place of a transfer. The period divides no buffer.
fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// The length of each of many messages.
fn length(message: usize) -> usize {
    1 + message * 7 % 100
}

pub(super) fn give_messages(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.set_tcp_nodelay(true)?;
    for message in 0..MESSAGES {
        socket.write_all(&vec![pattern(message); length(message)])?;
    }
    end.saw("reads", text(&socket, 2)?);
    Ok(())
}

pub(super) fn take_messages(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    for message in 0..MESSAGES {
        let mut bytes = vec![0; length(message)];
        socket.read_exact(&mut bytes)?;
        if bytes.iter().any(|byte| *byte != pattern(message)) {
            return Err(wrong("a message arrived changed"));
        }
    }
    socket.write_all(b"ok")
}

fn give(mut socket: &Socket) -> io::Result<()> {
    for piece in 0..MUCH / PIECE {
        let bytes: Vec<u8> = (0..PIECE).map(|place| pattern(piece * PIECE + place)).collect();
        socket.write_all(&bytes)?;
    }
    Ok(())
}

fn take(mut socket: &Socket) -> io::Result<()> {
    let mut bytes = vec![0; PIECE];
    for piece in 0..MUCH / PIECE {
        socket.read_exact(&mut bytes)?;
        let is_right = (0..).zip(&bytes).all(|(place, byte)| *byte == pattern(piece * PIECE + place));
        if !is_right {
            return Err(wrong("bytes arrived changed"));
        }
    }
    Ok(())
}

pub(super) fn give_much(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    give(&socket)?;
    end.saw("reads", text(&socket, 2)?);
    Ok(())
}

pub(super) fn take_much(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    take(&socket)?;
    socket.write_all(b"ok")
}

/// Sends and takes at the same time, by two threads.
pub(super) fn both_ways(end: &End) -> io::Result<()> {
    let socket = end.open()?;
    let given = thread::scope(|threads| {
        let giving = threads.spawn(|| give(&socket));
        let taken = take(&socket);
        giving.join().map_err(|_| wrong("the thread that sends ended")).and_then(|given| given.and(taken))
    });
    given?;
    // The other end may still read.
    socket.shutdown(Shutdown::Write)?;
    at_its_end(&socket)
}
