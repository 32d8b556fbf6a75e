//! The words of a copy: what held it, and what became of entries.

use landspeed_analysis::{hold_remedy, hold_words, shown_path};
use landspeed_record::{CopyHeld, CopyHolder, CopyLoss, CopyLossKind, CopyReport, CopyStage, PathBytes};

use crate::{counted, safe};

/// Returns "held by: target's disk, 91 % of the time; then the network's rate"; `None` if nothing is known.
pub fn held_words(held: &CopyHeld) -> Option<String> {
    let mut holders = held.by.iter();
    let first = holders.next()?;
    let next = holders.next().map(|next| format!("; then {}", holder(next))).unwrap_or_default();
    Some(format!("held by: {}, {:.0} % of the time{next}", holder(first), first.share * 100.0))
}

/// Returns the lines about what held a copy that is over: what it was, and what helps. None if it was too short to tell.
pub fn held_lines(held: &CopyHeld) -> Vec<String> {
    let (Some(words), Some(first)) = (held_words(held), held.by.first()) else { return Vec::new() };
    let gain = held.gain_at_most.map(|gain| format!("; without it, at most {gain:.1} times as fast"));
    vec![words + &gain.unwrap_or_default(), format!("what helps: {}", hold_remedy(first.hold))]
}

/// Returns what held a copy, and of a processor what it was full of.
pub(super) fn holder(holder: &CopyHolder) -> String {
    let full_of = holder.stage.map(stage_words).map(|stage| format!(" ({stage})"));
    format!("{}{}", hold_words(holder.hold), full_of.unwrap_or_default())
}

/// Returns what a processor does in a stage.
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

/// Returns "encrypted with aes-128-gcm"; `None` if the transport does not say with what.
pub fn encrypted_words(report: &CopyReport) -> Option<String> {
    let all: Vec<String> = report.ciphers.iter().map(|cipher| safe(cipher)).collect();
    (!all.is_empty()).then(|| format!("encrypted with {}", all.join(" and ")))
}

/// Returns the name of an entry for people. The target's folder itself is ".".
pub fn entry_name(bytes: &PathBytes) -> String {
    if bytes.0.is_empty() { ".".to_owned() } else { safe(&shown_path(bytes)) }
}

/// Returns what the target did not take of entries: "owner of 3 entries".
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
    use landspeed_record::CopyHold;

    use super::*;

    fn held(by: &[(CopyHold, Option<CopyStage>, f64)], gain_at_most: Option<f64>) -> CopyHeld {
        let by =
            by.iter().map(|(hold, stage, share)| CopyHolder { hold: *hold, stage: *stage, share: *share });
        CopyHeld { by: by.collect(), gain_at_most }
    }

    #[test]
    fn what_held_comes_first_and_what_would_hold_next() {
        let disk = (CopyHold::TargetDisk, None, 0.914);
        let processor = (CopyHold::SourceProcessor, Some(CopyStage::Hash), 0.4);
        let first = "held by: target's disk, 91 % of the time; then source's processor (hashing)";
        assert_eq!(held_words(&held(&[disk, processor], None)).as_deref(), Some(first));
        let told = held_lines(&held(&[processor], Some(2.54)));
        assert_eq!(
            told[0],
            "held by: source's processor (hashing), 40 % of the time; without it, at most 2.5 times as fast"
        );
        assert!(told[1].starts_with("what helps: more --flows"), "{told:?}");
        assert!(held_lines(&CopyHeld::default()).is_empty());
    }

    #[test]
    fn the_folder_itself_has_a_name() {
        assert_eq!(entry_name(&PathBytes::default()), ".");
        assert_eq!(entry_name(&PathBytes(b"a\x1b".to_vec())), "a\\u{1b}");
    }
}
