//! Socket options of a flow: tables of rows, set from the settings and read back against them.

use std::fmt;
use std::io;

use landspeed_record::FlowSettings;
use socket2::Socket;

/// Value of an option, in the unit in which it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
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
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What usually stands behind a value that does not read back.
    pub(crate) hint: &'static str,
    pub(crate) asked: fn(&FlowSettings) -> Option<Value>,
    pub(crate) set: fn(&Socket, &Value) -> io::Result<()>,
    pub(crate) get: fn(&Socket) -> io::Result<Value>,
}

/// The options of a transport, in the order in which they are set.
pub(crate) struct Options(pub(crate) &'static [&'static [Row]]);

impl Options {
    /// Sets everything that `settings` ask for. A refusal is no error here: [`Options::read_back`]
    /// reports it.
    pub(crate) fn set(&self, socket: &Socket, settings: &FlowSettings) {
        for row in self.rows() {
            if let Some(asked) = (row.asked)(settings) {
                let _ = (row.set)(socket, &asked);
            }
        }
    }

    /// One line for each option that is not as `settings` ask.
    pub(crate) fn read_back(&self, socket: &Socket, settings: &FlowSettings) -> Vec<String> {
        self.rows().filter_map(|row| differs(row, socket, &(row.asked)(settings)?)).collect()
    }

    fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.0.iter().copied().flatten()
    }
}

/// Options of every kind of socket.
pub(crate) static SOCKET: &[Row] = &[
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
        name: "SO_BUSY_POLL",
        hint: "raising it needs CAP_NET_ADMIN and a kernel with CONFIG_NET_RX_BUSY_POLL",
        // Zero leaves it to net.core.busy_read, which is a knob of its own.
        asked: |s| (s.busy_poll_us > 0).then(|| Value::Number(s.busy_poll_us.into())),
        set: |socket, value| socket.set_busy_poll(value.small()),
        get: |socket| Ok(Value::Number(socket.busy_poll()?.into())),
    },
];

impl Value {
    pub(crate) fn number(&self) -> u64 {
        match self {
            Value::Number(n) => *n,
            Value::Word(_) => 0,
        }
    }

    pub(crate) fn small(&self) -> u32 {
        self.number().try_into().unwrap_or(u32::MAX)
    }

    pub(crate) fn size(&self) -> usize {
        // The kernel takes an int; beyond it, "as much as possible" is what was meant.
        self.number().min(i32::MAX as u64) as usize
    }
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
