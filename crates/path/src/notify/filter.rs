//! The seccomp filter that selects which system calls of a program the supervisor answers.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF,
    sock_filter, sock_fprog,
};

/// A rule that selects a system call for the supervisor to answer.
#[derive(Debug, Clone, Copy)]
pub struct SyscallRule {
    /// Number of the call.
    pub call: libc::c_long,
    /// Sets of conditions on the arguments. The call is selected if all conditions of one set hold, or if there are no
    /// sets.
    pub when: &'static [&'static [ArgumentCondition]],
}

/// Condition on one argument: its index, from 0, and the value of its lower 32 bits.
pub type ArgumentCondition = (u32, u32);

/// Offsets in `struct seccomp_data`, in bytes (linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const OWN_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCH: u32 = 0xc000_00b7;

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

/// Returns an instruction that continues if the loaded word is `value`, and otherwise skips `skipped` instructions.
fn or_skip(value: u32, skipped: usize) -> sock_filter {
    let jf = u8::try_from(skipped).expect("filters are short");
    sock_filter { code: (BPF_JMP | BPF_JEQ | BPF_K) as u16, jt: 0, jf, k: value }
}

fn end(action: u32) -> sock_filter {
    sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: action }
}

/// Returns the instructions of the filter. The filter allows all calls of another architecture (32-bit programs),
/// because the numbers of their calls differ.
fn program(rules: &[SyscallRule]) -> Vec<sock_filter> {
    let own = sock_filter { jt: 1, ..or_skip(OWN_ARCH, 0) };
    let mut all = vec![load(ARCH), own, end(SECCOMP_RET_ALLOW), load(NUMBER)];
    for rule in rules {
        let body = body(rule);
        all.push(or_skip(rule.call as u32, body.len()));
        all.extend(body);
    }
    all.push(end(SECCOMP_RET_ALLOW));
    all
}

/// Returns the instructions that check the arguments of a call that has the rule's number.
fn body(rule: &SyscallRule) -> Vec<sock_filter> {
    if rule.when.is_empty() {
        return vec![end(SECCOMP_RET_USER_NOTIF)];
    }
    let mut all = Vec::new();
    for case in rule.when {
        for (at, (argument, value)) in case.iter().enumerate() {
            // If the condition fails, skips the rest of this case: two instructions for each further condition, and the
            // end.
            let left = 2 * (case.len() - at - 1) + 1;
            all.extend([load(ARGS + 8 * argument), or_skip(*value, left)]);
        }
        all.push(end(SECCOMP_RET_USER_NOTIF));
    }
    all.push(end(SECCOMP_RET_ALLOW));
    all
}

/// Builds a filter. Returns a function that permanently installs the filter in its process and returns the listener.
/// The function runs between fork and exec, so it allocates nothing.
///
/// # Errors
/// The returned function returns the kernel's error if the filter cannot be installed.
pub(crate) fn install(rules: &[SyscallRule]) -> impl Fn() -> io::Result<OwnedFd> + use<> {
    let program = program(rules);
    move || {
        let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // The kernel copies the filter.
        let all = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
        // Root may install the filter directly, so that set-user-ID programs keep working. Other users must first set
        // PR_SET_NO_NEW_PRIVS, which disables set-user-ID.
        set(&all).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES) => {
                // SAFETY: the arguments are numbers.
                unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
                set(&all)
            }
            _ => Err(error),
        })
    }
}

fn set(program: &sock_fprog) -> io::Result<OwnedFd> {
    // SAFETY: `program` is valid during the call; the returned descriptor is new, and ours alone.
    unsafe {
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const *program,
        );
        if listener < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(listener as i32)) }
    }
}
