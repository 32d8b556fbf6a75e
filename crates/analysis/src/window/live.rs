//! What the windows did against what the model says.

use landspeed_record::{FlowWatch, SocketState, TcpState};
use landspeed_units::{BitRate, Bytes, Nanos};

use super::SpaceRule;
use super::model::{aligned, bandwidth_delay, granularity, lost, window_rate};

/// TCPI_OPT_WSCALE: both ends agreed on window scaling.
const SCALED: u8 = 4;

/// Both ends of a connection, as far as they were watched, and the path between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchedEnds<'a> {
    /// The end that sends data.
    pub sender: Option<&'a FlowWatch>,
    /// The end that receives it.
    pub receiver: Option<&'a FlowWatch>,
    /// `uname -r` of the receiver, empty where unknown.
    pub receiver_kernel: &'a str,
    /// Goodput over the window.
    pub rate: BitRate,
    /// Round trip of the idle path.
    pub rtt: Nanos,
}

/// The model's figures beside those of TCP_INFO. Figures of an end that was not watched are `None`;
/// levels are medians over the samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WindowCheck {
    /// What the path holds at the rate seen: the least window that carries it.
    pub needed: Bytes,
    /// Largest window that the receiver advertised.
    pub advertised: Option<Bytes>,
    /// Receive buffer, overhead included.
    pub receive_buffer: Option<Bytes>,
    /// What the model says that buffer can be advertised as on the receiver's kernel, before a socket has
    /// measured its own ratio.
    pub usable: Option<Bytes>,
    /// MSS of the sender, and the receiver's estimate of it.
    pub sender_mss: Option<Bytes>,
    /// See above.
    pub receiver_mss: Option<Bytes>,
    /// Whole segments within the advertised window.
    pub whole: Option<Bytes>,
    /// Share of the advertised window that whole segments cannot use.
    pub alignment_lost: Option<f64>,
    /// Steps of the advertised window.
    pub step: Option<Bytes>,
    /// Congestion window.
    pub congestion: Option<Bytes>,
    /// In flight.
    pub in_flight: Option<Bytes>,
    /// The most that the usable window carries over this round trip.
    pub most_rate: Option<BitRate>,
    /// All of it in words, one line each.
    pub lines: Vec<String>,
}

/// The model held against what was watched; `None` where neither end is a TCP connection with samples.
pub fn check(ends: &WatchedEnds<'_>) -> Option<WindowCheck> {
    let sender = ends.sender.and_then(last);
    let receiver = ends.receiver.and_then(last);
    let known = sender.or(receiver)?;
    let mut seen = WindowCheck { needed: bandwidth_delay(ends.rate, ends.rtt), ..WindowCheck::default() };
    seen.of_sender(ends.sender, sender);
    seen.of_receiver(ends, receiver);
    let mss = seen.sender_mss.or(seen.receiver_mss).filter(|mss| mss.0 > 0);
    if let (Some(window), Some(mss)) = (seen.advertised, mss) {
        let whole = aligned(window, mss);
        seen.whole = Some(whole);
        seen.alignment_lost = Some(lost(whole, window));
        seen.most_rate = Some(window_rate(whole, ends.rtt)).filter(|rate| rate.0 > 0.0);
    }
    let scale = if sender.is_some() { known.peer_window_scale } else { known.window_scale };
    seen.step = Some(granularity(if known.options & SCALED == 0 { 0 } else { scale }));
    seen.lines = seen.in_words(ends);
    Some(seen)
}

impl WindowCheck {
    fn of_sender(&mut self, watch: Option<&FlowWatch>, last: Option<&TcpState>) {
        let (Some(watch), Some(last)) = (watch, last) else { return };
        let segments = |count: fn(&TcpState) -> u32| {
            median(watch, |s| s.tcp.as_ref().map_or(0, |t| u64::from(count(t)) * t.send_mss_bytes.0))
        };
        self.sender_mss = Some(last.send_mss_bytes);
        self.congestion = Some(segments(|t| t.cwnd_segments));
        self.in_flight = Some(segments(|t| t.unacked_segments));
        self.advertised = most(watch, |t| t.peer_window_bytes);
    }

    fn of_receiver(&mut self, ends: &WatchedEnds<'_>, last: Option<&TcpState>) {
        let (Some(watch), Some(last)) = (ends.receiver, last) else { return };
        let buffer = median(watch, |s| s.receive_buffer_bytes.0);
        self.receiver_mss = Some(last.receive_mss_bytes);
        self.receive_buffer = Some(buffer);
        self.usable = Some(SpaceRule::of_kernel(ends.receiver_kernel).usable(buffer));
        self.advertised = self.advertised.or_else(|| most(watch, |t| t.receive_window_bytes));
    }

    fn in_words(&self, ends: &WatchedEnds<'_>) -> Vec<String> {
        let mut lines = vec![format!(
            "{} over a round trip of {} needs a window of {}",
            ends.rate, ends.rtt, self.needed
        )];
        let mut say = |line: Option<String>| lines.extend(line);
        say(self.receive_buffer.zip(self.usable).map(|(buffer, usable)| {
            format!(
                "model: a receive buffer of {buffer} is advertised as {usable} until the socket has measured"
            )
        }));
        say(self.advertised.zip(self.step).map(|(window, step)| {
            format!("seen: the receiver advertised up to {window}, told in steps of {step}")
        }));
        say(self.whole.zip(self.alignment_lost).map(|(whole, lost)| {
            format!("model: whole segments use {whole} of that and lose {:.0} %", lost * 100.0)
        }));
        say(self.sender_mss.zip(self.receiver_mss).filter(|(own, estimate)| own != estimate).map(
            |(own, estimate)| {
                format!(
                    "the sender cuts segments of {} B, the receiver takes them for {} B",
                    own.0, estimate.0
                )
            },
        ));
        say(self.congestion.zip(self.in_flight).map(|(window, flight)| {
            format!("seen: a congestion window of {window}, {flight} of it in flight")
        }));
        say(self.most_rate.map(|rate| format!("model: such a window carries {rate} at most")));
        lines
    }
}

fn last(watch: &FlowWatch) -> Option<&TcpState> {
    watch.samples.last()?.tcp.as_deref()
}

fn median(watch: &FlowWatch, of: impl Fn(&SocketState) -> u64) -> Bytes {
    let mut values: Vec<u64> = watch.samples.iter().map(of).collect();
    values.sort_unstable();
    Bytes(values.get(values.len() / 2).copied().unwrap_or(0))
}

/// The largest over the samples; `None` where the kernel does not tell.
fn most(watch: &FlowWatch, of: fn(&TcpState) -> Bytes) -> Option<Bytes> {
    watch.samples.iter().filter_map(|s| s.tcp.as_deref()).map(of).max().filter(|most| most.0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landspeed_record::{FlowKey, Protocol};

    fn watch(tcp: TcpState, receive_buffer: u64) -> FlowWatch {
        let end = "10.0.0.1:1".parse().unwrap();
        let state = SocketState {
            receive_buffer_bytes: Bytes(receive_buffer),
            tcp: Some(Box::new(tcp)),
            ..SocketState::default()
        };
        FlowWatch {
            key: FlowKey { protocol: Protocol::Tcp, local: end, remote: end },
            pid: 0,
            congestion: String::new(),
            samples: vec![state; 3],
        }
    }

    #[test]
    fn the_papers_connection_is_told_in_words() {
        let sender = TcpState {
            send_mss_bytes: Bytes(8960),
            peer_window_bytes: Bytes(26_844),
            cwnd_segments: 10,
            unacked_segments: 2,
            ..TcpState::default()
        };
        let receiver = TcpState { receive_mss_bytes: Bytes(8948), ..TcpState::default() };
        let (sender, receiver) = (watch(sender, 0), watch(receiver, 66_000));
        let ends = WatchedEnds {
            sender: Some(&sender),
            receiver: Some(&receiver),
            receiver_kernel: "6.18.0",
            rate: BitRate(3.5e9),
            rtt: Nanos::micros(38),
        };
        let seen = check(&ends).unwrap();
        assert_eq!(seen.usable, Some(Bytes(33_000)));
        assert_eq!(seen.whole, Some(Bytes(17_920)));
        assert_eq!(seen.in_flight, Some(Bytes(17_920)));
        assert!((seen.alignment_lost.unwrap() - 0.332).abs() < 1e-3);
        assert_eq!(seen.step, Some(Bytes(1)), "no scaling was agreed on");
        assert_eq!(seen.lines.len(), 7, "{:#?}", seen.lines);
    }

    #[test]
    fn one_end_alone_or_none() {
        assert_eq!(check(&WatchedEnds::default()), None);
        let tcp = TcpState {
            receive_mss_bytes: Bytes(1448),
            receive_window_bytes: Bytes(65_536),
            options: SCALED,
            window_scale: 7,
            ..TcpState::default()
        };
        let receiver = watch(tcp, 131_072);
        let seen = check(&WatchedEnds { receiver: Some(&receiver), ..WatchedEnds::default() }).unwrap();
        assert_eq!((seen.advertised, seen.step), (Some(Bytes(65_536)), Some(Bytes(128))));
        assert_eq!(seen.congestion, None);
    }
}
