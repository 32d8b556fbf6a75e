//! One turn of a program: what it has taken, and what it said.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use landspeed_engine::{cpu_of_children, timed};
use landspeed_record::{CopyHeld, CopyHold, CopyStages, MeasureReport};
use serde::{Deserialize, Serialize};

use super::parts::CryptoParts;
use super::rivals::{OURS, Rival, Work};
use super::site::{Site, Sshd};

/// The longest time of a command. One that takes longer is ended.
const LONGEST: Duration = Duration::from_secs(1_200);
/// The time of the stream whose rate says how long one of the same bytes as a copy takes, in seconds.
const FIRST_STREAM: f64 = 2.0;

/// Ctrl-C ends the commands themselves, which are in this program's process group.
static NEVER: AtomicBool = AtomicBool::new(false);

/// What a turn has taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) seconds: f64,
    /// Processor time of both ends.
    pub(super) cpu_seconds: f64,
    /// What landspeed named as holding its copy most; `None` for other programs.
    pub(super) held: Option<CopyHold>,
    /// What BLAKE3 and the cipher have taken of a copy of landspeed; `None` for other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parts: Option<CryptoParts>,
}

/// What `landspeed copy --json` prints, as far as it is read here.
#[derive(Debug, Deserialize)]
struct CopyDocument {
    held: CopyHeld,
    #[serde(default)]
    stages: CopyStages,
}

/// Copies once into the target's folder, which is empty, and compares what has arrived; or sends the same bytes for
/// `stream_seconds`.
pub(super) fn turn(site: &Site, rival: &Rival, bytes: u64, stream_seconds: f64) -> Result<Turn> {
    match rival.work {
        Work::Stream => stream(site, rival, bytes, stream_seconds),
        Work::CopyOverSsh | Work::CopyToRsyncd | Work::CopyHere => copy(site, rival),
    }
}

fn copy(site: &Site, rival: &Rival) -> Result<Turn> {
    let before = cpu_of_children()?;
    let server = match rival.work {
        Work::CopyToRsyncd => Some(site.start_rsyncd()?),
        Work::CopyOverSsh | Work::Stream => Some(site.start_sshd()?),
        Work::CopyHere => None,
    };
    let begun = Instant::now();
    let said = printed(site, rival.command)?;
    let seconds = begun.elapsed().as_secs_f64();
    server.map_or(Ok(()), Sshd::end)?;
    let cpu_seconds = (cpu_of_children()? - before).as_secs_f64();
    site.compare()?;
    let turn = Turn { seconds, cpu_seconds, held: None, parts: None };
    if rival.name == OURS.name { told(turn, &said) } else { Ok(turn) }
}

/// Returns a turn with what landspeed says of its copy.
fn told(turn: Turn, document: &[u8]) -> Result<Turn> {
    let document: CopyDocument = serde_json::from_slice(document).context("read what the copy prints")?;
    let held = document.held.by.first().map(|holder| holder.hold);
    Ok(Turn { held, parts: Some(CryptoParts::of(&document.stages)), ..turn })
}

/// Returns what BLAKE3 and the cipher have taken for a GiB in each turn of landspeed. Turns that were kept by an older program
/// lack it.
pub(super) fn crypto_per_gib(turns: &[Turn], bytes: u64) -> Vec<CryptoParts> {
    turns.iter().filter_map(|turn| turn.parts).map(|parts| parts.per_gib(bytes)).collect()
}

/// Returns how many seconds a stream takes for these bytes.
pub(super) fn stream_seconds(site: &Site, rival: &Rival, bytes: u64) -> Result<f64> {
    stream(site, rival, bytes, FIRST_STREAM).map(|turn| turn.seconds.max(1.0))
}

fn stream(site: &Site, rival: &Rival, bytes: u64, seconds: f64) -> Result<Turn> {
    let sshd = site.start_sshd()?;
    let said = printed(site, &rival.command.replace("TIME", &format!("{:.0}ms", seconds * 1e3)))?;
    sshd.end()?;
    let report: MeasureReport = serde_json::from_slice(&said).context("read what the stream prints")?;
    scaled(&report, bytes)
}

/// Returns what a stream would have taken for these bytes.
fn scaled(report: &MeasureReport, bytes: u64) -> Result<Turn> {
    ensure!(report.partial.is_none(), "the stream did not come to its end: {:?}", report.partial);
    let stream = report.streams.first().context("the stream has no figure")?;
    ensure!(stream.received_bytes.0 > 0, "nothing has arrived of the stream");
    let times = bytes as f64 / stream.received_bytes.0 as f64;
    let cpu_ns: u64 = report.cpu.iter().map(|host| host.workload_ns.0).sum();
    let seconds = stream.window_ns.0 as f64 / 1e9 * times;
    Ok(Turn { seconds, cpu_seconds: cpu_ns as f64 / 1e9 * times, held: None, parts: None })
}

/// Runs a command on the first host, and returns what it prints. Returns an error with its last words if it fails.
pub(super) fn printed(site: &Site, command: &str) -> Result<Vec<u8>> {
    let done = timed(&mut site.command(command), LONGEST, &NEVER);
    if done.is_err() {
        // What the command has started may still run.
        site.kill(0, ".")?;
    }
    let done = done.and_then(|done| done.succeeded(None));
    Ok(done.with_context(|| command.to_owned())?.printed)
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::{BitRate, Bytes, CpuNanos, Nanos};
    use landspeed_record::{HostCpu, Side, StreamFigure};

    use super::*;

    #[test]
    fn a_copy_says_what_held_it_first_and_what_its_cipher_took() {
        let document = br#"{"held": {"by": [{"hold": "target-disk", "stage": null, "share": 0.9},
            {"hold": "source-disk", "stage": null, "share": 0.1}], "gain_at_most": 2.0}, "copied": 1,
            "stages": {"source_cipher_ns": 2000000000, "target_cipher_ns": 0}}"#;
        let turn = Turn { seconds: 1.0, cpu_seconds: 2.0, held: None, parts: None };
        let found = told(turn, document).unwrap();
        let parts = CryptoParts { seal_s: 2.0, ..CryptoParts::default() };
        assert_eq!(found, Turn { held: Some(CopyHold::TargetDisk), parts: Some(parts), ..turn });
        assert_eq!(told(turn, br#"{"held": {"by": [], "gain_at_most": null}}"#).unwrap().held, None);
        assert!(told(turn, b"").is_err());
        let of_a_gib = CryptoParts { seal_s: 1.0, ..CryptoParts::default() };
        assert_eq!(crypto_per_gib(&[turn, found], 2 << 30), [of_a_gib]);
    }

    #[test]
    fn a_turn_that_an_older_program_kept_is_read() {
        let turn: Turn =
            serde_json::from_str(r#"{"seconds": 1.0, "cpu_seconds": 2.0, "held": null}"#).unwrap();
        assert_eq!(turn, Turn { seconds: 1.0, cpu_seconds: 2.0, held: None, parts: None });
    }

    #[test]
    fn a_stream_is_scaled_to_the_bytes_of_a_copy() {
        let stream = StreamFigure {
            sender: Side::A,
            between: None,
            rate_bps: BitRate(8e9),
            flow_rate_bps: Vec::new(),
            received_bytes: Bytes(2_000_000_000),
            window_ns: Nanos::secs(2),
        };
        let cpu = |side, workload_ns| HostCpu {
            side,
            host: None,
            window_ns: Nanos::secs(2),
            cores: 2,
            user_ns: CpuNanos(0),
            system_ns: CpuNanos(0),
            irq_ns: CpuNanos(0),
            softirq_ns: CpuNanos(0),
            steal_ns: CpuNanos(0),
            workload_ns,
        };
        let ends = vec![cpu(Side::A, CpuNanos(1_500_000_000)), cpu(Side::B, CpuNanos(500_000_000))];
        let report = MeasureReport { streams: vec![stream], cpu: ends, ..MeasureReport::default() };
        let turn = scaled(&report, 1_000_000_000).unwrap();
        assert!((turn.seconds - 1.0).abs() < 1e-9 && (turn.cpu_seconds - 1.0).abs() < 1e-9, "{turn:?}");
        assert!(scaled(&MeasureReport::default(), 1).is_err());
        let partial = MeasureReport { partial: Some("it broke".to_owned()), ..report };
        assert!(scaled(&partial, 1).is_err());
    }
}
