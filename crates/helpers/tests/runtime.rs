//! Tests of the runtime with a small chain of filters: a slow last filter, and a host that is killed.

use std::env;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use landspeed_helpers::filter::{
    Error, Filter, FilterApplication, FilterCopy, FilterInput, FilterJob, FilterOutput, FilterStage,
    Placement, run_job,
};
use landspeed_proof::Secret;
use parking_lot::Mutex;

/// The size of a buffer, in bytes.
const BUFFER: usize = 10_000;

/// The number of buffers in a unit from each copy of the first filter.
const BUFFERS: usize = 50;

const STAGES: [FilterStage; 3] = [
    FilterStage { name: "make", is_varied: false, largest: BUFFER },
    FilterStage { name: "pass", is_varied: false, largest: BUFFER },
    FilterStage { name: "take", is_varied: false, largest: 8 },
];

const PLACEMENT: &str = "credits = 3\n[[filter]]\nname = 'make'\nhosts = [1, 2]\n[[filter]]\nname = 'pass'\n\
                         hosts = [1, 2]\n[[filter]]\nname = 'take'\nhosts = [0]\n";

/// A chain of filters that creates buffers, passes them on, and counts them at the end.
#[derive(Default)]
struct TestChain {
    /// The number of bytes created and not yet taken, if all hosts are threads of one process.
    now: AtomicI64,
    /// Maximum of `now`.
    most: AtomicI64,
    /// The channel on which the last filter signals at the first buffer, and the one on which it then waits for a
    /// reply.
    pause: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl FilterApplication for TestChain {
    fn stages(&self) -> &[FilterStage] {
        &STAGES
    }

    fn filter(&self, place: FilterCopy) -> Box<dyn Filter + '_> {
        Box::new(ChainFilter { chain: self, stage: place.stage })
    }

    fn plain(&self, _: u32) -> Vec<u8> {
        (2 * BUFFERS as u64).to_le_bytes().to_vec()
    }
}

struct ChainFilter<'a> {
    chain: &'a TestChain,
    stage: usize,
}

impl Filter for ChainFilter<'_> {
    fn work(
        &mut self,
        _: u32,
        input: &mut FilterInput<'_>,
        output: &mut FilterOutput<'_>,
    ) -> Result<(), Error> {
        match self.stage {
            0 => (0..BUFFERS).try_for_each(|_| {
                output.send(vec![7; BUFFER])?;
                let now = self.chain.now.fetch_add(BUFFER as i64, Ordering::SeqCst) + BUFFER as i64;
                self.chain.most.fetch_max(now, Ordering::SeqCst);
                Ok(())
            }),
            1 => {
                while let Some(buffer) = input.take()? {
                    output.send(buffer.to_vec())?;
                }
                Ok(())
            }
            _ => self.take_all(input, output),
        }
    }
}

impl ChainFilter<'_> {
    fn take_all(&self, input: &mut FilterInput<'_>, output: &mut FilterOutput<'_>) -> Result<(), Error> {
        let mut count = 0_u64;
        while let Some(buffer) = input.take()? {
            self.chain.now.fetch_sub(buffer.len() as i64, Ordering::SeqCst);
            count += 1;
            if let Some((said, word)) = self.chain.pause.lock().take() {
                said.send(()).unwrap();
                word.recv().unwrap();
            }
            // Slower than the other filters, on any machine.
            thread::sleep(Duration::from_millis(2));
        }
        output.send(count.to_le_bytes().to_vec())
    }
}

fn hosts() -> Vec<IpAddr> {
    (1..=3).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect()
}

/// Returns the first of three consecutive free ports, below those that the kernel assigns.
fn free_port(first: u16) -> u16 {
    let is_free = |port: u16| (0..).zip(hosts()).all(|(n, host)| TcpListener::bind((host, port + n)).is_ok());
    (first + (std::process::id() % 300) as u16 * 3..first + 2000)
        .step_by(3)
        .find(|port| is_free(*port))
        .unwrap()
}

fn job(host: usize, port: u16, units: u32) -> FilterJob {
    FilterJob {
        host,
        hosts: hosts(),
        port,
        token: Secret::of("salt", "filters").unwrap(),
        placement: Placement::read(PLACEMENT, &STAGES, 3, None).unwrap(),
        units,
        ahead: 2,
        parameters: String::new(),
        join: Duration::from_secs(60),
        limit: Duration::from_secs(120),
    }
}

#[test]
fn a_slow_last_filter_keeps_memory_within_the_bound() {
    let chain = TestChain::default();
    let port = free_port(28_000);
    let outcome = thread::scope(|scope| {
        let chain = &chain;
        let start = |host| scope.spawn(move || run_job(chain, &job(host, port, 3), true));
        let parts = [1, 2].map(start);
        let outcome = run_job(chain, &job(0, port, 3), true).unwrap();
        parts.into_iter().for_each(|part| drop(part.join().unwrap().unwrap()));
        outcome
    });
    assert_eq!(outcome.is_equal, Some(true));
    assert_eq!(outcome.buffers, 3 * 2 * 2 * BUFFERS as u64);
    // Credits x buffer x streams: two copies to two, and two to one.
    assert_eq!(outcome.bound.0, 3 * BUFFER as u64 * (2 * 2 + 2));
    assert!(outcome.peak <= outcome.bound, "{outcome:?}");

    // The filters themselves count these bytes too. A maker counts a buffer only after it has sent the buffer, so the
    // last filter may subtract it first, and the count is never too high.
    let most = chain.most.load(Ordering::SeqCst) as u64;
    assert!(most <= outcome.bound.0, "{most} bytes of {:?}", outcome.bound);
    // Without a bound, the buffers of two units would accumulate.
    assert!(outcome.bound.0 * 2 < 2 * 2 * (BUFFERS * BUFFER) as u64);
}

const CHILD: &str = "LANDSPEED_FILTER_TEST_PORT";

/// Starts the host that is killed: a separate process that runs this same test.
fn child(port: u16) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["a_killed_host_is_named_by_every_other", "--exact"]).env(CHILD, port.to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_host_is_named_by_every_other() {
    if let Ok(port) = env::var(CHILD) {
        run_job(&TestChain::default(), &job(2, port.parse().unwrap(), 1000), false).unwrap_err();
        return;
    }
    let port = free_port(30_000);
    let (said, hears) = channel();
    let (word, waits) = channel();
    let chain = TestChain { pause: Mutex::new(Some((said, waits))), ..TestChain::default() };
    let mut killed = child(port);
    let ended = thread::scope(|scope| {
        let chain = &chain;
        let parts = [0, 1].map(|host| scope.spawn(move || run_job(chain, &job(host, port, 1000), false)));
        hears.recv().unwrap();
        killed.kill().unwrap();
        killed.wait().unwrap();
        word.send(()).unwrap();
        parts.map(|part| part.join().unwrap().unwrap_err().to_string())
    });
    for text in &ended {
        assert!(text.contains("host 2 (127.0.0.3) is gone"), "{ended:?}");
    }
}
