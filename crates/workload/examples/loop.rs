//! Runs a stream, a sweep of one size and a ping-pong over loopback and prints their figures:
//!
//! `cargo run --release -p landspeed-workload --example loop [SECONDS] [CORE,CORE]`
//!
//! The first core is the client's, the second the server's; the same one twice shows what a single
//! core can do. Compare with `iperf3 -c 127.0.0.1 -l 128K` and `sockperf ping-pong --tcp`.

use std::net::{IpAddr, Ipv4Addr};

use landspeed_record::{CpuUsage, EndpointOutcome, Observations, Settings, SweepPoint, TrialSpec, Workload};
use landspeed_transport::settings::WRITE_SIZE;
use landspeed_units::{CpuNanos, Nanos};
use landspeed_workload::{
    Cancel, ClientPlan, DataPort, Ends, Error, Watch, pingpong, run_client, run_server, stream, sweep,
};

const KEY: [u8; 32] = [1; 32];
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let cores = arguments.next().unwrap_or_default();
    let cores: Vec<u32> = cores.split(',').filter_map(|core| core.parse().ok()).collect();
    let duration_ns = Nanos((seconds * 1e9) as u64);

    let (client, server) = trial(stream::spec(duration_ns), &cores)?;
    let cpu = client.observed.get::<CpuUsage>().workload_ns + server.observed.get::<CpuUsage>().workload_ns;
    let rate = server.received_bytes.per(server.window_ns);
    println!("stream     {rate}, {}, workers only", server.received_bytes.per_cpu(cpu));

    let size = WRITE_SIZE.bytes(&Settings::new());
    let count = server.received_bytes.0 / size.0 + 1;
    let (_, server) = trial(sweep::spec(count, &[size]), &cores)?;
    for point in server.get::<Vec<SweepPoint>>() {
        println!("sweep      {} in writes of {}", point.moved_bytes.per(point.took_ns), point.size_bytes);
    }

    let (client, _) = trial(pingpong::one_byte(duration_ns), &cores)?;
    for histogram in &client.latency {
        let shown = [0.5, 0.99, 0.999].map(|q| histogram.percentile(q).map(|t| format!("{t}")));
        println!("ping-pong  round trip p50, p99, p99.9: {shown:?}, {} rounds", histogram.count());
    }
    Ok(())
}

/// Both ends of one trial.
fn trial(workload: Workload, cores: &[u32]) -> Result<(EndpointOutcome, EndpointOutcome), Error> {
    let spec = |end: usize| TrialSpec {
        workload: workload.clone(),
        flow: Settings::new(),
        cores: cores.get(end).copied().into_iter().collect(),
        warm_up_ns: Nanos::millis(100),
        interval_ns: Nanos(0),
        observers: vec![],
    };
    let port = DataPort::open(HERE, &["tcp"], KEY)?;
    let plan = ClientPlan { server: (HERE, port.port()).into(), source_port: 0, key: KEY };
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| run_server(&spec(1), &port, &mut Clocks::default(), &cancel));
        let client = run_client(&spec(0), &plan, &mut Clocks::default(), &cancel);
        Ok((client?, served.join().expect("the server's end does not panic")?))
    })
}

/// Watches the run time of the worker threads (first figure of /proc/self/task/TID/schedstat, in ns).
#[derive(Default)]
struct Clocks {
    threads: Vec<i32>,
    then: CpuNanos,
}

impl Clocks {
    fn now(&self) -> CpuNanos {
        let run_time = |thread: &i32| {
            let text =
                std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
            CpuNanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
        };
        self.threads.iter().map(run_time).sum()
    }
}

impl Watch for Clocks {
    fn open(&mut self, ends: &Ends<'_>) {
        self.threads = ends.threads.to_vec();
        self.then = self.now();
    }

    fn sample(&mut self, _: Nanos) {}

    fn close(&mut self) -> Observations {
        let cpu = CpuUsage { workload_ns: self.now() - self.then, ..CpuUsage::default() };
        Observations::default().with(cpu)
    }
}
