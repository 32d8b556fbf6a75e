//! The asking end, which reports the figures.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use socket2::SockRef;

use landspeed_proof::{Secret, meet};

use crate::hello::{Does, Task, say};
use crate::stream::Stream;

/// Most connections that one thread makes: each takes a port for a while.
const MOST_CONNECTS: u64 = 2000;
/// The upper bound of a histogram in ns: longer times count as this one.
const LONGEST: u64 = 60_000_000_000;

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The servers.
    pub servers: Vec<SocketAddr>,
    /// The task of each connection.
    pub task: Task,
    /// Connections to each server, each with its own thread.
    pub connections: usize,
    /// Pause after each connection if connections are made; the server goes to sleep in it.
    pub gap: Duration,
    /// Duration of the run.
    pub time: Duration,
}

/// The results of a run, over all connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// Messages that came back, calls that moved data, or connections.
    pub operations: u64,
    /// Payload that arrived; a message that goes back and forth counts once.
    pub bytes: u64,
    /// Duration of the run.
    pub seconds: f64,
    /// Operations per second.
    pub per_second: f64,
    /// Payload per second; messages that go back and forth count twice.
    pub gbit_per_s: f64,
    /// Median time of a round trip, or of connect(2); `None` for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// 99th percentile of that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// For connections, the median time until the other end's first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_us: Option<f64>,
}

/// The results of one connection, or of one thread that makes connections.
struct Seen {
    operations: u64,
    bytes: u64,
    times: Histogram<u64>,
    answers: Histogram<u64>,
}

impl Seen {
    fn new() -> Self {
        let times = || Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are valid");
        Seen { operations: 0, bytes: 0, times: times(), answers: times() }
    }
}

/// Runs the task on all servers in parallel.
///
/// # Errors
/// Returns an error if a server cannot be reached, refuses the token, or leaves.
pub fn ask(asked: &Asked, token: Secret) -> io::Result<Told> {
    let each = asked.servers.iter().flat_map(|server| vec![*server; asked.connections]);
    let each: Vec<SocketAddr> = each.collect();
    let ready = Barrier::new(each.len() + 1);
    let (seen, seconds) = thread::scope(|threads| {
        let threads: Vec<_> = each
            .iter()
            .map(|server| {
                threads.spawn(|| {
                    let opened = open(*server, asked.task, token);
                    ready.wait();
                    run(opened?, (*server, token), asked)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        let seen: Vec<_> = threads.into_iter().map(|one| one.join().expect("a thread that ended")).collect();
        (seen, began.elapsed().as_secs_f64())
    });
    told(seen.into_iter().collect::<io::Result<Vec<Seen>>>()?, seconds, asked.task.does)
}

fn open(server: SocketAddr, task: Task, token: Secret) -> io::Result<Stream> {
    let mut stream = Stream::new(TcpStream::connect(server)?)?;
    let met = meet(&mut stream, token)?;
    say(&mut stream, met, task)?;
    stream.polls(task.is_polling)
}

fn run(mut stream: Stream, to: (SocketAddr, Secret), asked: &Asked) -> io::Result<Seen> {
    let (mut seen, until) = (Seen::new(), Instant::now() + asked.time);
    match asked.task.does {
        Does::Pingpong => pingpong(&mut stream, (&mut seen, until), asked.task)?,
        Does::Send => send(&mut stream, (&mut seen, until), asked.task)?,
        Does::Receive => receive(&mut stream, (&mut seen, until), asked.task)?,
        Does::Connect => connect(to, (&mut seen, until), asked)?,
    }
    Ok(seen)
}

fn pingpong(stream: &mut Stream, (seen, until): (&mut Seen, Instant), task: Task) -> io::Result<()> {
    let mut message = vec![0x5a; task.size];
    let mut before = Instant::now();
    while before < until {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        let now = Instant::now();
        seen.times.saturating_record((now - before).as_nanos() as u64);
        (seen.operations, seen.bytes, before) = (seen.operations + 1, seen.bytes + task.size as u64, now);
    }
    Ok(())
}

/// Sends until the time is over. The result is what the other end reports to have received.
fn send(stream: &mut Stream, (seen, until): (&mut Seen, Instant), task: Task) -> io::Result<()> {
    let bytes = vec![0x5a; task.size];
    let mut sent = 0;
    while Instant::now() < until {
        stream.write_all(&bytes)?;
        (seen.operations, sent) = (seen.operations + 1, sent + task.size as u64);
    }
    stream.socket().shutdown(Shutdown::Write)?;
    let mut taken = [0; 8];
    stream.read_exact(&mut taken)?;
    seen.bytes = u64::from_be_bytes(taken);
    if seen.bytes == sent {
        Ok(())
    } else {
        Err(io::Error::other(format!("{sent} bytes sent, {} taken", seen.bytes)))
    }
}

fn receive(stream: &mut Stream, (seen, until): (&mut Seen, Instant), task: Task) -> io::Result<()> {
    let mut bytes = vec![0; task.size];
    while Instant::now() < until {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => (seen.operations, seen.bytes) = (seen.operations + 1, seen.bytes + count as u64),
        }
    }
    Ok(())
}

/// Makes one connection after the other, and resets each, so that no port stays in TIME_WAIT.
fn connect(
    (server, token): (SocketAddr, Secret),
    (seen, until): (&mut Seen, Instant),
    asked: &Asked,
) -> io::Result<()> {
    while Instant::now() < until && seen.operations < MOST_CONNECTS {
        let began = Instant::now();
        let socket = TcpStream::connect(server)?;
        seen.times.saturating_record(began.elapsed().as_nanos() as u64);
        let mut stream = Stream::new(socket)?;
        let met = meet(&mut stream, token)?;
        seen.answers.saturating_record(began.elapsed().as_nanos() as u64);
        say(&mut stream, met, asked.task)?;
        stream.read_exact(&mut [0])?;
        SockRef::from(stream.socket()).set_linger(Some(Duration::ZERO))?;
        (seen.operations, seen.bytes) = (seen.operations + 1, seen.bytes + 1);
        drop(stream);
        thread::sleep(asked.gap);
    }
    Ok(())
}

fn told(seen: Vec<Seen>, seconds: f64, does: Does) -> io::Result<Told> {
    let mut all = Seen::new();
    for one in seen {
        (all.operations, all.bytes) = (all.operations + one.operations, all.bytes + one.bytes);
        // All histograms have the same bounds.
        let added = all.times.add(&one.times).and_then(|()| all.answers.add(&one.answers));
        added.map_err(io::Error::other)?;
    }
    let at = |times: &Histogram<u64>, share: f64| {
        (!times.is_empty()).then(|| times.value_at_quantile(share) as f64 / 1e3)
    };
    let payload = if does == Does::Pingpong { 2.0 } else { 1.0 } * all.bytes as f64;
    Ok(Told {
        operations: all.operations,
        bytes: all.bytes,
        seconds,
        per_second: all.operations as f64 / seconds,
        gbit_per_s: payload * 8e-9 / seconds,
        p50_us: at(&all.times, 0.5),
        p99_us: at(&all.times, 0.99),
        answer_us: at(&all.answers, 0.5),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::serve;

    fn asked(does: Does, is_polling: bool) -> io::Result<Told> {
        // A port that is free at this time.
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let token = Secret::of("a secret").unwrap();
        thread::spawn(move || serve(at, token));
        let (mut tries, task) = (0, Task { does, size: 4096, is_polling });
        let what = Asked {
            servers: vec![at],
            task,
            connections: 2,
            gap: Duration::ZERO,
            time: Duration::from_millis(100),
        };
        while TcpStream::connect(at).is_err() && tries < 100 {
            tries += 1;
            thread::sleep(Duration::from_millis(10));
        }
        assert!(ask(&what, Secret::of("another").unwrap()).is_err(), "{does:?}");
        ask(&what, token)
    }

    #[test]
    fn each_task_is_done_sleeping_and_polling() {
        for does in [Does::Pingpong, Does::Send, Does::Receive, Does::Connect] {
            for is_polling in [false, true] {
                let told = asked(does, is_polling).unwrap();
                assert!(told.operations > 1 && told.bytes > 1 && told.per_second > 1.0, "{does:?} {told:?}");
                let is_timed = matches!(does, Does::Pingpong | Does::Connect);
                assert_eq!(told.p50_us.is_some(), is_timed, "{does:?}");
                assert_eq!(told.answer_us.is_some(), does == Does::Connect);
            }
        }
    }
}
