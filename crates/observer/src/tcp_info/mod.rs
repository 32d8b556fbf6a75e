//! TCP_INFO of the workload's own sockets: round trips, windows, and what held each flow back (tcp(7);
//! the "chronographs" busy, rwnd-limited and sndbuf-limited since Linux 4.10).

pub(crate) mod raw;

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};

use landspeed_record::{Amount, Misshapen, Observations, TcpSample};
use landspeed_units::{BitRate, Bytes, Nanos};

use crate::figures::{mean, of};
use crate::{Error, Headline, Observer, Scene, Watch};
use raw::TcpInfo as Raw;

/// What a reader looks at first.
static HEADLINES: &[Headline] = &[
    Headline {
        name: "retransmitted segments",
        about: "by all flows, from their start",
        of: |seen| {
            of_senders(seen, |flows| flows.iter().map(|flow| flow.retransmits).fold(0, u64::saturating_add))
        },
    },
    Headline {
        name: "round trip",
        about: "smoothed, under load: the mean of the flows at the end",
        of: |seen| of_senders(seen, |flows| mean(flows.iter().map(|flow| flow.rtt_ns)).unwrap_or_default()),
    },
    Headline {
        name: "least round trip",
        about: "of all flows",
        of: |seen| {
            of_senders(seen, |flows| flows.iter().map(|flow| flow.min_rtt_ns).min().unwrap_or_default())
        },
    },
    Headline {
        name: "congestion window",
        about: "segments: the mean of the flows at the end",
        of: |seen| {
            of_senders(seen, |flows| {
                flows.iter().map(|flow| u64::from(flow.cwnd_segments)).sum::<u64>() / flows.len() as u64
            })
        },
    },
    Headline {
        name: "limited by the peer's window",
        about: "share of the time with data in flight",
        of: |seen| of_senders(seen, |flows| share(flows, |flow| flow.rwnd_limited_ns)),
    },
    Headline {
        name: "limited by the send buffer",
        about: "share of the time with data in flight",
        of: |seen| of_senders(seen, |flows| share(flows, |flow| flow.sndbuf_limited_ns)),
    },
];

/// A figure of the last sample of each flow that sent from here.
fn of_senders<A: Into<Amount>>(
    seen: &Observations,
    figure: impl Fn(&[&TcpSample]) -> A,
) -> Result<Option<Amount>, Misshapen> {
    of(seen, |samples: &Vec<TcpSample>| {
        let last: BTreeMap<u32, &TcpSample> = samples.iter().map(|sample| (sample.flow, sample)).collect();
        let senders: Vec<&TcpSample> = last.into_values().filter(|flow| flow.busy_ns > Nanos(0)).collect();
        (!senders.is_empty()).then(|| figure(&senders))
    })
}

fn share(flows: &[&TcpSample], time: fn(&TcpSample) -> Nanos) -> Amount {
    let busy = flows.iter().map(|flow| flow.busy_ns).sum::<Nanos>();
    Amount::Share(flows.iter().map(|flow| time(flow)).sum::<Nanos>().as_secs_f64() / busy.as_secs_f64())
}

/// The row of the table.
pub(crate) struct TcpInfo;

impl Observer for TcpInfo {
    fn name(&self) -> &'static str {
        "tcp-info"
    }

    fn about(&self) -> &'static str {
        "TCP_INFO of each flow: round trips, windows, retransmits, and the time limited by windows or buffers"
    }

    fn cannot_see(&self) -> &'static [&'static str] {
        &[
            "what happens between two samples: each is the state at one moment",
            "busy and limited times on the receiving end: only a sender keeps them",
            "time limited by the congestion window, other than as busy time that neither window nor buffer explains",
            "the own receive window before Linux 6.2 and the peer's before 5.4: shown as zero",
            "other programs' sockets: these are asked through the workload's own descriptors",
        ]
    }

    fn own_sockets_only(&self) -> bool {
        true
    }

    fn headlines(&self) -> &'static [Headline] {
        HEADLINES
    }

    fn can_run(&self) -> Result<(), String> {
        Ok(())
    }

    fn watch(&self, _link: &str) -> Box<dyn Watch> {
        Box::<TcpWatch>::default()
    }
}

#[derive(Default)]
struct TcpWatch {
    sockets: Vec<(u32, OwnedFd)>,
    samples: Vec<TcpSample>,
    /// Fewest bytes that the kernel filled, where it filled fewer than all.
    short: Option<usize>,
}

impl Watch for TcpWatch {
    fn open(&mut self, scene: &Scene<'_>) -> Result<(), Error> {
        *self = TcpWatch::default();
        for (flow, socket) in scene.sockets.iter().filter(|(_, socket)| raw::is_tcp(*socket)) {
            let own = socket.try_clone_to_owned();
            let own = own.map_err(|e| Error::io("duplicate", format!("the socket of flow {flow}"), e))?;
            self.sockets.push((*flow, own));
        }
        Ok(())
    }

    fn sample(&mut self, at: Nanos) -> Result<(), Error> {
        for (flow, socket) in &self.sockets {
            let asked = raw::get(socket.as_fd());
            let (info, filled) =
                asked.map_err(|e| Error::io("ask TCP_INFO of", format!("the socket of flow {flow}"), e))?;
            if filled < size_of::<Raw>() {
                self.short = Some(self.short.map_or(filled, |short| short.min(filled)));
            }
            self.samples.push(sample(*flow, at, &info));
        }
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        let watched = std::mem::take(self);
        seen.put(watched.samples);
        if watched.short.is_some_and(|filled| filled < offset_of!(Raw, rehash)) {
            seen.unseen
                .push("tcp-info: this kernel does not tell the own receive window (Linux 6.2 does)".into());
        }
        Ok(())
    }
}

fn sample(flow: u32, at: Nanos, info: &Raw) -> TcpSample {
    let micros = |us: u64| Nanos(us.saturating_mul(1000));
    // The kernel's word for "no round trip measured yet".
    let min_rtt_us = if info.min_rtt_us == u32::MAX { 0 } else { info.min_rtt_us };
    TcpSample {
        flow,
        at_ns: at,
        rtt_ns: micros(info.rtt_us.into()),
        min_rtt_ns: micros(min_rtt_us.into()),
        cwnd_segments: info.snd_cwnd,
        ssthresh_segments: info.snd_ssthresh,
        mss_bytes: Bytes(info.snd_mss.into()),
        retransmits: info.total_retrans.into(),
        acked_bytes: Bytes(info.bytes_acked),
        received_bytes: Bytes(info.bytes_received),
        delivery_rate_bps: BitRate(info.delivery_rate as f64 * 8.0),
        busy_ns: micros(info.busy_us),
        rwnd_limited_ns: micros(info.rwnd_limited_us),
        sndbuf_limited_ns: micros(info.sndbuf_limited_us),
        peer_window_bytes: Bytes(info.snd_wnd.into()),
        receive_window_bytes: Bytes(info.rcv_wnd.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::BorrowedFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn watch(sockets: &[BorrowedFd<'_>]) -> Box<dyn Watch> {
        let mut watch = TcpInfo.watch("lo");
        let sockets: Vec<_> = (0..).zip(sockets.iter().copied()).collect();
        watch.open(&Scene { sockets: &sockets, ..Scene::default() }).unwrap();
        watch
    }

    #[test]
    fn a_flow_over_loopback_is_seen_from_both_ends() {
        let (mut client, mut server) = pair();
        let mut watch = watch(&[client.as_fd(), server.as_fd()]);
        watch.sample(Nanos(0)).unwrap();
        client.write_all(&[7; 10_000]).unwrap();
        server.read_exact(&mut [0; 10_000]).unwrap();
        server.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap(); // carries the acknowledgement
        watch.sample(Nanos::millis(5)).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        let [before, _, sent, received] = seen.get::<Vec<TcpSample>>().as_slice() else { panic!("{seen:?}") };
        assert_eq!((sent.flow, received.flow, sent.at_ns), (0, 1, Nanos::millis(5)));
        assert_eq!(sent.acked_bytes.0 - before.acked_bytes.0, 10_000);
        assert_eq!((sent.received_bytes, received.received_bytes), (Bytes(1), Bytes(10_000)));
        assert!(
            sent.rtt_ns > Nanos(0) && sent.min_rtt_ns > Nanos(0) && sent.mss_bytes > Bytes(500),
            "{sent:?}"
        );
        assert!(sent.cwnd_segments >= 2 && sent.peer_window_bytes > Bytes(0), "{sent:?}");
    }

    #[test]
    fn a_flow_is_seen_after_the_workload_closed_it() {
        let (client, server) = pair();
        let mut watch = watch(&[client.as_fd()]);
        drop((client, server));
        watch.sample(Nanos(1)).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        assert_eq!(seen.get::<Vec<TcpSample>>().len(), 1);
    }

    #[test]
    fn a_socket_that_is_not_tcp_has_no_samples() {
        let (udp, (client, _server)) = (UdpSocket::bind("127.0.0.1:0").unwrap(), pair());
        let mut watch = watch(&[udp.as_fd(), client.as_fd()]);
        watch.sample(Nanos(0)).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        let flows: Vec<_> = seen.get::<Vec<TcpSample>>().iter().map(|sample| sample.flow).collect();
        assert_eq!(flows, [1]);
    }

    #[test]
    fn no_round_trip_yet_is_not_an_hour() {
        let info = Raw { min_rtt_us: u32::MAX, delivery_rate: 125, ..Raw::default() };
        let sample = sample(3, Nanos(9), &info);
        assert_eq!((sample.min_rtt_ns, sample.delivery_rate_bps), (Nanos(0), BitRate(1000.0)));
    }
}
