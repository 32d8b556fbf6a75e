//! The local ports that the kernel gives to connections, and how many are in use.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// Returns the first and the last port of the range from which the kernel chooses local ports
/// (net.ipv4.ip_local_port_range, for IPv4 and IPv6); `None` if it cannot be read.
pub fn local_range() -> Option<[u16; 2]> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_ascii_whitespace().map(str::parse);
    match (ends.next()?, ends.next()?) {
        (Ok(first), Ok(last)) if first <= last => Some([first, last]),
        _ => None,
    }
}

/// Returns the number of local ports in `range` that TCP connections to `server` hold, including connections in
/// TIME_WAIT. A new connection to `server` cannot use these ports. Returns zero if the connections cannot be read.
pub fn held_towards(server: SocketAddr, range: [u16; 2]) -> u64 {
    let file = if server.is_ipv4() { "/proc/thread-self/net/tcp" } else { "/proc/thread-self/net/tcp6" };
    fs::read_to_string(file).map_or(0, |text| count(&text, &as_the_kernel_writes(server), range))
}

/// Counts the lines of /proc/net/tcp (proc_pid_net(5)) with the remote address `remote` and a local port in `range`.
fn count(text: &str, remote: &str, range: [u16; 2]) -> u64 {
    let is_held = |line: &&str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, peer) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let port = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
        peer == remote && port.is_some_and(|port| (range[0]..=range[1]).contains(&port))
    };
    text.lines().filter(is_held).count() as u64
}

/// Formats an address as /proc/net/tcp does, such as "0100007F:1267": the address as 32-bit words in host byte order,
/// then the port.
fn as_the_kernel_writes(at: SocketAddr) -> String {
    let octets = match at.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.as_chunks::<4>().0.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    format!("{}:{:04X}", words.collect::<String>(), at.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_to_a_server_are_counted_in_both_families() {
        let range = local_range().expect("a range");
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(at).expect("a port on loopback");
            let server = listener.local_addr().expect("its address");
            // Connections of a program that had this port before may linger in TIME_WAIT.
            let before = held_towards(server, range);
            let held: Vec<_> = (0..3).map(|_| TcpStream::connect(server).expect("connects")).collect();
            assert_eq!(held_towards(server, range), before + 3, "{at}");
            assert_eq!(held_towards(server, [1, 2]), 0, "{at}");
            drop(held);
        }
    }

    #[test]
    fn invalid_lines_are_not_counted() {
        assert_eq!(count("  sl  local_address rem_address\n x\n\n 0: A:Z 01:02 01\n", "01:02", [1, 9]), 0);
    }
}
