//! The thresholds of all judgements, with their reasons. Shares are of the watched time unless another base is named.

/// The least number of samples of a flow for a verdict: with fewer, a share of them is a matter of chance.
pub(super) const FEW_SAMPLES: u32 = 5;

/// The fill at which a send buffer counts as full: a waiting writer is woken only when a third of it is free
/// (sk_stream_write_space).
pub(super) const BUFFER_FULL: f64 = 0.8;

/// The largest processor time of one packet in ns, all layers together: plain datagrams of 1,472 bytes cost 6 us on
/// both ends together in the lab. Interrupts that take more than this for each of the link's packets come from
/// another program.
pub(super) const PACKET_NS: f64 = 10_000.0;

/// The least weight of a listed finding: the share of time that is worth a gain of 10 % once it is won back. What gains
/// less is no cause (docs/decisions/0056).
pub(super) const LEAST_WEIGHT: f64 = 1.0 - 1.0 / 1.1;

/// The share of a cause's computed rate at which the flow refutes the computation, if the cause does not hold it: rates
/// by formula are accurate to about ten percent.
pub(super) const PASSED: f64 = 0.8;

/// The assumed speed in bit/s of a link that does not report its own: it is virtual, and a core carries about as
/// much.
pub(super) const VIRTUAL_LINK: f64 = 10e9;

/// The share of the link's rate below which the rate of a fault that would limit next must lie for the fault to be
/// reported: such rates are accurate to a factor of two.
pub(super) const CLEARLY_BELOW: f64 = 0.5;

/// The least share of time for which a cause must hold the flow: TCP's own clocks count short waits on every healthy
/// flow, between an acknowledgement and the next segment.
pub(super) const NOTABLE: f64 = 0.15;

/// The least share of time for which the flow's busiest thread or core is busy if it is the limit: two ends that hand
/// over to each other by sleeping and waking never reach 1. The lab's healthy pair spends 1.57 processor seconds a
/// second, 0.78 each.
pub(super) const SATURATED: f64 = 0.75;

/// The least share of time for which the flow's busiest thread or core is busy if the cost of a byte limits: of two
/// ends that wait for each other's work, each sleeps while the other works. The lab without offloads is between 0.7
/// and 1.
pub(super) const HURRIED: f64 = 0.6;

/// The busy share of time at which a core has no time left.
pub(super) const FULL_CORE: f64 = 0.85;

/// The share of time that a thread runs, or runs and is ready to run, below which it has time to spare.
pub(super) const UNHURRIED: f64 = 0.5;

/// The average fill at which a receive queue holds data that could have been read. It is a half because autotuning
/// doubles a buffer that is used up, so a healthy one is half full or less.
pub(super) const FULL_QUEUE: f64 = 0.5;

/// The size in bytes below which a window is small on any path: a window under one of the largest packets that a host
/// handles (64 KB) cannot keep sender and receiver busy simultaneously, however busy the processors are with waiting
/// and waking.
pub(super) const SMALL_WINDOW: f64 = 65_536.0;

/// The factor by which a window must exceed what the path holds at the measured rate to be ruled out as the limit:
/// the data in flight then waits in a queue or for a processor. It is two for what a loss takes, times two for
/// acknowledgements that arrive in bursts.
pub(super) const AMPLE: f64 = 4.0;

/// The least size in bytes at which a window without the window scale option (RFC 7323 section 2.1) counts as the
/// largest possible one: rounding takes a part of 65,535.
pub(super) const UNSCALED_WINDOW: f64 = 0.7 * 65_535.0;

/// The size in bytes from which a socket buffer or window is not called small. If a window of this size limits the
/// rate, the cause is the path's large bandwidth-delay product.
pub(super) const LARGE_WINDOW: f64 = 1024.0 * 1024.0;

/// The part of a window that rounding to whole segments must lose to be a cause, if fewer than [`FEW_SEGMENTS`] fit.
pub(super) const ALIGNMENT_LOSS: f64 = 0.1;

/// The number of segments in a window below which the loss by rounding decides (the paper's windows hold 5.5 and
/// 3.7).
pub(super) const FEW_SEGMENTS: f64 = 6.0;

/// The number of segments in a window below which rounding is a cause whatever it loses: a window that moves by a
/// quarter of itself or not at all (RFC 9293 section 3.8.6.2) stays where it is most of the time.
pub(super) const TOO_FEW_SEGMENTS: f64 = 4.0;

/// The least ratio of the round trip to the idle one that shows a standing queue, if the difference is also at least
/// [`STANDING_NS`]. A loss-based sender keeps a queue of one bandwidth-delay product 40 % full or more.
pub(super) const STANDING_RATIO: f64 = 1.2;

/// The least time that a standing queue adds to a round trip, in ns: wake-ups and batching change a round trip by
/// tens to hundreds of microseconds without any queue.
pub(super) const STANDING_NS: f64 = 1e6;

/// The part of its configured rate at which a shaper is at its limit: token buckets leave a little unused.
pub(super) const AT_RATE: f64 = 0.85;

/// The part of its nominal rate at which a link is at its limit: headers, gaps and acknowledgements take 5 to 10 %.
pub(super) const AT_LINK: f64 = 0.85;

/// The largest length in bytes at which a queue that dropped packets counts as too short for one packet of 64 KB.
pub(super) const SHORT_QUEUE_BYTES: u64 = 65_536;

/// The share of segments below which losses are no cause on any path.
pub(super) const RARE_LOSS: f64 = 1e-5;

/// The share of segments that must be lost to cost anything if a processor is the limit.
pub(super) const COMMON_LOSS: f64 = 5e-3;

/// The least number of losses that counts: fewer may be one event.
pub(super) const FEW_LOSSES: f64 = 3.0;

/// The number of losses per recovery at which they count as bursts: a window that loses single packets at random
/// seldom loses more than two or three.
pub(super) const BURST: f64 = 3.5;

/// The least number of reorderings that counts: one may be a route that changed.
pub(super) const FEW_REORDERINGS: u64 = 3;

/// The share of segments below which reorderings are due to a thread or an interrupt that changed its core: a healthy
/// virtual link at 10 Gb/s shows one in 20,000.
pub(super) const RARE_REORDERING: f64 = 2e-4;

/// The share of segments out of order from which reordering is reported, even if TCP waits for late segments.
pub(super) const COMMON_REORDERING: f64 = 0.01;

/// The number of segments that a connection must have carried for a standstill not to be blamed on their size.
pub(super) const CARRIED_SEGMENTS: u64 = 16;

/// The share of needless retransmissions (the peer already had the data) at which reordering is their cause.
pub(super) const SPURIOUS: f64 = 0.3;

/// The fill at which a congestion window is full: segmentation offload leaves the rest for the next large packet.
pub(super) const CWND_FULL: f64 = 0.75;

/// The factor below which a congestion window's growth over the watched time counts as none.
pub(super) const GROWTH: f64 = 1.1;

/// The time in ns that a delayed acknowledgement is assumed to wait if TCP does not report it (40 ms, TCP_DELACK_MIN of
/// Linux).
pub(super) const DELAYED_ACK_NS: f64 = 40e6;

/// The share of the MSS below which segments come from small writes.
pub(super) const SMALL_SEGMENT: f64 = 0.25;

/// The share of the sender's time in system calls from which the calls themselves are most of its work. With writes of
/// 64 KB the share is 1 to 3 %.
pub(super) const CALLS: f64 = 0.12;

/// The share of its time for which a sender copies, if it has large writes and all offloads.
pub(super) const COPYING: f64 = 0.4;

/// The processor time per byte, in ns, at which writes must be small if all offloads are on: writes of 1,448 bytes
/// cost about 1, of 128 bytes about 6.
pub(super) const DEAR_BYTE_NS: f64 = 2.0;

/// The share of a full core's time in interrupts at which packets alone fill it.
pub(super) const PACKETS_ALONE: f64 = 0.7;

/// The share of a full core's time in interrupts at which it is worth moving that work to another core.
pub(super) const PACKETS_WITH_THREADS: f64 = 0.25;

/// The idle share at which a processor can take over work.
pub(super) const IDLE_CORE: f64 = 0.5;

/// The least share of stolen time that is a cause. Less is usual on a shared machine.
pub(super) const STOLEN: f64 = 0.2;

/// The share of the processor's highest clock below which its clock is low; boost clocks last only for short loads
/// and few cores.
pub(super) const LOW_CLOCK: f64 = 0.75;

/// The time that a client waits after its SYN was dropped for a full backlog, in ns (RFC 6298 section 2.1).
pub(super) const SYN_RETRY_NS: f64 = 1e9;

/// The largest gain that is promised, as a ratio: a limit that nothing has shown yet, such as the rate of a path that a small
/// window leaves idle, may come long before a larger one.
pub(super) const MOST_RATIO: f64 = 10.0;

/// The shortest bin in seconds in which delivery is counted: twice the time between two samples of `explain`.
pub(super) const SHORTEST_BIN: f64 = 0.1;

/// The least number of packets in a bin, so that one packet more or less changes its rate by 3 %.
pub(super) const PACKETS_PER_BIN: f64 = 32.0;

/// The fewest bins for a level of delivery: a quantile of fewer is a matter of chance.
pub(super) const FEW_BINS: usize = 6;

/// The largest number of bins, because a forged record may claim any span.
pub(super) const MOST_BINS: f64 = 1000.0;

/// The largest difference between a bin's rate and the level at which they count as near, as a share of the level: a
/// little less than three times the 3 % that one packet changes.
pub(super) const NEAR_LEVEL: f64 = 0.08;

/// The largest difference between the rates of two bins that count as the same, as a share of the rate.
pub(super) const SAME_RATE: f64 = 0.01;

/// The share of bins with the same rate from which only a clock can have set it. Behind shapers of 61 to 650 Mb/s it was
/// 0.81 to 1, with idle and with busy cores; of flows that a processor limits 0.13 and 0.29.
pub(super) const CLOCKED: f64 = 0.75;

/// The share of bins near the level from which the level is a limit, if there is a standing queue too. Behind a shaper
/// 0.9 to 1 of the bins are near it, and 0.33 to 0.9 beside six busy programs on two cores. Of flows that a processor
/// limits and whose round trip is long, 0.0 to 0.25 are (45 paths, CUBIC and BBR).
pub(super) const STEADY: f64 = 0.3;

/// The least time in ns that a queue on the path adds to a round trip: an idle machine's wake-ups add up to 0.2 ms.
pub(super) const LEAST_QUEUE_NS: f64 = 0.3e6;

/// The least time that a queue on the path adds to a round trip, as a share of the idle one: less is within the
/// variation of long paths.
pub(super) const LEAST_QUEUE_RATIO: f64 = 0.05;

/// The share of rate times round trip that must be in flight if a queue lengthens the round trip (Little's law): late
/// acknowledgements lengthen it without data in flight. On 40 paths with a queue it was 0.96 or more; a half leaves
/// room for a sender that was sampled between its bursts.
pub(super) const HELD_IN_QUEUE: f64 = 0.5;

/// The ratio of the round trip's variation to the added time from which the flow's own bursts explain both. The packets of
/// a burst wait evenly from no time to twice the mean, so they deviate from the mean by half of it. In the lab the ratio was
/// 0.4 to 1.1 for bursts, and 0.16 for a queue that stood.
pub(super) const OWN_BURST: f64 = 0.3;

/// The number of segments that a flow must have carried for a judgement of the path's rate.
pub(super) const LEAST_SEGMENTS: u64 = 200;

/// The longest queue in ns that counts as too short: a paced sender hands over a millisecond's data in one burst
/// (sk_pacing_shift), and a queue must hold two such bursts.
pub(super) const SHORT_QUEUE_NS: f64 = 2e6;

/// The least number of losses to be expected at a lower rate for their absence to mean anything: of eight losses by
/// chance, none or one comes in 3 of 1,000 runs (Poisson).
pub(super) const FEW_EXPECTED: f64 = 8.0;

/// The largest ratio of the losses at a lower rate to the expected ones at which losses count as vanished, and the
/// least at which they count as unchanged. Between these, eight expected losses can lie by chance.
pub(super) const LOSS_VANISHES: f64 = 0.15;
pub(super) const LOSS_STAYS: f64 = 0.35;

/// The least time in ns that a queue must add to be a fault by itself: such a round trip exceeds what people notice
/// in a conversation on any path (ITU-T G.114 asks for at most 150 ms one way).
pub(super) const BLOAT_NS: f64 = 100e6;

/// The least ratio of the time that a queue adds to the idle round trip at which the queue is a fault: routers are
/// built with queues of one bandwidth-delay product.
pub(super) const BLOAT_RATIO: f64 = 1.5;

/// The least share of acknowledgements lost on the way back that is a cause: each acknowledges all data before it, so
/// that a few lost ones cost nothing. The counts of both ends differ by up to 2 % where nothing is lost, as their
/// windows are not the same.
pub(super) const LOST_ON_RETURN: f64 = 0.03;

/// The time in seconds by which the first samples of two hosts may lie apart: the controller asks one after the other. It
/// was up to 3 ms in the lab.
pub(super) const APART: f64 = 0.005;

/// The share of lost segments below which losses cost a sender with a model of the path (BBR) nothing: it does not take
/// them for congestion. Beside slow programs and small buffers, 0.2 and 0.3 % cost nothing in three of three; alone, 1 to
/// 3 % on virtual links cost more than half of the rate.
pub(super) const MODEL_LOSS: f64 = 0.005;

/// The part of the path's rate that a flow leaves unused from which the end that explains it comes before the path: the end
/// is then worth 1 / (1 - 0.3) = 1.4 times as much, and the path nothing while the end holds the flow.
pub(super) const MUCH_LEFT: f64 = 0.3;

/// The part of the path's rate, as a search found it, that a flow at the path's limit reaches at least. CUBIC behind a short
/// queue reaches 0.85 of it on average (1 less half of its decrease of 0.3, RFC 9438 section 4.6).
pub(super) const NEARLY_ALL: f64 = 0.85;

/// The part of the path's rate, as a search found it, below which the path does not limit a flow. Between this and
/// [`NEARLY_ALL`] the flow's own figures decide: the means of a flow that searches for the rate vary by as much.
pub(super) const LEAST_USED: f64 = 0.7;

/// The factor by which the share of lost acknowledgements must exceed that of lost data to be the cause.
pub(super) const RETURN_OVER_FORWARD: f64 = 4.0;

/// The distance of the two counts of lost acknowledgements, by payload and by time, beyond which there is no count. Over
/// fourteen recorded paths they are 0.7 % apart at most where 200 or more acknowledgements were sent. A lab at rest, where
/// none is lost, seemed to lose 4 %, by the smaller of two that did not agree.
pub(super) const RETURN_APART: f64 = 0.03;

/// The distance of these two counts, as a part of the smaller one, up to which they still agree: where a fifth is lost,
/// a jump at the edge of a window does not change the answer.
pub(super) const RETURN_APART_SHARE: f64 = 0.25;

/// The share of a policer's rate at which a sender should pace its payload, so that it stays below that rate with its
/// headers.
pub(super) const PACE_BELOW: f64 = 0.95;

/// The least lower end of a gain that is promised alone: what gains less is no cause.
pub(super) const LEAST_OPEN_GAIN: f64 = 1.1;

/// The exponents of the range around a promised gain. The gain's logarithm may be about a third lower, because waits
/// that the cause hid take its place, and a tenth higher.
pub(super) const GAIN_LOW: f64 = 0.7;
pub(super) const GAIN_HIGH: f64 = 1.1;

/// The least upper end of an expected gain, as a ratio, that is reported: `tune` keeps nothing that gains less than 2
/// %.
pub(super) const LEAST_GAIN: f64 = 1.02;

/// The part of a link's rate that is payload, at least: headers and gaps take 5 to 10 % of packets of 1,500 bytes.
pub(super) const PAYLOAD_OF_LINK: f64 = 0.9;

/// The fewest acknowledgements whose losses are judged: 2 % of 200 are only four.
pub(super) const FEW_ACKS: u64 = 200;

/// The share of its former rate at which a stream is repeated: low enough that its bursts pass a policer, and high
/// enough that losses by chance are still counted.
pub(super) const SLOWER: f64 = 0.5;

/// The least share of lost segments for which a stream is repeated: it takes minutes to measure a smaller share.
pub(super) const LEAST_REPEATED: f64 = 2e-4;

/// The least number of requests and replies that makes a flow one of requests: fewer may be a handshake of programs.
pub(super) const FEW_EXCHANGES: f64 = 10.0;

/// The largest number of data segments in one direction for each in the other, if the flow carries requests and
/// replies. OpenSSH's receiver opens its window once for 96 KB that arrived, which are 11 segments of 8,948 bytes or 68
/// of 1,448. A stream with such answers waits for none of them.
pub(super) const MOST_SEGMENTS_A_REPLY: f64 = 8.0;

/// The most payload of a request and its reply together, where nothing is in flight between them. It is below the 96 KB
/// after which OpenSSH's receiver opens its window.
pub(super) const MOST_BYTES_A_REQUEST: f64 = 65_536.0;

/// The least number of connections of a client that has a pool of them. Programs that send streams open one or two.
pub(super) const POOL: usize = 4;

/// The least time between two requests, in round trips, if each waits for the reply to the one before. It is below one
/// because the lowest round trip that TCP saw and the idle one that was measured differ by up to a wake-up.
pub(super) const SERIAL: f64 = 0.7;

/// The share of its former size below which a window counts as fallen: the kernel halves it for each retransmission
/// time-out of a pause (tcp_cwnd_restart).
pub(super) const FALLEN: f64 = 0.7;

/// The least number of falls that is a cause: one or two may be a first burst, or a program that began anew.
pub(super) const FEW_FALLS: usize = 3;

/// The largest number of segments in a window that the kernel has cut after a drop (tcp_clamp_window). It cuts to twice
/// the MSS that the receiver advertises, which exceeds the sender's MSS by the length of the options; rounding adds a
/// little.
pub(super) const CUT_WINDOW: f64 = 2.1;

/// The least share of the time that a window limits for which it must be cut, so that the drops are the cause. Between
/// two drops it grows again, and may limit for another reason.
pub(super) const CUT_TIME: f64 = 0.5;
