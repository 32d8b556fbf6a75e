//! Checks of what Debian's kernels have and CI's machines lack: a packet generator in the kernel, and fq, which paces.

use anyhow::{Context, Result, ensure};
use landspeed_record::MeasureReport;

use super::battery::{Check, SETTLED, become_again, keeps_settings};
use super::command::printed;
use super::guests::Guests;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "pktgen beside a stream", is_short: false, look: |guests| keeps_settings(guests, pktgen) },
    Check { name: "pacing by fq", is_short: false, look: fq },
];

/// The packets that pktgen sends, and their length: an Ethernet frame without its checksum.
const PACKETS: u64 = 20_000;
const FRAME_BYTES: u64 = 1514;
/// Sends [`PACKETS`] to guest 2. With `clone_skb`, each is the same one again, which no one copies (feng-2003 section
/// 3.5.2); a driver that changes what it sends refuses that.
const GENERATE: &str = "cd /proc/net/pktgen && echo rem_device_all >kpktgend_0 && echo 'add_device d0' >kpktgend_0 && \
    for word in 'count 20000' 'pkt_size 1514' 'delay 0' 'dst 198.18.0.2' 'dst_mac 52:54:00:00:77:02'; do \
    echo \"$word\" >d0 || exit 1; done; \
    echo 'clone_skb 20000' >d0 2>/dev/null && echo CLONED; echo start >pgctrl; cat d0";
const GENERATED: &str = "echo rem_device_all >/proc/net/pktgen/kpktgend_0; modprobe -r pktgen";
const RECEIVED: &str = "cat /sys/class/net/d0/statistics/rx_packets";

/// The rate at which fq paces a flow: less than any guest sends.
const PACED_BPS: u64 = 5_000_000;
/// The most that a paced flow may carry. A receiver that had no processor before the window reads in it what came before.
const MOST_BPS: f64 = 1.5 * PACED_BPS as f64;

/// What pktgen says of a run.
#[derive(Debug, PartialEq)]
struct Generated {
    packets: u64,
    packets_per_s: u64,
    errors: u64,
    /// True if all packets were the same one.
    is_cloned: bool,
}

/// Sends the same packet again and again, and beside that a stream of TCP, whose share of the packets is printed.
fn pktgen(guests: &Guests) -> Result<String> {
    if !guests.try_on(1, "modprobe pktgen")?.status.success() {
        return Ok("this kernel has no pktgen".to_owned());
    }
    let found = generated(guests);
    guests.try_on(1, GENERATED)?;
    let (generated, arrived) = found?;
    ensure!(generated.packets == PACKETS && generated.errors == 0, "pktgen says {generated:?}");
    // Guest 2 counts others' packets too, of which there are few.
    ensure!(arrived * 100 >= PACKETS, "only {arrived} of {PACKETS} packets arrived");
    let report: MeasureReport = printed(guests.landspeed(&["measure", "stream", "-t", "3s", "--json"]))?;
    let stream = report.streams.first().context("no stream was measured")?;
    let share = stream.rate_bps.0 / (generated.packets_per_s * FRAME_BYTES * 8) as f64;
    let how = if generated.is_cloned { "one packet" } else { "new packets" };
    Ok(format!("{how}, {arrived} of {PACKETS} arrived; TCP carries {share:.2} of its bits"))
}

/// Runs pktgen, and returns what it says, and how many packets guest 2 received meanwhile.
fn generated(guests: &Guests) -> Result<(Generated, u64)> {
    let received = || -> Result<u64> { Ok(guests.on(2, RECEIVED)?.trim().parse()?) };
    let before = received()?;
    let said = guests.on(1, GENERATE)?;
    let generated = parsed(&said).with_context(|| format!("pktgen says {said}"))?;
    Ok((generated, received()?.saturating_sub(before)))
}

/// Parses pktgen's "Result: OK: 812(c800+d12) usec, 20000 (1514byte,0frags)" and " 24630pps 298Mb/sec (298321120bps)
/// errors: 0".
fn parsed(said: &str) -> Option<Generated> {
    let result = said.split_once("Result: OK:")?.1;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let packets = result.split_once("usec,")?.1.split('(').next()?;
    let per_second = result.lines().find_map(|line| line.split_once("pps"))?.0;
    let errors = result.split_once("errors:")?.1.split_whitespace().next()?;
    Some(Generated {
        packets: number(packets)?,
        packets_per_s: number(per_second)?,
        errors: number(errors)?,
        is_cloned: said.starts_with("CLONED"),
    })
}

/// Paces a flow by fq: the flow keeps to its rate, and fq says that it held packets back.
fn fq(guests: &Guests) -> Result<String> {
    if !guests.try_on(1, "modprobe sch_fq")?.status.success() {
        return Ok("this kernel has no fq".to_owned());
    }
    let before = guests.settings()?;
    guests.on(1, "tc qdisc replace dev d0 root fq")?;
    let paced = paced(guests);
    let held_back = guests.on(1, "tc -s qdisc show dev d0");
    guests.on(1, "tc qdisc del dev d0 root")?;
    become_again(guests, &before, SETTLED)?;
    let (rate_bps, held_back) = (paced?, held_back?);
    let throttled = throttled(&held_back).with_context(|| format!("fq counts nothing: {held_back}"))?;
    ensure!(throttled > 0, "fq held nothing back: {held_back}");
    ensure!(rate_bps <= MOST_BPS, "a flow that is paced to {PACED_BPS} b/s carried {rate_bps} b/s");
    Ok(format!("{throttled} packets held back"))
}

/// Returns the rate at which a paced stream carried, in bit/s.
fn paced(guests: &Guests) -> Result<f64> {
    let pacing = format!("pacing-rate={PACED_BPS}");
    let words = ["measure", "stream", "-t", "3s", "--set", &pacing, "--json"];
    let report: MeasureReport = printed(guests.landspeed(&words))?;
    Ok(report.streams.first().context("no stream was measured")?.rate_bps.0)
}

/// Returns how often fq held a flow back: the larger of its two numbers of this name, of which the other is of flows
/// now.
fn throttled(statistics: &str) -> Option<u64> {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok();
    statistics.split("throttled ").skip(1).filter_map(number).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pktgen_says_is_read() {
        let said = "CLONED\nParams: count 20000  min_pkt_size: 1514\nCurrent:\n     pkts-sofar: 20000  errors: 3\n\
            Result: OK: 812345(c800000+d12345) usec, 20000 (1514byte,0frags)\n  \
            24630pps 298Mb/sec (298321120bps) errors: 0\n";
        let expected = Generated { packets: 20_000, packets_per_s: 24_630, errors: 0, is_cloned: true };
        assert_eq!(parsed(said), Some(expected));
        assert_eq!(parsed("Result: Idle\n"), None);
        for (number, word) in [(PACKETS, "count"), (FRAME_BYTES, "pkt_size")] {
            assert!(GENERATE.contains(&format!("'{word} {number}'")), "{word}");
        }
    }

    #[test]
    fn what_fq_held_back_is_read() {
        let statistics = "qdisc fq 8001: root refcnt 2 limit 10000p\n  flows 3 (inactive 2 throttled 1)\n  \
            gc 0 highprio 0 throttled 361 latency 14.4us\n";
        assert_eq!(throttled(statistics), Some(361));
        assert_eq!(throttled("qdisc pfifo_fast 0: root\n"), None);
    }
}
