//! Settings of a flow: no file of the system holds them, so they are told to whoever writes or configures
//! the application.

use super::{Change, Error};
use crate::shown;

/// How an application sets each.
const HOW: &[(&str, &str)] = &[
    ("flows", "open this many TCP connections at once"),
    ("write-size", "hand this many bytes to each send call"),
    ("read-size", "hand a buffer of this many bytes to each receive call"),
    (
        "sndbuf",
        "setsockopt(SOL_SOCKET, SO_SNDBUF) before connecting; turns autotuning of the send buffer off",
    ),
    (
        "rcvbuf",
        "setsockopt(SOL_SOCKET, SO_RCVBUF) before connecting; turns autotuning of the receive buffer off",
    ),
    ("nodelay", "setsockopt(IPPROTO_TCP, TCP_NODELAY)"),
    ("busy-poll", "setsockopt(SOL_SOCKET, SO_BUSY_POLL), in microseconds"),
    (
        "zerocopy-send",
        "setsockopt(SOL_SOCKET, SO_ZEROCOPY), then send with MSG_ZEROCOPY and read its completions",
    ),
    ("zerocopy-receive", "mmap the socket and getsockopt(IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE)"),
    ("socket-congestion", "setsockopt(IPPROTO_TCP, TCP_CONGESTION)"),
    ("socket-notsent-lowat", "setsockopt(IPPROTO_TCP, TCP_NOTSENT_LOWAT)"),
    ("pacing-rate", "setsockopt(SOL_SOCKET, SO_MAX_PACING_RATE), in bytes per second, for each connection"),
    ("placement", "pin the sending and receiving threads: taskset(1), or CPUAffinity= of the service"),
];

/// One line a setting.
pub(super) fn text<'a>(changes: impl Iterator<Item = Change<'a>>) -> Result<String, Error> {
    let mut text = String::new();
    for change in changes {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        if !(1..=60).contains(&change.to.len()) || !change.to.chars().all(plain) {
            return Err(change.wrong("a number or a word"));
        }
        let how = HOW.iter().find(|(knob, _)| *knob == change.knob).map_or("", |(_, how)| how);
        text += &format!("{} = {}", shown(change.knob), change.to);
        text += &change.from.map(|from| format!(" (was {})", shown(from))).unwrap_or_default();
        text += &if how.is_empty() { "\n".to_owned() } else { format!(": {how}\n") };
    }
    Ok(text)
}
