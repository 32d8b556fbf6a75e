//! Tests of `landspeed cc`: controls are loaded into the kernel, and unloaded however the holding command ends.

mod support;

use std::process::Command;
use std::time::Duration;

use support::ours::within;
use support::{ControlHolder, LANDSPEED, controls_in_kernel, needs_controls, needs_root, output, text};

/// Time limit of a wait. Only a stalled machine reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

fn kernel_has(name: &str) -> bool {
    controls_in_kernel().iter().any(|known| known == name)
}

/// Waits until a control is unloaded: the kernel releases a dead process's objects shortly after it is reaped.
fn gone(name: &str) -> bool {
    within(PATIENCE, || !kernel_has(name))
}

/// Runs a shell script in a separate mount namespace with its own BPF file system.
fn with_bpf_fs(script: &str) -> std::process::Output {
    let quoted = script.replace('\'', "'\\''");
    output(&format!("unshare --mount sh -c 'mount -t bpf bpf /sys/fs/bpf && {quoted}'"))
}

#[test]
fn a_control_goes_with_its_owner_even_by_sigkill() {
    needs_controls!();
    let holder = ControlHolder::of(&["westwood", "ls_africa"]);
    assert!(kernel_has("ls_westwood") && kernel_has("ls_africa"));
    let again = Command::new(LANDSPEED).args(["cc", "load", "africa"]).output().expect("landspeed runs");
    let (_, err) = text(&again);
    assert!(!again.status.success() && err.contains("ls_africa is loaded already"), "{err}");
    drop(holder);
    assert!(gone("ls_westwood") && gone("ls_africa"), "they outlived their owner");
}

#[test]
fn a_control_goes_with_ctrl_c() {
    needs_controls!();
    let mut holder = ControlHolder::of(&["fast"]);
    let pid = rustix::process::Pid::from_child(&holder.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    assert!(holder.0.wait().expect("it ends").success());
    assert!(gone("ls_fast"));
}

#[test]
fn a_kept_control_stays_until_it_is_unloaded() {
    needs_controls!();
    let script = format!(
        "{LANDSPEED} cc load --keep bic && cat /proc/sys/net/ipv4/tcp_available_congestion_control && {LANDSPEED} cc list \
         && {LANDSPEED} cc unload bic && ! test -e /sys/fs/bpf/landspeed-cc"
    );
    let run = with_bpf_fs(&script);
    let (out, err) = text(&run);
    assert!(run.status.success(), "{out}{err}");
    assert!(out.contains("ls_bic is loaded and stays: /sys/fs/bpf/landspeed-cc/ls_bic"), "{out}");
    let names =
        out.lines().find(|line| line.contains("cubic") || line.contains("reno")).expect("the kernel's list");
    assert!(names.split_whitespace().any(|name| name == "ls_bic"), "{names}");
    assert!(out.contains("kept"), "{out}");
    assert!(out.contains("ls_bic is gone for new connections"), "{out}");
    assert!(gone("ls_bic"));
}

#[test]
fn keeping_without_a_bpf_file_system_says_how_to_mount_one() {
    needs_controls!();
    // /sys/fs/bpf is a folder of another file system.
    let run = output(&format!(
        "unshare --mount sh -c 'mount -t tmpfs none /sys/fs/bpf && {LANDSPEED} cc load --keep ltcp'"
    ));
    let (_, err) = text(&run);
    assert!(!run.status.success() && err.contains("mount -t bpf bpf /sys/fs/bpf"), "{err}");
    assert!(gone("ls_ltcp"), "what was not kept is not there");
}

#[test]
fn without_root_loading_is_refused_and_listing_is_not() {
    needs_root!();
    let nobody = |args: &str| {
        output(&format!("setpriv --reuid=65534 --regid=65534 --clear-groups {LANDSPEED} cc {args}"))
    };
    let (_, err) = text(&nobody("load scalable"));
    assert!(err.contains("run landspeed as root") && err.trim_end().lines().count() == 1, "{err}");
    let list = nobody("list");
    let (out, err) = text(&list);
    assert!(list.status.success() && out.contains("ls_scalable"), "{out}{err}");
}

#[test]
fn names_that_are_none_of_ours_are_refused_by_name() {
    for (args, words) in [
        (["cc", "load", "warp"], ["warp", "landspeed cc list"]),
        (["cc", "load", "cubic"], ["cubic", "modprobe"]),
        (["cc", "unload", "warp"], ["warp", "landspeed cc list"]),
    ] {
        let (_, err) = text(&Command::new(LANDSPEED).args(args).output().expect("landspeed runs"));
        assert!(words.iter().all(|word| err.contains(word)), "{args:?}: {err}");
    }
}

#[test]
fn the_cost_of_one_loss_is_reported_by_control() {
    let path = ["cc", "recovery", "--rate", "100M", "--rtt", "120ms", "--mtu", "9000", "--within", "30s"];
    let run = |more: &[&str]| Command::new(LANDSPEED).args(path).args(more).output().expect("landspeed runs");
    let all: serde_json::Value = serde_json::from_slice(&run(&["--json"]).stdout).expect("one document");
    let took = |name: &str| {
        let rows = all["controls"].as_array().expect("a list");
        rows.iter().find(|row| row["name"] == name).expect("it is simulated")["recovery_ns"].as_f64()
    };
    // Half a window of 167 segments, one segment per round trip, takes ten seconds. Scalable loses an eighth of the
    // window.
    let formula = all["formula_ns"].as_f64().expect("a number");
    assert!((took("reno").expect("it recovers") / formula - 1.0).abs() < 0.05, "{all}");
    assert!(took("scalable").expect("it recovers") < 0.4 * formula, "{all}");
    let (out, err) = text(&run(&["reno"]));
    assert!(out.contains("Reno") && !out.contains("Scalable") && err.contains("formula"), "{out}{err}");
    let (_, err) = text(&run(&["ren"]));
    assert!(err.contains("did you mean reno?"), "{err}");
    assert!(all["printed_ns"].is_null() && all["claim"].is_null(), "{all}");
}

#[test]
fn the_papers_time_is_beside_the_simulated_one_on_the_papers_path() {
    let papers = ["cc", "recovery", "reno", "--rate", "10G", "--rtt", "1ms", "--json"];
    let out = Command::new(LANDSPEED).args(papers).output().expect("landspeed runs");
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one document");
    assert_eq!((&document["claim"], &document["printed_ns"]), (&"feng.t1.lan".into(), &428_000_000.into()));
    let simulated = document["controls"][0]["recovery_ns"].as_f64().expect("it recovers");
    assert!((simulated / 428e6 - 1.0).abs() < 0.05, "{document}");
}
