//! Tests of the measurements of a trial on real paths: each test runs blocks as `tune` does.

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landspeed_analysis::{BlockResult, LadderBlock};
use landspeed_engine::{
    BlockOutcome, BlockRunner, JoinedHosts, Pairing, PathOptions, ReachOptions, RecordSink, TrialTiming,
};
use landspeed_record::units::Nanos;
use landspeed_record::{CpuUsage, Line, RecordWriteError, TcpSample, Trial, TrialFigures};

use support::{LANDSPEED, needs_root};

/// Runs one block in a lab whose agents are `agent`.
fn block(lab: &str, agent: &Path) -> TrialSink {
    let hosts = landspeed_lab::topology::open(&[lab.to_owned()]).expect("a lab");
    let reaching = ReachOptions { tune: true, agent: Some(agent.to_owned()), ..ReachOptions::default() };
    let joined = JoinedHosts::open(hosts, Pairing::FirstTwo, &reaching, &PathOptions::default());
    let JoinedHosts { mut group, hosts: _hosts, .. } = joined.expect("a path");
    let cell = group.found(landspeed_transport::settings::defaults(landspeed_transport::TRANSPORTS[0]));
    let block = LadderBlock {
        step: "as-found".into(),
        what: "the hosts as they are".into(),
        incumbent: cell.clone(),
        candidate: cell,
        toggle: Nanos(0),
        fine: true,
        candidate_first: false,
        most: 0,
        block: 0,
    };
    let (mut trials, timing) = (TrialSink::default(), TrialTiming::for_rtt(group.rtt()));
    let mut blocks =
        BlockRunner { group: &mut group, program: None, timing, began: Instant::now(), sink: &mut trials };
    let BlockOutcome::Measured(BlockResult { figures, .. }) = blocks.measure(&block).expect("a block") else {
        panic!("a host refused the block")
    };
    assert_eq!(figures.len(), trials.0.len());
    // The agents end before the lab is removed.
    drop(group);
    trials
}

#[derive(Default)]
struct TrialSink(Vec<Trial>);

impl TrialSink {
    fn figures(&self) -> impl Iterator<Item = TrialFigures> + '_ {
        self.0.iter().map(|trial| trial.figures)
    }
}

impl RecordSink for TrialSink {
    fn line(&mut self, line: &Line) -> Result<(), RecordWriteError> {
        if let Line::Trial(trial) = line {
            self.0.push((**trial).clone());
        }
        Ok(())
    }

    fn stop(&self) -> bool {
        false
    }
}

/// Tests 20 ms of queue before a line with a round trip of 1 ms, which CUBIC fills in slow start. The loaded round
/// trip is compared with the path's own, because the idle one is longer on a busy machine.
#[test]
fn a_deep_queue_shows_in_the_round_trip_under_load() {
    needs_root!();
    let trials = block("lab:wan:rate=100M,rtt=1ms,queue=250K", LANDSPEED.as_ref());
    let mut loaded: Vec<Nanos> = trials.figures().filter_map(|figures| figures.loaded_latency_ns).collect();
    loaded.sort_unstable();
    assert!(loaded.len() * 2 > trials.0.len(), "a TCP stream tells its round trip: {loaded:?}");
    // The median is checked, because in some trials other load may keep the sender from filling the queue.
    assert!(loaded[loaded.len() / 2] > Nanos::millis(4), "{loaded:?}");
    for trial in &trials.0 {
        let link = [&trial.a, &trial.b].map(|end| end.observed.get::<CpuUsage>().link_ns);
        assert!(link.iter().all(|ran| ran.is_some_and(|ran| ran.0 > 0)), "its threads are known: {link:?}");
        let samples = trial.a.observed.get::<Vec<TcpSample>>().len();
        // A busy machine leaves some out.
        assert!(samples <= 5, "{samples} samples: the stream pays for each");
    }
}

/// A control group that limits its processes to a fifth of a processor, in periods of 10 ms; removed on drop.
struct CpuQuota(PathBuf);

impl CpuQuota {
    fn new() -> Result<CpuQuota, String> {
        let name = format!("landspeed-test-{}", std::process::id());
        // Version 1 of the controller where it is mounted (cgroups(7)), version 2 where it is delegated.
        let settings: [(&str, &[(&str, &str)]); 2] = [
            ("/sys/fs/cgroup/cpu", &[("cpu.cfs_period_us", "10000"), ("cpu.cfs_quota_us", "2000")]),
            ("/sys/fs/cgroup", &[("cpu.max", "2000 10000")]),
        ];
        let mut why = Vec::new();
        for (root, settings) in settings {
            let made = Self::set(&Path::new(root).join(&name), settings);
            match made {
                Ok(quota) => return Ok(quota),
                Err(error) => why.push(format!("{root}: {error}")),
            }
        }
        Err(why.join("; "))
    }

    fn set(folder: &Path, settings: &[(&str, &str)]) -> std::io::Result<CpuQuota> {
        std::fs::create_dir(folder)?;
        let quota = CpuQuota(folder.to_owned());
        for (file, value) in settings {
            std::fs::OpenOptions::new().write(true).open(folder.join(file))?.write_all(value.as_bytes())?;
        }
        Ok(quota)
    }

    /// Writes a program that runs landspeed in this group.
    fn agent(&self, folder: &Path) -> PathBuf {
        let path = folder.join("agent");
        let script =
            format!("#!/bin/sh\necho $$ > {}/cgroup.procs && exec {LANDSPEED} \"$@\"\n", self.0.display());
        std::fs::write(&path, script).expect("a script");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a program");
        path
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // Processes leave the group shortly after they were asked to end.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_quota_shows_as_the_time_in_which_it_held_the_hosts_back() {
    needs_root!();
    let quota = match CpuQuota::new() {
        Ok(quota) => quota,
        Err(why) => return support::skip(&format!("no control group with a quota: {why}")),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let trials = block("lab:back-to-back", &quota.agent(folder.path()));
    let mut shares: Vec<f64> = trials.figures().map(|figures| figures.throttled).collect();
    shares.sort_by(f64::total_cmp);
    // The median is checked, because other load on the processor may keep a trial from using up its quota.
    assert!(shares[shares.len() / 2] > 0.1 && shares[shares.len() - 1] <= 1.0, "{shares:?}");
}
