//! A program that has too little memory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use landspeed_observer::WatchSubject;
use landspeed_record::MemoryStalls;

use crate::common::OpenWatch;

/// A control group with 8 MiB of memory, in which a program writes a file of 64 MiB again and again.
struct StarvedProgram {
    group: PathBuf,
    program: Option<Child>,
}

impl StarvedProgram {
    fn start(file: &Path) -> Result<StarvedProgram, String> {
        let name = format!("landspeed-test-{}", std::process::id());
        // Version 1 of the controller where it is mounted (cgroups(7)), version 2 where it is delegated.
        let groups = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let mut why = String::new();
        for (root, limit) in groups {
            let mut starved = StarvedProgram { group: Path::new(root).join(&name), program: None };
            match starved.run(limit, file) {
                Ok(()) => return Ok(starved),
                Err(error) => why += &format!("{root}: {error}; "),
            }
        }
        Err(why)
    }

    fn run(&mut self, limit: &str, file: &Path) -> std::io::Result<()> {
        std::fs::create_dir(&self.group)?;
        let mut limit = std::fs::OpenOptions::new().write(true).open(self.group.join(limit))?;
        limit.write_all(b"8388608")?;
        let (group, file) = (self.group.display(), file.display());
        let script = format!(
            "echo $$ > {group}/cgroup.procs && for i in $(seq 100); do head -c 64M /dev/zero > {file}; done"
        );
        self.program = Some(Command::new("sh").args(["-c", &script]).spawn()?);
        Ok(())
    }
}

impl Drop for StarvedProgram {
    fn drop(&mut self) {
        if let Some(program) = &mut self.program {
            let _ = program.kill();
            let _ = program.wait();
        }
        // The last head leaves the group once it has written the file.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the time for which some task has waited for memory, as the kernel counts it: the last number of the first line
/// (Documentation/accounting/psi.rst).
fn waited_us() -> u64 {
    let text = std::fs::read_to_string("/proc/pressure/memory").expect("a kernel that counts it");
    let some = text.lines().next().and_then(|line| line.rsplit_once("total="));
    some.and_then(|(_, total)| total.trim().parse().ok()).expect("a total")
}

#[test]
fn waiting_for_memory_is_seen() {
    let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let file = folder.path().join("file");
    let watch = OpenWatch::open("pressure", "lo", &WatchSubject::default());
    let _starved = match StarvedProgram::start(&file) {
        Ok(starved) => starved,
        Err(why) => {
            eprintln!("SKIP: no control group of memory can be made here: {why}");
            return;
        }
    };
    let (begun, before) = (Instant::now(), waited_us());
    // The program may begin late on a busy machine.
    while begun.elapsed() < Duration::from_secs(1) || waited_us() < before + 2_000 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing waits for memory");
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen = watch.close();
    let stalls = seen.get::<MemoryStalls>();
    assert!(stalls.window_ns.0 > 1_000_000_000, "{stalls:?}");
    assert!(stalls.some_ns.0 > 1_000_000 && stalls.full_ns <= stalls.some_ns, "{stalls:?}");
}
