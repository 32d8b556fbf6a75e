//! The secret that all hosts of a group share, and the proof of it that each connection begins with.

use std::env;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use blake3::Hash;

use crate::Error;

/// The environment variable that holds the token.
pub const TOKEN: &str = "LANDSPEED_TOKEN";

/// Time limit for a peer's proof.
const PROOF_TIME: Duration = Duration::from_secs(5);

/// Length of a hello in bytes ([`crate::plan::JoinHello`]).
pub(crate) const HELLO: usize = 45;

/// The shared secret: any text that is not empty. `Debug` hides it.
#[derive(Clone)]
pub struct GroupToken(String);

impl GroupToken {
    /// Makes a token from a text.
    ///
    /// # Errors
    /// Returns [`Error::Token`] if the text is empty.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        Some(text.into()).filter(|text| !text.is_empty()).map(GroupToken).ok_or(Error::Token)
    }

    /// Reads the token from the environment variable [`TOKEN`].
    ///
    /// # Errors
    /// Returns [`Error::Token`] if the variable is not set, or empty.
    pub fn from_env() -> Result<Self, Error> {
        GroupToken::new(env::var(TOKEN).map_err(|_| Error::Token)?)
    }

    /// Returns the proof of one end, over both ends' nonces and the hello (BLAKE3 paper, sections 2.3 and 6.2).
    fn mac(&self, side: ProvingEnd, nonces: &[[u8; 32]; 2], hello: &[u8; HELLO]) -> Hash {
        let context = match side {
            ProvingEnd::Connects => "landspeed filter streams 1: token, proven by the end that connects",
            ProvingEnd::Accepts => "landspeed filter streams 1: token, proven by the end that accepts",
        };
        let key = blake3::derive_key(context, self.0.as_bytes());
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(nonces.as_flattened()).update(hello);
        hasher.finalize()
    }
}

impl fmt::Debug for GroupToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupToken(..)")
    }
}

/// The side that proves. The proofs of the two sides differ, so a proof cannot be sent back.
#[derive(Debug, Clone, Copy)]
enum ProvingEnd {
    Connects,
    Accepts,
}

/// The answer of the accepting end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum JoinAnswer {
    Welcome = 0,
    /// The tokens differ.
    Refused = 1,
    /// The token is proven, but the hello is not expected.
    Differs = 2,
}

/// Runs the connecting end: proves the token, sends `hello`, and checks that the other end knows the token too.
pub(crate) fn connect(stream: &TcpStream, token: &GroupToken, hello: &[u8; HELLO]) -> io::Result<JoinAnswer> {
    let mut timed = DeadlineStream { stream, until: Instant::now() + PROOF_TIME };
    let mut nonces = [[0; 32]; 2];
    timed.read_exact(&mut nonces[0])?;
    nonces[1] = nonce()?;
    let proof = token.mac(ProvingEnd::Connects, &nonces, hello);
    timed.write_all(&[hello.as_slice(), &nonces[1], proof.as_bytes()].concat())?;
    let mut answer = [0; 33];
    timed.read_exact(&mut answer)?;
    let [word, proof @ ..] = answer;
    // Hashes are compared in constant time.
    let is_proven = Hash::from_bytes(proof) == token.mac(ProvingEnd::Accepts, &nonces, hello);
    Ok(match word {
        0 if is_proven => JoinAnswer::Welcome,
        2 if is_proven => JoinAnswer::Differs,
        _ => JoinAnswer::Refused,
    })
}

/// Runs the accepting end: receives a hello with its proof, and answers. `judge` is called for proven hellos only.
pub(crate) fn accept(
    stream: &TcpStream,
    token: &GroupToken,
    judge: impl FnOnce(&[u8; HELLO]) -> JoinAnswer,
) -> io::Result<([u8; HELLO], JoinAnswer)> {
    let mut timed = DeadlineStream { stream, until: Instant::now() + PROOF_TIME };
    let mut nonces = [nonce()?, [0; 32]];
    timed.write_all(&nonces[0])?;
    let (mut hello, mut proof) = ([0; HELLO], [0; 32]);
    timed.read_exact(&mut hello)?;
    timed.read_exact(&mut nonces[1])?;
    timed.read_exact(&mut proof)?;
    if Hash::from_bytes(proof) != token.mac(ProvingEnd::Connects, &nonces, &hello) {
        timed.write_all(&[JoinAnswer::Refused as u8; 33])?;
        return Ok((hello, JoinAnswer::Refused));
    }
    let answer = judge(&hello);
    let own = token.mac(ProvingEnd::Accepts, &nonces, &hello);
    timed.write_all(&[&[answer as u8], own.as_bytes().as_slice()].concat())?;
    Ok((hello, answer))
}

fn nonce() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A socket with a total time limit for all reads and writes, however slowly the peer sends.
struct DeadlineStream<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl DeadlineStream<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn answers(ours: &str, theirs: &str, judged: JoinAnswer) -> (JoinAnswer, JoinAnswer, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let theirs = GroupToken::new(theirs).unwrap();
        let other = thread::spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            connect(&stream, &theirs, &[7; HELLO]).unwrap()
        });
        let mut was_asked = false;
        let judge = |hello: &[u8; HELLO]| {
            was_asked = true;
            assert_eq!(*hello, [7; HELLO]);
            judged
        };
        let stream = listener.accept().unwrap().0;
        let (_, here) = accept(&stream, &GroupToken::new(ours).unwrap(), judge).unwrap();
        (here, other.join().unwrap(), was_asked)
    }

    #[test]
    fn only_the_same_token_opens_and_nothing_unproven_is_judged() {
        use JoinAnswer::{Differs, Refused, Welcome};
        assert_eq!(answers("salt", "salt", Welcome), (Welcome, Welcome, true));
        assert_eq!(answers("salt", "salt", Differs), (Differs, Differs, true));
        assert_eq!(answers("salt", "sand", Welcome), (Refused, Refused, false));
        assert!(matches!(GroupToken::new(""), Err(Error::Token)));
        assert_eq!(format!("{:?}", GroupToken::new("salt").unwrap()), "GroupToken(..)");
    }

    #[test]
    fn an_end_that_accepts_without_the_token_is_not_believed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = thread::spawn(move || {
            let stream = TcpStream::connect(address).unwrap();
            connect(&stream, &GroupToken::new("salt").unwrap(), &[7; HELLO]).unwrap()
        });
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(&[0; 32]).unwrap();
        stream.read_exact(&mut [0; HELLO + 64]).unwrap();
        stream.write_all(&[JoinAnswer::Welcome as u8; 33]).unwrap();
        assert_eq!(other.join().unwrap(), JoinAnswer::Refused);
    }
}
