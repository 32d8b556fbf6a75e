//! Socket options of a flow: one table, set from it and read back against it.

use std::fmt;
use std::io;

use landspeed_record::FlowSettings;
use socket2::Socket;

use super::raw;

/// Value of an option, in the unit in which it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(u64),
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(n) => n.fmt(f),
            Value::Word(word) => word.fmt(f),
        }
    }
}

/// One option: how settings ask for it, how it is set and read.
struct Row {
    name: &'static str,
    /// What usually stands behind a value that does not read back.
    hint: &'static str,
    asked: fn(&FlowSettings) -> Option<Value>,
    set: fn(&Socket, &Value) -> io::Result<()>,
    get: fn(&Socket) -> io::Result<Value>,
}

/// All options, in the order in which they are set.
static ROWS: &[Row] = &[
    Row {
        name: "SO_SNDBUF",
        hint: "net.core.wmem_max limits it",
        asked: |s| s.sndbuf_bytes.map(|b| Value::Number(b.0)),
        set: |socket, value| socket.set_send_buffer_size(value.size()),
        // The kernel doubles what it is asked for, for its own bookkeeping: socket(7).
        get: |socket| Ok(Value::Number(socket.send_buffer_size()? as u64 / 2)),
    },
    Row {
        name: "SO_RCVBUF",
        hint: "net.core.rmem_max limits it",
        asked: |s| s.rcvbuf_bytes.map(|b| Value::Number(b.0)),
        set: |socket, value| socket.set_recv_buffer_size(value.size()),
        get: |socket| Ok(Value::Number(socket.recv_buffer_size()? as u64 / 2)),
    },
    Row {
        name: "TCP_NODELAY",
        hint: "",
        asked: |s| Some(Value::Number(s.nodelay.into())),
        set: |socket, value| socket.set_tcp_nodelay(value.number() != 0),
        get: |socket| Ok(Value::Number(socket.tcp_nodelay()?.into())),
    },
    Row {
        name: "TCP_CONGESTION",
        hint: "it must be in net.ipv4.tcp_available_congestion_control; without root, in the allowed one",
        asked: |s| s.congestion.clone().map(Value::Word),
        set: |socket, value| socket.set_tcp_congestion(value.to_string().as_bytes()),
        get: |socket| Ok(Value::Word(until_nul(&socket.tcp_congestion()?))),
    },
    Row {
        name: "SO_MAX_PACING_RATE",
        hint: "in bytes a second",
        asked: |s| s.pacing_rate_bps.map(|rate| Value::Number((rate.0 / 8.0) as u64)),
        set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value.number()),
        get: |socket| raw::get::<u64>(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).map(Value::Number),
    },
    Row {
        name: "TCP_NOTSENT_LOWAT",
        hint: "",
        asked: |s| s.notsent_lowat_bytes.map(|b| Value::Number(b.0)),
        set: |socket, value| socket.set_tcp_notsent_lowat(value.small()),
        get: |socket| Ok(Value::Number(socket.tcp_notsent_lowat()?.into())),
    },
    Row {
        name: "SO_BUSY_POLL",
        hint: "raising it needs CAP_NET_ADMIN and a kernel with CONFIG_NET_RX_BUSY_POLL",
        // Zero leaves it to net.core.busy_read, which is a knob of its own.
        asked: |s| (s.busy_poll_us > 0).then(|| Value::Number(s.busy_poll_us.into())),
        set: |socket, value| socket.set_busy_poll(value.small()),
        get: |socket| Ok(Value::Number(socket.busy_poll()?.into())),
    },
    Row {
        name: "SO_ZEROCOPY",
        hint: "it needs Linux 4.14",
        asked: |s| s.zerocopy_send.then_some(Value::Number(1)),
        set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, value.small()),
        get: |socket| {
            raw::get::<u32>(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY).map(|on| Value::Number(on.into()))
        },
    },
];

impl Value {
    fn number(&self) -> u64 {
        match self {
            Value::Number(n) => *n,
            Value::Word(_) => 0,
        }
    }

    fn small(&self) -> u32 {
        self.number().try_into().unwrap_or(u32::MAX)
    }

    fn size(&self) -> usize {
        // The kernel takes an int; beyond it, "as much as possible" is what was meant.
        self.number().min(i32::MAX as u64) as usize
    }
}

/// Sets everything that `settings` ask for. A refusal is no error here: [`read_back`] reports it.
pub(super) fn set(socket: &Socket, settings: &FlowSettings) {
    for row in ROWS {
        if let Some(asked) = (row.asked)(settings) {
            let _ = (row.set)(socket, &asked);
        }
    }
}

/// One line for each option that is not as `settings` ask.
pub(super) fn read_back(socket: &Socket, settings: &FlowSettings) -> Vec<String> {
    ROWS.iter().filter_map(|row| differs(row, socket, &(row.asked)(settings)?)).collect()
}

fn differs(row: &Row, socket: &Socket, asked: &Value) -> Option<String> {
    let got = match (row.get)(socket) {
        Ok(got) if got == *asked => return None,
        Ok(got) => got.to_string(),
        Err(error) => error.to_string(),
    };
    let hint = if row.hint.is_empty() { String::new() } else { format!(" ({})", row.hint) };
    Some(format!("{}: asked for {asked}, got {got}{hint}", row.name))
}

fn until_nul(bytes: &[u8]) -> String {
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use landspeed_units::{BitRate, Bytes};
    use socket2::{Domain, Type};

    use super::*;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a TCP socket")
    }

    #[test]
    fn what_the_kernel_grants_reads_back_without_a_word() {
        let settings = FlowSettings {
            sndbuf_bytes: Some(Bytes::kib(64)),
            rcvbuf_bytes: Some(Bytes::kib(64)),
            nodelay: true,
            congestion: Some("reno".into()),
            pacing_rate_bps: Some(BitRate(8e9)),
            notsent_lowat_bytes: Some(Bytes::kib(128)),
            zerocopy_send: true,
            ..FlowSettings::default()
        };
        let socket = socket();
        set(&socket, &settings);
        assert_eq!(read_back(&socket, &settings), Vec::<String>::new());
        assert_eq!(socket.send_buffer_size().expect("readable"), 128 * 1024);
    }

    #[test]
    fn what_it_refuses_is_named_with_what_stands() {
        let settings = FlowSettings {
            rcvbuf_bytes: Some(Bytes(1 << 40)),
            congestion: Some("no-such-thing".into()),
            ..FlowSettings::default()
        };
        let socket = socket();
        set(&socket, &settings);
        let lines = read_back(&socket, &settings);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("SO_RCVBUF: asked for 1099511627776, got "), "{lines:?}");
        assert!(lines[0].ends_with("(net.core.rmem_max limits it)"), "{lines:?}");
        assert!(lines[1].starts_with("TCP_CONGESTION: asked for no-such-thing, got "), "{lines:?}");
    }
}
