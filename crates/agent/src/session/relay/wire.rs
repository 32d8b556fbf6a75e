//! Relayed messages as frames of a session: a marked length, a kind, the number of a connection, and bytes.

use landspeed_record::units::Bytes;

use super::CHUNK;

/// The bit of a length that marks a relayed frame. The length of a JSON message is far smaller.
const MARK: u32 = 1 << 31;
/// The number of bytes before the content: kind and number.
const HEAD: usize = 5;
/// Size of the largest frame after its length.
pub(crate) const RELAY_LIMIT: Bytes = Bytes((HEAD + CHUNK) as u64);

const OPEN: u8 = 0;
const DATA: u8 = 1;
const TAKEN: u8 = 2;
const END: u8 = 3;

/// A message about one relayed connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RelayFrame {
    /// The number of the connection, which the end with the entry chooses.
    pub(crate) connection: u32,
    pub(crate) message: RelayMessage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RelayMessage {
    /// A connection was opened at the entry.
    Open,
    /// Bytes of the connection, at least one.
    Data(Vec<u8>),
    /// Data of this cost was taken.
    Taken(u32),
    /// The sender ends its direction of the connection.
    End,
}

impl RelayFrame {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let taken;
        let (kind, content): (u8, &[u8]) = match &self.message {
            RelayMessage::Open => (OPEN, &[]),
            RelayMessage::Data(bytes) => (DATA, bytes.as_slice()),
            RelayMessage::Taken(cost) => {
                taken = cost.to_be_bytes();
                (TAKEN, &taken[..])
            }
            RelayMessage::End => (END, &[]),
        };
        // Data is at most one chunk long.
        let length = MARK | (HEAD + content.len()) as u32;
        let (length, number) = (length.to_be_bytes(), self.connection.to_be_bytes());
        [&length[..], &[kind][..], &number[..], content].concat()
    }

    /// Parses the part of a frame after its length. Returns `None` if it is malformed.
    pub(crate) fn parse(frame: &[u8]) -> Option<RelayFrame> {
        let (kind, rest) = frame.split_first()?;
        let (number, content) = rest.split_first_chunk::<4>()?;
        let message = match (*kind, content) {
            (OPEN, []) => RelayMessage::Open,
            (DATA, [_, ..]) => RelayMessage::Data(content.to_vec()),
            (TAKEN, cost) => RelayMessage::Taken(u32::from_be_bytes(cost.try_into().ok()?)),
            (END, []) => RelayMessage::End,
            _ => return None,
        };
        Some(RelayFrame { connection: u32::from_be_bytes(*number), message })
    }
}

/// Returns the length of a relayed frame from the frame's first four bytes; `None` if the frame is not relayed.
pub(crate) fn relayed_length(head: [u8; 4]) -> Option<u32> {
    let length = u32::from_be_bytes(head);
    (length & MARK != 0).then_some(length & !MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relayed_frame_is_read_back_as_it_was_written() {
        for message in [
            RelayMessage::Open,
            RelayMessage::Data(b"{\"beat\"}".to_vec()),
            RelayMessage::Taken(70_000),
            RelayMessage::End,
        ] {
            let frame = RelayFrame { connection: 0x0102_0304, message };
            let bytes = frame.encode();
            let (head, rest) = bytes.split_first_chunk::<4>().unwrap();
            assert_eq!(relayed_length(*head), Some(u32::try_from(rest.len()).unwrap()));
            assert_eq!(RelayFrame::parse(rest), Some(frame));
        }
        assert_eq!(relayed_length([0, 4, 0, 0]), None, "256 KiB of JSON");
    }

    #[test]
    fn a_malformed_relay_frame_is_refused() {
        let bad: [&[u8]; 7] = [
            b"",
            b"\x01\0\0\0",
            b"\x01\0\0\0\x01",
            b"\0\0\0\0\x01x",
            b"\x02\0\0\0\x01\0\0\0",
            b"\x03\0\0\0\x01x",
            b"\x04\0\0\0\x01",
        ];
        for frame in bad {
            assert_eq!(RelayFrame::parse(frame), None, "{frame:?}");
        }
    }
}
