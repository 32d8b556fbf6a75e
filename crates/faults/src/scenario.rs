//! What a stage is set up from: plain data that faults change.

use landspeed_record::Settings;
use landspeed_units::{BitRate, Bytes, Nanos, did_you_mean};
use serde::{Deserialize, Serialize};

use crate::{Error, FAULTS, fault};

/// A path with its traffic: host A sends to host B.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// The wide-area link between the hosts, by its parameters (docs/reference/lab-wan.md); `None` joins
    /// them by a veth pair.
    pub wan: Option<Settings>,
    /// Joins them by a switch of so many hosts, where there is no wide-area link.
    pub switch: Option<u16>,
    pub a: Settings,
    pub b: Settings,
    pub shaper: Option<Shaper>,
    /// Segments that host A may have in flight at most (the route's cwnd, locked).
    pub cwnd_segments: Option<u32>,
    pub traffic: Traffic,
    /// Busy loops on the receiver's core.
    pub burners: u32,
    pub receiver_core: Option<u32>,
    pub sender_core: Option<u32>,
}

impl Scenario {
    /// A path on which nothing is wrong but these faults, each at its strength (0 to 1).
    pub fn with(faults: &[(&str, f64)]) -> Result<Scenario, Error> {
        let known = |(name, strength): &(&str, f64)| {
            let unknown = || Error::Unknown {
                name: (*name).to_owned(),
                near: did_you_mean(name, FAULTS.iter().map(|fault| fault.name)),
            };
            Ok((fault(name).ok_or_else(unknown)?, *strength))
        };
        let faults = faults.iter().map(known).collect::<Result<Vec<_>, Error>>()?;
        let mut scenario = Scenario::default();
        for (at, (fault, strength)) in faults.iter().enumerate() {
            let clash = faults[..at].iter().find(|(other, _)| !fault.needs.goes_with(other.needs));
            if let Some((other, _)) = clash {
                return Err(Error::Together(other.name.to_owned(), fault.name.to_owned()));
            }
            (fault.inject)(&mut scenario, *strength);
        }
        Ok(scenario)
    }

    /// The lab as it is written on a command line.
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
    /// Queue in front of it.
    pub limit: Bytes,
}

/// What is sent, and how well both programs do it.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    Stream {
        /// Size of the sender's writes.
        write: Bytes,
        /// Time that it rests after every `writes_between` of them.
        write_pause: Nanos,
        /// See above.
        writes_between: u32,
        /// SO_SNDBUF as asked for.
        send_buffer: Option<Bytes>,
        nodelay: bool,
        /// Size of the receiver's reads.
        read: Bytes,
        /// Time that it rests after each.
        read_pause: Nanos,
        /// SO_RCVBUF as asked for, set before the handshake.
        receive_buffer: Option<Bytes>,
    },
    /// Requests that are written in two parts, each answered.
    Requests {
        part: Bytes,
        /// Requests after which the client rests for a millisecond.
        rest_every: u32,
    },
    Datagrams {
        size: Bytes,
        /// Rate that they are sent at; `None` is as fast as it goes.
        rate: Option<BitRate>,
        /// SO_RCVBUF of the receiver.
        receive_buffer: Option<Bytes>,
        /// Time that the receiver rests after every `reads_between`.
        read_pause: Nanos,
        /// See above.
        reads_between: u32,
    },
    /// Connections that are opened faster than they are accepted.
    Connections {
        clients: u32,
        backlog: u32,
        /// Time that the server spends on each.
        service: Nanos,
    },
}

impl Default for Traffic {
    /// A stream by two programs that do it well.
    fn default() -> Self {
        Traffic::Stream {
            write: Bytes(128 * 1024),
            write_pause: Nanos(0),
            writes_between: 1,
            send_buffer: None,
            nodelay: false,
            read: Bytes(256 * 1024),
            read_pause: Nanos(0),
            receive_buffer: None,
        }
    }
}
