//! Tests of the controls in the running kernel: they are loaded, chosen by a socket, used for a transfer, and gone
//! with their owner. Traffic stays on loopback and in a lab that the test creates.

mod lossy;
mod transfer;

use std::sync::Mutex;

use landspeed_congestion::{CONTROLS, Control, Error, LoadState, available, can_load, load, state};

/// A lock that lets only one test run at a time, because the names of controls belong to the whole machine.
static KERNEL: Mutex<()> = Mutex::new(());

/// Returns true if controls can be loaded here. Otherwise prints the reason.
fn can(test: &str) -> bool {
    let others: Vec<_> = available().into_iter().filter(|name| name.starts_with("ls_")).collect();
    match can_load() {
        // A kernel accepts each name only once, and these tests load all controls.
        Ok(()) if !others.is_empty() => {
            println!("SKIP {test}: somebody else has loaded {}", others.join(", "));
            false
        }
        Ok(()) => true,
        Err(reason) => {
            println!("SKIP {test}: {reason}");
            false
        }
    }
}

fn ours() -> impl Iterator<Item = &'static Control> {
    CONTROLS.iter().copied().filter(|row| !row.is_kernels())
}

#[test]
fn every_control_carries_a_transfer_and_goes_with_its_owner() {
    let _one = KERNEL.lock();
    if !can("every_control_carries_a_transfer_and_goes_with_its_owner") {
        return;
    }
    for row in ours() {
        let loaded = load(row.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(state(row), LoadState::Available, "{}", row.name);
        let flow = transfer::over_loopback(row.kernel_name, 8 << 20).expect("a transfer");
        assert_eq!(flow.control, row.kernel_name);
        assert!(flow.window > 1, "{}: {flow:?}", row.name);
        drop(loaded);
        assert_eq!(state(row), LoadState::Absent, "{}", row.name);
        let gone = transfer::over_loopback(row.kernel_name, 1).expect_err("the name is gone");
        assert_eq!(gone.raw_os_error(), Some(libc::ENOENT), "{}: {gone}", row.name);
    }
}

#[test]
fn a_program_without_privileges_may_choose_one() {
    let _one = KERNEL.lock();
    if !can("a_program_without_privileges_may_choose_one") {
        return;
    }
    let loaded = load("scalable").unwrap_or_else(|error| panic!("{error}"));
    let chosen = std::thread::spawn(|| {
        transfer::drop_privileges();
        transfer::over_loopback("ls_scalable", 1 << 20)
    });
    let flow = chosen.join().expect("no panic").expect("a transfer");
    assert_eq!(flow.control, "ls_scalable");
    drop(loaded);
}

#[test]
fn without_privileges_loading_is_refused_in_words() {
    let _one = KERNEL.lock();
    let refused = std::thread::spawn(|| {
        transfer::drop_privileges();
        load("scalable").map(drop)
    });
    let error = refused.join().expect("no panic").expect_err("a refusal");
    assert!(matches!(&error, Error::CannotLoad { reason, .. } if reason.contains("as root")), "{error}");
}

#[test]
fn a_socket_keeps_a_control_that_is_gone() {
    let _one = KERNEL.lock();
    if !can("a_socket_keeps_a_control_that_is_gone") {
        return;
    }
    let loaded = load("highspeed").unwrap_or_else(|error| panic!("{error}"));
    let flow = transfer::LoopbackFlow::open("ls_highspeed").expect("a flow");
    drop(loaded);
    let report = flow.send(4 << 20).expect("a transfer");
    assert_eq!(report.control, "ls_highspeed");
}

#[test]
fn refusals_name_the_control_and_the_remedy() {
    let _one = KERNEL.lock();
    let says = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    says(load("warp").expect_err("unknown"), &["warp", "cc list"]);
    says(load("cubic").expect_err("the kernel's"), &["cubic", "modprobe tcp_cubic"]);
    if !can("refusals_name_the_control_and_the_remedy") {
        return;
    }
    says(landspeed_congestion::unload("bic").expect_err("not kept"), &["ls_bic", "--keep"]);
    let _first = load("ltcp").unwrap_or_else(|error| panic!("{error}"));
    says(load("ls_ltcp").expect_err("taken"), &["ls_ltcp", "already", "Ctrl-C"]);
}
