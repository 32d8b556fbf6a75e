//! The description of a fault lab, as plain data that faults change.

use landspeed_record::Settings;
use landspeed_record::units::{BitRate, Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// A path with its traffic, in which host A sends to host B.
#[derive(Debug, Clone, Default)]
pub struct FaultScenario {
    /// The wide-area link between the hosts, by its parameters (docs/reference/lab-wan.md); `None` for a veth pair.
    pub wan: Option<Settings>,
    /// Number of hosts of a switch that connects them; `None` for no switch. It has no effect if there is a wide-area
    /// link.
    pub switch: Option<u16>,
    pub a: Settings,
    pub b: Settings,
    pub shaper: Option<Shaper>,
    /// The largest number of segments that host A may have in flight (the route's cwnd, locked); `None` for no limit.
    pub cwnd_segments: Option<u32>,
    pub traffic: Traffic,
    /// Number of busy loops on the receiver's core.
    pub burners: u32,
    pub receiver_core: Option<u32>,
    pub sender_core: Option<u32>,
    /// Numbers of processors that the sending and the receiving program may use, as quotas of control groups; `None`
    /// for no quota.
    pub quotas: [Option<f64>; 2],
}

impl FaultScenario {
    /// Returns the lab of the scenario, as a command line takes it.
    pub fn topology(&self) -> String {
        match (&self.wan, self.switch) {
            (Some(wan), _) => {
                let words: Vec<String> = wan.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("lab:wan:{}", words.join(","))
            }
            (None, Some(hosts)) => format!("lab:switch:{hosts}"),
            (None, None) => "lab:back-to-back".to_owned(),
        }
    }
}

/// A token bucket filter (tc-tbf).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    pub rate: BitRate,
    pub burst: Bytes,
    /// Length of the queue in front of the filter.
    pub limit: Bytes,
}

/// The traffic, and how well both programs handle it.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    Stream {
        /// Size of the sender's writes.
        write: Bytes,
        /// Pause of the sender after every `writes_between` writes.
        write_pause: Nanos,
        /// Number of writes between two pauses.
        writes_between: u32,
        /// Rate of the disk from which the sender reads what it writes, past the page cache; `None` if it sends from
        /// memory.
        disk: Option<BitRate>,
        /// The sender's congestion control.
        control: String,
        /// The requested SO_SNDBUF; `None` for the default.
        send_buffer: Option<Bytes>,
        nodelay: bool,
        /// Size of the receiver's reads.
        read: Bytes,
        /// Pause of the receiver after each read.
        read_pause: Nanos,
        /// The requested SO_RCVBUF, set before the handshake; `None` for the default.
        receive_buffer: Option<Bytes>,
    },
    /// Requests that are written in parts. Each request is answered.
    Requests {
        /// Size of a part.
        part: Bytes,
        /// Number of parts of a request.
        parts: u32,
        /// Number of requests between two pauses of the client. Each pause takes one millisecond.
        rest_every: u32,
    },
    Datagrams {
        size: Bytes,
        /// The sending rate; `None` for as fast as possible.
        rate: Option<BitRate>,
        /// The requested SO_RCVBUF of the receiver; `None` for the default.
        receive_buffer: Option<Bytes>,
        /// Pause of the receiver after every `reads_between` reads.
        read_pause: Nanos,
        /// Number of reads between two pauses.
        reads_between: u32,
    },
    /// Connections that are opened faster than they are accepted.
    Connections {
        clients: u32,
        backlog: u32,
        /// Time that the server spends on each connection.
        service: Nanos,
    },
}

impl Default for Traffic {
    /// Returns a stream by two programs without faults.
    fn default() -> Self {
        Traffic::Stream {
            write: Bytes(128 * 1024),
            write_pause: Nanos(0),
            writes_between: 1,
            disk: None,
            // BBR, the default of some kernels, hardly reacts to losses.
            control: "cubic".to_owned(),
            send_buffer: None,
            nodelay: false,
            read: Bytes(256 * 1024),
            read_pause: Nanos(0),
            receive_buffer: None,
        }
    }
}
