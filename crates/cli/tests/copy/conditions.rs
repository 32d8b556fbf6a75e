//! Settings and links that change during a copy.

use super::record::shown;
use super::*;

#[test]
fn changes_during_a_copy_are_in_every_form_of_its_report() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::create_dir(hosts.file("src")).unwrap();
    fs::write(hosts.file("src/long"), long_content()).unwrap();
    // The copy takes 40 seconds: the hosts are asked again after 30.
    let (from, to) = (at("src/"), format!("{B}:{}", at("dst")));
    let mut command = command(&hosts, &["--limit-rate", "1MB/s", "--json", &from, &to]);
    let mut copying = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    assert!(within(Duration::from_secs(60), || has_part(&hosts.file("dst"), 100)), "the copy does not begin");
    // The hosts were asked before any data arrived, and have had time to answer.
    std::thread::sleep(Duration::from_secs(2));
    let within_b = format!("ip netns exec {}", hosts.ns("b"));
    // The other end of its link goes down and up again.
    sh(&format!(
        "set -e; {within_b} sysctl -q net.ipv4.tcp_timestamps=0; {within_b} ethtool -K mgmt tso off >/dev/null
        ip -n {0} link set pb down; ip -n {0} link set pb up",
        hosts.ns("ctl")
    ));
    assert_eq!(copying.try_wait().expect("it runs"), None, "the copy ends before the change");
    let output = copying.wait_with_output().expect("it ends");
    let (out, _) = text(&output);
    assert!(output.status.success(), "{out}");
    let done = checked("copy", &out);
    let changes = done["condition_changes"].as_array().expect("a list");
    let of_knob = |knob: &str| changes.iter().filter(|change| change["knob"] == knob).collect::<Vec<_>>();
    // The link may lose its carrier between two readings, or again.
    let carrier = of_knob("carrier-changes");
    let count = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number");
    let (first, last) = carrier.first().zip(carrier.last()).expect("it lost its carrier");
    assert!(count(&last["after"]) >= count(&first["before"]) + 2, "{done}");
    assert!(carrier.iter().all(|change| change["side"] == "b"), "{done}");
    for (knob, before, after) in [("timestamps", "1", "0"), ("tso", "on", "off")] {
        let changes = of_knob(knob);
        let [change] = changes.as_slice() else { panic!("{knob}: {done}") };
        assert_eq!(
            [&change["side"], &change["before"], &change["after"]],
            [&Value::from("b"), &Value::from(before), &Value::from(after)],
            "{done}"
        );
        let [since, until, end] = [&change["since_ns"], &change["until_ns"], &done["duration_ns"]]
            .map(|time| time.as_u64().expect("nanoseconds"));
        // The last request would be answered after the end.
        assert!(since < until && until + 3_000_000_000 < end, "seen while it ran: {done}");
    }
    assert_eq!(done["target_facts"]["conditions"]["timestamps"]["timestamps"], "1", "as it began: {done}");
    let (brief, page) = (shown(&hosts, &[]), at("page.html"));
    shown(&hosts, &["--md", "--html", &page]);
    for form in [brief, fs::read_to_string(page).unwrap()] {
        assert!(form.contains("timestamps at the target changed from 1 to 0"), "{form}");
        assert!(form.contains("tso at the target changed from on to off"), "{form}");
    }
    assert_eq!(checked("copy", &shown(&hosts, &["--json"])), done);
}

/// The copy takes long enough for a request at its end too.
#[test]
fn a_copy_during_which_nothing_changes_reports_no_change() {
    needs_root!();
    let hosts = TestHosts::new();
    let at = |name: &str| hosts.file(name).display().to_string();
    fs::write(hosts.file("one"), vec![7; 6 << 20]).unwrap();
    let to = format!("{B}:{}", at("two"));
    let output = copy(&hosts, &["--limit-rate", "2MB/s", &at("one"), &to]);
    let (out, err) = text(&output);
    assert!(output.status.success() && out.contains("\nconditions found on "), "{out}{err}");
    assert!(!out.contains(" changed from "), "{out}");
    let done = checked("copy", &shown(&hosts, &["--json"]));
    assert_eq!(done["condition_changes"], Value::Array(Vec::new()), "{done}");
    let full = shown(&hosts, &["--full"]);
    assert!(!full.contains("conditions were not read again"), "{full}");
}
