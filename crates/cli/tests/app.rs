//! Tests of applications: real programs in labs, and the handling of those that behave badly.

mod support;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use landspeed_record::{FigureValue, MeasureReport};
use rustix::process::Signal;
use support::ours::{TestHome, processes, signal, within};
use support::{LANDSPEED, assert_helpers, needs_root, output, sh, text};

/// Writes an application of two shell commands: a server, and a client whose output has the figure.
fn application(place: &TestHome, server: &str, client: &str, more: &str) -> PathBuf {
    let quoted = |text: &str| serde_json::to_string(text).expect("text");
    let file = place.path().join("mine.toml");
    let text = format!(
        "title = \"a shell's\"\n\
         [[role]]\nname = \"server\"\non = \"server\"\nwithin = \"3s\"\nready = {{ line = \"^ready\" }}\n\
         command = [\"sh\", \"-c\", {}]\nend = {{ signal = \"SIGTERM\", within = \"300ms\" }}\n\
         [[role]]\nname = \"client\"\non = \"client\"\nwithin = \"3s\"\ncommand = [\"sh\", \"-c\", {}]\n{more}\n\
         [[figure]]\nname = \"answers\"\nunit = \"answers/s\"\nmore = \"better\"\nrole = \"client\"\nline = \"answers: ([0-9.]+)\"\n",
        quoted(server),
        quoted(client)
    );
    std::fs::write(&file, text).expect("a file");
    file
}

/// Returns a server that sleeps for a time that no other process on the machine uses.
fn server(seconds: u32) -> String {
    format!("echo ready; exec sleep {seconds}")
}

/// A client that prints a figure.
const CLIENT: &str = "echo answers: 42";

/// Measures an application, with a descriptor that landspeed inherits and passes on to its children.
fn measured(place: &TestHome, file: &Path) -> Output {
    let app = format!("app:{}", file.display());
    let mut landspeed = place.landspeed(&["measure", &app, "--json"]);
    // SAFETY: dup2(2) takes numbers only.
    let open = || match unsafe { libc::dup2(libc::STDERR_FILENO, 77) } {
        77 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: dup2(2) is async-signal-safe (signal-safety(7)).
    unsafe { landspeed.pre_exec(open) };
    landspeed.output().expect("landspeed runs")
}

/// Runs an application that fails, and returns the error message.
fn refused(server: &str, client: &str) -> String {
    let place = TestHome::new();
    let found = measured(&place, &application(&place, server, client, ""));
    let (out, err) = text(&found);
    assert_eq!(found.status.code(), Some(1), "{out}{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    nothing_is_left(&place, "sleep 100[0-9]$|yes landspeed-test");
    err
}

/// Panics unless landspeed's processes, the processes whose command line matches `programs`, and the roles' directory
/// disappear.
fn nothing_is_left(place: &TestHome, programs: &str) {
    let left = || text(&output(&format!("pgrep -f '^({programs})' -a"))).0;
    let gone = || processes(place.path()).is_empty() && left().is_empty();
    assert!(within(Duration::from_secs(60), gone), "{:?} {}", processes(place.path()), left());
    assert!(!PathBuf::from("/dev/shm/role").exists());
}

#[test]
fn a_program_is_a_workload_and_its_figure_is_reported() {
    needs_root!();
    let place = TestHome::new();
    let parameter = "[[role.file]]\npath = \"sub/data\"\nbytes = \"100K\"\nseed = 7\n";
    // The client sees its files, its own directory, no process but its own, no inherited descriptor, and is not root.
    let client = "for fd in /proc/$$/fd/*; do case $(basename $fd) in 0|1|2) ;; *) test ! -e $fd || exit 4;; esac; done; \
                  test $(wc -c < sub/data) = 102400 && test $(id -un) = nobody && test $(pwd) = {dir} && \
                  test $(ls -d /proc/[0-9]* | wc -l) -lt 10 && touch {dir}/own && echo answers: 42.5";
    let found = measured(&place, &application(&place, &server(1010), client, parameter));
    let (out, err) = text(&found);
    assert!(found.status.success(), "{err}");
    let report: MeasureReport = serde_json::from_str(&out).expect("a report");
    let figure = &report.figures[0].figures[0];
    assert_eq!(figure.name, "answers");
    let FigureValue::Measured(measured) = &figure.amount else { panic!("{figure:?}") };
    assert_eq!((measured.value, measured.unit.as_str()), (42.5, "answers/s"));
    nothing_is_left(&place, "sleep 1010$");
}

#[test]
fn an_application_calls_the_helpers_beside_landspeed() {
    needs_root!();
    assert_helpers();
    let place = TestHome::new();
    let found =
        place.landspeed(&["measure", "app:sockets-pingpong", "--json"]).output().expect("landspeed runs");
    let (out, err) = text(&found);
    assert!(found.status.success() && out.contains("\"p50\""), "{out}{err}");

    // Without landspeed-helpers beside it, landspeed reports what is missing.
    let alone = place.path().join("landspeed");
    std::fs::copy(LANDSPEED, &alone).expect("a copy");
    let mut command = Command::new(&alone);
    command.args(["measure", "app:sockets-pingpong"]);
    for (name, folder) in
        [("LANDSPEED_RUN_DIR", "run"), ("LANDSPEED_STATE_DIR", "state"), ("XDG_DATA_HOME", "data")]
    {
        command.env(name, place.path().join(folder));
    }
    let (out, err) = text(&command.output().expect("it runs"));
    assert!(err.contains("landspeed-helpers is not on this host: install it beside landspeed"), "{out}{err}");
}

/// A grey pixel as a PNG file, in Base64.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

#[test]
fn what_a_program_drew_is_on_the_page_of_a_grid_once_for_each_cell() {
    needs_root!();
    let place = TestHome::new();
    let drawn =
        |picture: &str| format!("echo '{{{{\"drawn\": \"{picture}\", \"said\": \"answers: {{copies}}\"}}'");
    let more = "[parameter.copies]\nabout = \"any\"\nis = \"number\"\ndefault = \"1\"\nbetween = [\"1\", \"9\"]\n\
                [picture]\nrole = \"client\"\njson = \"/drawn\"";
    let file = application(&place, &server(1011), &drawn(PIXEL), more);
    let (app, page) = (format!("app:{}", file.display()), place.path().join("page.html"));
    let page = page.to_str().expect("text");
    let args = ["measure", &app, "--vary", "copies=1,2", "--blocks", "3", "--html", page];
    let found = place.landspeed(&args).output().expect("landspeed runs");
    assert!(found.status.success(), "{}", text(&found).1);
    let page = std::fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches(&format!("data:image/png;base64,{PIXEL}\"")).count(), 2);

    // Output that is not a picture is refused.
    let file = application(&place, &server(1011), &drawn("PHN2Zz4="), more);
    let (_, err) = text(&measured(&place, &file));
    assert!(err.contains("what is at /drawn is no PNG file"), "{err}");
}

#[test]
fn a_program_that_behaves_badly_is_an_error_that_says_how_and_leaves_nothing() {
    needs_root!();
    let serves = server(1000);
    let serves = serves.as_str();
    for (server, client, said) in [
        ("exit 3", CLIENT, "role server: it ended with exit status 3 before it was ready"),
        ("sleep 1001 & exit 0", CLIENT, "a service must stay in the foreground"),
        (
            "exec sleep 1002",
            CLIENT,
            "role server took more than 3 s to be ready; it was ended; it printed nothing",
        ),
        ("trap '' TERM; echo ready; while :; do sleep 1003; done", CLIENT, ""),
        (
            serves,
            "echo so far; exec sleep 1004",
            "role client took more than 3 s to end; it was ended; it printed last: so far",
        ),
        (serves, "echo no; exit 7", "role client: it ended with exit status 7; it printed last: no"),
        (serves, "yes landspeed-test", "it printed more than 4 MiB"),
        (serves, "setsid sleep 1005 & echo nothing of use", "printed nothing that matches"),
        (serves, "echo answers: 0", "it must be above 0"),
        (serves, "kill -9 $$", "it was killed by signal 9"),
        (
            // Far from each other, and from the limit of 3 s, for a machine that starts programs late.
            "echo ready; sleep 0.3; exit 4",
            "sleep 1.5; echo answers: 1",
            "it ended with exit status 4 while it served",
        ),
    ] {
        if said.is_empty() {
            let place = TestHome::new();
            let found = measured(&place, &application(&place, server, client, ""));
            assert!(found.status.success(), "{}", text(&found).1);
            nothing_is_left(&place, "sleep 1003$");
            continue;
        }
        let err = refused(server, client);
        assert!(err.contains(said), "{server} / {client}: {err}");
    }
}

#[test]
fn processes_of_a_killed_run_are_gone() {
    needs_root!();
    // `make kills` runs more of these.
    let count: u64 = std::env::var("LANDSPEED_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    for number in 0..count {
        let (moment, all) = (200 + number * 1000 / count, number % 2 == 1);
        let place = TestHome::new();
        let file = application(&place, &server(1020), "exec sleep 1021", "");
        let app = format!("app:{}", file.display());
        let mut run = place.landspeed(&["measure", &app]).spawn().expect("landspeed runs");
        std::thread::sleep(Duration::from_millis(moment));
        if all {
            // The controller and its agents die together: only the kernel is left to clean up.
            for pid in processes(place.path()) {
                signal(pid.pid, Signal::KILL);
            }
        }
        let _ = run.kill();
        let _ = run.wait();
        let _ = place.landspeed(&["undo"]).output();
        nothing_is_left(&place, "sleep 102[01]$");
    }
}

/// Tests a program whose trials last ten seconds by default.
#[test]
fn the_length_of_trials_is_fitted_to_a_tuning_run_unless_the_user_sets_it() {
    needs_root!();
    let place = TestHome::new();
    let more = "[parameter.rounds]\nabout = \"rounds\"\nis = \"number\"\ndefault = \"1000\"\nbetween = [\"1\", \"9999\"]\nfills = \"500ms\"\n";
    let client = "sleep $(({rounds} / 100)).$(printf %02d $(({rounds} % 100))); echo answers: 42";
    let file = application(&place, &server(1030), client, more);
    let file = file.to_str().expect("text");
    let plan = |args: &[&str]| {
        let whole = [&["tune", "--app", file, "--dry-run"], args].concat();
        let output = place.landspeed(&whole).output().expect("landspeed runs");
        let (out, err) = text(&output);
        assert!(output.status.success(), "{out}{err}");
        out
    };
    let fitted = plan(&[]);
    let value = fitted.split("rounds=").nth(1).and_then(|rest| rest.split(':').next());
    let rounds: u64 = value.unwrap_or_else(|| panic!("{fitted}")).parse().expect("a number");
    // 50 rounds fill the 500 ms; a machine that takes longer to start the programs leaves less time for rounds.
    assert!((1..=60).contains(&rounds) && fitted.contains("--with rounds=1000"), "{fitted}");
    assert!(!plan(&["--with", "rounds=20"]).contains("rounds="));
    nothing_is_left(&place, "sleep 1030$");
}

#[test]
fn a_file_is_checked_and_a_mistake_is_reported_with_its_line() {
    let place = tempfile::tempdir().expect("a folder");
    let check = |text: &str| {
        let file = place.path().join("mine.toml");
        std::fs::write(&file, text).expect("a file");
        let output =
            Command::new(LANDSPEED).args(["app", "check"]).arg(&file).output().expect("landspeed runs");
        (output.status.code(), support::text(&output).1)
    };
    let shipped = sh(&format!("{LANDSPEED} app show redis"));
    assert_eq!(check(&shipped), (Some(0), String::new()));
    let (code, err) =
        check(&shipped.replace("ready = { port = \"{port}\" }", "ready = { prot = \"{port}\" }"));
    assert!(code == Some(2) && err.contains("mine.toml:") && err.contains("unknown field `prot`"), "{err}");
    let (code, err) = check(&shipped.replace("parameter.pipeline", "parameter.interval"));
    assert!(code == Some(2) && err.contains("{pipeline} is no placeholder"), "{err}");
    let (code, err) = check(&shipped.replace("pipeline", "interval"));
    assert!(code == Some(2) && err.contains("has an option of that name"), "{err}");
}
