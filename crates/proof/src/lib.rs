//! Proves, over a byte stream, that both ends know a secret, without sending it.
//!
//! The proof has the three passes of ISO/IEC 9798-4 clause 7.2 ("three-pass mutual authentication"), with keyed
//! BLAKE3 as the check function:
//!
//! | pass | bytes |
//! |---|---|
//! | hello, client to server | challenge C (16) |
//! | answer, server to client | challenge S (16), MAC("server", C, S) (32) |
//! | request, client to server | MAC("client", C, S, request) (32), length of the request (4, big endian), request |
//!
//! The challenges are fresh, so that no pass can be replayed on another connection. The MAC of the last pass covers
//! the request, so that the request cannot be changed on its way. What follows the request is neither encrypted nor
//! checked.

#![warn(missing_docs)]

use std::io::{Error, ErrorKind, Read, Result, Write};

const CHALLENGE: usize = 16;
const MAC: usize = blake3::OUT_LEN;

type Challenge = [u8; CHALLENGE];

/// The secret that both ends know.
#[derive(Clone, Copy)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Derives the secret from a text.
    ///
    /// # Errors
    /// Returns an error if the text is empty, because everyone knows the empty text.
    pub fn of(text: &str) -> std::result::Result<Self, String> {
        match text {
            "" => Err("LANDSPEED_TOKEN is empty: set it to the same secret at both ends".to_owned()),
            text => Ok(Secret(blake3::derive_key("landspeed 2026-11 secret of a trial", text.as_bytes()))),
        }
    }

    fn mac(&self, side: &str, challenges: &[Challenge; 2], request: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(side.as_bytes());
        hasher.update(challenges.as_flattened());
        hasher.update(request);
        hasher.finalize()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The client's end of a stream whose server has proven the secret and waits for a request.
#[derive(Debug)]
pub struct ProvenServer {
    secret: Secret,
    challenges: [Challenge; 2],
}

/// Sends the client's hello and checks the server's answer.
///
/// # Errors
/// Returns an error if the server does not know the secret, or if the stream ends or fails.
pub fn verify_server(stream: &mut (impl Read + Write), secret: Secret) -> Result<ProvenServer> {
    let own = challenge()?;
    stream.write_all(&own)?;
    let mut answer = [0; CHALLENGE + MAC];
    stream.read_exact(&mut answer)?;
    let (theirs, mac) = answer.split_at(CHALLENGE);
    let challenges = [own, theirs.try_into().expect("a challenge was split off")];
    if secret.mac("server", &challenges, &[]) == sent(mac) {
        return Ok(ProvenServer { secret, challenges });
    }
    Err(Error::new(ErrorKind::PermissionDenied, "the other end does not know this run's token"))
}

impl ProvenServer {
    /// Sends a request to the server, with the proof that this end knows the secret.
    ///
    /// # Errors
    /// Returns an error if the stream ends or fails.
    pub fn ask(self, stream: &mut impl Write, request: &[u8]) -> Result<()> {
        let length = u32::try_from(request.len()).map_err(Error::other)?;
        let mac = self.secret.mac("client", &self.challenges, request);
        stream.write_all(&[&mac.as_bytes()[..], &length.to_be_bytes(), request].concat())
    }
}

/// Proves the secret to a client, and returns the client's request of at most `most` bytes.
///
/// # Errors
/// Returns an error if the client does not know the secret, if its request is longer than `most`, or if the stream
/// ends or fails.
pub fn receive_request(stream: &mut (impl Read + Write), secret: Secret, most: u32) -> Result<Vec<u8>> {
    let (mut theirs, own) = ([0; CHALLENGE], challenge()?);
    stream.read_exact(&mut theirs)?;
    let challenges = [theirs, own];
    let mac = secret.mac("server", &challenges, &[]);
    stream.write_all(&[&own[..], mac.as_bytes()].concat())?;
    let mut head = [0; MAC + 4];
    stream.read_exact(&mut head)?;
    let (mac, length) = head.split_at(MAC);
    let length = u32::from_be_bytes(length.try_into().expect("four bytes are left"));
    if length > most {
        return Err(Error::new(ErrorKind::InvalidData, "a request that is too long"));
    }
    let mut request = vec![0; length as usize];
    stream.read_exact(&mut request)?;
    if secret.mac("client", &challenges, &request) == sent(mac) {
        return Ok(request);
    }
    Err(Error::new(ErrorKind::PermissionDenied, "a request without this run's token"))
}

/// Returns a received MAC as a hash, because hashes compare in constant time.
fn sent(mac: &[u8]) -> blake3::Hash {
    blake3::Hash::from_bytes(mac.try_into().expect("a MAC has this length"))
}

fn challenge() -> Result<Challenge> {
    let mut bytes = [0; CHALLENGE];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    const MOST: u32 = 1000;

    fn secret(text: &str) -> Secret {
        Secret::of(text).unwrap()
    }

    /// Returns the results of both ends of a stream, for the given secrets of the client and of the server.
    fn pair(client: &str, server: &str, request: &'static [u8]) -> (Result<()>, Result<Vec<u8>>) {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let (client, server) = (secret(client), secret(server));
        let asking = thread::spawn(move || verify_server(&mut here, client)?.ask(&mut here, request));
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
        let (asked, heard) = pair("one", "one", b"run this");
        assert_eq!((asked.is_ok(), heard.unwrap()), (true, b"run this".to_vec()));
        let (asked, heard) = pair("one", "another", b"run this");
        assert!(asked.unwrap_err().to_string().contains("does not know"));
        assert!(heard.is_err());
        assert!(Secret::of("").is_err());
    }

    #[test]
    fn neither_the_secret_nor_anything_that_opens_another_connection_passes() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let serving =
            thread::spawn(move || receive_request(&mut there, secret("a secret of the trial"), MOST));
        let mut tapped = Tapped(here, Vec::new(), Vec::new());
        verify_server(&mut tapped, secret("a secret of the trial"))
            .unwrap()
            .ask(&mut tapped, b"run this")
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

    #[test]
    fn a_request_that_was_changed_or_is_too_long_is_refused() {
        for (at, bit) in [(MAC + 4, 1), (MAC + 3, 1), (MAC, 1), (0, 1)] {
            let (mut here, mut there) = UnixStream::pair().unwrap();
            let serving = thread::spawn(move || receive_request(&mut there, secret("one"), MOST));
            let proven = verify_server(&mut here, secret("one")).unwrap();
            let mut said = Vec::new();
            proven.ask(&mut said, b"run this").unwrap();
            said[at] ^= bit;
            here.write_all(&said).unwrap();
            drop(here);
            assert!(serving.join().unwrap().is_err(), "byte {at}");
        }
    }
}
