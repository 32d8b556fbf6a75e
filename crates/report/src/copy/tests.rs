use landspeed_analysis::copy_report;
use landspeed_record::{
    ConditionChange, CopyCounts, CopyDiskTimes, CopyEnd, CopyFailure, CopyFailureKind, CopyLossKind,
    CopyMoment, CopyOutcome, CopyStage, CopyStages, CopyTimes, DiskName, HostFacts, PathBytes, RecordKind,
    Settings, Side,
};

use super::*;
use crate::{DetailLevel, OutputCapabilities};

/// Returns the stages of a copy whose target writes all the time.
fn written(seconds: u64) -> CopyStages {
    let mut times = CopyTimes::default();
    times.target.of_mut(CopyStage::Write).device_ns = Nanos::secs(seconds);
    (times.source.network.sent, times.source.network.resent) = (seconds * 100, seconds);
    times.target.host.observed_ns = Nanos::secs(seconds);
    times.target.disk = Some(disk(seconds));
    times.relay.relayed_ns = Nanos::secs(seconds);
    CopyStages::from(&times)
}

/// Returns the counters of a disk that writes 1 MB/s, one request at a time.
fn disk(seconds: u64) -> CopyDiskTimes {
    CopyDiskTimes {
        device: DiskName::try_from("vda1".to_owned()).expect("a name"),
        observed_ns: Nanos::secs(seconds),
        read_bytes: Bytes(0),
        written_bytes: Bytes(seconds * 1_000_000),
        requests: seconds * 10,
        busy_ns: Nanos::secs(seconds),
        requested_ns: Nanos::secs(seconds),
    }
}

/// Returns the facts about a host that reports its MTU.
fn host() -> HostFacts {
    let mtu = Settings::from([("mtu".to_owned(), "9000\u{1b}".to_owned())]);
    HostFacts { conditions: [("mtu".to_owned(), mtu)].into(), ..HostFacts::default() }
}

/// Returns the record of a copy with failed entries, whose names contain terminal control characters.
fn recorded(end: bool) -> Record {
    let name = |name: &str| PathBytes(name.as_bytes().to_vec());
    let plan = CopyPlan {
        from: "local".to_owned(),
        to: "dtn2".to_owned(),
        sources: 3,
        sources_hex: vec![name("run7\u{1b}[2J")],
        target_hex: name("/scratch\n<blink>"),
        ..CopyPlan::default()
    };
    let moment = |seconds| CopyMoment {
        at_ns: Nanos::secs(seconds),
        counts: CopyCounts { moved_bytes: Bytes(seconds * 1_000_000), ..CopyCounts::default() },
        stages: written(seconds),
    };
    let failure = CopyFailure { name_hex: name("a\u{1b}"), why: "is full".to_owned() };
    let loss = CopyLoss {
        kind: CopyLossKind::Owner,
        entries: 3,
        name_hex: name("b"),
        why: "not permitted".to_owned(),
    };
    let outcome = CopyOutcome {
        copied: 7,
        copied_bytes: Bytes(4_000_000),
        failed: 5,
        failures: vec![failure],
        unlisted: vec![CopyFailureKind { entries: 4, why: "cannot\u{1b} be opened".to_owned() }],
        lost: vec![loss],
        ..CopyOutcome::default()
    };
    let not_as_asked = vec!["dtn2: rcvbuf\u{1b} is small".to_owned()];
    let (ciphers, controls) = (["aes-128-gcm\u{1b}".to_owned()].into(), ["bbr\u{1b}".to_owned()].into());
    let whole = CopyEnd {
        duration_ns: Nanos::secs(4),
        outcome,
        stages: written(4),
        not_as_asked,
        ciphers,
        controls,
        ..CopyEnd::default()
    };
    let last = match end {
        true => Line::CopyEnd(Box::new(whole)),
        false => Line::Note { text: "the path broke".to_owned() },
    };
    let moments = (1..=3).map(|seconds| Line::CopyMoment(Box::new(moment(seconds))));
    let hosts = Side::BOTH.map(|side| Line::Host { side, facts: Box::new(host()) });
    let change = ConditionChange {
        side: Side::B,
        knob: "mtu".to_owned(),
        before: Some("9000".to_owned()),
        after: Some("1500\u{1b}".to_owned()),
        since_ns: Nanos::secs(1),
        until_ns: Nanos::secs(2),
    };
    let said = [Line::ConditionChange(Box::new(change)), last];
    let lines = std::iter::once(Line::Copy(Box::new(plan))).chain(moments).chain(hosts).chain(said).collect();
    let header = RecordKind::COPY.header("landspeed copy run7 dtn2:", "2026-11-29T00:00:00Z");
    Record { header, lines, ..Record::default() }
}

fn document(end: bool) -> Document {
    let record = recorded(end);
    copy(&copy_report(&record, "x").expect("a report"), &record)
}

#[test]
fn a_report_names_the_limit_of_the_copy_and_the_missing_entries() {
    let text = document(true).text(OutputCapabilities::plain(100), DetailLevel::Brief);
    for found in [
        "held by: target's disk, 100 % of the time",
        "vda1 wrote 1 MB/s, busy 100 % of the time",
        "what helps",
        "a faster disk at the target",
        "a\\u{1b}: is full",
        "and 4 more",
        "4 entries of these: cannot\\u{1b} be opened",
        "owner of 3 entries",
        "not as asked: dtn2: rcvbuf\\u{1b} is small",
        "encrypted with aes-128-gcm\\u{1b}",
        "conditions found on both hosts: MTU 9000\\u{1b}; not reported: ",
        "the flows used bbr\\u{1b}",
        "mtu at the target changed from 9000 to 1500\\u{1b} between 1 s and 2 s",
        "4 of 400 segments were sent again (1.00 %)",
    ] {
        assert!(text.contains(found), "no {found}: {text}");
    }
    assert!(!text.contains("starved"), "that is for --full: {text}");
    let full = document(true).text(OutputCapabilities::plain(120), DetailLevel::Full);
    for found in [
        "Not tested: whether",
        "target, writing",
        "segments sent again",
        "The relay used",
        "target, vda1",
        "put on stable storage",
    ] {
        assert!(full.contains(found), "no {found}: {full}");
    }
}

#[test]
fn no_name_does_anything_to_a_terminal_or_a_page() {
    let document = document(true);
    let (text, page) = (document.text(OutputCapabilities::plain(100), DetailLevel::Full), document.page());
    assert!(!text.contains('\u{1b}') && text.contains("local:run7\\u{1b}[2J and 2 more"), "{text}");
    assert!(!page.contains("<blink>") && page.contains("&lt;blink&gt;"), "the name is escaped");
    assert!(page.contains("data-chart=\"rate\"") && page.contains("Starved, blocked"));
    assert!(document.markdown(DetailLevel::Full).contains("target's disk"));
}

#[test]
fn every_form_has_the_conditions_of_both_ends() {
    let document = document(true);
    let (page, markdown) = (document.page(), document.markdown(DetailLevel::Brief));
    for form in [page, markdown] {
        assert!(form.contains("MTU 9000") && form.contains("sent again (1.00 %)"), "{form}");
        assert!(form.contains("mtu at the target changed from 9000 to 1500"), "{form}");
    }
    let tables: String = document.csv().into_iter().map(|table| table.text).collect();
    assert!(tables.contains("condition,setting,source,target"), "{tables}");
}

#[test]
fn a_copy_without_an_end_says_why_first() {
    let text = document(false).text(OutputCapabilities::plain(100), DetailLevel::Brief);
    assert!(text.starts_with("The copy did not come to its end: the path broke"), "{text}");
    assert_eq!(text.matches("the path broke").count(), 1, "{text}");
    assert!(text.contains("held by: target's disk"), "{text}");
}

#[test]
fn a_list_has_a_copy_in_a_few_words() {
    let mib = Bytes::mib(1);
    assert_eq!(brief(3, mib, Nanos::secs(1), 0), format!("3 files, 1 MiB, {}", mib.per(Nanos::secs(1))));
    assert!(brief(3, mib, Nanos::secs(1), 2).ends_with(", 2 NOT copied"));
}
