//! The words of a copy's report: what limited it, and the results of entries.

use landspeed_analysis::{hold_remedy, hold_words, shown_path, verdict};
use landspeed_record::units::Nanos;
use landspeed_record::{
    CopyHeld, CopyHold, CopyHolder, CopyLoss, CopyLossKind, CopyReport, CopySlowAnswer, CopySlowed,
    CopyStage, Estimate, PathBytes,
};

use crate::{counted, safe};

/// Returns "held by: target's disk, 91 % of the time; then the network's rate"; `None` if nothing is known.
pub(super) fn held_words(held: &CopyHeld) -> Option<String> {
    let mut holders = held.by.iter();
    let first = holders.next()?;
    let next = holders.next().map(|next| format!("; then {}", holder(next))).unwrap_or_default();
    Some(format!("held by: {}, {:.0} % of the time{next}", holder(first), first.share * 100.0))
}

/// Returns the lines about the limit of a finished copy: the limit, its test, the disk's activity, and the remedy.
/// Returns none if the copy was too short to judge.
pub fn held_lines(report: &CopyReport) -> Vec<String> {
    let (Some(words), Some(first)) = (verdict_words(report), report.held.by.first()) else {
        return Vec::new();
    };
    let known = !is_contradicted(report);
    let gain = report.held.gain_at_most.filter(|_| known);
    let gain = gain.map(|gain| format!("; without it, at most {gain:.1} times as fast"));
    let helps = known.then(|| format!("what helps: {}", hold_remedy(first.hold)));
    let first = words + &gain.unwrap_or_default();
    [Some(first), test_words(report), disk_words(report), helps].into_iter().flatten().collect()
}

/// Returns the limit of a finished copy, unless its test contradicts the limit; `None` if nothing is known.
pub(super) fn verdict_words(report: &CopyReport) -> Option<String> {
    let first = report.held.by.first().filter(|_| is_contradicted(report));
    let contradicted = first.map(|first| format!("cannot tell what held it: {} was named", holder(first)));
    contradicted.or_else(|| held_words(&report.held))
}

/// Returns true if the copy stayed as fast while its named limit was slowed.
pub(super) fn is_contradicted(report: &CopyReport) -> bool {
    tested(report).is_some_and(|slowed| slowed.answer == CopySlowAnswer::Slack)
}

/// Returns the test of the named limit; `None` if there was none, or if another limit was tested.
fn tested(report: &CopyReport) -> Option<&CopySlowed> {
    let first = report.held.by.first()?;
    report.slowed.as_ref().filter(|slowed| slowed.hold == first.hold)
}

/// Returns "its work slowed by 10 %, the rate fell by 9.2 % [8.0, 10.4]: it holds the copy (this cost 0.9 s at most)".
pub(super) fn test_words(report: &CopyReport) -> Option<String> {
    let slowed = tested(report)?;
    let shown = match slowed.answer {
        CopySlowAnswer::Answers => "it holds the copy",
        CopySlowAnswer::Slack => "contradicted",
        CopySlowAnswer::NotTested => {
            return Some(format!("not tested by slowing it: {}", safe(&slowed.why)));
        }
    };
    let Estimate { ratio, low, high } = slowed.ratio?;
    let [fell, least, most] = [ratio, high, low].map(|ratio| (1.0 - ratio) * 100.0);
    let cost = Nanos(slowed.slowed_ns.0 / 11);
    Some(format!(
        "its work slowed by 10 %, the rate fell by {fell:.1} % [{least:.1}, {most:.1}]: {shown} \
         (this cost {cost} at most)"
    ))
}

/// Returns "target's disk: vda wrote 1.10 GB/s, busy 97 % of the time; 31.2 requests at a time, 28.4 ms each"; `None`
/// unless a disk that counts held the copy.
pub(super) fn disk_words(report: &CopyReport) -> Option<String> {
    let hold = report.held.by.first()?.hold;
    let (disk, did, rate) = match hold {
        CopyHold::SourceDisk => report.source_disk.map(|disk| (disk, "read", disk.read_bytes_per_s)),
        CopyHold::TargetDisk => report.target_disk.map(|disk| (disk, "wrote", disk.written_bytes_per_s)),
        _ => None,
    }?;
    let in_all = if disk.has_others { " in all" } else { "" };
    let (busy, queue) = (disk.busy_share * 100.0, disk.mean_queue_requests);
    Some(format!(
        "{}: {} {did} {rate}{in_all}, busy {busy:.0} % of the time; {queue:.1} requests at a time, {} each",
        hold_words(hold),
        disk.device,
        disk.mean_request_ns
    ))
}

/// Formats a limit. For a processor, adds the stage that used most of it.
pub(super) fn holder(holder: &CopyHolder) -> String {
    let full_of = holder.stage.map(stage_words).map(|stage| format!(" ({stage})"));
    format!("{}{}", hold_words(holder.hold), full_of.unwrap_or_default())
}

/// Returns the work of a processor in a stage.
pub(super) fn stage_words(stage: CopyStage) -> &'static str {
    match stage {
        CopyStage::Walk => "listing files",
        CopyStage::Read => "reading",
        CopyStage::Hash => "hashing",
        CopyStage::Send => "encrypting and sending",
        CopyStage::Receive => "receiving and decrypting",
        CopyStage::Write => "writing",
        CopyStage::Metadata => "creating files",
        CopyStage::Sync => "syncing",
        CopyStage::Install => "naming files",
    }
}

/// Formats a stage of an end.
pub(super) fn stage_of_end(end: &str, stage: CopyStage) -> String {
    let words = match (end, stage) {
        // The source creates nothing: these threads look up files ahead of the thread that lists them.
        ("source", CopyStage::Metadata) => "looking at files",
        _ => stage_words(stage),
    };
    format!("{end}, {words}")
}

/// Formats the number of retransmitted segments; `None` if their share is negligible, or if TCP does not report them.
pub fn resent_words(report: &CopyReport) -> Option<String> {
    let flows = &report.stages.network;
    verdict::resent_words(flows.sent, flows.resent)
}

/// Formats the cipher: "encrypted with aes-128-gcm"; `None` if the transport does not report it.
pub fn encrypted_words(report: &CopyReport) -> Option<String> {
    let all: Vec<String> = report.ciphers.iter().map(|cipher| safe(cipher)).collect();
    (!all.is_empty()).then(|| format!("encrypted with {}", all.join(" and ")))
}

/// Formats the name of an entry. The target's folder itself is ".".
pub fn entry_name(bytes: &PathBytes) -> String {
    if bytes.0.is_empty() { ".".to_owned() } else { safe(&shown_path(bytes)) }
}

/// Formats the attributes that the target did not accept: "owner of 3 entries".
pub fn loss_words(loss: &CopyLoss) -> String {
    let kind = match loss.kind {
        CopyLossKind::Mode => "mode",
        CopyLossKind::Times => "time",
        CopyLossKind::Owner => "owner",
        CopyLossKind::Xattrs => "extended attributes",
        CopyLossKind::Acls => "ACLs",
        CopyLossKind::HardLink => "hard links",
    };
    format!("{kind} of {}", counted(loss.entries, "entry"))
}

#[cfg(test)]
mod tests {
    use landspeed_record::units::ByteRate;
    use landspeed_record::{CopyDiskUse, DiskName};

    use super::*;

    fn held(by: &[(CopyHold, Option<CopyStage>, f64)], gain_at_most: Option<f64>) -> CopyHeld {
        let by =
            by.iter().map(|(hold, stage, share)| CopyHolder { hold: *hold, stage: *stage, share: *share });
        CopyHeld { by: by.collect(), gain_at_most }
    }

    #[test]
    fn the_limit_comes_first_and_then_the_next_one() {
        let disk = (CopyHold::TargetDisk, None, 0.914);
        let processor = (CopyHold::SourceProcessor, Some(CopyStage::Hash), 0.4);
        let first = "held by: target's disk, 91 % of the time; then source's processor (hashing)";
        assert_eq!(held_words(&held(&[disk, processor], None)).as_deref(), Some(first));
        let report = |held| CopyReport { held, ..CopyReport::default() };
        let lines = held_lines(&report(held(&[processor], Some(2.54))));
        assert_eq!(
            lines[0],
            "held by: source's processor (hashing), 40 % of the time; without it, at most 2.5 times as fast"
        );
        assert!(lines[1].starts_with("what helps: more --flows"), "{lines:?}");
        assert_eq!(lines.len(), 2);
        assert!(held_lines(&CopyReport::default()).is_empty());
    }

    #[test]
    fn the_named_limit_is_confirmed_or_contradicted_by_its_test() {
        let processor = (CopyHold::SourceProcessor, Some(CopyStage::Hash), 0.9);
        let tested = |hold, answer, ratio: f64| {
            let ratio = Some(Estimate { ratio, low: ratio - 0.01, high: ratio + 0.01 });
            let (slowed_ns, why) = (Nanos::secs(11), "too short\u{1b}".to_owned());
            let slowed = Some(CopySlowed { hold, answer, blocks: 9, ratio, slowed_ns, why });
            CopyReport { held: held(&[processor], Some(1.5)), slowed, ..CopyReport::default() }
        };
        let lines = |hold, answer, ratio| held_lines(&tested(hold, answer, ratio));
        let shown = lines(CopyHold::SourceProcessor, CopySlowAnswer::Answers, 0.908);
        let answers =
            "its work slowed by 10 %, the rate fell by 9.2 % [8.2, 10.2]: it holds the copy (this cost ";
        assert!(shown[0].starts_with("held by: ") && shown[1].starts_with(answers), "{shown:?}");
        assert!(shown[2].starts_with("what helps"), "{shown:?}");
        let slack = lines(CopyHold::SourceProcessor, CopySlowAnswer::Slack, 0.996);
        assert_eq!(slack[0], "cannot tell what held it: source's processor (hashing) was named");
        assert!(
            slack[1].contains("fell by 0.4 % [-0.6, 1.4]: contradicted") && slack.len() == 2,
            "{slack:?}"
        );
        let untested = lines(CopyHold::SourceProcessor, CopySlowAnswer::NotTested, 1.0);
        assert_eq!(untested[1], "not tested by slowing it: too short\\u{1b}");
        let other = lines(CopyHold::TargetProcessor, CopySlowAnswer::Slack, 1.0);
        assert!(other[0].starts_with("held by: source's processor") && other.len() == 2, "{other:?}");
    }

    #[test]
    fn a_disk_that_held_is_named_with_its_rate() {
        let disk = CopyDiskUse {
            device: DiskName::try_from("vda1".to_owned()).expect("a name"),
            read_bytes_per_s: ByteRate(2e6),
            written_bytes_per_s: ByteRate(1.1e9),
            busy_share: 0.97,
            mean_queue_requests: 31.2,
            mean_request_ns: Nanos::micros(28_400),
            has_others: false,
        };
        let report = |hold, source_disk, target_disk| CopyReport {
            held: held(&[(hold, None, 0.9)], None),
            source_disk,
            target_disk,
            ..CopyReport::default()
        };
        let line = |hold, source, target| held_lines(&report(hold, source, target)).swap_remove(1);
        let wrote = "target's disk: vda1 wrote 1.10 GB/s, busy 97 % of the time; 31.2 requests at a time, 28.4 ms each";
        assert_eq!(line(CopyHold::TargetDisk, None, Some(disk)), wrote);
        let shared = Some(CopyDiskUse { has_others: true, ..disk });
        let read = line(CopyHold::SourceDisk, shared, Some(disk));
        assert!(read.starts_with("source's disk: vda1 read 2 MB/s in all, busy "), "{read}");
        // Disks without counters, and disks that did not limit the copy, are not mentioned.
        for (hold, source) in [(CopyHold::TargetDisk, shared), (CopyHold::NetworkRate, shared)] {
            let next = line(hold, source, None);
            assert!(next.starts_with("what helps: "), "{next}");
        }
    }

    #[test]
    fn the_folder_itself_has_a_name() {
        assert_eq!(entry_name(&PathBytes::default()), ".");
        assert_eq!(entry_name(&PathBytes(b"a\x1b".to_vec())), "a\\u{1b}");
    }
}
