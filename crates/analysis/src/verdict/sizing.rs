//! Computes values of knobs for a path: the sizes of its buffers and queues, and the cores for its packets.

use landspeed_record::factor::print_cpus;
use landspeed_record::units::{BitRate, Bytes, Nanos};

use super::view::{CoreLoad, EndView, VerdictView, settings};
use super::words::percent;

/// A value for a knob, in the knob's spelling, and how it was computed, such as "500 Mb/s x 80 ms x 2".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ComputedValue {
    /// The value; empty if the knob's own proposals decide.
    pub(super) value: String,
    pub(super) how: String,
}

/// The knob of the buffers of one direction.
struct BufferKnob {
    name: &'static str,
    /// Least, initial and greatest bytes of a kernel with ample memory (tcp_init, net/ipv4/tcp.c).
    usual: [u64; 3],
    /// The factor by which the buffer must exceed what the path holds.
    times: u64,
}

/// Half of a receive buffer is window, and a window that lets the sender fill the path and a queue in front of it
/// takes twice what the path holds.
const RECEIVE: BufferKnob = BufferKnob { name: "tcp-rmem", usual: [4096, 131_072, 6 << 20], times: 4 };
/// Half of a send buffer holds payload, because the kernel counts its overhead in.
const SEND: BufferKnob = BufferKnob { name: "tcp-wmem", usual: [4096, 16_384, 4 << 20], times: 2 };

/// Returns the receive buffer that the path needs once the share `weight` of its time is won back; `None` if the
/// host's buffers may grow so far already.
pub(super) fn receive_buffer(view: &VerdictView<'_>, weight: f64) -> Option<ComputedValue> {
    buffer(view, weight, view.receiver.as_ref(), &RECEIVE)
}

/// Returns the send buffer that the path needs once the share `weight` of its time is won back; `None` if the host's
/// buffers may grow so far already.
pub(super) fn send_buffer(view: &VerdictView<'_>, weight: f64) -> Option<ComputedValue> {
    buffer(view, weight, view.sender.as_ref(), &SEND)
}

fn buffer(
    view: &VerdictView<'_>,
    weight: f64,
    end: Option<&EndView<'_>>,
    knob: &BufferKnob,
) -> Option<ComputedValue> {
    let (rtt, rate) = (view.rtt?, view.reachable(weight));
    let needed = rounded(held(rate, rtt) * knob.times as f64);
    let [least, initial, usual] = knob.usual;
    let greatest = needed.max(usual).min(ceiling(end).max(usual));
    let now = end.map_or([0; 3], |end| triple(end, knob.name));
    let how = match needed > usual {
        true => format!("{rate} x {rtt} x {}", knob.times),
        false => format!("the kernel's own limit: {rate} x {rtt} x {} are less", knob.times),
    };
    let value = format!("{} {} {greatest}", least.max(now[0]), initial.max(now[1]));
    (greatest > now[2]).then_some(ComputedValue { value, how })
}

fn held(rate: BitRate, rtt: Nanos) -> f64 {
    rate.0 * rtt.as_secs_f64() / 8.0
}

/// Returns the largest size of one buffer in bytes: a sixteenth of the host's memory, and no more than a C int holds.
fn ceiling(end: Option<&EndView<'_>>) -> u64 {
    let memory = end.map_or(Bytes(0), |end| end.host.facts.memory_bytes).0;
    let part = if memory == 0 { u64::MAX } else { memory / 16 };
    part.min(i32::MAX as u64)
}

/// Returns the host's three numbers of a knob; zeros where they were not read.
fn triple(end: &EndView<'_>, knob: &str) -> [u64; 3] {
    let text = end.host.set.get(knob).map_or("", String::as_str);
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// Returns the greatest size to which the kernel lets a buffer of this host grow; `None` where it was not read.
pub(super) fn buffer_limit(end: &EndView<'_>, knob: &str) -> Option<Bytes> {
    Some(Bytes(triple(end, knob)[2])).filter(|limit| limit.0 > 0)
}

/// Rounds up to two digits: 10,240,000 to 11,000,000.
fn rounded(value: f64) -> u64 {
    let unit = 10f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    ((value / unit).ceil() * unit) as u64
}

/// Returns four times the memory that the host allows for TCP; `None` if it was not read, or if the result would exceed
/// half of the host's memory.
pub(super) fn tcp_memory(end: &EndView<'_>) -> Option<ComputedValue> {
    four_times(triple(end, "tcp-mem"), end.host.facts.memory_bytes)
}

/// Returns four times these numbers of pages, if they fit into half of `memory`. A page is assumed to have 4,096 bytes,
/// the smallest size in Linux.
fn four_times(pages: [u64; 3], memory: Bytes) -> Option<ComputedValue> {
    const PAGE: u64 = 4096;
    let wanted = pages.map(|pages| pages.saturating_mul(4));
    let fits = wanted[2] > 0 && wanted[2].saturating_mul(PAGE) <= memory.0 / 2;
    let spelled = |pages: [u64; 3]| pages.map(|pages| pages.to_string()).join(" ");
    fits.then(|| ComputedValue { value: spelled(wanted), how: format!("4 x {} pages", spelled(pages)) })
}

/// Returns a receive buffer that begins with room for four of the largest packets that receive offload makes, half of
/// it window, and that may grow to four times its present size where it is at its limit: the kernel drops nothing for
/// want of room while a buffer may grow (tcp_clamp_window).
pub(super) fn room_for_packets(end: &EndView<'_>) -> ComputedValue {
    const LARGEST: u64 = 64 << 10;
    let [least, initial, greatest] = RECEIVE.usual;
    let now = triple(end, RECEIVE.name);
    let room = initial.max(now[1]).max(4 * LARGEST * 2);
    let size =
        end.main().and_then(|flow| flow.watch.samples.last()).map_or(0, |last| last.receive_buffer_bytes.0);
    let grown = if size >= now[2] { rounded(size as f64 * 4.0) } else { now[2] };
    let value = format!("{} {room} {}", least.max(now[0]), greatest.max(grown).max(room));
    ComputedValue {
        value,
        how: format!("begins with 4 packets of 64 KiB x 2, and grows to 4 times {}", Bytes(size)),
    }
}

/// Returns the length of a link's queue in packets: twice what the path holds, and at least 1,000, the usual length.
/// `None` if the queue is so long already.
pub(super) fn queue_length(view: &VerdictView<'_>, end: &EndView<'_>) -> Option<ComputedValue> {
    const USUAL: u64 = 1000;
    let (rtt, rate) = (view.rtt?, view.reachable(0.0));
    let mtu = settings(end.host).map_or(0, |link| link.mtu_bytes.0).max(576);
    let packets = rounded(held(rate, rtt) * 2.0 / mtu as f64).max(USUAL);
    let now: u64 = end.host.set.get("txqueuelen").and_then(|now| now.parse().ok()).unwrap_or(0);
    let how = format!("packets of {mtu} B: {rate} x {rtt} x 2, at least {USUAL}");
    (packets > now).then(|| ComputedValue { value: packets.to_string(), how })
}

/// Returns a receive buffer for datagrams: the bytes that arrive in a tenth of a second, or four times the present
/// size, `now`, if that is more.
pub(super) fn datagram_buffer(view: &VerdictView<'_>, now: Bytes) -> ComputedValue {
    const PAUSE: Nanos = Nanos::millis(100);
    let rate = view.reachable(0.0);
    let needed = rounded(held(rate, PAUSE)).max(rounded(now.0 as f64 * 4.0));
    ComputedValue { value: needed.to_string(), how: format!("{rate} x {PAUSE}, and 4 times {now}") }
}

/// Returns the MTU that carries datagrams of `pieces` packets whole, if an Ethernet link can have it.
pub(super) fn whole_datagrams(mtu: Bytes, pieces: f64) -> Option<ComputedValue> {
    const JUMBO: u64 = 9000;
    let needed = ((pieces.ceil() * mtu.0.saturating_sub(20) as f64) as u64).saturating_add(20);
    let how = format!(
        "datagrams of up to {needed} B, cut into {pieces:.1} packets of {mtu_bytes} B",
        mtu_bytes = mtu.0
    );
    (mtu.0 > 0 && needed <= JUMBO).then(|| ComputedValue { value: JUMBO.to_string(), how })
}

/// Returns the cores of the machine other than `core`, which is full.
pub(super) fn other_cores(view: &VerdictView<'_>, core: &CoreLoad) -> Option<ComputedValue> {
    let cores: Vec<u32> = beside(view, core).map(|other| other.number).collect();
    let how = format!("every core but core {}, which is full", core.number);
    (!cores.is_empty()).then(|| ComputedValue { value: print_cpus(&cores), how })
}

/// Returns the idlest core of the machine other than `core`.
pub(super) fn idlest_core(view: &VerdictView<'_>, core: &CoreLoad) -> Option<ComputedValue> {
    let idlest = beside(view, core).min_by(|a, b| a.busy.total_cmp(&b.busy))?;
    let how = format!("the idlest core: idle for {} of the time", percent(1.0 - idlest.busy));
    Some(ComputedValue { value: idlest.number.to_string(), how })
}

fn beside<'v>(view: &'v VerdictView<'_>, core: &'v CoreLoad) -> impl Iterator<Item = &'v CoreLoad> {
    view.cpu.cores.iter().filter(|other| other.host == core.host && other.number != core.number)
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::Bytes;

    use super::{four_times, rounded};

    #[test]
    fn memory_for_tcp_grows_to_half_of_the_host_at_most() {
        let grown = four_times([100, 200, 300], Bytes(1 << 30)).unwrap();
        assert_eq!((grown.value.as_str(), grown.how.as_str()), ("400 800 1200", "4 x 100 200 300 pages"));
        assert_eq!(four_times([0; 3], Bytes(1 << 30)), None);
        assert_eq!(four_times([100, 200, 40_000], Bytes(1 << 30)), None);
    }

    #[test]
    fn sizes_are_rounded_up_to_two_digits() {
        let shown = [0.0, 1.0, 7.2, 99.0, 101.0, 10_000_000.0, 10_240_000.0, 29_900_001.0].map(rounded);
        assert_eq!(shown, [0, 1, 8, 99, 110, 10_000_000, 11_000_000, 30_000_000]);
    }
}
