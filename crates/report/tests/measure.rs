//! The result of a measurement as text and as JSON.

use landspeed_record::{
    CoreClasses, CpuUsage, EndpointOutcome, HostFacts, LatencyHistogram, MEASURE_FORMAT, MeasureReport,
    Observations, PathFacts, SweepPoint, TcpSample, Workload,
};
use landspeed_report::measure;
use landspeed_units::{Bytes, BytesPerCpuSecond, CpuNanos, Nanos};

fn report(workload: Workload) -> MeasureReport {
    let host = |name: &str| HostFacts {
        hostname: name.into(),
        kernel: "6.18.5".into(),
        boot_id: "one".into(),
        ..HostFacts::default()
    };
    MeasureReport {
        format: MEASURE_FORMAT,
        landspeed: "0.1.0".into(),
        started: "2026-11-21T11:30:07Z".into(),
        command: "landspeed measure stream".into(),
        topology: "lab:back-to-back".into(),
        workload,
        host_a: host("ls-a"),
        host_b: host("ls-b"),
        path: PathFacts {
            address_a: "10.99.0.1".into(),
            address_b: "10.99.0.2".into(),
            ..PathFacts::default()
        },
        streams: Vec::new(),
        bytes_per_cpu_s: None,
        sweep: Vec::new(),
        latency_of: "round trip".into(),
        latency: Vec::new(),
        connections_per_s: None,
        cpu: Vec::new(),
        tcp: Vec::new(),
        wan: None,
        notes: Vec::new(),
        record: None,
    }
}

fn core(core: u32) -> CoreClasses {
    CoreClasses {
        core,
        user_ns: CpuNanos(100_000_000),
        system_ns: CpuNanos(700_000_000),
        ..CoreClasses::default()
    }
}

#[test]
fn a_stream_shows_goodput_cost_processor_time_and_what_tcp_waited_for() {
    let sample = TcpSample {
        busy_ns: Nanos::secs(1),
        rwnd_limited_ns: Nanos::millis(250),
        retransmits: 3,
        rtt_ns: Nanos::micros(49),
        min_rtt_ns: Nanos::micros(13),
        ..TcpSample::default()
    };
    let cpu = CpuUsage { window_ns: Nanos::secs(1), cores: vec![core(0), core(1)], ..CpuUsage::default() };
    let unseen = vec!["no hardware counters\u{1b}[2J".to_owned()];
    let a = EndpointOutcome {
        observed: Observations { unseen, ..Observations::default().with(cpu).with(vec![sample]) },
        zerocopy_completions: 10,
        zerocopy_copied: 10,
        ..EndpointOutcome::default()
    };
    let b = EndpointOutcome {
        received_bytes: Bytes(1_250_000_000),
        window_ns: Nanos::secs(1),
        flow_bytes: vec![Bytes(1_250_000_000)],
        ..EndpointOutcome::default()
    };
    let mut report = report(Workload::new("stream")).with_outcomes(&a, &b);
    report.bytes_per_cpu_s = Some(BytesPerCpuSecond(0.78e9));
    let text = measure::text(&report, 80, false);
    let said = [
        "A to B",
        "10 Gb/s",
        "780 MB/cpu-s",
        "1.40",
        "25 %",
        "49 us (least 13 us)",
        "copied 10 of 10",
        "one machine",
    ];
    for said in said {
        assert!(text.contains(said), "{said} is missing:\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
    let back: MeasureReport = serde_json::from_str(&measure::json(&report)).expect("reads back");
    assert_eq!(back, report);
}

#[test]
fn a_sweep_shows_peak_and_mean() {
    let point = |size: u64, took| SweepPoint {
        size_bytes: Bytes(size),
        moved_bytes: Bytes(size * 1000),
        took_ns: Nanos(took),
    };
    let b = EndpointOutcome {
        sweep: vec![point(125, 1_000_000), point(1250, 2_000_000)],
        ..EndpointOutcome::default()
    };
    let report = report(Workload::new("sweep"));
    let text = measure::text(&report.with_outcomes(&EndpointOutcome::default(), &b), 80, false);
    assert!(text.contains("peak  5 Gb/s at 1250 B") && text.contains("mean  3 Gb/s"), "{text}");
}

#[test]
fn a_percentile_without_samples_behind_it_is_a_dash() {
    let histogram = LatencyHistogram { size_bytes: Bytes(1), bins: vec![(13_000, 980), (40_000, 20)] };
    let a = EndpointOutcome { latency: vec![histogram], ..EndpointOutcome::default() };
    let workload = Workload::new("connect");
    let report = MeasureReport { latency_of: "connection set-up time".into(), ..report(workload) };
    let text = measure::text(&report.with_outcomes(&a, &EndpointOutcome::default()), 80, false);
    let row = text.lines().find(|line| line.starts_with("set-up")).unwrap_or_default();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["set-up", "1000", "13", "us", "13", "us", "40", "us", "-", "-"]
    );
    assert!(text.contains("fewer than 10 samples"), "{text}");
}
