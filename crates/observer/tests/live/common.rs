//! Network namespaces and windows for tests.

use std::time::{Duration, Instant};

use landspeed_kernel::netlink::{LinkChange, Rtnl, in_throwaway};
use landspeed_observer::{Watch, WatchSubject, observer};
use landspeed_record::{Observations, WatchTarget};

/// Runs `test` on a new thread in a new, unnamed network namespace with loopback up; the kernel removes the namespace
/// when the thread ends. If this process may not create one, prints the reason and returns.
pub(crate) fn in_new_namespace(test: impl FnOnce() + Send) {
    let outcome = in_throwaway(|| {
        Rtnl::open().unwrap().set_link("lo", LinkChange::Up(true)).unwrap();
        test();
    });
    outcome.unwrap_or_else(|error| println!("SKIP: needs root: {error}"));
}

/// A window of one observer of the table.
pub(crate) struct OpenWatch(Box<dyn Watch>);

impl OpenWatch {
    pub(crate) fn open(row: &str, link: &str, subject: &WatchSubject<'_>) -> Self {
        let mut watch = observer(row).expect("a row of the table").watch(link);
        watch.open(subject).unwrap_or_else(|error| panic!("open {row}: {error}"));
        OpenWatch(watch)
    }

    /// Opens a window over flows of other programs.
    pub(crate) fn on(row: &str, target: WatchTarget) -> Self {
        Self::open(row, "lo", &WatchSubject { target, ..WatchSubject::default() })
    }

    pub(crate) fn sample(&mut self) {
        self.0.sample(Default::default()).expect("a sample");
    }

    pub(crate) fn close(mut self) -> Observations {
        let mut seen = Observations::default();
        self.0.close(&mut seen).expect("a window closes");
        seen
    }
}

/// Calls `look` repeatedly until it returns true, for events whose time the kernel chooses. Fails after ten seconds.
pub(crate) fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !look() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the child runs `cat` and sleeps, because it then reads. Before that, its descriptors are those of the
/// parent.
pub(crate) fn reads(child: &std::process::Child) {
    let pid = child.id();
    eventually("cat reads", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| stat.contains("(cat) S "))
    });
}
