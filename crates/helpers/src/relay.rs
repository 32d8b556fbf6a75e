//! A relay that records what a client sends to a server, and a replay of the record, for tests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// Relays between one client, at a new port, and the server at `to`. Returns the port's address, and a thread that
/// returns the bytes that the client sent.
pub(crate) fn relay(to: SocketAddr) -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let ear = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = ear.local_addr().unwrap();
    let relay = thread::spawn(move || {
        let (mut client, _) = ear.accept().unwrap();
        let mut server = TcpStream::connect(to).unwrap();
        let (mut from, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut back));
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut piece) {
            said.extend(&piece[..count]);
            server.write_all(&piece[..count]).unwrap();
        }
        let _ = server.shutdown(Shutdown::Both);
        said
    });
    (at, relay)
}

/// Sends the bytes `said` to the server at `to`, and returns the answer until the server ends the connection.
pub(crate) fn replay(said: &[u8], to: SocketAddr) -> Vec<u8> {
    let mut again = TcpStream::connect(to).unwrap();
    again.write_all(said).unwrap();
    let mut heard = Vec::new();
    let _ = again.take(1 << 16).read_to_end(&mut heard);
    heard
}
