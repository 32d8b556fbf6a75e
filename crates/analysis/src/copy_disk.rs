//! The work of the disks under a copy, by their own counters.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{CopyDiskTimes, CopyDiskUse, CopyEnd};

/// A disk that moves more than this multiple of the copy's bytes serves others too.
const OTHERS: f64 = 1.3;

/// Returns the rates of the disks under source and target. An end has `None` if it has no disk with counters, or if its disk
/// completed no request. `by_content` is true if the source also reads files that it does not send.
pub(crate) fn copy_disks(end: &CopyEnd, by_content: bool) -> [Option<CopyDiskUse>; 2] {
    let (copied, sent) = (end.outcome.copied_bytes, end.outcome.sent_bytes);
    let read = if by_content { Bytes(u64::MAX) } else { copied.max(sent) };
    // The record of a copy that was cut off lacks the bytes that it sent.
    let written = if sent > Bytes(0) { sent } else { copied };
    let source = end.stages.source_disk.and_then(|disk| disk_use(&disk, disk.read_bytes, read));
    let target = end.stages.target_disk.and_then(|disk| disk_use(&disk, disk.written_bytes, written));
    [source, target]
}

fn disk_use(disk: &CopyDiskTimes, moved: Bytes, own: Bytes) -> Option<CopyDiskUse> {
    let mean_request_ns = Nanos(disk.requested_ns.0.checked_div(disk.requests)?);
    let (requested, observed) = (disk.requested_ns.as_secs_f64(), disk.observed_ns.as_secs_f64());
    Some(CopyDiskUse {
        device: disk.device,
        read_bytes_per_s: disk.read_bytes.per(disk.observed_ns).into(),
        written_bytes_per_s: disk.written_bytes.per(disk.observed_ns).into(),
        busy_share: disk.busy_ns.share_of(disk.observed_ns),
        // Little's law: the time of all requests by that in which they came.
        mean_queue_requests: if observed > 0.0 { requested / observed } else { 0.0 },
        mean_request_ns,
        has_others: moved.0 as f64 > OTHERS * own.0 as f64,
    })
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::ByteRate;
    use landspeed_record::{CopyOutcome, CopyStages, DiskName};

    use super::*;

    /// A disk that moved a GB each way in ten seconds, with four requests of 40 ms at a time in 9.7 of them.
    fn disk() -> CopyDiskTimes {
        CopyDiskTimes {
            device: DiskName::try_from("vda1".to_owned()).expect("a name"),
            observed_ns: Nanos::secs(10),
            read_bytes: Bytes(1_000_000_000),
            written_bytes: Bytes(1_000_000_000),
            requests: 1_000,
            busy_ns: Nanos::millis(9_700),
            requested_ns: Nanos::secs(40),
        }
    }

    fn end(source_disk: Option<CopyDiskTimes>, copied: u64, sent: u64) -> CopyEnd {
        let stages = CopyStages { source_disk, target_disk: Some(disk()), ..CopyStages::default() };
        let (copied_bytes, sent_bytes) = (Bytes(copied), Bytes(sent));
        let outcome = CopyOutcome { copied_bytes, sent_bytes, ..CopyOutcome::default() };
        CopyEnd { outcome, stages, ..CopyEnd::default() }
    }

    #[test]
    fn counters_become_rates_and_shares() {
        let [source, target] = copy_disks(&end(None, 1_000_000_000, 0), false);
        assert_eq!(source, None);
        let expected = CopyDiskUse {
            device: disk().device,
            read_bytes_per_s: ByteRate(1e8),
            written_bytes_per_s: ByteRate(1e8),
            busy_share: 0.97,
            mean_queue_requests: 4.0,
            mean_request_ns: Nanos::millis(40),
            has_others: false,
        };
        assert_eq!(target, Some(expected));
    }

    #[test]
    fn load_of_others_is_found_by_the_bytes_that_each_end_moves() {
        let source = CopyDiskTimes { read_bytes: Bytes(2_000_000_000), written_bytes: Bytes(0), ..disk() };
        let of = |copied, sent, by_content| {
            let disks = copy_disks(&end(Some(source), copied, sent), by_content);
            disks.map(|disk| disk.is_some_and(|disk| disk.has_others))
        };
        assert_eq!(of(1_000_000_000, 0, false), [true, false]);
        assert_eq!(of(760_000_000, 1_600_000_000, false), [false, false], "files were sent again");
        assert_eq!(of(1_900_000_000, 700_000_000, false), [false, true], "the target had the rest");
        assert_eq!(of(760_000_000, 0, false), [true, true]);
        assert_eq!(of(760_000_000, 0, true), [false, true], "what is compared is read");
    }

    #[test]
    fn an_idle_disk_has_no_figures() {
        let idle = CopyDiskTimes { requests: 0, ..disk() };
        assert_eq!(copy_disks(&end(Some(idle), 1, 1), false)[0], None);
        // A peer may report any counts.
        let forged = CopyDiskTimes { observed_ns: Nanos(0), busy_ns: Nanos(u64::MAX), ..disk() };
        let [forged, _] = copy_disks(&end(Some(forged), 1, 1), false);
        let forged = forged.expect("it has requests");
        assert_eq!((forged.busy_share, forged.mean_queue_requests), (0.0, 0.0));
    }
}
