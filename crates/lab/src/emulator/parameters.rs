//! Declares each parameter of a link once: its name, its values, and how it is parsed and printed.

use super::spec::{DirectionSpec, LineSpeed, SEED, WanSpec};
use super::value::{
    BURSTS, NONE, drop_list, file, or_none, queue, rate, show_drop_list, show_rate, show_time, size, states,
    thousandths, time,
};
use landspeed_record::units::Share;

/// The description of a parameter, for help and the reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, such as "rtt".
    pub name: &'static str,
    /// The values that it accepts, with examples: "a round-trip time up to 10 s: 20ms, 180ms".
    pub values: &'static str,
    /// Its value if it is not given; empty if the parameter has no effect then.
    pub default: &'static str,
    /// A description of its effect.
    pub about: &'static str,
}

/// A parameter of a direction (`DirectionSpec`), or of the whole link.
pub(super) struct ParameterOf<Of> {
    pub(super) name: &'static str,
    values: &'static str,
    default: &'static str,
    about: &'static str,
    /// Parses a value and stores it. Returns `None` if the value is not valid.
    pub(super) read: fn(&mut Of, &str) -> Option<()>,
    /// Prints the value in the form that `read` accepts; `None` if it need not be printed, for example because it is
    /// the default.
    pub(super) print: fn(&Of) -> Option<String>,
    /// The value that turns the parameter off, if there is one.
    pub(super) off: Option<&'static str>,
}

/// The parameters of each direction. With the prefix "back." they apply only to the direction from B to A.
pub(super) const DIRECTION: &[ParameterOf<DirectionSpec>] = &[
    ParameterOf {
        name: "rate",
        values: "a rate from 8k to 100G bits of IP packets a second: 1G, 2.5Gb/s, 100mbit",
        default: "1G",
        about: "how fast the line is; Ethernet's framing is not counted, so TCP at MTU 1500 gets 96.5 % of it",
        read: |direction, text| set(&mut direction.speed, rate(text).map(LineSpeed::Rate)),
        print: |direction| {
            if let LineSpeed::Rate(bps) = direction.speed { Some(show_rate(bps)) } else { None }
        },
        off: None,
    },
    ParameterOf {
        name: "trace",
        values: "a file of delivery times in Mahimahi's format, in place of rate",
        default: "",
        about: "a delivery trace in place of `rate`: [traces](lab-wan.md#traces)",
        read: |direction, text| set(&mut direction.speed, file(text).map(LineSpeed::Trace)),
        print: |direction| {
            if let LineSpeed::Trace(file) = &direction.speed { Some(file.clone()) } else { None }
        },
        off: None,
    },
    ParameterOf {
        name: "queue",
        values: "what may wait in front of the line: 1bdp, 0.5bdp, 64K, 1M (bytes), 1000p (packets), 10ms (what the line carries in that time)",
        default: "1bdp",
        about: "bytes of IP packets, or packets, the one on the line included; the last to come is dropped. `bdp` is rate times rtt, and never below 64 KiB",
        read: |direction, text| set(&mut direction.queue, queue(text)),
        print: |direction| Some(direction.queue.to_string()),
        off: None,
    },
    ParameterOf {
        name: "mark-above",
        values: "what may wait before packets are marked: 100K, 0.1bdp, 65p, or none",
        default: "none",
        about: "a packet whose sender understands ECN is marked \"congestion experienced\" where it and what waits before it are more than this (a step, RFC 8257 section 4.1)",
        read: |direction, text| set(&mut direction.mark_above, or_none(text, queue)),
        print: |direction| direction.mark_above.map(|queue| queue.to_string()),
        off: Some(NONE),
    },
    ParameterOf {
        name: "jitter",
        values: "the most that a packet is delayed beyond the rest, up to 10 s: 2ms",
        default: "0s",
        about: "each segment is delayed by up to this much more, uniformly; order is kept: none arrives before one that left the line earlier, so that those behind a late one are late with it. `reorder` is what breaks the order",
        read: |direction, text| set(&mut direction.jitter, time(text)),
        print: |direction| (direction.jitter.0 > 0).then(|| show_time(direction.jitter)),
        off: Some("0ns"),
    },
    ParameterOf {
        name: "loss",
        values: "a share of segments from 0 to 100 %: 0.01%, 1e-4",
        default: "0%",
        about: "share of segments that the line loses, after they have used it",
        read: |direction, text| set(&mut direction.loss, Share::parse(text)),
        print: |direction| share(direction.loss),
        off: Some("0%"),
    },
    ParameterOf {
        name: "loss-burst",
        values: "the mean length of a run of losses in segments, from 1 to 100000: 8, 12.5, or none",
        default: "none",
        about: "losses come in runs (Gilbert's two states); the share stays that of `loss`",
        read: |direction, text| {
            set(
                &mut direction.loss_burst,
                or_none(text, |text| thousandths(text).filter(|n| BURSTS.contains(n))),
            )
        },
        print: |direction| {
            direction.loss_burst.map(|thousandths| (f64::from(thousandths) / 1000.0).to_string())
        },
        off: Some(NONE),
    },
    ParameterOf {
        name: "loss-states",
        values: "four shares of Elliott's chain, ENTER+LEAVE+GOOD+BAD: 0.1%+12.5%+0%+100%, or none",
        default: "none",
        about: "in place of `loss`: the chance, for each segment, to go from good to bad and back, and the share that is lost in either",
        read: |direction, text| set(&mut direction.loss_states, or_none(text, states)),
        print: |direction| direction.loss_states.map(|states| states.to_string()),
        off: Some(NONE),
    },
    ParameterOf {
        name: "loss-nth",
        values: "how many packets with payload there are for each one lost, from 1: 1000, or none",
        default: "none",
        about: "every n-th packet with payload is lost; A to B alone",
        read: |direction, text| {
            set(&mut direction.loss_nth, or_none(text, |text| text.parse().ok().filter(|nth| *nth > 0)))
        },
        print: |direction| direction.loss_nth.map(|nth| nth.to_string()),
        off: Some(NONE),
    },
    ParameterOf {
        name: "drop-list",
        values: "numbers of packets with payload, the first is 1: 5+17+300, or a file of them, or none",
        default: "none",
        about: "packets of these numbers are lost; A to B alone. A file has a number a line, ascending; a list that is longer than 2000 characters must be in one",
        read: |direction, text| set(&mut direction.drop_list, drop_list(text)),
        print: |direction| show_drop_list(&direction.drop_list),
        off: Some(NONE),
    },
    ParameterOf {
        name: "reorder",
        values: "a share of segments from 0 to 100 %: 0.1%",
        default: "0%",
        about: "share of segments that are held back, so that later ones overtake them",
        read: |direction, text| set(&mut direction.reorder, Share::parse(text)),
        print: |direction| share(direction.reorder),
        off: Some("0%"),
    },
    ParameterOf {
        name: "reorder-delay",
        values: "how long those are held back, up to 10 s: 1ms",
        default: "1ms",
        about: "how long `reorder` holds segments back",
        read: |direction, text| set(&mut direction.reorder_delay, time(text).filter(|t| t.0 > 0)),
        print: |direction| (!direction.reorder.is_zero()).then(|| show_time(direction.reorder_delay)),
        off: None,
    },
    ParameterOf {
        name: "duplicate",
        values: "a share of segments from 0 to 100 %: 0.1%",
        default: "0%",
        about: "share of segments that arrive a second time, right behind the first; the copy has not used the line",
        read: |direction, text| set(&mut direction.duplicate, Share::parse(text)),
        print: |direction| share(direction.duplicate),
        off: Some("0%"),
    },
    ParameterOf {
        name: "drop-above",
        values: "the largest IP packet that passes, from 68 to 65535 bytes: 1400, or none",
        default: "none",
        about: "IP packets above this size vanish without a word: a black hole for path MTU discovery",
        read: |direction, text| set(&mut direction.drop_above, or_none(text, size)),
        print: |direction| direction.drop_above.map(|size| size.0.to_string()),
        off: Some(NONE),
    },
    ParameterOf {
        name: "cross",
        values: "a share of the line's rate from 0 to 100 %: 30%",
        default: "0%",
        about: "mean load of cross traffic: packets of others that take the queue and the line and reach no host. Eight on-off sources, whose times have heavy tails, do not react to losses (open loop). They send four packets of 1500 bytes at a time, which count as one",
        read: |direction, text| set(&mut direction.cross, Share::parse(text)),
        print: |direction| share(direction.cross),
        off: Some("0%"),
    },
    ParameterOf {
        name: "cross-on",
        values: "a mean time, up to 10 s: 500ms",
        default: "1s",
        about: "how long a source of cross traffic is on, in the mean",
        read: |direction, text| set(&mut direction.cross_on, time(text).filter(|t| t.0 > 0)),
        print: |direction| (!direction.cross.is_zero()).then(|| show_time(direction.cross_on)),
        off: None,
    },
    ParameterOf {
        name: "cross-off",
        values: "a mean time, up to 10 s: 2s",
        default: "1s",
        about: "how long a source of cross traffic is off, in the mean",
        read: |direction, text| set(&mut direction.cross_off, time(text).filter(|t| t.0 > 0)),
        print: |direction| (!direction.cross.is_zero()).then(|| show_time(direction.cross_off)),
        off: None,
    },
    ParameterOf {
        name: "cross-short",
        values: "a share of the cross traffic from 0 to 100 %: 25%",
        default: "0%",
        about: "the part of `cross` that short flows bring: they arrive at random, send 100 kB in the mean by Pareto's law, at 50 Mb/s each",
        read: |direction, text| set(&mut direction.cross_short, Share::parse(text)),
        print: |direction| share(direction.cross_short),
        off: Some("0%"),
    },
];

/// The parameters of the whole link.
pub(super) const LINK: &[ParameterOf<WanSpec>] = &[
    ParameterOf {
        name: "rtt",
        values: "a round-trip time up to 10 s: 20ms, 180ms",
        default: "20ms",
        about: "round trip of the idle link, half of it each way",
        read: |link, text| set(&mut link.rtt, time(text)),
        print: |link| Some(show_time(link.rtt)),
        off: None,
    },
    ParameterOf {
        name: "second-rtt",
        values: "a round-trip time above rtt, up to 10 s: 160ms, or none",
        default: "none",
        about: "round trip of flows whose packets from A to B have the DSCP 3 (`dscp=3` of a flow): they share queue and line with all others, and then arrive later by what it is above `rtt`. `landspeed compare --ask round-trips` gives it to one of two flows",
        read: |link, text| set(&mut link.second_rtt, or_none(text, time)),
        print: |link| link.second_rtt.map(show_time),
        off: Some(NONE),
    },
    ParameterOf {
        name: "pairs",
        values: "pairs of hosts that share the link, from 1 to 8: 2",
        default: "1",
        about: "a and b, a2 and b2, ...; with more than one, a bridge on each side joins the hosts there to the link; `landspeed measure` runs all pairs at once (`--bidir`: both ways, as SC2004's two pairs did)",
        read: |link, text| {
            set(&mut link.pairs, text.parse().ok().filter(|n| (1..=WanSpec::MAX_PAIRS).contains(n)))
        },
        print: |link| (link.pairs != 1).then(|| link.pairs.to_string()),
        off: None,
    },
    ParameterOf {
        name: "seed",
        values: "a whole number: 7",
        default: "1",
        about: "the same seed, the same chance: segment number n that enters a line always has the same fate. Each of loss, reordering, jitter and duplication draws from a generator of its own: one parameter does not change what another does",
        read: |link, text| set(&mut link.seed, text.parse().ok()),
        print: |link| (link.seed != SEED).then(|| link.seed.to_string()),
        off: None,
    },
];

impl<Of> ParameterOf<Of> {
    /// Returns the description of the parameter.
    pub(super) fn description(&self) -> Parameter {
        let ParameterOf { name, values, default, about, .. } = *self;
        Parameter { name, values, default, about }
    }
}

fn set<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

/// Returns the descriptions of all parameters of a direction, and of all parameters of the whole link.
pub fn parameters() -> [Vec<Parameter>; 2] {
    [
        DIRECTION.iter().map(ParameterOf::description).collect(),
        LINK.iter().map(ParameterOf::description).collect(),
    ]
}

fn share(share: Share) -> Option<String> {
    (!share.is_zero()).then(|| share.to_string())
}
