//! Every bound that a judgement turns on, with its reason. Shares are of the watched time unless said
//! otherwise.

/// Samples of a flow that a verdict needs: with fewer a share of them is a matter of chance.
pub(super) const FEW_SAMPLES: u32 = 5;

/// A send buffer this full has no room: a writer that waits is woken when a third of it is free
/// (sk_stream_write_space).
pub(super) const BUFFER_FULL: f64 = 0.8;

/// Processor time that one packet may take at most, all layers together: plain datagrams of 1,472 bytes
/// cost 6 us on both ends together in the lab. Interrupts beyond what the link's packets explain are
/// another program's.
pub(super) const PACKET_NS: f64 = 10_000.0;

/// Findings that cost less than this are not listed: less than what two runs of one thing differ by.
pub(super) const LEAST_WEIGHT: f64 = 0.05;

/// A flow that carries this share of what a reckoning allows, or more, and yet is not held by it, refutes it:
/// rates by formula are good to some ten percent.
pub(super) const PASSED: f64 = 0.8;

/// What a link that does not tell its speed is taken to carry, in bits a second: it is a virtual one, and a core
/// carries about as much.
pub(super) const VIRTUAL_LINK: f64 = 10e9;

/// What would bind next is named where it lets through less than this share of what the link carries: such
/// reckonings are good to a factor of two.
pub(super) const CLEARLY_BELOW: f64 = 0.5;

/// A cause must hold the flow for this share before it is blamed: TCP's own clocks count moments of
/// waiting on every healthy flow, between an acknowledgement and the next segment.
pub(super) const NOTABLE: f64 = 0.15;

/// A thread that runs or is ready for this share of time is the limit: two ends that hand over to each other
/// by sleeping and waking are never seen at 1. The lab's healthy pair spends 1.57 processor seconds a
/// second, 0.78 each.
pub(super) const SATURATED: f64 = 0.75;

/// From here on what a byte costs the processor is what limits, though no thread is at its end: two ends
/// that wait for each other's work in turn are each asleep while the other one works. The lab without
/// offloads is seen between 0.7 and 1.
pub(super) const HURRIED: f64 = 0.6;

/// A core busy for this share has nothing left.
pub(super) const FULL_CORE: f64 = 0.85;

/// Below this a thread has time to spare, whatever it is counted with.
pub(super) const UNHURRIED: f64 = 0.5;

/// A receive queue this full, on average over the samples, holds data that could have been read. Half:
/// autotuning doubles a buffer that is used up, so a healthy one is filled to a half or less.
pub(super) const FULL_QUEUE: f64 = 0.5;

/// A window under one of the largest packets that a host handles (64 KB) cannot keep sender and receiver
/// busy at once: small on any path, however busy the processors are with waiting and waking.
pub(super) const SMALL_WINDOW: f64 = 65_536.0;

/// A window of so many times what the path holds at the rate seen is not what limits it: what is in
/// flight waits in a queue or for a processor. Two for what a loss takes, two for acknowledgements that
/// come in lumps.
pub(super) const AMPLE: f64 = 4.0;

/// Largest window without the window scale option (RFC 7323 section 2.1), less what rounding takes.
pub(super) const UNSCALED_WINDOW: f64 = 0.7 * 65_535.0;

/// A window at or above this is no small buffer: where it does not suffice, the path is long.
pub(super) const LARGE_WINDOW: f64 = 1024.0 * 1024.0;

/// Rounding to whole segments is blamed from a loss of a tenth of the window on ...
pub(super) const ALIGNMENT_LOSS: f64 = 0.1;

/// ... where so few segments fit that it is a segment's doing (the paper's windows hold 5.5 and 3.7) ...
pub(super) const FEW_SEGMENTS: f64 = 6.0;

/// ... and in any case where fewer than this fit: a window that moves by a quarter of itself or not at all
/// (RFC 9293 section 3.8.6.2) stands still most of the time, whatever is left over at the moment.
pub(super) const TOO_FEW_SEGMENTS: f64 = 4.0;

/// A round trip longer than the idle one by this factor, and by at least [`STANDING_NS`], has a standing
/// queue in it. A loss-based sender keeps a queue of one bandwidth-delay product 40 % full or more.
pub(super) const STANDING_RATIO: f64 = 1.2;

/// Wake-ups and batching move a round trip by tens to hundreds of microseconds without any queue.
pub(super) const STANDING_NS: f64 = 1e6;

/// A shaper is at its limit from this share of its rate on: token buckets leave a little unused.
pub(super) const AT_RATE: f64 = 0.85;

/// A link is at its limit from this share of its nominal rate on: headers, gaps and acknowledgements take
/// 5 to 10 %.
pub(super) const AT_LINK: f64 = 0.85;

/// A queue that never held more than one packet of 64 KB and drops is too short for bursts of that size.
pub(super) const SHORT_QUEUE_BYTES: u64 = 65_536;

/// Losses this rare, as a share of segments, are no cause whatever the path.
pub(super) const RARE_LOSS: f64 = 1e-5;

/// Where a processor is the limit, losses must be this common to cost anything beside it.
pub(super) const COMMON_LOSS: f64 = 5e-3;

/// Fewer losses than this may be one event.
pub(super) const FEW_LOSSES: f64 = 3.0;

/// Losses per recovery from which they count as bursts: a window that loses single packets at random
/// seldom loses more than two or three.
pub(super) const BURST: f64 = 3.5;

/// Times that reordering must be seen: one may be a route that changed.
pub(super) const FEW_REORDERINGS: u64 = 3;

/// Reorderings this rare, as a share of segments, are a thread or an interrupt that changed its core: a
/// healthy virtual link at 10 Gb/s shows one in 20,000.
pub(super) const RARE_REORDERING: f64 = 2e-4;

/// Share of segments out of order that is worth knowing though TCP waits it out.
pub(super) const COMMON_REORDERING: f64 = 0.01;

/// Segments that a connection must have carried before a standstill is not put down to their size.
pub(super) const CARRIED_SEGMENTS: u64 = 16;

/// Share of retransmissions that the peer had already: from here on reordering explains them.
pub(super) const SPURIOUS: f64 = 0.3;

/// A congestion window is full from this share on: segmentation offload leaves the rest of it for the
/// next large packet.
pub(super) const CWND_FULL: f64 = 0.75;

/// A congestion window that grew by less than this factor over the window stands still.
pub(super) const GROWTH: f64 = 1.1;

/// A delayed acknowledgement waits for 40 ms where TCP says nothing else (TCP_DELACK_MIN of Linux).
pub(super) const DELAYED_ACK_NS: f64 = 40e6;

/// Segments filled to less than this share of the MSS were small writes.
pub(super) const SMALL_SEGMENT: f64 = 0.25;

/// Share of the sender's time in system calls from which the calls themselves are the work. With writes of
/// 64 KB it is 1 to 3 %.
pub(super) const CALLS: f64 = 0.12;

/// Share of the time of a sender with large writes and all offloads that goes into copying.
pub(super) const COPYING: f64 = 0.4;

/// Processor nanoseconds per byte from which writes must be small, where all offloads are on: writes of
/// 1,448 bytes cost about 1, of 128 bytes about 6.
pub(super) const DEAR_BYTE_NS: f64 = 2.0;

/// Share of a core in softirq from which packets alone fill it.
pub(super) const PACKETS_ALONE: f64 = 0.7;

/// Share of a full core in softirq from which moving that work away is worth it.
pub(super) const PACKETS_WITH_THREADS: f64 = 0.25;

/// A processor is idle enough to take over work from this share on.
pub(super) const IDLE_CORE: f64 = 0.5;

/// Stolen time under this is a shared machine on an ordinary day.
pub(super) const STOLEN: f64 = 0.2;

/// A clock under this share of the most that the processor can is low; boost clocks hold for short loads
/// and few cores only.
pub(super) const LOW_CLOCK: f64 = 0.75;

/// Time for which a client waits that lost its SYN to a full backlog (RFC 6298 section 2.1).
pub(super) const SYN_RETRY_NS: f64 = 1e9;

/// A gain that a formula promises beyond this is not believed: something else will bind before.
pub(super) const MOST_RATIO: f64 = 10.0;
