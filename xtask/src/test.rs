//! `make test`: runs all tests, two programs at a time.
//!
//! cargo runs one test program after another. Lab tests mostly wait, for example for round trips, for the end of a dead
//! process's lease or for a browser, so two at a time take less time. Tests that need the whole machine run after the
//! others.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use parking_lot::{Condvar, Mutex};
use serde_json::Value;

/// Number of test programs that run at the same time.
const LANES: usize = 2;

/// The programs that load congestion controls, as "CRATE TARGET". No two of them run at the same time, because a
/// kernel has one table of controls. They also do not run beside the tests of [`READERS`], which check that the table
/// is unchanged.
const LOADERS: [&str; 6] =
    ["agent controls", "cli cc", "cli compare", "cli interrupted", "cli kills", "congestion kernel"];
const READERS: &str = "cli ";

/// Programs whose tests run one after the other: some of them keep every core busy, and others wait for the product's own
/// time limits.
const ONE_BY_ONE: &[&str] = &["cli path"];

/// Programs whose tests mostly wait: for logins, for a path that is slow or cut, for the end of a patience. At least
/// [`WAIT_TOGETHER`] of them run at the same time, however few cores there are.
const WAITING: &[&str] = &["cli copy"];
const WAIT_TOGETHER: usize = 3;

/// The programs that judge what else runs on the machine, measure its maximum, or hold many ends of traffic to time limits.
/// They run alone.
const ALONE: [&str; 3] = ["cli capacity", "cli explain", "workload conformance"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct TestProgram {
    /// The crate's folder, which its tests expect as the current directory.
    folder: PathBuf,
    /// The name of the target: that of the library, or of a file in tests/.
    target: String,
    executable: PathBuf,
}

impl TestProgram {
    /// Parses a message of `cargo --message-format=json`; `None` if it is not about a test program.
    fn of(message: &Value) -> Option<TestProgram> {
        let is_test = message["profile"]["test"].as_bool()?;
        let executable = message["executable"].as_str()?.into();
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        is_test.then_some(TestProgram {
            folder,
            target: message["target"]["name"].as_str()?.to_owned(),
            executable,
        })
    }

    /// Returns the name of the crate's folder, which is shorter than the crate's name and also unique.
    fn room(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn name(&self) -> String {
        format!("{} {}", self.room(), self.target)
    }
}

#[derive(Debug)]
struct TestOutcome {
    name: String,
    passed: bool,
    took: Duration,
}

/// Builds and runs all tests. Returns an error if any of them fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let is_alone = |program: &TestProgram| ALONE.contains(&program.name().as_str());
    let (alone, mut others): (Vec<_>, Vec<_>) = built(root)?.into_iter().partition(is_alone);
    let loads = |program: &TestProgram| LOADERS.contains(&program.name().as_str());
    let loaders = others.iter().filter(|program| loads(program)).count();
    ensure!(alone.len() == ALONE.len() && loaders == LOADERS.len(), "a program that a list names is gone");
    // Programs that may not run beside others come first, so that no lane waits at the end.
    others.sort_by_key(|program| (!loads(program), !program.name().starts_with(READERS)));
    let output = root.join("target/test-output");
    fs::create_dir_all(&output)?;
    let state = QueueState { waiting: others, running: Vec::new() };
    let queue = TestQueue { state: Mutex::new(state), ended: Condvar::new() };
    let ended: Result<Vec<_>> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| queue.lane(&output))).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
    });
    let alone = alone.iter().map(|program| run_one(program, &output)).collect::<Result<Vec<_>>>()?;
    let documented = documented(root)?;
    sum_up(ended?.into_iter().flatten().chain(alone).collect(), documented)
}

/// The test programs that wait for a lane, and those that run.
struct TestQueue {
    state: Mutex<QueueState>,
    /// The condition that is notified when a program has ended.
    ended: Condvar,
}

struct QueueState {
    waiting: Vec<TestProgram>,
    /// Names of the programs that run.
    running: Vec<String>,
}

impl TestQueue {
    /// Runs waiting programs, one after the other, until none is left.
    fn lane(&self, output: &Path) -> Result<Vec<TestOutcome>> {
        let mut outcomes = Vec::new();
        while let Some(program) = self.take() {
            let outcome = run_one(&program, output);
            self.state.lock().running.retain(|name| *name != program.name());
            self.ended.notify_all();
            outcomes.push(outcome?);
        }
        Ok(outcomes)
    }

    /// Waits until a program may run beside the running ones, and removes it from the queue; `None` if no program is
    /// left.
    fn take(&self) -> Option<TestProgram> {
        let mut state = self.state.lock();
        loop {
            let QueueState { waiting, running } = &mut *state;
            let suits = |program: &TestProgram| running.iter().all(|other| suit(&program.name(), other));
            if let Some(next) = waiting.iter().position(suits) {
                let program = waiting.remove(next);
                running.push(program.name());
                return Some(program);
            }
            if waiting.is_empty() {
                return None;
            }
            self.ended.wait(&mut state);
        }
    }
}

/// Returns true if two programs may run at the same time.
fn suit(one: &str, other: &str) -> bool {
    let touches = |name: &str| LOADERS.contains(&name) || name.starts_with(READERS);
    let collide = |one: &str, other: &str| LOADERS.contains(&one) && touches(other);
    !collide(one, other) && !collide(other, one)
}

/// Returns a cargo command without the variables that the `cargo run` of this program has set. The build script of
/// ring reads these variables. With them, everything that depends on ring would be built a second time.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root);
    let is_of_this_program =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars().filter(|(name, _)| is_of_this_program(name)) {
        cargo.env_remove(name);
    }
    cargo
}

/// Builds every test program.
fn built(root: &Path) -> Result<Vec<TestProgram>> {
    let output = cargo(root)
        .args(["test", "--no-run", "--workspace", "--locked", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo test")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let messages: Vec<Value> = messages.map(serde_json::from_slice).collect::<Result<_, _>>()?;
    Ok(messages.iter().filter_map(TestProgram::of).collect())
}

/// Runs a test program and prints its result. If it failed, its output is printed too.
fn run_one(program: &TestProgram, folder: &Path) -> Result<TestOutcome> {
    let name = program.name();
    let path = folder.join(format!("{}.txt", name.replace(' ', "-")));
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let began = Instant::now();
    let mut run = Command::new(&program.executable);
    if let Some(threads) = threads(&name) {
        run.env("RUST_TEST_THREADS", threads.to_string());
    }
    let status = run
        // Without this option, the reason of a skipped test would not be shown.
        .arg("--show-output")
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run {}", program.executable.display()))?;
    let ended = TestOutcome { name, passed: status.success(), took: began.elapsed() };
    let printed = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    println!("{}", told(&ended, &printed));
    Ok(ended)
}

/// Returns the number of tests of a program that run at the same time; `None` for one on each core.
fn threads(name: &str) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match name {
        _ if ONE_BY_ONE.contains(&name) => Some(1),
        _ if WAITING.contains(&name) => Some(cores.max(WAIT_TOGETHER)),
        _ => None,
    }
}

/// Returns the text to print for a program: one line, with the reasons of skipped tests, if it passed; otherwise its
/// output from the failures on.
fn told(ended: &TestOutcome, printed: &str) -> String {
    // A program with its own main function prints no line of results.
    let results = printed.lines().find(|line| line.starts_with("test result: ")).unwrap_or("passed");
    let head = format!("{:6.1} s  {}", ended.took.as_secs_f64(), ended.name);
    if ended.passed {
        // The reason of each skipped test is printed, because such a test counts as passed but has checked nothing.
        let skipped = printed
            .lines()
            .filter(|line| line.starts_with("SKIP "))
            .map(|line| format!("\n          {line}"));
        return format!("{head}: {results}{}", skipped.collect::<String>());
    }
    let failed: String =
        printed.lines().filter(|line| line.ends_with("... FAILED")).map(|line| format!("{line}\n")).collect();
    let details = printed.find("\nfailures:\n").unwrap_or(0);
    format!("{head}: FAILED\n{failed}{}", &printed[details..])
}

/// Runs the documentation's examples. Returns true if they pass.
fn documented(root: &Path) -> Result<bool> {
    let output = cargo(root).args(["test", "--doc", "--workspace", "--locked", "--quiet"]).output()?;
    if !output.status.success() {
        print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.status.success())
}

fn sum_up(ended: Vec<TestOutcome>, documented: bool) -> Result<()> {
    let mut failed: Vec<&str> = ended.iter().filter(|one| !one.passed).map(|one| one.name.as_str()).collect();
    if !documented {
        failed.push("the documentation's examples");
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    println!("{} test programs and the documentation's examples passed", ended.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_are_found_in_what_cargo_says() {
        let message = |test: bool, executable: Value| {
            json!({
                "reason": "compiler-artifact", "manifest_path": "/x/crates/stats/Cargo.toml",
                "target": {"name": "power", "kind": ["test"]}, "profile": {"test": test}, "executable": executable,
            })
        };
        let program =
            TestProgram::of(&message(true, "/x/target/debug/deps/power-1".into())).expect("a test program");
        assert_eq!((program.name(), program.folder), ("stats power".into(), "/x/crates/stats".into()));
        assert_eq!(TestProgram::of(&message(false, "/x/target/debug/landspeed".into())), None);
        assert_eq!(TestProgram::of(&message(true, Value::Null)), None);
        assert_eq!(TestProgram::of(&json!({"reason": "build-finished", "success": true})), None);
    }

    #[test]
    fn nothing_compares_the_table_of_controls_while_it_changes() {
        assert!(suit("cli life", "cli records") && suit("cli cc", "stats power"));
        assert!(!suit("cli cc", "cli life") && !suit("cli life", "cli cc"));
        assert!(!suit("congestion kernel", "agent controls"));
    }

    #[test]
    fn tests_that_wait_wait_together() {
        assert!(threads("cli copy") >= Some(WAIT_TOGETHER));
        assert_eq!([threads("cli path"), threads("stats power")], [Some(1), None]);
    }

    #[test]
    fn what_failed_is_printed_and_what_was_skipped_is_named() {
        let ended =
            |passed| TestOutcome { name: "stats power".into(), passed, took: Duration::from_millis(1_260) };
        let printed = "running 2 tests\nSKIP x: no such kernel\ntest result: ok. 2 passed\n";
        assert_eq!(
            told(&ended(true), printed),
            "   1.3 s  stats power: test result: ok. 2 passed\n          SKIP x: no such kernel"
        );
        let failed = |printed: &str| told(&ended(false), printed);
        assert_eq!(failed("torn apart"), "   1.3 s  stats power: FAILED\ntorn apart");
        assert_eq!(
            failed("test x ... ok\ntest y ... FAILED\nsuccesses:\n    x\n\nfailures:\n---- y"),
            "   1.3 s  stats power: FAILED\ntest y ... FAILED\n\nfailures:\n---- y"
        );
    }

    #[test]
    fn whatever_failed_fails_all() {
        let ended = |passed| vec![TestOutcome { name: "stats power".into(), passed, took: Duration::ZERO }];
        assert!(sum_up(ended(true), true).is_ok());
        assert_eq!(sum_up(ended(false), true).unwrap_err().to_string(), "failed: stats power");
        assert!(sum_up(ended(true), false).is_err());
    }
}
