//! TCP's windows over time, prepared for charts and tables.

use landspeed_record::units::Bytes;
use landspeed_record::{ExplainReport, FlowWatch, TcpState};

use super::words::{percent, unit};
use crate::block::{ColumnKind, ReportTable, TableCell, TableColumn};
use crate::safe;

/// Largest number of points of a line.
const DRAWN: usize = 600;
/// Ratio of the greatest window to the least above which the axis is logarithmic.
const WIDE: f64 = 30.0;

/// A limit of the data in flight, or the data in flight itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WindowBound {
    /// Congestion window times MSS.
    Congestion,
    /// The window that the peer advertises, as the sender sees it.
    Peer,
    /// The window that the receiver can offer.
    Receive,
    InFlight,
}

impl WindowBound {
    const ALL: [WindowBound; 4] =
        [WindowBound::Congestion, WindowBound::Peer, WindowBound::Receive, WindowBound::InFlight];

    /// Returns the name, and the class in the page's style sheet.
    pub(super) fn name_and_class(self) -> (&'static str, &'static str) {
        match self {
            WindowBound::Congestion => ("congestion window", "congestion"),
            WindowBound::Peer => ("peer's window", "peer"),
            WindowBound::Receive => ("receive window", "receive"),
            WindowBound::InFlight => ("in flight", "in-flight"),
        }
    }

    fn of(self, tcp: &TcpState) -> u64 {
        let mss = tcp.send_mss_bytes.0;
        match self {
            WindowBound::Congestion => u64::from(tcp.cwnd_segments).saturating_mul(mss),
            WindowBound::Peer => tcp.peer_window_bytes.0,
            WindowBound::Receive => tcp.receive_window_bytes.unwrap_or_default().0,
            WindowBound::InFlight => u64::from(tcp.unacked_segments).saturating_mul(mss),
        }
    }
}

/// One line of the chart. Points are (seconds since the observation began, bytes).
#[derive(Debug)]
pub(super) struct WindowCurve {
    pub(super) bound: WindowBound,
    pub(super) points: Vec<(f64, f64)>,
}

/// The windows over time of the flow that moved the most bytes.
#[derive(Debug)]
pub(super) struct WindowHistory {
    /// Description of the flow: "10.0.0.1:4000 to 10.0.0.2:5000 (cubic)".
    pub(super) flow: String,
    pub(super) tracks: Vec<WindowCurve>,
    /// Points of (seconds since the observation began, segments retransmitted since the previous sample).
    pub(super) retransmits: Vec<(f64, u64)>,
    /// Shares of the busy time in which the peer's window and the send buffer limited the flow, if the sender was
    /// watched.
    pub(super) limited: Option<(f64, f64)>,
    pub(super) others: usize,
}

impl WindowHistory {
    /// Returns true if the windows differ so much that the chart needs a logarithmic axis.
    pub(super) fn wide(&self) -> bool {
        let values = || self.tracks.iter().flat_map(|t| &t.points).map(|p| p.1);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        most / least > WIDE
    }
}

impl WindowCurve {
    /// Returns the sizes in bytes, least first.
    fn sizes(&self) -> Vec<f64> {
        let mut sizes: Vec<f64> = self.points.iter().map(|p| p.1).collect();
        sizes.sort_by(f64::total_cmp);
        sizes
    }

    /// Returns the median size in bytes, or 0 without points.
    pub(super) fn median(&self) -> f64 {
        let sizes = self.sizes();
        sizes.get(sizes.len() / 2).copied().unwrap_or_default()
    }
}

const CURVE: usize = 40;

impl WindowHistory {
    /// Returns the median, least and greatest size of each window, and its curve on a common scale.
    pub(super) fn table(&self) -> ReportTable {
        let mut table = ReportTable::figures("The window", &["", "median", "least", "most"]);
        table.columns.push(TableColumn::of(ColumnKind::Drawn, ""));
        let row = |track: &WindowCurve| {
            let sizes = track.sizes();
            let size = |index: usize| TableCell::from(Bytes(sizes[index] as u64));
            let name = TableCell::from(track.bound.name_and_class().0);
            [name, size(sizes.len() / 2), size(0), size(sizes.len() - 1), TableCell::curve(self.curve(track))]
        };
        table.rows(self.tracks.iter().map(row))
    }

    fn curve(&self, track: &WindowCurve) -> Vec<Option<f64>> {
        let all = || self.tracks.iter().flat_map(|t| &t.points);
        let (end, most) = (all().map(|p| p.0).fold(0.0, f64::max), all().map(|p| p.1).fold(1.0, f64::max));
        let least = all().map(|p| p.1).fold(most, f64::min);
        let height = |bytes: f64| match self.wide() {
            true => (bytes / least).ln() / (most / least).ln(),
            false => bytes / most,
        };
        let column = |index: usize| {
            let until = (index as f64 + 1.0) / CURVE as f64 * end;
            track.points.iter().rev().find(|p| p.0 <= until).map(|p| height(p.1))
        };
        (0..CURVE).map(column).collect()
    }

    /// Returns the sentence on what limited the flow, as the kernel counted, and on the number of retransmissions.
    pub(super) fn limited_by(&self) -> Option<String> {
        let (rwnd, sndbuf) = self.limited?;
        let again = self.retransmits.iter().fold(0_u64, |sum, r| sum.saturating_add(r.1));
        Some(format!(
            "limited by the peer's window {} of its busy time, by the send buffer {}; {again} segments sent again",
            percent(rwnd),
            percent(sndbuf)
        ))
    }
}

/// Returns the windows of the flow that moved the most bytes, or `None` if no TCP flow was watched.
pub(super) fn window(report: &ExplainReport) -> Option<WindowHistory> {
    let watched = || report.hosts.iter().flat_map(|host| host.observed.get::<Vec<FlowWatch>>());
    let flows = || watched().filter(|f| f.tcp_states().count() > 1);
    let sender = flows().max_by_key(|f| moved(f, |t| t.acked_bytes.0));
    let receiver = flows().max_by_key(|f| moved(f, |t| t.received_bytes.0));
    let (sender, receiver) = (sender?, receiver?);
    // On a single host, only one end of the flow was watched. The bytes that it moved show which end.
    let sends = moved(sender, |t| t.acked_bytes.0) >= moved(receiver, |t| t.received_bytes.0) / 2;
    let main = if sends { sender } else { receiver };
    let peer = flows().find(|f| (f.key.local, f.key.remote) == (main.key.remote, main.key.local));
    let source = |bound| match (bound, sends) {
        (WindowBound::Receive, true) => peer,
        (WindowBound::Receive, false) => Some(main),
        (_, true) => Some(main),
        (_, false) => peer,
    };
    let tracks: Vec<WindowCurve> = WindowBound::ALL
        .into_iter()
        .filter_map(|bound| Some(WindowCurve { bound, points: points(source(bound)?, bound) }))
        .filter(|track| track.points.len() > 1)
        .collect();
    let sender = source(WindowBound::Congestion);
    let ends = flows().count() - 1 - usize::from(peer.is_some());
    (!tracks.is_empty()).then(|| WindowHistory {
        flow: described(main, sends),
        tracks,
        retransmits: sender.map(retransmits).unwrap_or_default(),
        limited: sender.and_then(limited),
        others: ends,
    })
}

fn ends(flow: &FlowWatch) -> Option<(&TcpState, &TcpState)> {
    let mut all = flow.tcp_states().map(|(_, tcp)| tcp);
    let first = all.next()?;
    Some((first, all.last()?))
}

fn moved(flow: &FlowWatch, of: fn(&TcpState) -> u64) -> u64 {
    ends(flow).map_or(0, |(first, last)| of(last).saturating_sub(of(first)))
}

fn described(flow: &FlowWatch, sends: bool) -> String {
    let (from, to) =
        if sends { (flow.key.local, flow.key.remote) } else { (flow.key.remote, flow.key.local) };
    let congestion = safe(&flow.congestion);
    let with = if congestion.is_empty() { congestion } else { format!(" ({congestion})") };
    format!("{from} to {to}{with}")
}

/// Returns the points of a window over time, thinned to [`DRAWN`] or fewer, without zeros.
fn points(flow: &FlowWatch, bound: WindowBound) -> Vec<(f64, f64)> {
    let stride = flow.tcp_states().count().div_ceil(DRAWN).max(1);
    flow.tcp_states()
        .step_by(stride)
        .map(|(state, tcp)| (state.at_ns.as_secs_f64(), bound.of(tcp) as f64))
        .filter(|(_, bytes)| *bytes > 0.0)
        .collect()
}

fn retransmits(flow: &FlowWatch) -> Vec<(f64, u64)> {
    let counts: Vec<(f64, u64)> =
        flow.tcp_states().map(|(s, tcp)| (s.at_ns.as_secs_f64(), tcp.retransmitted_segments)).collect();
    let step = |pair: &[(f64, u64)]| (pair[1].0, pair[1].1.saturating_sub(pair[0].1));
    counts.windows(2).map(step).filter(|(_, segments)| *segments > 0).take(DRAWN).collect()
}

fn limited(flow: &FlowWatch) -> Option<(f64, f64)> {
    let (first, last) = ends(flow)?;
    let busy = (last.busy_ns - first.busy_ns).0;
    let share = |time: landspeed_record::units::Nanos| unit(time.0 as f64 / busy as f64);
    let rwnd = last.rwnd_limited_ns - first.rwnd_limited_ns;
    let sndbuf = last.sndbuf_limited_ns - first.sndbuf_limited_ns;
    (busy > 0).then(|| (share(rwnd), share(sndbuf)))
}
