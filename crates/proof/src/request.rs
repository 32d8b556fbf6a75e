//! A request over a stream, with the proof that both ends know the run's token.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::{ANSWER, CONFIRM, HELLO, KeyProof, ProofKey, random};

/// The environment variable that holds a run's token.
pub const TOKEN: &str = "LANDSPEED_TOKEN";

/// The secret of one kind of port, derived from a run's token. `Debug` hides it.
#[derive(Clone, Copy)]
pub struct Secret(ProofKey);

impl Secret {
    /// Derives the secret of a kind of port, such as "spawn", from a token.
    ///
    /// # Errors
    /// Returns an error if the token is empty, because an empty token is no secret.
    pub fn of(token: &str, port: &str) -> std::result::Result<Self, String> {
        if token.is_empty() {
            return Err(format!("set {TOKEN} to the same secret text on every host"));
        }
        let token = blake3::derive_key("landspeed 2026-11 token of a run", token.as_bytes());
        Ok(Secret(*blake3::keyed_hash(&token, port.as_bytes()).as_bytes()))
    }

    /// Derives the secret of a kind of port from the token in the environment variable [`TOKEN`].
    ///
    /// # Errors
    /// Returns an error if the variable is not set, or empty.
    pub fn from_env(port: &str) -> std::result::Result<Self, String> {
        Secret::of(&std::env::var(TOKEN).unwrap_or_default(), port)
    }

    /// Returns the key for the handshake of one request.
    fn key(&self, request: &[u8]) -> ProofKey {
        *blake3::keyed_hash(&self.0, request).as_bytes()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The client's confirm, for a server that has proven that it knows the secret.
#[derive(Debug)]
pub struct ProvenServer([u8; CONFIRM]);

/// Sends the client's hello with its request, and checks the server's answer.
///
/// # Errors
/// Returns an error of the kind [`ErrorKind::PermissionDenied`] if one end does not know the secret, and of another
/// kind if the stream ends or fails.
pub fn verify_server(
    stream: &mut (impl Read + Write),
    secret: Secret,
    request: &[u8],
) -> Result<ProvenServer> {
    let length = u32::try_from(request.len()).map_err(Error::other)?;
    let (key, proof) = (secret.key(request), KeyProof::start(length, random()));
    stream.write_all(&[&proof.hello(&key)[..], request].concat())?;
    let mut answer = [0; ANSWER];
    stream.read_exact(&mut answer)?;
    let proven = proof.answered(&key, &answer).map(|proof| ProvenServer(proof.confirm(&key)));
    proven.ok_or_else(|| denied("the other end does not know this run's token"))
}

impl ProvenServer {
    /// Sends the confirm, after which the server handles the request.
    ///
    /// # Errors
    /// Returns an error if the stream ends or fails.
    pub fn confirm(self, stream: &mut impl Write) -> Result<()> {
        stream.write_all(&self.0)
    }
}

/// Runs the server's side of the handshake: each end proves to the other that it knows the secret. Returns the client's
/// request, which has at most `most` bytes.
///
/// # Errors
/// Returns an error if the client does not know the secret, if its request is longer than `most`, or if the stream
/// ends or fails.
pub fn receive_request(stream: &mut (impl Read + Write), secret: Secret, most: u32) -> Result<Vec<u8>> {
    let mut hello = [0; HELLO];
    stream.read_exact(&mut hello)?;
    let [a, b, c, d, ..] = hello;
    let length = u32::from_be_bytes([a, b, c, d]);
    if length > most {
        return Err(Error::new(ErrorKind::InvalidData, "a request that is too long"));
    }
    let mut request = vec![0; length as usize];
    stream.read_exact(&mut request)?;
    let key = secret.key(&request);
    let Some(proof) = KeyProof::greeted(&key, &hello, random()) else {
        // An answer with a wrong MAC, from which a client with another token sees why it is refused.
        stream.write_all(&[0; ANSWER])?;
        return Err(denied("a request without this run's token"));
    };
    stream.write_all(&proof.answer(&key))?;
    let mut confirm = [0; CONFIRM];
    stream.read_exact(&mut confirm)?;
    match proof.confirmed(&key, &confirm) {
        Some(_) => Ok(request),
        None => Err(denied("a request that repeats an earlier one")),
    }
}

fn denied(why: &'static str) -> Error {
    Error::new(ErrorKind::PermissionDenied, why)
}

/// A connection with one time limit for all reads and writes together, even if the peer sends slowly.
#[derive(Debug)]
pub struct DeadlineStream<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> DeadlineStream<'a> {
    /// Returns a stream over the blocking connection `stream`. The time limit `limit` is counted from this call.
    pub fn new(stream: &'a TcpStream, limit: Duration) -> Self {
        DeadlineStream { stream, until: Instant::now() + limit }
    }

    fn left(&self) -> Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;
    use crate::MAC;

    const MOST: u32 = 1000;

    fn secret(text: &str) -> Secret {
        Secret::of(text, "test").unwrap()
    }

    /// Returns the results of the client and of the server, each with the given secret, at the two ends of a stream.
    fn pair(client: Secret, server: Secret, request: &'static [u8]) -> (Result<()>, Result<Vec<u8>>) {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let asking = thread::spawn(move || verify_server(&mut here, client, request)?.confirm(&mut here));
        let heard = receive_request(&mut there, server, MOST);
        drop(there);
        (asking.join().unwrap(), heard)
    }

    /// A stream that keeps a copy of the bytes read (first) and written (second).
    struct Tapped(UnixStream, Vec<u8>, Vec<u8>);

    impl Read for Tapped {
        fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
            let got = self.0.read(bytes)?;
            self.1.extend(&bytes[..got]);
            Ok(got)
        }
    }

    impl Write for Tapped {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.2.extend(bytes);
            self.0.write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn both_ends_know_the_secret_or_neither_gets_anywhere() {
        let (asked, heard) = pair(secret("one"), secret("one"), b"run this");
        assert_eq!((asked.is_ok(), heard.unwrap()), (true, b"run this".to_vec()));
        for other in [secret("another"), Secret::of("one", "another kind of port").unwrap()] {
            let (asked, heard) = pair(secret("one"), other, b"run this");
            assert!(asked.unwrap_err().to_string().contains("does not know"));
            assert_eq!(heard.unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        assert!(Secret::of("", "test").unwrap_err().contains("LANDSPEED_TOKEN"));
        assert_eq!(format!("{:?}", secret("one")), "Secret(..)");
    }

    #[test]
    fn neither_the_secret_nor_anything_that_opens_another_connection_passes() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let serving =
            thread::spawn(move || receive_request(&mut there, secret("a secret of the trial"), MOST));
        let mut tapped = Tapped(here, Vec::new(), Vec::new());
        verify_server(&mut tapped, secret("a secret of the trial"), b"run this")
            .unwrap()
            .confirm(&mut tapped)
            .unwrap();
        assert!(serving.join().unwrap().is_ok());
        let Tapped(_, came, went) = tapped;
        let known = secret("a secret of the trial").0;
        for said in [&came, &went] {
            assert!(!said.windows(8).any(|part| part == b"a secret" || part == &known[..8]));
        }
        // Replay everything that the client sent, on another connection.
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let serving =
            thread::spawn(move || receive_request(&mut there, secret("a secret of the trial"), MOST));
        here.write_all(&went).unwrap();
        let heard = serving.join().unwrap();
        assert_eq!(heard.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    /// Relays a client's bytes to a server with one bit of byte `at` flipped, and returns the server's result.
    fn changed(at: usize) -> Result<Vec<u8>> {
        let (mut client, mut heard) = UnixStream::pair().unwrap();
        let (mut server, mut passed_on) = UnixStream::pair().unwrap();
        let asking = thread::spawn(move || {
            verify_server(&mut client, secret("one"), b"run this")?.confirm(&mut client)
        });
        let serving = thread::spawn(move || receive_request(&mut server, secret("one"), MOST));
        let (mut said, mut answer) = ([0; HELLO + 8 + CONFIRM], [0; ANSWER]);
        heard.read_exact(&mut said[..HELLO + 8]).unwrap();
        said[at] ^= 1;
        passed_on.write_all(&said[..HELLO + 8]).unwrap();
        if at < HELLO + 8 {
            // The server may wait for the rest of a longer request.
            passed_on.shutdown(std::net::Shutdown::Write).unwrap();
        } else {
            passed_on.read_exact(&mut answer).unwrap();
            heard.write_all(&answer).unwrap();
            heard.read_exact(&mut said[HELLO + 8..]).unwrap();
            said[at] ^= 1;
            passed_on.write_all(&said[HELLO + 8..]).unwrap();
        }
        let ended = serving.join().unwrap();
        drop(heard);
        let _ = asking.join().unwrap();
        ended
    }

    #[test]
    fn a_request_that_a_relay_changes_is_refused() {
        for at in [0, 3, 4, HELLO - MAC, HELLO - 1, HELLO, HELLO + 7, HELLO + 8, HELLO + 8 + CONFIRM - 1] {
            assert!(changed(at).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_client_that_sends_slowly_is_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let serving = thread::spawn(move || {
            let mut timed = DeadlineStream::new(&server, Duration::from_millis(200));
            receive_request(&mut timed, secret("one"), MOST)
        });
        while !serving.is_finished() {
            let _ = client.write_all(&[0]);
            thread::sleep(Duration::from_millis(20));
        }
        let kind = serving.join().unwrap().unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::TimedOut | ErrorKind::WouldBlock), "{kind:?}");
    }
}
