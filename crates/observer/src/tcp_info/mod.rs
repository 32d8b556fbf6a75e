//! Samples TCP_INFO (tcp(7)) of the workload's own sockets: RTTs, windows, and the times for which windows or buffers
//! limited each flow. The times busy, rwnd-limited and sndbuf-limited exist since Linux 4.10.

pub(crate) mod raw;

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, OwnedFd};

use landspeed_record::units::{BitRate, Bytes, Nanos};
use landspeed_record::{
    CongestionControls, FigureValue, KernelNeed, KernelVersion, Observations, TcpProgress, TcpSample,
};

use rustix::net::sockopt::tcp_congestion;

use crate::figures::{headlines, mean, total};
use crate::window::{OpenWindow, windows};
use crate::{Error, Observer, RunPolicy, WatchSubject};
use raw::TcpInfo;

/// Applies `figure` to the last sample of each flow that sent data from this end. Returns `None` if no flow did.
fn of_senders<A>(samples: &[TcpSample], figure: impl Fn(&[&TcpSample]) -> A) -> Option<A> {
    let last: BTreeMap<u32, &TcpSample> = samples.iter().map(|sample| (sample.flow, sample)).collect();
    let senders: Vec<&TcpSample> = last.into_values().filter(|flow| flow.busy_ns > Nanos(0)).collect();
    (!senders.is_empty()).then(|| figure(&senders))
}

fn share(flows: &[&TcpSample], time: fn(&TcpSample) -> Nanos) -> FigureValue {
    let busy = flows.iter().map(|flow| flow.busy_ns).sum::<Nanos>();
    FigureValue::Share(flows.iter().map(|flow| time(flow)).sum::<Nanos>().as_secs_f64() / busy.as_secs_f64())
}

pub(crate) static TCP_INFO: Observer = Observer {
    name: "tcp-info",
    about: "TCP_INFO of each flow: round trips, windows, retransmits, and the time limited by windows or buffers",
    cannot_see: &[
        "what happens between two samples: each is the state at one moment",
        "busy and limited times on the receiving end: only a sender keeps them",
        "time limited by the congestion window: it is the busy time that neither window nor buffer explains",
        "the own receive window before Linux 6.2",
        "other programs' sockets: these are asked through the workload's own descriptors",
    ],
    runs: RunPolicy::Always,
    own_sockets_only: true,
    kernel: &[KernelNeed {
        of: "the own receive window",
        since: KernelVersion(6, 2),
        instead: "the verdict takes the receive buffer's use for it",
    }],
    headlines: headlines! {
        samples: Vec<TcpSample> => {
            "retransmitted segments", "by all flows, from their start":
                of_senders(samples, |flows| total(flows.iter().map(|flow| flow.retransmits)));
            "round trip", "smoothed, under load: the mean of the flows at the end":
                of_senders(samples, |flows| mean(flows.iter().map(|flow| flow.rtt_ns)).unwrap_or_default());
            "least round trip", "of all flows":
                of_senders(samples, |flows| flows.iter().filter_map(|flow| flow.min_rtt_ns).min().unwrap_or_default());
            "congestion window", "segments: the mean of the flows at the end": of_senders(samples, |flows| {
                flows.iter().map(|flow| u64::from(flow.cwnd_segments)).sum::<u64>() / flows.len() as u64
            });
            "limited by the peer's window", "share of the time with data in flight":
                of_senders(samples, |flows| share(flows, |flow| flow.rwnd_limited_ns));
            "limited by the send buffer", "share of the time with data in flight":
                of_senders(samples, |flows| share(flows, |flow| flow.sndbuf_limited_ns));
        }
    },
    can_run: || Ok(()),
    watch: |_| windows(TcpInfoWindow::open),
};

/// Reads TCP_INFO of the TCP sockets in `sockets` that have sent data, and returns the sum of their retransmits and
/// windows and the mean of their RTTs. Returns `None` if no socket has sent data.
pub fn progress(sockets: &[OwnedFd]) -> Option<TcpProgress> {
    let tcp = sockets.iter().map(AsFd::as_fd).filter(|socket| raw::is_tcp(*socket));
    let senders: Vec<TcpInfo> =
        tcp.filter_map(|socket| Some(raw::get(socket).ok()?.0)).filter(|info| info.busy_us > 0).collect();
    let mean_us =
        senders.iter().map(|info| u64::from(info.rtt_us)).sum::<u64>() / senders.len().max(1) as u64;
    let window = |info: &TcpInfo| Bytes(u64::from(info.snd_cwnd) * u64::from(info.snd_mss));
    (!senders.is_empty()).then(|| TcpProgress {
        retransmits: senders.iter().map(|info| u64::from(info.total_retrans)).sum(),
        rtt_ns: Nanos(mean_us.saturating_mul(1000)),
        window_bytes: senders.iter().map(window).sum(),
    })
}

#[derive(Default)]
struct TcpInfoWindow {
    sockets: Vec<(u32, OwnedFd)>,
    samples: Vec<TcpSample>,
    /// The smallest number of bytes of TCP_INFO that the kernel filled, or `None` if it always filled the whole struct.
    short: Option<usize>,
}

impl TcpInfoWindow {
    fn open(subject: &WatchSubject<'_>) -> Result<Self, Error> {
        let mut window = TcpInfoWindow::default();
        for (flow, socket) in subject.sockets.iter().filter(|(_, socket)| raw::is_tcp(*socket)) {
            let own = socket.try_clone_to_owned();
            let own = own.map_err(|e| Error::io("duplicate", format!("the socket of flow {flow}"), e))?;
            window.sockets.push((*flow, own));
        }
        Ok(window)
    }
}

impl OpenWindow for TcpInfoWindow {
    fn sample(&mut self, at: Nanos) -> Result<(), Error> {
        for (flow, socket) in &self.sockets {
            let asked = raw::get(socket.as_fd());
            let (info, filled) =
                asked.map_err(|e| Error::io("ask TCP_INFO of", format!("the socket of flow {flow}"), e))?;
            if filled < size_of::<TcpInfo>() {
                self.short = Some(self.short.map_or(filled, |short| short.min(filled)));
            }
            self.samples.push(sample(*flow, at, &info, filled));
        }
        Ok(())
    }

    fn close(self, seen: &mut Observations) -> Result<(), Error> {
        // Even a closed socket returns its congestion control. If reading one fails, only this name is missing.
        let controls = self.sockets.iter().filter_map(|(_, socket)| tcp_congestion(socket).ok());
        seen.put(CongestionControls(controls.collect()));
        seen.put(self.samples);
        if self.short.is_some_and(|filled| !tells_receive_window(filled)) {
            seen.unseen
                .push("tcp-info: this kernel does not tell the own receive window (Linux 6.2 does)".into());
        }
        Ok(())
    }
}

/// Returns true if a TCP_INFO of `filled` bytes includes this host's receive window.
fn tells_receive_window(filled: usize) -> bool {
    filled >= offset_of!(TcpInfo, rehash)
}

fn sample(flow: u32, at: Nanos, info: &TcpInfo, filled: usize) -> TcpSample {
    let micros = |us: u64| Nanos(us.saturating_mul(1000));
    // u32::MAX is the kernel's value for "no round trip measured yet".
    let min_rtt = Some(info.min_rtt_us).filter(|us| !matches!(*us, 0 | u32::MAX));
    TcpSample {
        flow,
        at_ns: at,
        rtt_ns: micros(info.rtt_us.into()),
        min_rtt_ns: min_rtt.map(|us| micros(us.into())),
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
        receive_window_bytes: tells_receive_window(filled).then(|| Bytes(info.rcv_wnd.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_closed_flow_is_seen_and_a_socket_that_is_not_tcp_has_no_samples() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let mut watch = TCP_INFO.watch("lo");
        let sockets = [(0, udp.as_fd()), (1, client.as_fd())];
        watch.open(&WatchSubject { sockets: &sockets, ..WatchSubject::default() }).unwrap();
        drop((client, server));
        watch.sample(Nanos(1)).unwrap();
        let mut seen = Observations::default();
        watch.close(&mut seen).unwrap();
        let flows: Vec<_> = seen.get::<Vec<TcpSample>>().iter().map(|sample| sample.flow).collect();
        assert_eq!(flows, [1]);
    }

    #[test]
    fn no_round_trip_yet_is_not_an_hour() {
        let info = TcpInfo { min_rtt_us: u32::MAX, delivery_rate: 125, ..TcpInfo::default() };
        let sample = sample(3, Nanos(9), &info, 0);
        assert_eq!((sample.min_rtt_ns, sample.delivery_rate_bps), (None, BitRate(1000.0)));
    }
}
