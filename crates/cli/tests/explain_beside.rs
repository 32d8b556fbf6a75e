//! Tests of `landspeed explain` that hold beside other programs too: what it does without rights, and what a link in user space
//! says.

mod support;

use std::process::Command;
use std::time::Duration;

use landspeed_record::{CpuUsage, ExplainReport};
use support::explained::{BackgroundFlow, explain};
use support::{LANDSPEED, needs_root};

#[test]
fn a_link_in_user_space_reports_its_counts_and_its_accuracy() {
    needs_root!();
    let args = ["lab:wan:rate=50M,rtt=10ms", "--time", "1s", "--no-limits", "--no-trace", "--capacity"];
    let report = explain(&args);
    // A machine whose processors other programs take may carry no load that the search asks for, and then says so.
    match report.capacity {
        Some(found) => assert!((0.0..=51e6).contains(&found.carried_bps.0), "{found:?}"),
        None => {
            let unseen = report.hosts.iter().flat_map(|host| &host.observed.unseen);
            assert!(
                unseen.clone().any(|line| line.starts_with("capacity: ")),
                "{:?}",
                unseen.collect::<Vec<_>>()
            );
        }
    }
    let wan = report.wan.expect("the hosts are joined by a link in user space");
    assert_eq!(wan.link.spec, "rate=50M,rtt=10ms,queue=1bdp");
    assert!(wan.link.a_to_b.forwarded_segments > 0, "{wan:?}");
    assert_eq!(wan.unfit, landspeed_analysis::wan::unfit(&wan.link), "a saved report can be judged again");
}

/// Tests that each part that lacks a permission reports it, and that the other parts continue.
#[test]
fn without_rights_it_names_what_it_lacks_and_continues() {
    needs_root!();
    let own = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let program = BackgroundFlow::new(Duration::ZERO);
    let at = program.at.to_string();
    let args = ["explain", "--flow", &at, "--time", "1s", "--no-limits", "--json"];
    let output = Command::new("setpriv").args(own).arg(LANDSPEED).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: ExplainReport = serde_json::from_slice(&output.stdout).unwrap();
    let unseen = &report.hosts[0].observed.unseen;
    for observer in ["cost", "path"] {
        assert!(unseen.iter().any(|line| line.starts_with(observer)), "{observer}: {unseen:?}");
    }
    assert!(report.hosts[0].observed.get::<CpuUsage>().window_ns.0 > 0);
}
