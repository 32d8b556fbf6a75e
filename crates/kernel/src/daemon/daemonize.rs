//! Makes a process outlive its parent: it ignores the signals that end sessions, the out-of-memory killer spares it,
//! and it leaves the cgroup that is removed with the ssh session.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

/// The process's adjustment for the out-of-memory killer, from -1000 to 1000 (proc_pid_oom_score_adj(5)). This value
/// protects the process strongly, but does not exempt it as -1000 would.
const OOM_SCORE_ADJ: &str = "-900";

/// Makes this process a daemon: it ignores the signals that end sessions, gets the thread name "landspeed-" and `role`,
/// cut to 15 bytes, and calls [`shelter`]. Returns one line for each step that failed.
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

/// Protects the process `pid` from the out-of-memory killer and moves it out of its session's cgroup. `pid` is this
/// process or one that it has just started. Returns one line for each step that failed.
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

/// Returns true if a thread of the process `pid` has the name that [`daemonize`] gives to a daemon of this role.
pub fn is_daemon(pid: u32, role: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let name = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    threads.map(name).any(|name| name.trim_end() == name_of(role))
}

/// Returns the thread name of a role, cut to the 15 bytes that the kernel keeps.
fn name_of(role: &str) -> String {
    format!("landspeed-{role}").chars().take(15).collect()
}

/// Moves a process to the root of the cgroup hierarchies through which systemd kills the processes of a session: cgroup
/// v2, and the v1 hierarchy "name=systemd" of the hybrid layout. In v1 hierarchies of resource controllers the process
/// keeps its group, because systemd kills no process through them.
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

/// Moves a process to the root of the cgroup hierarchy of the file system `kind`, with the v1 name `name`. Mounts the
/// hierarchy privately, because /sys/fs/cgroup may be missing or another mount if an agent runs in a network namespace
/// with its own /sys.
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
