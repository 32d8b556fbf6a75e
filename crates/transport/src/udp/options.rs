//! Socket options of a UDP flow.

use std::io;

use socket2::{Domain, Socket};

use crate::options::{self, Options, Row, Value};
use crate::raw;

/// All options of a UDP flow.
pub(super) static OPTIONS: Options = Options(&[options::SOCKET, ROWS]);

static ROWS: &[Row] = &[Row {
    name: "SO_NO_CHECK",
    hint: "",
    asked: |s| s.no_checksum.then_some(Value::Number(1)),
    set: |socket, _| no_checksum(socket),
    get: |socket| {
        let (level, name, _) = checksum_option(socket)?;
        raw::get::<u32>(socket, level, name).map(|on| Value::Number(on.into()))
    },
}];

/// The option that switches the checksum off, and in IPv6 the one that lets a datagram without in:
/// RFC 6935 forbids both unless the program asks.
fn checksum_option(socket: &Socket) -> io::Result<(i32, i32, Option<i32>)> {
    Ok(if socket.domain()? == Domain::IPV6 {
        (libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_TX, Some(libc::UDP_NO_CHECK6_RX))
    } else {
        (libc::SOL_SOCKET, libc::SO_NO_CHECK, None)
    })
}

fn no_checksum(socket: &Socket) -> io::Result<()> {
    let (level, send, receive) = checksum_option(socket)?;
    receive.map_or(Ok(()), |receive| raw::set::<u32>(socket, level, receive, 1))?;
    raw::set::<u32>(socket, level, send, 1)
}

#[cfg(test)]
mod tests {
    use landspeed_record::FlowSettings;
    use socket2::Type;

    use super::*;

    #[test]
    fn checksums_can_be_left_out_in_both_families() {
        let settings = FlowSettings { no_checksum: true, ..FlowSettings::default() };
        for domain in [Domain::IPV4, Domain::IPV6] {
            let socket = Socket::new(domain, Type::DGRAM, None).expect("a UDP socket");
            assert_eq!(OPTIONS.read_back(&socket, &settings), ["SO_NO_CHECK: asked for 1, got 0"]);
            OPTIONS.set(&socket, &settings);
            assert_eq!(OPTIONS.read_back(&socket, &settings), Vec::<String>::new());
        }
    }
}
