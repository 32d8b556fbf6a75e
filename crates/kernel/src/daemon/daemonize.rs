//! Makes a process outlive its parent: it ignores the signals that end sessions, the out-of-memory killer spares it,
//! and it leaves the cgroup that is removed with the ssh session.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

/// The strongest protection from the out-of-memory killer short of exemption (proc_pid_oom_score_adj(5)).
const OOM_SCORE_ADJ: &str = "-900";

/// Makes this process a daemon. Its name in `ps` then contains `role`, such as "guardian". Returns the steps that
/// failed, one line each.
pub fn daemonize(role: &str) -> Vec<String> {
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGQUIT,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        // SAFETY: SIG_IGN installs no handler that could run.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // A role with a zero byte leaves the thread's name unchanged.
    let _ = CString::new(name_of(role)).map(|name| rustix::thread::set_name(&name));
    shelter(std::process::id(), role)
}

/// Protects the process `pid`, which this process has just started, from the out-of-memory killer and moves it out of
/// its session's cgroup. Returns the steps that failed, one line each.
pub fn shelter(pid: u32, role: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(e) = fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE_ADJ) {
        notes.push(format!("the {role} is not protected from running out of memory: {e}"));
    }
    if let Err(e) = leave_session_cgroup(pid) {
        notes.push(format!("the {role} stays in its session's cgroup and can be stopped with it: {e}"));
    }
    notes
}

/// Returns true if the process `pid` has become a daemon of this role, judged by the names of its threads.
pub fn is_daemon(pid: u32, role: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.map(name).any(|name| name.trim_end() == name_of(role))
}

/// Returns the thread name of a role, cut to the 15 bytes that the kernel keeps.
fn name_of(role: &str) -> String {
    format!("landspeed-{role}").chars().take(15).collect()
}

/// Moves a process to the root of the hierarchies in which systemd kills sessions: cgroup v2, and the named v1
/// hierarchy of the hybrid layout. Resource controllers of v1 kill no process and are left alone.
fn leave_session_cgroup(pid: u32) -> io::Result<()> {
    for line in fs::read_to_string(format!("/proc/{pid}/cgroup"))?.lines() {
        // hierarchy-id:controllers:path (cgroups(7)).
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        match (controllers, path) {
            (_, Some("/")) => {}
            (Some(""), Some(_)) => move_to_root(pid, "cgroup2", None)?,
            (Some("name=systemd"), Some(_)) => move_to_root(pid, "cgroup", Some("systemd"))?,
            _ => {}
        }
    }
    Ok(())
}

/// Moves a process to the root of a cgroup hierarchy through a private mount, because /sys/fs/cgroup may be another
/// mount, or missing, if an agent runs in a network namespace with its own /sys.
fn move_to_root(pid: u32, kind: &str, name: Option<&str>) -> io::Result<()> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    if let Some(name) = name {
        fsconfig_set_flag(&context, "none")?;
        fsconfig_set_string(&context, "name", name)?;
    }
    fsconfig_create(&context)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC;
    let procs = rustix::fs::openat(&root, "cgroup.procs", flags, rustix::fs::Mode::empty())?;
    fs::File::from(procs).write_all(pid.to_string().as_bytes())
}
