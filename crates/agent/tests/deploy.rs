//! Tests of agents on a host without landspeed. landspeed is sent to a real /bin/sh, the program that ssh starts on a
//! host.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use landspeed_agent::session::{
    AgentLaunch, BUILD, Error, LineSink, Options, Reply, Request, Session, SshHost,
};
use landspeed_record::units::Nanos;
use parking_lot::Mutex;

/// A host with its own folders, and its own programs that come before the usual ones.
struct FarHost {
    folder: tempfile::TempDir,
    notices: Arc<Mutex<Vec<String>>>,
    /// Lines of the far side's standard error.
    lines: Arc<Mutex<Vec<String>>>,
    keep: bool,
    root: bool,
}

impl FarHost {
    fn new() -> FarHost {
        let far =
            // Not below /tmp, because one of the tests mounts over it.
            FarHost {
                folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
                notices: Arc::default(),
                lines: Arc::default(),
                keep: false,
                root: false,
            };
        for folder in ["bin", "home", "runtime"] {
            fs::create_dir(far.path(folder)).unwrap();
        }
        // Cargo puts the examples beside the tests' folder. It does not build them if only this test target is
        // requested.
        let agent = std::env::current_exe().unwrap();
        let agent = agent.parent().unwrap().parent().unwrap().join("examples/test_agent");
        assert!(agent.exists(), "build it first: cargo build -p landspeed-agent --examples");
        far.program(
            "own",
            &format!(
                "[ $1 = --version ] && exit; echo \"$0 $*\" >{}; exec {} {} 20000",
                far.path("ran").display(),
                agent.display(),
                far.path("gone").display()
            ),
        );
        far
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.path("ran")).unwrap_or_default().trim().to_owned()
    }

    fn session(&self) -> Result<Session, Error> {
        self.session_by("exec /bin/sh")
    }

    /// Opens a session on a host whose login shell runs `login`.
    fn session_by(&self, login: &str) -> Result<Session, Error> {
        let mut shell = Command::new("/bin/sh");
        let path = std::env::var("PATH").unwrap();
        shell.args(["-c", login]).env("PATH", format!("{}:{path}", self.path("bin").display()));
        shell
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env_remove("XDG_CACHE_HOME");
        let into = |lines: &Arc<Mutex<Vec<String>>>| {
            let lines = Arc::clone(lines);
            LineSink::new(move |line| lines.lock().push(line.to_owned()))
        };
        let options = Options {
            lease: Nanos::secs(20),
            notices: into(&self.notices),
            lines: into(&self.lines),
            ..Options::default()
        };
        let host = SshHost::new("far").unwrap().with_questions(false);
        let own = self.path("own");
        let launch =
            AgentLaunch { words: &["agent", "--stdio"], root: self.root, own: &own, keep: self.keep };
        Session::over_shell(shell, &host, &launch, &options)
    }

    /// Returns the reason why a session is refused.
    fn refused(&self) -> String {
        self.session().unwrap_err().to_string()
    }

    fn times_sent(&self) -> usize {
        self.notices.lock().len()
    }

    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut folders = vec![self.path(folder)];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let (below, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
            folders.extend(below);
            found.extend(files);
        }
        found
    }
}

fn works(session: Session) {
    assert_eq!(session.call(&Request::Close { port: 77 }).unwrap(), Reply::Listening { port: 77 });
    session.close();
}

#[test]
fn a_host_without_landspeed_is_sent_one_of_which_nothing_is_left() {
    let far = FarHost::new();
    // The greeting of a login shell must be skipped.
    let session = far.session_by("echo Welcome to far; printf 'no newline'; exec /bin/sh").unwrap();
    assert_eq!(far.files("runtime"), Vec::<PathBuf>::new(), "while it runs");
    assert!(far.ran().starts_with("/proc/") && far.ran().ends_with("agent --stdio --sent"), "{}", far.ran());
    works(session);
    let notices = far.notices.lock();
    assert!(
        notices[0].starts_with("sending landspeed (") && notices[0].ends_with("/runtime of far ..."),
        "{notices:?}"
    );
    assert_eq!((far.files("runtime"), far.files("home")), (vec![], vec![]));
}

#[test]
fn an_installed_one_of_this_build_is_used_and_another_is_not() {
    let far = FarHost::new();
    far.program("bin/landspeed", "[ $1 = --version ] && echo landspeed 0.0.1; exit 1");
    works(far.session().unwrap());
    assert_eq!(far.times_sent(), 1);
    let installed = format!(
        "[ $1 = --version ] && echo 'landspeed {BUILD}' || exec {} \"$@\"",
        far.path("own").display()
    );
    far.program("bin/landspeed", &installed);
    works(far.session().unwrap());
    assert_eq!(far.times_sent(), 1);
    assert!(far.ran().ends_with("agent --stdio"), "{}", far.ran());
}

#[test]
fn a_kept_one_is_checked_before_it_runs_again() {
    let far = FarHost { keep: true, ..FarHost::new() };
    works(far.session().unwrap());
    works(far.session().unwrap());
    assert_eq!(far.times_sent(), 1);
    let kept = far.path("home/.cache/landspeed/landspeed-sent");
    assert_eq!(
        (far.files("home"), fs::read(&kept).unwrap()),
        (vec![kept.clone()], fs::read(far.path("own")).unwrap())
    );
    assert_eq!(fs::metadata(kept.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let evil = far.path("evil");
    fs::write(&kept, format!("#!/bin/sh\ntouch {}\n", evil.display())).unwrap();
    works(far.session().unwrap());
    assert_eq!((far.times_sent(), evil.exists()), (2, false));
    assert_eq!(
        (far.files("home"), fs::read(&kept).unwrap()),
        (vec![kept], fs::read(far.path("own")).unwrap())
    );
}

#[test]
fn helpers_that_lie_beside_landspeed_are_sent_at_its_end() {
    let far = FarHost { keep: true, ..FarHost::new() };
    far.program("landspeed-helpers", "echo helps");
    works(far.session().unwrap());
    let kept = fs::read(far.path("home/.cache/landspeed/landspeed-sent")).unwrap();
    let parts = ["own", "landspeed-helpers"].map(|name| fs::read(far.path(name)).unwrap()).concat();
    assert!(kept.starts_with(&parts) && kept.ends_with(b"LSHELP01"), "{}", String::from_utf8_lossy(&kept));
}

#[test]
fn files_in_an_unsafe_cache_folder_stay() {
    let far = FarHost { keep: true, ..FarHost::new() };
    let documents = far.path("documents");
    fs::create_dir(&documents).unwrap();
    fs::write(documents.join("thesis.txt"), "years of work").unwrap();
    fs::create_dir(far.path("home/.cache")).unwrap();
    let cache = far.path("home/.cache/landspeed");
    let says = |why: &str| {
        works(far.session().unwrap());
        let said = far.lines.lock().pop().unwrap_or_default();
        assert!(said.starts_with("far: landspeed is not kept in ") && said.ends_with(why), "{said}");
        assert_eq!(far.files("documents"), [documents.join("thesis.txt")]);
    };
    symlink(&documents, &cache).unwrap();
    says(": it is a symbolic link");
    fs::remove_file(&cache).unwrap();
    fs::create_dir(&cache).unwrap();
    symlink(documents.join("thesis.txt"), cache.join("landspeed-sent")).unwrap();
    says("its file landspeed-sent is not ours");
    fs::remove_file(cache.join("landspeed-sent")).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    says(": other users may write there");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(cache.join("notes.txt"), "mine").unwrap();
    works(far.session().unwrap());
    let mut all = far.files("home");
    all.sort();
    assert_eq!(all, [cache.join("landspeed-sent"), cache.join("notes.txt")]);
    assert_eq!(far.times_sent(), 4);
}

#[test]
fn another_machine_and_a_file_that_arrives_changed_are_refused() {
    let far = FarHost::new();
    far.program("bin/uname", "echo riscv64");
    let refused = far.refused();
    assert!(
        refused.starts_with("far: this host is riscv64 and the controller's landspeed is for "),
        "{refused}"
    );
    assert!(refused.contains("sudo install landspeed landspeed-helpers"), "{refused}");
    let far = FarHost::new();
    far.program("bin/head", "/usr/bin/head \"$@\" | tr a b");
    let refused = far.refused();
    assert!(refused.contains("what arrived is not what was sent"), "{refused}");
    assert_eq!((far.ran(), far.files("runtime")), (String::new(), vec![]));
}

#[test]
fn a_library_that_is_missing_there_is_named() {
    let far = FarHost::new();
    let built = Command::new("sh")
        .args(["-ec", "echo 'int x(void){return 0;}' | gcc -shared -o libnothere.so -x c -
            echo 'int x(void); int main(void){return x();}' | gcc -o own -x c - -L. -lnothere; rm libnothere.so"])
        .current_dir(far.folder.path())
        .status();
    assert!(built.unwrap().success());
    let refused = far.refused();
    assert!(refused.contains("libnothere.so") && refused.contains("install what is missing"), "{refused}");
}

#[test]
fn the_next_folder_with_room_and_leave_to_execute_is_taken() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP: needs root to mount");
    }
    let far = FarHost::new();
    fs::write(far.path("own"), fs::read_to_string(far.path("own")).unwrap() + &"# filling\n".repeat(20_000))
        .unwrap();
    let full = "mount -t tmpfs -o size=64k none";
    let noexec = "mount -t tmpfs -o noexec none";
    let others = "mount -t tmpfs -o mode=777 none";
    let by = |mounts: &str| far.session_by(&format!("exec unshare -m sh -ec '{mounts}; exec /bin/sh'"));
    let to = || far.notices.lock().pop().unwrap_or_default();
    works(by(&format!("{noexec} $XDG_RUNTIME_DIR; {full} /tmp")).unwrap());
    assert!(to().ends_with(" to /var/tmp of far ..."), "{:?}", far.notices);
    works(by(&format!("{noexec} $XDG_RUNTIME_DIR; {full} /tmp; {others} /var/tmp")).unwrap());
    assert!(to().ends_with(" to /dev/shm of far ..."), "{:?}", far.notices);
    let all =
        format!("{noexec} $XDG_RUNTIME_DIR; {full} /tmp; {others} /var/tmp; {noexec} /dev/shm; {full} $HOME");
    let refused = by(&all).unwrap_err().to_string();
    for why in [
        "runtime: runs no program (noexec); /tmp: no room for ",
        " bytes; /var/tmp: others may write there; /dev/shm: runs no program (noexec); ",
        "home/.cache: cannot be entered; ",
        "home: no room for ",
        "far: make room in a folder, or install landspeed here: none takes it (",
    ] {
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

#[test]
fn a_greeting_may_hold_any_byte() {
    let far = FarHost::new();
    works(far.session_by(r"printf '\000\001\002zero\000\000'; exec /bin/sh").unwrap());
    works(far.session_by("head -c 30000 /dev/urandom; exec /bin/sh").unwrap());
}

#[test]
fn a_host_asks_for_no_more_than_it_may() {
    let far = FarHost::new();
    for (login, why) in [
        ("echo @landspeed file /tmp; cat >/dev/null", "it asks for \"file /tmp\" where it may not"),
        (
            "echo @landspeed script; echo @landspeed script; cat >/dev/null",
            "it asks for \"script\" where it may not",
        ),
        ("echo @landspeed password >&2; cat >/dev/null", "it asks for \"password\" where it may not"),
        ("yes", "where a frame belongs"),
        (
            "echo This account is currently not available.; exit 1",
            "far: This account is currently not available.",
        ),
    ] {
        let refused = far.session_by(login).unwrap_err().to_string();
        assert!(refused.contains(why), "{login}: {refused}");
    }
}

#[test]
fn a_given_path_is_run_without_a_check() {
    let far = FarHost::new();
    let host =
        SshHost::new("far").unwrap().with_questions(false).with_remote_path("~/not here/landspeed").unwrap();
    let launch = AgentLaunch { words: &["agent"], root: false, own: Path::new("/dev/null"), keep: false };
    let mut shell = Command::new("/bin/sh");
    shell.env("HOME", far.path("home"));
    let error = Session::over_shell(shell, &host, &launch, &Options::default()).unwrap_err().to_string();
    assert!(
        error.contains("/home/not here/landspeed: not found (exit status: 127); install landspeed there"),
        "{error}"
    );
}
