//! Sysctls of TCP's reactions to the path: congestion control, loss recovery, acknowledgement.

use super::NAMESPACED;
use crate::file::FileSetting;
use crate::{Condition, Domain, FactorPlacement, FactorView, Knob, Proposal};
use landspeed_record::KernelNeed;
use landspeed_record::factor::{algorithms, each, flip, nothing, switch_on, unless};
use landspeed_record::units::Nanos;

/// The lowest RTT of a long path, on which the growth of the window dominates the rate (feng-2003 table 1).
const LONG: Nanos = Nanos::millis(10);

/// The value that is proposed for "rto-min-us". Linux delays acknowledgements by 40 ms and more, and a shorter time-out
/// would take such a delay for a loss.
const LEAST_RTO: Nanos = Nanos::millis(50);

pub(super) const KNOBS: &[Knob] = &[
    sysctl!(NAMESPACED, "congestion-control", "ipv4/tcp_congestion_control", Plain, {
        decides: Some(Condition::CongestionControl),
        about: "congestion control of new connections",
        on: FactorPlacement::Sender,
        domain: Domain::Name,
        interacts: &["qdisc", "tcp-rmem", "tcp-ecn", "socket-congestion", "pacing-rate"],
        source: "cottrell-2005 IV.A table 1; RFC 9438 (CUBIC); feng-2003 table 1 (Reno's recovery time)",
    }, defaults),
    sysctl!(NAMESPACED, "tcp-ecn", "ipv4/tcp_ecn", Plain, {
        about: "explicit congestion notification: 0 never, 1 ask and accept, 2 accept; 3 to 5 accurate ECN",
        domain: Domain::Int(0, 5),
        interacts: &["congestion-control", "qdisc"],
        source: "RFC 3168; RFC 9768",
    }, |view| {
        let unmarked = view.one_machine() && view.rtt < Nanos::millis(1);
        unless(unmarked, "no queue on this path marks", each(&["1"], 510))
    }),
    sysctl!(NAMESPACED, "sack", "ipv4/tcp_sack", Bit, {
        about: "selective acknowledgement",
        interacts: &["congestion-control", "timestamps"],
        source: "RFC 2018",
    }, |view| switch_on(view, 110)),
    sysctl!(NAMESPACED, "dsack", "ipv4/tcp_dsack", Bit, {
        about: "tell the sender of duplicate segments",
        on: FactorPlacement::Receiver,
        interacts: &["sack"],
        source: "RFC 2883",
    }, |view| switch_on(view, 730)),
    sysctl!(NAMESPACED, "timestamps", "ipv4/tcp_timestamps", Plain, {
        decides: Some(Condition::Timestamps),
        about: "TCP timestamps: 0 off, 1 with random offsets, 2 without",
        domain: Domain::Int(0, 2),
        interacts: &["sack", "mtu"],
        source: "feng-2003 3.3, 3.4 (nothing on one host, 10 % on another); RFC 7323 section 3",
    }, |view| {
        let wraps = view.rtt >= LONG;
        let reason = "a long path needs them: sequence numbers wrap within a second or two (PAWS)";
        match view.current {
            "0" => vec![Proposal::new("1", 600)],
            _ => vec![Proposal::new("0", 600).pointless_if(wraps, reason)],
        }
    }),
    sysctl!(NAMESPACED, "no-metrics-save", "ipv4/tcp_no_metrics_save", Bit, {
        about: "forget a path's metrics between connections",
        interacts: &["congestion-control"],
        source: "ip-sysctl.rst; ESnet fasterdata",
    }, |view| switch_on(view, 520)),
    sysctl!(NAMESPACED, "no-ssthresh-metrics-save", "ipv4/tcp_no_ssthresh_metrics_save", Bit, {
        about: "forget a path's slow-start threshold between connections",
        on: FactorPlacement::Sender,
        interacts: &["no-metrics-save"],
        source: "ip-sysctl.rst",
    }, |view| {
        let forgotten = view.is_set_to("no-metrics-save", "on");
        unless(forgotten, "no-metrics-save forgets all of them", switch_on(view, 740))
    }),
    sysctl!(NAMESPACED, "mtu-probing", "ipv4/tcp_mtu_probing", Plain, {
        about: "packetization-layer path MTU discovery: 0 off, 1 after a black hole, 2 always",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 2),
        interacts: &["mtu"],
        source: "RFC 4821; ESnet fasterdata (jumbo frames across unknown paths)",
    }, |view| {
        let same = view.rtt < Nanos::millis(1);
        let reason = "both ends share a link, whose MTU they know";
        unless(same, reason, each(&["1"], 530))
    }),
    sysctl!(NAMESPACED, "slow-start-after-idle", "ipv4/tcp_slow_start_after_idle", Bit, {
        about: "fall back to slow start after an idle round-trip timeout",
        on: FactorPlacement::Sender,
        interacts: &["congestion-control"],
        source: "RFC 2861; RFC 5681 section 4.1",
    }, |view| flip(view, 540)),
    sysctl!(NAMESPACED, "tcp-reordering", "ipv4/tcp_reordering", Plain, {
        about: "reordering that is taken for order before loss is suspected, in segments",
        on: FactorPlacement::Sender,
        domain: Domain::Int(1, 300),
        interacts: &["rps", "sack"],
        source: "RFC 4653; ip-sysctl.rst",
    }, |_| each(&["10"], 750)),
    sysctl!(NAMESPACED, "tcp-early-retrans", "ipv4/tcp_early_retrans", Plain, {
        about: "tail loss probes: 3 sends one where the end of a burst may be lost, 0 waits for the time-out",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 4),
        interacts: &["sack", "rto-min-us"],
        source: "ip-sysctl.rst; RFC 8985 section 7",
    }, nothing),
    sysctl!(NAMESPACED, "tcp-recovery", "ipv4/tcp_recovery", Plain, {
        about: "detection of losses by time (RACK), a sum: 1 in place of counting acknowledgements (always on since Linux 6.17), 2 \
                with a fixed tolerance of reordering, 4 without any",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 7),
        interacts: &["sack", "tcp-reordering"],
        source: "ip-sysctl.rst; RFC 8985",
    }, nothing),
    sysctl!(NAMESPACED, "rto-min-us", "ipv4/tcp_rto_min_us", Plain, {
        about: "least retransmission time-out of new connections, in microseconds",
        on: FactorPlacement::Sender,
        // A time-out may not exceed TCP_RTO_MAX, 120 s.
        domain: Domain::Int(1, 120_000_000),
        interacts: &["sack", "comp-sack-delay-ns"],
        kernel: &[KernelNeed::since(6, 11)],
        source: "ip-sysctl.rst; RFC 6298 section 2.4",
    }, |view| {
        let reason = "the round trip decides the time-out, not its least value";
        unless(view.rtt >= LEAST_RTO, reason, each(&["50000"], 755))
    }),
    sysctl!(NAMESPACED, "pacing-ss-ratio", "ipv4/tcp_pacing_ss_ratio", Plain, {
        about: "pacing rate in slow start, percent of window per round trip",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 1000),
        interacts: &["congestion-control", "qdisc", "pacing-rate"],
        source: "ip-sysctl.rst",
    }, |view| paced(view, "400", 760)),
    sysctl!(NAMESPACED, "pacing-ca-ratio", "ipv4/tcp_pacing_ca_ratio", Plain, {
        about: "pacing rate in congestion avoidance, percent of window per round trip",
        on: FactorPlacement::Sender,
        domain: Domain::Int(0, 1000),
        interacts: &["congestion-control", "qdisc", "pacing-rate"],
        source: "ip-sysctl.rst",
    }, |view| paced(view, "200", 765)),
    sysctl!(NAMESPACED, "comp-sack-delay-ns", "ipv4/tcp_comp_sack_delay_ns", Plain, {
        about: "how long selective acknowledgements are gathered, in nanoseconds",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(0, 1_000_000_000),
        interacts: &["sack", "gro"],
        source: "ip-sysctl.rst",
    }, |_| each(&["0"], 770)),
    sysctl!(NAMESPACED, "comp-sack-nr", "ipv4/tcp_comp_sack_nr", Plain, {
        about: "most selective acknowledgements that are gathered into one",
        on: FactorPlacement::Receiver,
        domain: Domain::Int(0, 255),
        interacts: &["sack", "gro"],
        source: "ip-sysctl.rst",
    }, |_| each(&["0"], 775)),
];

/// The reason that is shown if a namespace may not make an algorithm its default. A socket of root may still request
/// it.
const RESTRICTED: &str = "only the machine's first network namespace can make it the default; a flow of root can still \
                          ask for it (socket-congestion), and in a lab --only congestion-control opens the list";

fn defaults(view: &FactorView) -> Vec<Proposal> {
    let others = algorithms(view, view.current);
    others.map(|(default, proposal)| proposal.pointless_if(!default, RESTRICTED)).collect()
}

/// Proposes a pacing ratio. It has an effect only if something paces by the window: the fq qdisc, with a congestion
/// control that does not set its own rate.
fn paced(view: &FactorView, value: &str, rank: u32) -> Vec<Proposal> {
    let own_rate = view.is_set_to("congestion-control", "bbr");
    let by_fq = view.is_set_to("qdisc", "fq");
    let reason = "nothing paces by the window here: it takes the fq qdisc, and a congestion control \
                  without a rate of its own";
    vec![Proposal::new(value, rank).pointless_if(own_rate || !by_fq, reason)]
}
