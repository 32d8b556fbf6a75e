//! A network namespace for one test.

use std::process::Command;

/// Runs `test` on a thread of its own in a new, unnamed network namespace, which the kernel removes with
/// the thread, however it ends. Prints why and returns where this process may not make one.
pub(crate) fn in_new_namespace(test: impl FnOnce() + Send) {
    let outcome = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                // SAFETY: unshare(CLONE_NEWNET) changes this thread alone and touches no memory.
                if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                    println!("SKIP: needs root: {}", std::io::Error::last_os_error());
                    return;
                }
                test();
            })
            .join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// Runs `ip` with these arguments in this thread's namespace (children inherit it).
pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
