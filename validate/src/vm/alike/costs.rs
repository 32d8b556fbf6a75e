//! What a path costs the program's sockets, for the model of paths: a connect, a small message, and a stream. landspeed's
//! own exchanges open sockets with flags, which older rsockets do not take.

use std::io::{self, Read, Write};
use std::time::Instant;

use anyhow::{Context, Result};
use landspeed_record::PathCost;
use landspeed_record::units::{BitRate, Nanos};

use super::end::{AlikeCheck, End, at_its_end, check, text};

/// The exchanges, after the checks. Their clients note what a path costs.
pub(super) const EXCHANGES: &[AlikeCheck] =
    &[check("connects", accepts, connects), check("messages", echoes, asks), check("stream", takes, gives)];

const CONNECTS: usize = 20;
const MESSAGES: usize = 200;
const STREAM: usize = 8 << 20;
const PIECE: usize = 64 << 10;

/// The names of what the clients note.
const CONNECT: &str = "connect-ns";
const MESSAGE: &str = "message-ns";
const RATE: &str = "rate-bps";

/// Returns the median duration of some calls, in nanoseconds.
fn median(count: usize, mut call: impl FnMut() -> io::Result<()>) -> io::Result<u64> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        call()?;
        times.push(began.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    Ok(times[count / 2])
}

fn connects(end: &End) -> io::Result<()> {
    // They stay open, so that no close is timed.
    let mut open = Vec::new();
    let connect = median(CONNECTS, || {
        open.push(end.open()?);
        Ok(())
    })?;
    end.saw(CONNECT, connect);
    Ok(())
}

fn accepts(end: &End) -> io::Result<()> {
    let open = (0..CONNECTS).map(|_| end.open()).collect::<io::Result<Vec<_>>>()?;
    open.iter().try_for_each(at_its_end)
}

fn asks(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.set_tcp_nodelay(true)?;
    let round_trip = median(MESSAGES, || {
        socket.write_all(b"x")?;
        text(&socket, 1).map(drop)
    })?;
    end.saw(MESSAGE, round_trip / 2);
    Ok(())
}

fn echoes(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    socket.set_tcp_nodelay(true)?;
    for _ in 0..MESSAGES {
        let said = text(&socket, 1)?;
        socket.write_all(said.as_bytes())?;
    }
    at_its_end(&socket)
}

fn gives(end: &End) -> io::Result<()> {
    let mut socket = end.open()?;
    let (piece, began) = (vec![0; PIECE], Instant::now());
    for _ in 0..STREAM / PIECE {
        socket.write_all(&piece)?;
    }
    // The server answers once it has all.
    text(&socket, 2)?;
    end.saw(RATE, (STREAM as f64 * 8.0 / began.elapsed().as_secs_f64()) as u64);
    Ok(())
}

fn takes(end: &End) -> io::Result<()> {
    let (mut socket, mut piece) = (end.open()?, vec![0; PIECE]);
    for _ in 0..STREAM / PIECE {
        socket.read_exact(&mut piece)?;
    }
    socket.write_all(b"ok")?;
    at_its_end(&socket)
}

/// Reads the costs of a path from the lines "cost NAME NUMBER" of a client.
pub(super) fn parsed(path: &str, said: &str) -> Result<PathCost> {
    let number = |name: &str| -> Result<u64> {
        let line = said.lines().find_map(|line| line.strip_prefix("cost ")?.strip_prefix(name));
        let number = line.with_context(|| format!("no {name} over {path}"))?;
        number.trim().parse().with_context(|| format!("{name} is {number}"))
    };
    Ok(PathCost {
        path: path.to_owned(),
        connect_ns: Nanos(number(CONNECT)?),
        message_ns: Nanos(number(MESSAGE)?),
        rate_bps: BitRate(number(RATE)? as f64),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::super::end::PATIENCE;
    use super::*;

    #[test]
    fn the_costs_of_tcp_within_this_host_are_measured_and_read() {
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = End::server(at).unwrap();
        thread::spawn(move || EXCHANGES.iter().try_for_each(|one| (one.server)(&server)).unwrap());
        let (told, of_client) = mpsc::channel();
        thread::spawn(move || {
            let client = End::client(at);
            EXCHANGES.iter().try_for_each(|one| (one.client)(&client)).unwrap();
            told.send(client.taken())
        });
        let noted = of_client.recv_timeout(PATIENCE).expect("a client that does not fail");
        let said: Vec<String> = noted.iter().map(|(what, value)| format!("cost {what} {value}\n")).collect();
        let cost = parsed("kernel", &said.concat()).unwrap();
        assert_eq!(cost.path, "kernel");
        assert!(
            cost.connect_ns > Nanos(0) && cost.message_ns > Nanos(0) && cost.rate_bps.0 > 0.0,
            "{cost:?}"
        );
        assert!(parsed("smc", "cost connect-ns 5\n").is_err());
    }
}
