//! Sets up a scenario in a lab.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::topology::{HostSet, ReachMethod, TopologyHost, open};
use landspeed_record::Settings;
use landspeed_record::units::{Bytes, Nanos};

use crate::failure::FailureContext;
use crate::faults::app::{ProgramSpec, ProgramTask, datagrams, stream};
use crate::faults::group::{ControlGroup, GroupLimit};
use crate::faults::{Error, FaultScenario, Traffic};

const PORT: u16 = 5201;
/// The time after which each program ends by itself.
const LONGEST: Nanos = Nanos::secs(600);

/// A lab with a scenario in it, until it is dropped.
pub struct FaultLab {
    // Programs end before the lab that they run in.
    traffic: FaultPrograms,
    settings: FaultPrograms,
    groups: Vec<ControlGroup>,
    hosts: Box<dyn HostSet>,
    program: Vec<String>,
}

impl FaultLab {
    /// Sets up `scenario` in a new lab. `program` is a command line that calls [`crate::faults::play`].
    pub fn set(scenario: &FaultScenario, program: &[String]) -> Result<FaultLab, Error> {
        let hosts = open(&[scenario.topology()])?;
        let mut lab = FaultLab {
            traffic: FaultPrograms::default(),
            settings: FaultPrograms::default(),
            groups: Vec::new(),
            hosts,
            program: program.to_vec(),
        };
        lab.turn(scenario)?;
        lab.start_traffic(scenario)?;
        Ok(lab)
    }

    /// Ends the traffic and starts it again, as a user restarts a program after a change of the hosts' settings.
    pub fn restart_traffic(&mut self, scenario: &FaultScenario) -> Result<(), Error> {
        self.traffic = FaultPrograms::default();
        self.groups.clear();
        self.start_traffic(scenario)
    }

    fn start_traffic(&mut self, scenario: &FaultScenario) -> Result<(), Error> {
        for (side, core, part) in parts(scenario, self.at()) {
            let limits = if part == ProgramTask::Burn { Vec::new() } else { limits(scenario, side) };
            let program = self.start(side, core, part)?;
            let pid = program.id();
            self.traffic.0.push(program);
            for limit in limits {
                self.groups.push(ControlGroup::around(pid, limit)?);
            }
        }
        Ok(())
    }

    /// Returns the destination of the traffic: the address and port of the receiver.
    pub fn at(&self) -> SocketAddr {
        let v4 = self.host(1).v4.expect("hosts of a lab have an IPv4 address");
        SocketAddr::new(v4.into(), PORT)
    }

    /// Returns the names of the sender and the receiver, as a command line takes them.
    pub fn names(&self) -> [String; 2] {
        [0, 1].map(|side| format!("netns:{}", netns(self.host(side))))
    }

    fn host(&self, side: usize) -> &TopologyHost {
        // A wide-area lab also has its router; the ends come first.
        &self.hosts.hosts()[side]
    }

    fn turn(&mut self, scenario: &FaultScenario) -> Result<(), Error> {
        let locked = scenario.cwnd_segments.map(|segments| (self.at().ip(), segments));
        let both: [(&Settings, _, _); 2] =
            [(&scenario.a, scenario.shaper, locked), (&scenario.b, None, None)];
        for (side, (settings, shaper, locked_window)) in both.into_iter().enumerate() {
            let device = self.host(side).device.clone().unwrap_or_default();
            let part = ProgramTask::Set { device, settings: settings.clone(), shaper, locked_window };
            let program = self.start(side, None, part)?;
            self.settings.0.push(program);
        }
        Ok(())
    }

    /// Starts a program, and waits until it is ready.
    fn start(&self, side: usize, core: Option<u32>, part: ProgramTask) -> Result<Child, Error> {
        let what = part.name();
        let spec = ProgramSpec { netns: netns(self.host(side)).to_owned(), core, most_ns: LONGEST, part };
        let mut started = FaultPrograms(vec![self.spawn()?]);
        let child = &mut started.0[0];
        let line = serde_json::to_string(&spec).expect("a part is plain data") + "\n";
        let input = child.stdin.as_mut().expect("standard input is a pipe");
        input.write_all(line.as_bytes()).during(|| format!("tell the program for {what}"))?;
        let mut said = String::new();
        let output = child.stdout.take().expect("standard output is a pipe");
        BufReader::new(output).read_line(&mut said).during(|| format!("hear the program for {what}"))?;
        match (said.trim(), started.0.pop()) {
            ("ready", Some(child)) => Ok(child),
            _ => Err(Error::App { what: what.to_owned(), said }),
        }
    }

    fn spawn(&self) -> Result<Child, Error> {
        let (program, args) = self.program.split_first().expect("a command line has a program");
        let mut command = Command::new(Path::new(program));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        Ok(command.spawn().during(|| format!("start {program}"))?)
    }
}

/// Programs, which end when this is dropped.
#[derive(Default)]
struct FaultPrograms(Vec<Child>);

impl Drop for FaultPrograms {
    fn drop(&mut self) {
        for program in &mut self.0 {
            // Each program ends with its standard input; a stopped one is killed. Errors are ignored here.
            drop(program.stdin.take());
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn netns(host: &TopologyHost) -> &str {
    match &host.reach {
        ReachMethod::Namespace(name) => name,
        _ => "",
    }
}

/// Returns the programs to start, in order, each with its host (0 for the sender, 1 for the receiver) and its core. The
/// receiving program is the first.
fn parts(scenario: &FaultScenario, at: SocketAddr) -> Vec<(usize, Option<u32>, ProgramTask)> {
    let (sender, receiver) = (scenario.sender_core, scenario.receiver_core);
    let [receiving, sending] = traffic(&scenario.traffic, at, scenario.cwnd_segments.is_some());
    let burners = (0..scenario.burners).map(|_| (1, receiver, ProgramTask::Burn));
    [(1, receiver, receiving)].into_iter().chain(burners).chain([(0, sender, sending)]).collect()
}

/// Returns the limits of the program that sends (side 0) or receives (side 1).
fn limits(scenario: &FaultScenario, side: usize) -> Vec<GroupLimit> {
    let disk = match &scenario.traffic {
        Traffic::Stream { disk, .. } if side == 0 => *disk,
        _ => None,
    };
    let processors = scenario.quotas[side].map(GroupLimit::Processors);
    processors.into_iter().chain(disk.map(GroupLimit::DiskReads)).collect()
}

fn traffic(traffic: &Traffic, at: SocketAddr, rehearsed: bool) -> [ProgramTask; 2] {
    let size = |bytes: &Option<Bytes>| bytes.map(|bytes| bytes.0);
    match traffic {
        Traffic::Stream {
            write,
            write_pause,
            writes_between,
            disk,
            control,
            send_buffer,
            nodelay,
            read,
            read_pause,
            receive_buffer,
        } => [
            ProgramTask::Read(stream::StreamReaderSettings {
                at,
                read: read.0,
                pause: *read_pause,
                buffer: size(receive_buffer),
            }),
            ProgramTask::Write(stream::StreamWriterSettings {
                to: at,
                write: write.0,
                pause: *write_pause,
                writes_between: *writes_between,
                from_disk: disk.is_some(),
                control: control.clone(),
                buffer: size(send_buffer),
                nodelay: *nodelay,
                rehearsed,
            }),
        ],
        Traffic::Requests { part, parts, rest_every } => [
            ProgramTask::Answer { at, request: u64::from(*parts) * part.0 },
            ProgramTask::Ask { to: at, part: part.0, parts: *parts, rest_every: *rest_every },
        ],
        Traffic::Datagrams { size: datagram, rate, receive_buffer, read_pause, reads_between } => [
            ProgramTask::Catch(datagrams::DatagramReceiverSettings {
                at,
                buffer: size(receive_buffer),
                pause: *read_pause,
                reads_between: *reads_between,
            }),
            ProgramTask::Shoot(datagrams::DatagramSenderSettings { to: at, size: datagram.0, rate: *rate }),
        ],
        Traffic::Connections { clients, backlog, service } => [
            ProgramTask::Open { at, backlog: *backlog, service: *service },
            ProgramTask::Knock { to: at, clients: *clients },
        ],
    }
}
