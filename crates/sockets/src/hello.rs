//! What a connection begins with.

use std::io::{self, Read, Write};

/// What is done over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// A message goes there and comes back, one at a time.
    Pingpong,
    /// The end that asks sends as fast as it can.
    Send,
    /// The end that serves sends as fast as it can.
    Receive,
    /// A byte comes back, and the connection ends: what counts is how long it takes to make one.
    Connect,
}

const ALL: [Does; 4] = [Does::Pingpong, Does::Send, Does::Receive, Does::Connect];

/// What is done, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// What is done.
    pub does: Does,
    /// Bytes of a message, or of a call of write; at least 1, and 16 MiB at most.
    pub size: usize,
    /// Whether both ends call again and again until there is something, and do not sleep.
    pub is_polling: bool,
}

/// The largest message.
const LARGEST: usize = 16 << 20;

/// Proves to each end that the other one belongs to this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(blake3::Hash);

impl Token {
    /// The token of a secret text.
    ///
    /// # Errors
    /// An empty text, which everyone knows.
    pub fn of(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("LANDSPEED_TOKEN is empty: set it to the same secret at both ends".to_owned()),
            text => Ok(Token(blake3::hash(text.as_bytes()))),
        }
    }
}

/// Length of a hello: token, what, how, size.
const LENGTH: usize = 32 + 1 + 1 + 4;

/// Says what is to be done over a connection.
pub(crate) fn say(to: &mut impl Write, token: Token, task: Task) -> io::Result<()> {
    let mut bytes = token.0.as_bytes().to_vec();
    bytes.extend([task.does as u8, u8::from(task.is_polling)]);
    bytes.extend((task.size as u32).to_be_bytes());
    to.write_all(&bytes)
}

/// Hears it; an error where the other end does not know the token, or asks for something else.
pub(crate) fn hear(from: &mut impl Read, token: Token) -> io::Result<Task> {
    let mut bytes = [0; LENGTH];
    from.read_exact(&mut bytes)?;
    let (theirs, rest) = bytes.split_first_chunk::<32>().expect("it is longer");
    let [does, is_polling, size @ ..] = rest else { unreachable!("it has this length") };
    let does = ALL.into_iter().find(|one| *one as u8 == *does);
    let size = u32::from_be_bytes(size.try_into().expect("four bytes are left")) as usize;
    match does {
        // Hashes are compared in constant time.
        Some(does) if token.0 == blake3::Hash::from_bytes(*theirs) && (1..=LARGEST).contains(&size) => {
            Ok(Task { does, size, is_polling: *is_polling != 0 })
        }
        _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "no hello with this run's token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_heard_as_it_was_said_and_others_are_refused() {
        let (token, other) = (Token::of("one").unwrap(), Token::of("other").unwrap());
        let task = Task { does: Does::Receive, size: 65_536, is_polling: true };
        let mut said = Vec::new();
        say(&mut said, token, task).unwrap();
        assert_eq!(hear(&mut said.as_slice(), token).unwrap(), task);
        assert!(hear(&mut said.as_slice(), other).is_err());
        assert!(hear(&mut &said[..LENGTH - 1], token).is_err());
        said[32] = 9;
        assert!(hear(&mut said.as_slice(), token).is_err());
        said[32] = 0;
        said[34..].copy_from_slice(&u32::MAX.to_be_bytes());
        assert!(hear(&mut said.as_slice(), token).is_err());
        assert!(Token::of("").is_err());
    }
}
