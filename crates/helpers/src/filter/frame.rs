//! Frames on a socket: kind, length and body. The length is checked before the body is read.

use std::io::{self, IoSlice, Read, Write};

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// A buffer of a stream.
    Buffer = 1,
    /// An end-of-work marker. The body is the unit's number.
    End = 2,
    /// The consumer has used up its oldest frame.
    Credit = 3,
    /// A heartbeat.
    Beat = 4,
    /// The host has joined all others.
    Ready = 5,
    /// The host's filters are done. The body is a report.
    Done = 6,
    /// The host ends with an error. The body is the error's text.
    Failed = 7,
    /// The query is over.
    Goodbye = 8,
}

impl FrameKind {
    const ALL: [FrameKind; 8] = [
        FrameKind::Buffer,
        FrameKind::End,
        FrameKind::Credit,
        FrameKind::Beat,
        FrameKind::Ready,
        FrameKind::Done,
        FrameKind::Failed,
        FrameKind::Goodbye,
    ];
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SocketFrame {
    pub(crate) kind: FrameKind,
    pub(crate) body: Vec<u8>,
}

/// The length of a frame's header, in bytes: kind and length of the body.
pub(crate) const HEADER: usize = 5;

/// The reason why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no frame has the kind {0}")]
    Kind(u8),
    #[error("a frame of {length} bytes where at most {limit} are allowed")]
    Large { length: usize, limit: usize },
}

/// Reads one frame. Returns an error if its body has more than `limit` bytes.
pub(crate) fn read(from: &mut impl Read, limit: usize) -> Result<SocketFrame, FrameReadError> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let [number, length @ ..] = header;
    let kind =
        FrameKind::ALL.into_iter().find(|kind| *kind as u8 == number).ok_or(FrameReadError::Kind(number))?;
    let length = u32::from_le_bytes(length) as usize;
    if length > limit {
        return Err(FrameReadError::Large { length, limit });
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(SocketFrame { kind, body })
}

/// Writes one frame. Header and body are passed to the kernel in one call. If the kernel accepts only a part, more
/// calls follow.
pub(crate) fn write(to: &mut impl Write, kind: FrameKind, body: &[u8]) -> io::Result<()> {
    let mut header = [kind as u8; HEADER];
    let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    header[1..].copy_from_slice(&length.to_le_bytes());
    let sent = to.write_vectored(&[IoSlice::new(&header), IoSlice::new(body)])?;
    if sent < HEADER {
        to.write_all(&header[sent..])?;
    }
    to.write_all(&body[sent.saturating_sub(HEADER)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_and_wrong_ones_are_refused_before_their_body_is_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, FrameKind::Buffer, b"grain").unwrap();
        write(&mut bytes, FrameKind::Credit, b"").unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(
            read(&mut from, 5).unwrap(),
            SocketFrame { kind: FrameKind::Buffer, body: b"grain".to_vec() }
        );
        assert_eq!(read(&mut from, 0).unwrap().kind, FrameKind::Credit);
        assert!(matches!(read(&mut from, 5), Err(FrameReadError::Io(_))));

        assert!(matches!(read(&mut bytes.as_slice(), 4), Err(FrameReadError::Large { length: 5, limit: 4 })));
        assert!(matches!(
            read(&mut [1, 255, 255, 255, 255].as_slice(), 1 << 20),
            Err(FrameReadError::Large { .. })
        ));
        assert!(matches!(read(&mut [0; 5].as_slice(), 4), Err(FrameReadError::Kind(0))));
        assert!(matches!(read(&mut [9; 5].as_slice(), 4), Err(FrameReadError::Kind(9))));
    }
}
