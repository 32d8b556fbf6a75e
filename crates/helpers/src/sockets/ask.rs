//! The client of the benchmark, which measures and reports the figures.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use socket2::SockRef;

use landspeed_proof::{Secret, verify_server};

use crate::sockets::hello::{ConnectionTask, TrafficKind};
use crate::sockets::stream::PollableStream;

/// The largest number of connections that one thread opens one after the other, because each uses a local port.
const MOST_CONNECTS: u64 = 2000;
/// The upper bound of a histogram, in ns. Longer times are recorded as this value.
const LONGEST: u64 = 60_000_000_000;

/// The parameters of a run of the benchmark.
#[derive(Debug, Clone)]
pub struct BenchmarkOptions {
    /// The addresses of the servers.
    pub servers: Vec<SocketAddr>,
    /// The task of each connection.
    pub task: ConnectionTask,
    /// The number of connections to each server. Each has its own thread.
    pub connections: usize,
    /// The pause after each connection, for the task that opens connections. The server sleeps during this pause.
    pub gap: Duration,
    /// Duration of the run.
    pub time: Duration,
}

/// The results of a run of the benchmark, over all connections.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchmarkReport {
    /// The number of operations: messages that came back, calls that moved data, or connections.
    pub operations: u64,
    /// The payload that arrived, in bytes. A message that was sent and returned counts once.
    pub bytes: u64,
    /// The duration of the run, in seconds.
    pub seconds: f64,
    /// Operations per second.
    pub per_second: f64,
    /// The rate of the payload. A message that was sent and returned counts twice.
    pub gbit_per_s: f64,
    /// The median time of a round trip, or of connect(2), in microseconds; `None` for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// The 99th percentile of the time of a round trip, or of connect(2), in microseconds; `None` for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// The median time from the start of connect(2) until the server's first message was verified, in microseconds;
    /// `None` for tasks that do not open connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_us: Option<f64>,
}

/// The results of one connection, or of one thread that makes connections.
struct ConnectionResults {
    operations: u64,
    bytes: u64,
    times: Histogram<u64>,
    answers: Histogram<u64>,
}

impl ConnectionResults {
    fn new() -> Self {
        let times = || Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are valid");
        ConnectionResults { operations: 0, bytes: 0, times: times(), answers: times() }
    }
}

/// Performs the task with all servers in parallel, and reports the results.
///
/// # Errors
/// Returns an error if a server cannot be reached, refuses the token, or closes a connection.
pub fn ask(options: &BenchmarkOptions, token: Secret) -> io::Result<BenchmarkReport> {
    let each = options.servers.iter().flat_map(|server| vec![*server; options.connections]);
    let each: Vec<SocketAddr> = each.collect();
    let ready = Barrier::new(each.len() + 1);
    let (results, seconds) = thread::scope(|threads| {
        let threads: Vec<_> = each
            .iter()
            .map(|server| {
                threads.spawn(|| {
                    let opened = open(*server, options.task, token);
                    ready.wait();
                    run(opened?, (*server, token), options)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        let results: Vec<_> =
            threads.into_iter().map(|one| one.join().expect("a thread that ended")).collect();
        (results, began.elapsed().as_secs_f64())
    });
    report(results.into_iter().collect::<io::Result<Vec<ConnectionResults>>>()?, seconds, options.task.kind)
}

fn open(server: SocketAddr, task: ConnectionTask, token: Secret) -> io::Result<PollableStream> {
    let mut stream = PollableStream::new(TcpStream::connect(server)?)?;
    verify_server(&mut stream, token, &task.request())?.confirm(&mut stream)?;
    stream.polls(task.is_polling)
}

fn run(
    mut stream: PollableStream,
    to: (SocketAddr, Secret),
    options: &BenchmarkOptions,
) -> io::Result<ConnectionResults> {
    let (mut results, until) = (ConnectionResults::new(), Instant::now() + options.time);
    match options.task.kind {
        TrafficKind::Pingpong => pingpong(&mut stream, (&mut results, until), options.task)?,
        TrafficKind::Send => send(&mut stream, (&mut results, until), options.task)?,
        TrafficKind::Receive => receive(&mut stream, (&mut results, until), options.task)?,
        TrafficKind::Connect => connect(to, (&mut results, until), options)?,
    }
    Ok(results)
}

fn pingpong(
    stream: &mut PollableStream,
    (results, until): (&mut ConnectionResults, Instant),
    task: ConnectionTask,
) -> io::Result<()> {
    let mut message = vec![0x5a; task.size];
    let mut before = Instant::now();
    while before < until {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        let now = Instant::now();
        results.times.saturating_record((now - before).as_nanos() as u64);
        (results.operations, results.bytes, before) =
            (results.operations + 1, results.bytes + task.size as u64, now);
    }
    Ok(())
}

/// Sends until the time is over. The bytes in the result are those that the server reports to have received.
fn send(
    stream: &mut PollableStream,
    (results, until): (&mut ConnectionResults, Instant),
    task: ConnectionTask,
) -> io::Result<()> {
    let bytes = vec![0x5a; task.size];
    let mut sent = 0;
    while Instant::now() < until {
        stream.write_all(&bytes)?;
        (results.operations, sent) = (results.operations + 1, sent + task.size as u64);
    }
    stream.socket().shutdown(Shutdown::Write)?;
    let mut taken = [0; 8];
    stream.read_exact(&mut taken)?;
    results.bytes = u64::from_be_bytes(taken);
    if results.bytes == sent {
        Ok(())
    } else {
        Err(io::Error::other(format!("{sent} bytes sent, {} taken", results.bytes)))
    }
}

fn receive(
    stream: &mut PollableStream,
    (results, until): (&mut ConnectionResults, Instant),
    task: ConnectionTask,
) -> io::Result<()> {
    let mut bytes = vec![0; task.size];
    while Instant::now() < until {
        match stream.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                (results.operations, results.bytes) = (results.operations + 1, results.bytes + count as u64)
            }
        }
    }
    Ok(())
}

/// Opens one connection after the other, and resets each, so that no port stays in TIME_WAIT.
fn connect(
    (server, token): (SocketAddr, Secret),
    (results, until): (&mut ConnectionResults, Instant),
    options: &BenchmarkOptions,
) -> io::Result<()> {
    while Instant::now() < until && results.operations < MOST_CONNECTS {
        let began = Instant::now();
        let socket = TcpStream::connect(server)?;
        results.times.saturating_record(began.elapsed().as_nanos() as u64);
        let mut stream = PollableStream::new(socket)?;
        let proven = verify_server(&mut stream, token, &options.task.request())?;
        results.answers.saturating_record(began.elapsed().as_nanos() as u64);
        proven.confirm(&mut stream)?;
        stream.read_exact(&mut [0])?;
        SockRef::from(stream.socket()).set_linger(Some(Duration::ZERO))?;
        (results.operations, results.bytes) = (results.operations + 1, results.bytes + 1);
        drop(stream);
        thread::sleep(options.gap);
    }
    Ok(())
}

fn report(results: Vec<ConnectionResults>, seconds: f64, kind: TrafficKind) -> io::Result<BenchmarkReport> {
    let mut all = ConnectionResults::new();
    for one in results {
        (all.operations, all.bytes) = (all.operations + one.operations, all.bytes + one.bytes);
        // All histograms have the same bounds.
        let added = all.times.add(&one.times).and_then(|()| all.answers.add(&one.answers));
        added.map_err(io::Error::other)?;
    }
    let at = |times: &Histogram<u64>, share: f64| {
        (!times.is_empty()).then(|| times.value_at_quantile(share) as f64 / 1e3)
    };
    let payload = if kind == TrafficKind::Pingpong { 2.0 } else { 1.0 } * all.bytes as f64;
    Ok(BenchmarkReport {
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

    use landspeed_proof::ANSWER;

    use super::*;
    use crate::relay::{relay, replay};
    use crate::sockets::serve;

    fn secret(token: &str) -> Secret {
        Secret::of(token, "sockets").unwrap()
    }

    /// Starts a server on a port that is free at this time.
    fn server() -> SocketAddr {
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        thread::spawn(move || serve(at, secret("a secret")));
        for _ in 0..1000 {
            if TcpStream::connect(at).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        at
    }

    fn options(at: SocketAddr, kind: TrafficKind, is_polling: bool) -> BenchmarkOptions {
        BenchmarkOptions {
            servers: vec![at],
            task: ConnectionTask { kind, size: 4096, is_polling },
            connections: 1,
            gap: Duration::ZERO,
            time: Duration::from_millis(100),
        }
    }

    fn report_of(kind: TrafficKind, is_polling: bool) -> io::Result<BenchmarkReport> {
        let options = BenchmarkOptions { connections: 2, ..options(server(), kind, is_polling) };
        assert!(ask(&options, secret("another")).is_err(), "{kind:?}");
        ask(&options, secret("a secret"))
    }

    #[test]
    fn a_replayed_handshake_starts_nothing() {
        let at = server();
        let (ear, relay) = relay(at);
        ask(&options(ear, TrafficKind::Receive, false), secret("a secret")).unwrap();
        let said = relay.join().unwrap();
        assert_eq!(replay(&said, at).len(), ANSWER, "the server's answer to a hello, and no more");
    }

    #[test]
    fn each_task_is_done_sleeping_and_polling() {
        for kind in [TrafficKind::Pingpong, TrafficKind::Send, TrafficKind::Receive, TrafficKind::Connect] {
            for is_polling in [false, true] {
                let report = report_of(kind, is_polling).unwrap();
                assert!(
                    report.operations > 1 && report.bytes > 1 && report.per_second > 1.0,
                    "{kind:?} {report:?}"
                );
                let is_timed = matches!(kind, TrafficKind::Pingpong | TrafficKind::Connect);
                assert_eq!(report.p50_us.is_some(), is_timed, "{kind:?}");
                assert_eq!(report.answer_us.is_some(), kind == TrafficKind::Connect);
            }
        }
    }
}
