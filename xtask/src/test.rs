//! `make test`: runs all tests, up to three programs at a time.
//!
//! cargo runs one test program after another. Lab tests mostly wait, for example for round trips, for the end of a dead
//! process's lease or for a browser, so several at a time take less time. Tests that need the whole machine run after the
//! others.

mod schedule;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use schedule::{DOCUMENTED, LANES, TestQueue};

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
    let all = built(root)?;
    ensure!(schedule::names_programs(&all), "a program that a list names is gone");
    let (alone, others) = schedule::parted(all);
    let output = root.join("target/test-output");
    fs::create_dir_all(&output)?;
    let queue = TestQueue::new(others);
    let (ended, documented) = std::thread::scope(|scope| {
        let documented = scope.spawn(|| {
            let passed = documented(root);
            queue.end(DOCUMENTED);
            passed
        });
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| lane(&queue, &output))).collect();
        let ended: Result<Vec<_>> =
            lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect();
        (ended, documented.join().expect("no panic"))
    });
    let alone = alone.iter().map(|program| run_one(program, &output)).collect::<Result<Vec<_>>>()?;
    sum_up(ended?.into_iter().flatten().chain(alone).collect(), documented?)
}

/// Runs waiting programs, one after the other, until none is left.
fn lane(queue: &TestQueue, output: &Path) -> Result<Vec<TestOutcome>> {
    let mut outcomes = Vec::new();
    while let Some(program) = queue.take() {
        let outcome = run_one(&program, output);
        queue.end(&program.name());
        outcomes.push(outcome?);
    }
    Ok(outcomes)
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
    if let Some(threads) = schedule::threads(&name) {
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
    println!("{}", summary(&ended, &printed));
    Ok(ended)
}

/// Returns the text to print for a program: one line, with the reasons of skipped tests, if it passed; otherwise its
/// output from the failures on.
fn summary(ended: &TestOutcome, printed: &str) -> String {
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
        failed.push(DOCUMENTED);
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    println!("{} test programs and {DOCUMENTED} passed", ended.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_are_found_in_cargos_output() {
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
    fn failures_are_printed_and_skipped_tests_are_named() {
        let ended =
            |passed| TestOutcome { name: "stats power".into(), passed, took: Duration::from_millis(1_260) };
        let printed = "running 2 tests\nSKIP x: no such kernel\ntest result: ok. 2 passed\n";
        assert_eq!(
            summary(&ended(true), printed),
            "   1.3 s  stats power: test result: ok. 2 passed\n          SKIP x: no such kernel"
        );
        let failed = |printed: &str| summary(&ended(false), printed);
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
