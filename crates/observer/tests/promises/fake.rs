//! A fake observer that counts the bytes that loopback carries, and breaks one promise.

use std::cell::Cell;
use std::time::Instant;

use landspeed_observer::{Error, Observer, ObserverHeadline, RunPolicy, Watch, WatchSubject};
use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Observations, detail};
use serde::{Deserialize, Serialize};

thread_local! {
    /// The promise that the fake breaks on this thread.
    pub(crate) static BREAKS: Cell<&'static str> = const { Cell::new("") };
}

struct FakeWatch {
    breaks: &'static str,
    is_link: bool,
    before: Option<(u64, Instant)>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
struct CarriedBytes {
    bytes: Bytes,
    window_ns: Nanos,
    #[serde(skip)]
    unwritten: u64,
}
detail!("carried" => CarriedBytes);

static CARRIED: &[ObserverHeadline] = &[ObserverHeadline {
    name: "carried",
    about: "bytes",
    of: |seen| {
        let carried = seen.details.find::<CarriedBytes>()?;
        Ok(carried.map(|carried| Bytes(carried.bytes.0 + carried.unwritten).into()))
    },
}];

pub(crate) const FAKE: Observer = Observer {
    name: "fake",
    about: "bytes over loopback",
    cannot_see: &["whose they are"],
    runs: RunPolicy::Always,
    own_sockets_only: false,
    kernel: &[],
    headlines: CARRIED,
    can_run: || Ok(()),
    watch: |link| Box::new(FakeWatch { breaks: BREAKS.get(), is_link: link == "lo", before: None }),
};

/// Returns the number of bytes that loopback received.
fn carried() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs");
    let line = text.lines().find_map(|line| line.trim().strip_prefix("lo:")).expect("loopback");
    line.split_ascii_whitespace().next().and_then(|bytes| bytes.parse().ok()).expect("a number")
}

impl Watch for FakeWatch {
    fn open(&mut self, _scene: &WatchSubject<'_>) -> Result<(), Error> {
        assert_ne!(self.breaks, "panic");
        if self.breaks == "open" {
            return Err(Error::Gone { object: "loopback".into(), why: "by the test".into() });
        }
        let (bytes, at) = self.before.unwrap_or((carried(), Instant::now()));
        let bytes = if self.breaks == "counts" { bytes } else { carried() };
        self.before = Some((bytes, if self.breaks == "window" { at } else { Instant::now() }));
        Ok(())
    }

    fn close(&mut self, seen: &mut Observations) -> Result<(), Error> {
        let Some((bytes, at)) = self.before else { return Ok(()) };
        if self.is_link || self.breaks != "word" {
            let (bytes, window_ns) = (Bytes(carried() - bytes), at.elapsed().into());
            seen.put(CarriedBytes { bytes, window_ns, unwritten: u64::from(self.breaks == "shape") });
        }
        Ok(())
    }
}
