//! The programs of a scenario. Each is a separate process in a host's network namespace, as on a real host, and
//! performs badly on purpose.

mod connections;
pub(crate) mod datagrams;
mod disk;
mod habits;
mod requests;
mod settings;
pub(crate) mod stream;

pub use disk::DISK_FOLDER;

use std::io::{BufRead, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_record::units::Nanos;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::failure::FailureContext;
use crate::faults::{Error, Shaper};
use habits::ready;

/// The task of one program of a scenario, and where it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The network namespace in which the program runs.
    pub(crate) netns: String,
    pub(crate) core: Option<u32>,
    pub(crate) most_ns: Nanos,
    pub(crate) part: ProgramTask,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "plays", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ProgramTask {
    /// Sets knobs of the host, and ends.
    Set {
        device: String,
        settings: Settings,
        shaper: Option<Shaper>,
        locked_window: Option<(IpAddr, u32)>,
    },
    Write(stream::StreamWriterSettings),
    Read(stream::StreamReaderSettings),
    /// Sends requests, each in some writes.
    Ask {
        to: SocketAddr,
        part: u64,
        parts: u32,
        rest_every: u32,
    },
    /// Answers each request of this many bytes with one byte.
    Answer {
        at: SocketAddr,
        request: u64,
    },
    Shoot(datagrams::DatagramSenderSettings),
    Catch(datagrams::DatagramReceiverSettings),
    /// Opens connections from many threads.
    Knock {
        to: SocketAddr,
        clients: u32,
    },
    /// Accepts connections slowly.
    Open {
        at: SocketAddr,
        backlog: u32,
        service: Nanos,
    },
    /// Keeps its core busy.
    Burn,
}

impl ProgramTask {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            ProgramTask::Set { .. } => "settings",
            ProgramTask::Write(_) => "writing",
            ProgramTask::Read(_) => "reading",
            ProgramTask::Ask { .. } => "asking",
            ProgramTask::Answer { .. } => "answering",
            ProgramTask::Shoot(_) => "sending datagrams",
            ProgramTask::Catch(_) => "receiving datagrams",
            ProgramTask::Knock { .. } => "opening connections",
            ProgramTask::Open { .. } => "accepting connections",
            ProgramTask::Burn => "load",
        }
    }
}

/// Runs the task that standard input describes. It ends when the task's time is over, when nothing is left to do, or
/// when standard input ends, as it does when the starting process ends. Prints "ready" once the task is set up.
///
/// Call it before the process has a second thread, because it moves into a network namespace.
pub fn play() -> Result<(), Error> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).during(|| "read the part from standard input".into())?;
    let spec: ProgramSpec =
        serde_json::from_str(&line).during(|| "understand the part on standard input".into())?;
    crate::topology::enter(&spec.netns)?;
    if let Some(core) = spec.core {
        bind(core)?;
    }
    std::thread::spawn(end_with_standard_input);
    let until = Instant::now() + Duration::from(spec.most_ns);
    match spec.part {
        ProgramTask::Set { device, settings, shaper, locked_window } => {
            settings::set(&device, &settings, shaper, locked_window)?;
            ready();
            Ok(())
        }
        ProgramTask::Write(settings) => stream::write(&settings, until),
        ProgramTask::Read(settings) => stream::read(&settings, until),
        ProgramTask::Ask { to, part, parts, rest_every } => requests::ask(to, part, parts, rest_every, until),
        ProgramTask::Answer { at, request } => requests::answer(at, request, until),
        ProgramTask::Shoot(settings) => datagrams::shoot(&settings, until),
        ProgramTask::Catch(settings) => datagrams::catch(&settings, until),
        ProgramTask::Knock { to, clients } => connections::knock(to, clients, until),
        ProgramTask::Open { at, backlog, service } => connections::open(at, backlog, service, until),
        ProgramTask::Burn => {
            ready();
            burn(until);
            Ok(())
        }
    }
}

fn end_with_standard_input() {
    let mut rest = [0; 64];
    while matches!(std::io::stdin().lock().read(&mut rest), Ok(n) if n > 0) {}
    std::process::exit(0);
}

fn bind(core: u32) -> Result<(), Error> {
    let mut cores = CpuSet::new();
    cores.set(core as usize);
    Ok(sched_setaffinity(None, &cores).during(|| format!("bind to core {core}"))?)
}

fn burn(until: Instant) {
    let mut sum = 0u64;
    while Instant::now() < until {
        for i in 0..100_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
}
