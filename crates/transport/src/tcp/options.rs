//! Socket options of a TCP flow.

use crate::options::{self, Options, Row, Value};
use crate::raw;

/// All options of a TCP flow.
pub(super) static OPTIONS: Options = Options(&[options::SOCKET, ROWS]);

static ROWS: &[Row] = &[
    Row {
        name: "TCP_NODELAY",
        hint: "",
        asked: |s| Some(Value::Number(s.nodelay.into())),
        set: |socket, value| socket.set_tcp_nodelay(value.number() != 0),
        get: |socket| Ok(Value::Number(socket.tcp_nodelay()?.into())),
    },
    Row {
        name: "TCP_CONGESTION",
        hint: "it must be in net.ipv4.tcp_available_congestion_control; without root, in the allowed one",
        asked: |s| s.congestion.clone().map(Value::Word),
        set: |socket, value| socket.set_tcp_congestion(value.to_string().as_bytes()),
        get: |socket| Ok(Value::Word(until_nul(&socket.tcp_congestion()?))),
    },
    Row {
        name: "SO_MAX_PACING_RATE",
        hint: "in bytes a second",
        asked: |s| s.pacing_rate_bps.map(|rate| Value::Number((rate.0 / 8.0) as u64)),
        set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value.number()),
        get: |socket| raw::get::<u64>(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).map(Value::Number),
    },
    Row {
        name: "TCP_NOTSENT_LOWAT",
        hint: "",
        asked: |s| s.notsent_lowat_bytes.map(|b| Value::Number(b.0)),
        set: |socket, value| socket.set_tcp_notsent_lowat(value.small()),
        get: |socket| Ok(Value::Number(socket.tcp_notsent_lowat()?.into())),
    },
    Row {
        name: "SO_ZEROCOPY",
        hint: "it needs Linux 4.14",
        asked: |s| s.zerocopy_send.then_some(Value::Number(1)),
        set: |socket, value| raw::set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, value.small()),
        get: |socket| {
            raw::get::<u32>(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY).map(|on| Value::Number(on.into()))
        },
    },
];

fn until_nul(bytes: &[u8]) -> String {
    let name = bytes.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests {
    use landspeed_record::FlowSettings;
    use landspeed_units::{BitRate, Bytes};
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).expect("a TCP socket")
    }

    #[test]
    fn what_the_kernel_grants_reads_back_without_a_word() {
        let settings = FlowSettings {
            sndbuf_bytes: Some(Bytes::kib(64)),
            rcvbuf_bytes: Some(Bytes::kib(64)),
            nodelay: true,
            congestion: Some("reno".into()),
            pacing_rate_bps: Some(BitRate(8e9)),
            notsent_lowat_bytes: Some(Bytes::kib(128)),
            zerocopy_send: true,
            ..FlowSettings::default()
        };
        let socket = socket();
        OPTIONS.set(&socket, &settings);
        assert_eq!(OPTIONS.read_back(&socket, &settings), Vec::<String>::new());
        assert_eq!(socket.send_buffer_size().expect("readable"), 128 * 1024);
    }

    #[test]
    fn what_it_refuses_is_named_with_what_stands() {
        let settings = FlowSettings {
            rcvbuf_bytes: Some(Bytes(1 << 40)),
            congestion: Some("no-such-thing".into()),
            ..FlowSettings::default()
        };
        let socket = socket();
        OPTIONS.set(&socket, &settings);
        let lines = OPTIONS.read_back(&socket, &settings);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("SO_RCVBUF: asked for 1099511627776, got "), "{lines:?}");
        assert!(lines[0].ends_with("(net.core.rmem_max limits it)"), "{lines:?}");
        assert!(lines[1].starts_with("TCP_CONGESTION: asked for no-such-thing, got "), "{lines:?}");
    }
}
