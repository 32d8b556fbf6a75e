//! The collector of Ganglia: `landspeed-helpers gather`.
//!
//! The collector connects to each node in turn, reads the node's state until the node closes the connection, and
//! closes it too (Balaji et al. 2006, section 6.2.3: each server keeps only its own state, and the client asks all of
//! them). Connection set-up and transfer are timed separately.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Time limit for a node's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer of a node, in bytes.
const MOST: u64 = 1 << 20;
/// End of gmond's answer.
const END: &[u8] = b"</GANGLIA_XML>";

/// The result of gathering. Times and bytes are sums over all nodes and rounds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GatherResult {
    /// The number of measured rounds.
    pub rounds: u32,
    /// Number of nodes.
    pub nodes: usize,
    /// The total time, in seconds.
    pub seconds: f64,
    /// The time of connect(2), in seconds.
    pub connect_seconds: f64,
    /// The time from the end of connect(2) until the node closed the connection, in seconds.
    pub transfer_seconds: f64,
    /// Bytes that the nodes sent.
    pub bytes: u64,
    /// Metrics in the answers of the last round.
    pub metrics: usize,
}

/// Reads the state of every node in each of `rounds` rounds, after one round that is not measured.
///
/// # Errors
/// Returns an error with the name of a node that cannot be reached, is silent, or does not answer as gmond does.
pub fn gather(nodes: &[SocketAddr], rounds: u32) -> Result<GatherResult, String> {
    let mut all = GatherResult { rounds, nodes: nodes.len(), ..GatherResult::default() };
    nodes.iter().try_for_each(|node| ask(*node).map(drop))?;
    let mut last = Vec::new();
    let began = Instant::now();
    for _ in 0..rounds {
        last.clear();
        for node in nodes {
            let answer = ask(*node)?;
            all.connect_seconds += answer.connect.as_secs_f64();
            all.transfer_seconds += answer.transfer.as_secs_f64();
            all.bytes += answer.text.len() as u64;
            last.push(answer.text);
        }
    }
    all.seconds = began.elapsed().as_secs_f64();
    let metrics = |text: &Vec<u8>| text.windows(8).filter(|word| word == b"<METRIC ").count();
    all.metrics = last.iter().map(metrics).sum();
    Ok(all)
}

/// The answer of a node, and the times that it took.
struct NodeAnswer {
    text: Vec<u8>,
    connect: Duration,
    transfer: Duration,
}

fn ask(node: SocketAddr) -> Result<NodeAnswer, String> {
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&node, PATIENCE)
        .map_err(|error| format!("cannot connect to {node}: {error}"))?;
    let connect = began.elapsed();
    let mut text = Vec::new();
    let read = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| (&mut stream).take(MOST).read_to_end(&mut text));
    read.map_err(|error| format!("{node} did not tell all of its state: {error}"))?;
    let transfer = began.elapsed().saturating_sub(connect);
    if text.trim_ascii_end().ends_with(END) {
        return Ok(NodeAnswer { text, connect, transfer });
    }
    Err(format!("{node} sent {} bytes that do not end as the state of gmond does", text.len()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    /// Starts a node that sends the text `tells` to its next `clients` clients.
    fn node(tells: &'static str, clients: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(clients) {
                stream.unwrap().write_all(tells.as_bytes()).unwrap();
            }
        });
        at
    }

    #[test]
    fn every_node_is_asked_in_every_round() {
        const STATE: &str = "<GANGLIA_XML><METRIC a/><METRIC b/></GANGLIA_XML>\n";
        let nodes = [node(STATE, 4), node(STATE, 4)];
        let all = gather(&nodes, 3).unwrap();
        assert_eq!((all.rounds, all.nodes, all.metrics), (3, 2, 4));
        assert_eq!(all.bytes, 6 * STATE.len() as u64);
        assert!(all.connect_seconds > 0.0 && all.seconds >= all.connect_seconds + all.transfer_seconds);
    }

    #[test]
    fn a_node_that_sends_something_else_is_named() {
        let odd = node("<GANGLIA_XML>", 1);
        assert!(gather(&[odd], 1).unwrap_err().contains(&odd.to_string()));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(gather(&[closed], 1).unwrap_err().contains("cannot connect to"));
    }
}
