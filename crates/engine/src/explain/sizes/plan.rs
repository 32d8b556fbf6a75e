//! Plans the messages to send over each MTU.

use landspeed_analysis::fit::{IpVersion, SizeSweep, largest};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CpuAccounting, Settings, Side};
use landspeed_transport::settings::{FLOWS, PLACEMENT, WRITE_SIZE, with};

use super::{SizesEffort, SizesOptions};
use crate::Pair;

/// The MTU of Ethernet's jumbo frames (jin.mtu.gbe).
const JUMBO: u64 = 9000;
/// Length of the headers of a TCP segment over IPv4 with timestamps, in bytes.
const TCP_HEADERS: u64 = 52;
/// A receive buffer that is large enough for all sizes here, if the host allows it. With a smaller one, datagrams would
/// overflow it, and those cost the receiver nothing.
const RECEIVE_BUFFER: Bytes = Bytes::mib(4);
/// Shortest window for hosts whose clocks of processor time advance in steps of 10 ms (USER_HZ), because a window must
/// contain many steps.
const COARSE_WINDOW: Nanos = Nanos::millis(400);
/// The longest time that all rounds together may take.
const LONGEST: Nanos = Nanos::secs(150);
/// Time for each trial in addition to its window: connecting, proving the flows, setting knobs.
const AROUND: Nanos = Nanos::millis(80);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Udp,
    /// UDP without a checksum (SO_NO_CHECK). The difference to `Udp` is the cost of checksums.
    UdpUnsummed,
    Tcp,
}

/// Messages of several sizes over one MTU.
#[derive(Debug, Clone)]
pub(super) struct PlannedSweep {
    pub(super) of: SizeSweep,
    pub(super) kind: MessageKind,
    /// Groups of sizes. The sizes of a group are measured directly one after the other: both sizes of a step, or a
    /// single size.
    pub(super) groups: Vec<Vec<Bytes>>,
}

impl PlannedSweep {
    fn new(kind: MessageKind, mtu: Bytes, ip: IpVersion, effort: &SizesEffort) -> PlannedSweep {
        let (transport, cut_by) = match kind {
            MessageKind::Udp => ("udp", Some(ip)),
            MessageKind::UdpUnsummed => ("udp without checksum", Some(ip)),
            MessageKind::Tcp => ("tcp", None),
        };
        let most = effort.sizes.last().copied().unwrap_or_default();
        let mut groups: Vec<Vec<Bytes>> = match kind {
            // Every second size suffices for a fit of four terms.
            MessageKind::UdpUnsummed => {
                effort.sizes.iter().rev().step_by(2).rev().map(|size| vec![*size]).collect()
            }
            _ => effort.sizes.iter().map(|size| vec![*size]).collect(),
        };
        match kind {
            MessageKind::Udp => groups.extend(
                effort
                    .steps
                    .iter()
                    .map(|packets| largest(*packets, mtu, ip))
                    .filter(|size| *size < most)
                    .map(|size| vec![size, Bytes(size.0 + 1)]),
            ),
            // A write that fills a whole segment.
            MessageKind::Tcp => groups.extend(
                mtu.0.checked_sub(TCP_HEADERS).map(Bytes).filter(|size| *size < most).map(|size| vec![size]),
            ),
            MessageKind::UdpUnsummed => {}
        }
        PlannedSweep { of: SizeSweep { transport: transport.to_owned(), mtu, cut_by }, kind, groups }
    }

    pub(super) fn trial(&self, size: Bytes) -> String {
        format!("{} of {} B at MTU {}", self.of.transport, size.0, self.of.mtu.0)
    }

    /// Returns the settings of a flow for messages of `size`. TCP also gets the user's other settings.
    pub(super) fn flow(&self, size: Bytes, options: &SizesOptions) -> Settings {
        let placement = match PLACEMENT.of(&options.flow) {
            // Threads that change processors have varying costs.
            "free" => "neighbours",
            asked => asked,
        };
        let size = size.0.to_string();
        let mut flow = with(&[(&FLOWS, "1"), (&WRITE_SIZE, &size), (&PLACEMENT, placement)]);
        let buffer = RECEIVE_BUFFER.0.to_string();
        let unsummed = if self.kind == MessageKind::UdpUnsummed { "on" } else { "off" };
        let own = match self.kind {
            MessageKind::Tcp => [("transport", "tcp"), ("nodelay", "on")].to_vec(),
            _ => [("transport", "udp"), ("rcvbuf", &buffer), ("no-checksum", unsummed)].to_vec(),
        };
        flow.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        if self.kind == MessageKind::Tcp {
            let asked = options.flow.iter().filter(|(name, _)| !flow.contains_key(*name));
            flow.extend(asked.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>());
        }
        flow
    }
}

#[derive(Debug, Clone)]
pub(super) struct SizesPlan {
    /// The current MTU, and the jumbo one if possible.
    pub(super) mtus: Vec<Bytes>,
    /// The sweeps; first those at the first MTU.
    pub(super) sweeps: Vec<PlannedSweep>,
    pub(super) rounds: u32,
    pub(super) window: Nanos,
    pub(super) warm_up: Nanos,
    /// Reasons why some sizes, MTUs or message kinds are not measured.
    pub(super) notes: Vec<String>,
}

impl SizesPlan {
    pub(super) fn of(pair: &Pair<'_>, options: &SizesOptions) -> SizesPlan {
        let (effort, rtt) = (&options.effort, pair.path.rtt_ns);
        let (mtus, mut notes) = mtus(pair, options);
        let ip = if pair.path.address_b.contains(':') { IpVersion::V6 } else { IpVersion::V4 };
        let mut sweeps: Vec<PlannedSweep> = mtus
            .iter()
            .flat_map(|mtu| {
                [MessageKind::Udp, MessageKind::Tcp].map(|kind| PlannedSweep::new(kind, *mtu, ip, effort))
            })
            .collect();
        sweeps.insert(1, PlannedSweep::new(MessageKind::UdpUnsummed, mtus[0], ip, effort));
        let exact = [pair.a, pair.b].iter().all(|host| host.facts.cpu_accounting == CpuAccounting::Tasks);
        let window = if exact { effort.window } else { effort.window.max(COARSE_WINDOW) };
        let window = window.max(Nanos(3 * rtt.0));
        let warm_up = Nanos::millis(20).max(Nanos(4 * rtt.0));
        let trials: usize = sweeps.iter().flat_map(|sweep| &sweep.groups).map(Vec::len).sum();
        let round = Nanos(trials as u64 * (window + warm_up + AROUND + Nanos(4 * rtt.0)).0);
        let rounds = (LONGEST.0 / round.0.max(1)).clamp(1, effort.rounds.into()) as u32;
        if rounds < effort.rounds {
            notes.push(format!(
                "{rounds} rounds instead of {}: one takes {round} on this path",
                effort.rounds
            ));
        }
        SizesPlan { mtus, sweeps, rounds, window, warm_up, notes }
    }
}

/// Returns the current MTU and the jumbo one, or only the current one and a note with the reason.
fn mtus(pair: &Pair<'_>, options: &SizesOptions) -> (Vec<Bytes>, Vec<String>) {
    let [a, b] = Side::BOTH.map(|side| pair.link(side).mtu_bytes);
    let present = u64::from(a.min(b));
    if present >= JUMBO {
        return (vec![Bytes(present)], Vec::new());
    }
    match may_turn(pair, options, &["mtu"]) {
        Ok(()) => (vec![Bytes(present), Bytes(JUMBO)], Vec::new()),
        Err(why) => {
            let note = format!("only MTU {present}, as it is, was measured, not {JUMBO}: {why}");
            (vec![Bytes(present)], vec![note])
        }
    }
}

/// Returns an error, with the reason, if these knobs cannot be set on both hosts.
pub(super) fn may_turn(pair: &Pair<'_>, options: &SizesOptions, knobs: &[&str]) -> Result<(), String> {
    if !options.may_turn {
        return Err(
            "explain changes settings only in lab:back-to-back; elsewhere `landspeed tune` tries them".into(),
        );
    }
    for host in [pair.a, pair.b] {
        if !host.facts.may_tune {
            return Err(format!("{}: {}", host.name, host.facts.may_not_tune_because));
        }
        for knob in knobs {
            let state = host.states.iter().find(|state| state.knob == *knob);
            let why = match state {
                None => Some("it has no such setting".to_owned()),
                Some(state) => state.skip.clone(),
            };
            if let Some(why) = why {
                return Err(format!("{knob} of {}: {why}", host.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(kind: MessageKind, mtu: u64) -> PlannedSweep {
        PlannedSweep::new(kind, Bytes(mtu), IpVersion::V4, &SizesEffort::default())
    }

    #[test]
    fn sizes_are_the_papers_with_the_steps_between() {
        let udp = sweep(MessageKind::Udp, 1500);
        let all: Vec<u64> = udp.groups.iter().flatten().map(|size| size.0).collect();
        assert_eq!(all[..11], [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768]);
        assert_eq!(
            udp.groups[11..],
            [[1472, 1473], [2952, 2953], [5912, 5913]].map(|p| p.map(Bytes).to_vec())
        );
        for pair in &udp.groups[11..] {
            assert_eq!(udp.of.fragments(pair[0]) + 1, udp.of.fragments(pair[1]));
        }
        let jumbo = sweep(MessageKind::Udp, 9000);
        assert_eq!(jumbo.groups.len(), 13, "four whole packets are more than 32 KB: {:?}", jumbo.groups);
    }

    #[test]
    fn a_write_over_tcp_is_a_segment_where_it_fits_one_and_not_held_back() {
        let options = SizesOptions {
            flow: [("socket-congestion".to_owned(), "bbr".to_owned())].into(),
            may_turn: false,
            seed: 1,
            effort: SizesEffort::default(),
        };
        let tcp = sweep(MessageKind::Tcp, 1500);
        assert!(tcp.groups.contains(&vec![Bytes(1448)]));
        let flow = tcp.flow(Bytes(32), &options);
        for (name, value) in [
            ("nodelay", "on"),
            ("write-size", "32"),
            ("socket-congestion", "bbr"),
            ("placement", "neighbours"),
        ] {
            assert_eq!(flow.get(name).map(String::as_str), Some(value), "{name}");
        }
        let bare = sweep(MessageKind::UdpUnsummed, 1500);
        assert_eq!(bare.flow(Bytes(32), &options)["no-checksum"], "on");
        assert_eq!(bare.groups.last(), Some(&vec![Bytes(32_768)]), "the largest is where it shows");
        assert!(bare.groups.len() > 4);
    }
}
