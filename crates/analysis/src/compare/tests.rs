//! Tests with studies small enough to be judged by hand.

use landspeed_record::units::{BitRate, Bytes, CpuNanos};
use landspeed_record::{CompareReport, Contest, ContestQuestion, ExpectationKind, RunFlow, StudyRun};

use super::support_tests::{KILOBIT, alone, record, run, study};
use super::*;

/// Returns the bytes of flow `index` in a second. The first flow alone has 800 and 1200 alternately for 4 s. Then the
/// two flows have 750 and 250 for 8 s. Then the first flow alone has 1000 for 4 s.
fn by_hand(index: usize, second: u64) -> u64 {
    match (index, second) {
        (0, 0..4) => [800, 1200][second as usize % 2],
        (0, 4..12) => 750,
        (1, _) => 250,
        _ => 1000,
    }
}

fn close(one: impl Into<Option<f64>>, other: f64) {
    let one = one.into().expect("a figure");
    assert!((one - other).abs() <= 1e-3 * other.abs().max(1e-9), "{one} is not {other}");
}

#[test]
fn the_papers_formulas_by_hand() {
    let study = study(2, 4, vec![alone("reno")]);
    let mut one = run(&study, &study.contests[0], 0, by_hand);
    one.flows[0].samples.last_mut().unwrap().retransmits = 32;
    let report = compare(&record(&study, vec![one]), "x.jsonl").unwrap();
    let reno = &report.protocols[0];
    // The mean is 8 kb/s, and four of 16 values are 1.6 kb/s off.
    close(reno.mean_bps.0, 8000.0);
    close(reno.sd_bps.0, (4.0 * 1600.0_f64.powi(2) / 15.0).sqrt());
    close(reno.stability, reno.sd_bps.0 / 8000.0);
    let flows: Vec<_> = reno.fairness.iter().map(|region| (region.region, region.flows)).collect();
    assert_eq!(flows, [(1, 1), (2, 2), (3, 1)]);
    // S = s / mean = sqrt(4 * 1600^2 / 3) / 8000.
    close(reno.fairness[0].stability, 0.230_94);
    // F = (3 + 1)^2 / (2 * (9 + 1)).
    close(reno.fairness[1].fairness, 0.8);
    assert_eq!((reno.fairness[0].fairness, reno.fairness[2].fairness), (Some(1.0), Some(1.0)));
    assert_eq!(reno.fairness_min, reno.fairness[1].fairness, "regions of one flow are left out");
    close(reno.rtt_mean_s, 0.12);
    close(reno.rtt_sd_s, 0.02);
    close(reno.cpu, 0.1);
    // 1.6 s of 1 GHz for 128 kbit, and 16000 bytes in segments of 125.
    close(reno.cycles_per_bit, 12_500.0);
    close(reno.resent_share, 0.25);
    assert_eq!((report.runs, report.void.as_deref()), (1, None));
}

#[test]
fn figures_over_repeats_have_students_interval() {
    let mut study = study(1, 4, vec![alone("reno"), alone("htcp")]);
    study.repeats = 3;
    let rate = |contest: usize, repeat: u32| KILOBIT * (u64::from(repeat) + 1 + 10 * contest as u64);
    let runs = [2, 0, 1].into_iter().flat_map(|repeat| [1, 0].map(|contest| (contest, repeat)));
    let runs = runs.map(|(c, r)| run(&study, &study.contests[c], r, |_, _| rate(c, r))).collect();
    let report = compare(&record(&study, runs), "").unwrap();
    let interval = report.protocols[0].mean_over_repeats_bps.unwrap();
    // Means of 1, 2 and 3 kb/s: t(0.975, 2) = 4.3027, half width 2.4842.
    close(interval.mean, 2000.0);
    close(interval.low, -484.2);
    close(interval.high, 4484.2);
    assert_eq!(report.record, None);
    let throughput = &report.rankings[0];
    assert_eq!(throughput.by, "throughput");
    assert_eq!(
        throughput.groups,
        [["htcp"], ["reno"]],
        "always 10 kb/s more, so the intervals do not matter"
    );
    assert!(throughput.note.as_ref().is_some_and(|note| note.contains("3 repeats")));
}

/// The path is the same in each repeat, and only the seed differs. Such runs may be correlated, and do not show how
/// much.
#[test]
fn simulated_repeats_that_differ_by_their_seed_alone_are_one() {
    let mut study = study(4, 4, vec![alone("reno"), alone("htcp")]);
    let meeting = landspeed_record::Contest {
        name: "reno beside htcp".into(),
        contestants: vec!["reno".into(), "htcp".into()],
        question: ContestQuestion::Meeting,
    };
    study.contests.push(meeting);
    (study.engine, study.repeats) = (StudyEngine::Simulator, 3);
    let rate = |contest: usize, repeat: u32| KILOBIT * (u64::from(repeat) + 1 + 10 * contest as u64);
    let runs = |study: &Study| {
        let ids = (0..3).flat_map(|repeat| (0..3).map(move |contest| (contest, repeat)));
        ids.map(|(c, r)| run(study, &study.contests[c], r, |_, _| rate(c, r))).collect()
    };
    let report = compare(&record(&study, runs(&study)), "").unwrap();
    let mean = report.protocols[0].mean_over_repeats_bps.unwrap();
    assert!(mean.mean > 0.0 && report.meetings[0].ratio.is_some());
    assert_eq!((mean.low, report.meetings[0].ratio.unwrap().low), (None, None), "no interval");
    assert_eq!(report.rankings[0].groups, [["htcp", "reno"]], "no difference can be called real");
    assert!(report.notes.iter().any(|note| note.contains("seed alone")), "{:?}", report.notes);
    assert_eq!((report.runs, report.void.as_deref()), (9, None));
}

#[test]
fn a_disturbance_of_a_run_is_a_note() {
    let mut study = study(1, 4, vec![alone("reno")]);
    study.repeats = 10;
    let disturbed = |repeat| StudyRun {
        disturbed: vec!["the hypervisor took processor time from one, 9 % of its processors".into()],
        ..run(&study, &study.contests[0], repeat, |_, _| KILOBIT)
    };
    let report = compare(&record(&study, (0..10).map(disturbed).collect()), "").unwrap();
    let lines: Vec<&String> = report.notes.iter().filter(|note| note.contains("disturbed")).collect();
    assert!(lines[1].starts_with("reno, repeat 2 was disturbed: the hypervisor took"), "{lines:?}");
    assert!(lines.len() == 9 && lines[8].starts_with("2 more runs"), "{lines:?}");
}

#[test]
fn invalid_runs_are_in_no_figure_and_too_many_void_the_study() {
    let mut study = study(1, 4, vec![alone("reno")]);
    study.repeats = 5;
    let contest = study.contests[0].clone();
    let good = |repeat| run(&study, &contest, repeat, |_, _| KILOBIT);
    let late = |repeat| StudyRun {
        invalid: vec!["late".into()],
        ..run(&study, &contest, repeat, |_, _| 9 * KILOBIT)
    };
    let report = compare(&record(&study, vec![late(0), good(1), good(2), good(3), good(4)]), "").unwrap();
    let reno = &report.protocols[0];
    assert_eq!((reno.mean_bps.0, reno.runs, reno.invalid), (1000.0, 4, 1));
    assert_eq!((report.void.as_deref(), report.invalid_runs), (None, 1), "a fifth is not over a fifth");
    let report = compare(&record(&study, vec![late(0), late(1), good(2), good(3), good(4)]), "").unwrap();
    assert!(report.void.is_some_and(|why| why.contains("2 of 5") && why.contains("fifth")));
    let report = compare(&record(&study, vec![good(1), good(2)]), "").unwrap();
    assert!(report.void.is_some_and(|why| why.contains("2 of 5 runs were made")));
    let report = compare(&record(&study, (0..5).map(late).collect()), "").unwrap();
    assert_eq!((report.protocols[0].runs, report.protocols[0].stability), (0, None));
}

#[test]
fn meetings_and_round_trips_are_ratios() {
    let contest = |name: &str, contestants: &[&str], question| landspeed_record::Contest {
        name: name.into(),
        contestants: contestants.iter().map(|c| (*c).to_owned()).collect(),
        question,
    };
    let meeting = contest("reno beside bic", &["reno", "bic"], ContestQuestion::Meeting);
    let longer_ns = Nanos::millis(100);
    let apart = contest("reno far", &["reno"], ContestQuestion::RoundTrips { longer_ns });
    let study = study(4, 4, vec![meeting, apart]);
    // In the middle region the second protocol's flows have three times as much.
    let met = run(&study, &study.contests[0], 0, |index, _| KILOBIT * [1, 3][index % 2]);
    let far = run(&study, &study.contests[1], 0, |index, _| KILOBIT * [4, 1][index]);
    let report = compare(&record(&study, vec![met, far]), "").unwrap();
    let met = &report.meetings[0];
    assert_eq!((met.first.as_str(), met.second.as_str()), ("reno", "bic"));
    close(met.ratio.unwrap().mean, 1.0 / 3.0);
    assert_eq!(met.ratio.unwrap().low, None);
    close(met.fairness, 0.8);
    close(met.mean_bps.0, 8000.0);
    let far = &report.round_trips[0];
    close(far.ratio.unwrap().mean, 4.0);
    close(far.bias, 2.0);
    assert!(report.protocols.is_empty() && report.rankings.is_empty());
}

#[test]
fn short_flows_have_a_median_and_a_tail_only_where_there_are_many() {
    let question = ContestQuestion::ShortFlows { size_bytes: Bytes(1000), every_ns: Nanos::secs(1) };
    let contest = landspeed_record::Contest { question, ..alone("reno") };
    let study = study(4, 4, vec![contest]);
    let mut one = run(&study, &study.contests[0], 0, |_, _| KILOBIT);
    for (index, flow) in one.flows.iter_mut().enumerate().skip(1) {
        *flow = RunFlow { samples: vec![], took_ns: Some(Nanos::millis(100 * index as u64)), ..flow.clone() };
    }
    one.flows[31].took_ns = None;
    let report = compare(&record(&study, vec![one]), "").unwrap();
    let short = &report.short_flows[0];
    assert_eq!((short.completed, short.unfinished, short.p90_s), (30, 1, None));
    close(short.median_s, 1.5);
    close(short.long_bps.0, 1000.0);
}

/// Returns the report of a study of some of the paper's protocols, with throughputs in the given order and repeats
/// that drift together.
fn of_the_paper(scale: f64, repeats: u32, order: &[&str]) -> CompareReport {
    let mut study = Study { repeats, ..Study::paper().scaled(scale) };
    study.contests = order.iter().map(|name| alone(name)).collect();
    let runs = (0..repeats).flat_map(|repeat| (0..order.len()).map(move |place| (repeat, place)));
    let runs = runs.map(|(repeat, place)| {
        let mbps = 500 - 20 * place as u64 + 3 * u64::from(repeat) * ((place as u64 + u64::from(repeat)) % 3);
        run(&study, &study.contests[place], repeat, |_, _| mbps * 125_000)
    });
    compare(&record(&study, runs.collect()), "").unwrap()
}

const PAPERS_ORDER: [&str; 8] = ["scalable", "bic", "htcp", "ltcp", "fast", "highspeed", "reno", "hstcp_lp"];

fn shows(report: &CompareReport, claim: &str) -> Option<bool> {
    report.findings.iter().find(|finding| finding.claim.starts_with(claim)).expect(claim).reproduces
}

#[test]
fn findings_show_where_every_repeat_bears_them_out() {
    let report = of_the_paper(1.0, 3, &PAPERS_ORDER);
    assert_eq!(shows(&report, "Scalable, BIC and H-TCP carry most"), Some(true));
    assert_eq!(shows(&report, "Reno, HSTCP-LP and HSTCP carry least"), Some(true));
    let reversed: Vec<&str> = PAPERS_ORDER.into_iter().rev().collect();
    let report = of_the_paper(1.0, 3, &reversed);
    assert_eq!(shows(&report, "Scalable, BIC and H-TCP carry most"), Some(false));
    let finding = &report.findings[0];
    assert!(finding.reason.is_some() && finding.evidence.contains("Scalable"), "{finding:?}");
    let report = of_the_paper(1.0, 1, &PAPERS_ORDER);
    assert_eq!(shows(&report, "Scalable, BIC and H-TCP carry most"), None, "one repeat cannot tell");
    let report = of_the_paper(1.0, 3, &["reno", "cubic"]);
    assert_eq!(shows(&report, "Scalable, BIC and H-TCP carry most"), None, "not in the study");
}

#[test]
fn udt_is_compared_with_the_tcps_and_is_none_of_them() {
    let with: Vec<&str> =
        PAPERS_ORDER[..3].iter().copied().chain(["udt"]).chain(PAPERS_ORDER[3..].iter().copied()).collect();
    let report = of_the_paper(1.0, 3, &with);
    assert_eq!(shows(&report, "Scalable, BIC and H-TCP carry most"), Some(true), "UDT is no TCP");
    assert_eq!(shows(&report, "UDTv2 carries about as much as the TCPs"), Some(true));
    assert_eq!(shows(&report, "UDTv2 carries about 390 Mb/s"), Some(false), "four flows have 1.1 Gb/s");
    // All cost a tenth of a processor, whatever they carry.
    assert_eq!(shows(&report, "UDTv2 takes about twice"), Some(false));
    let value =
        |figure: &str| report.paper.iter().find(|v| v.protocol == "udt" && v.figure == figure).unwrap().paper;
    assert_eq!((value("mean_bps"), value("cycles_per_bit"), value("fairness_3")), (390e6, 1.2, 0.95));
    let cpu = report.paper.iter().find(|v| v.claim == "cottrell.t1.udtv2.cpu").expect("UDT beside Reno");
    assert_eq!(cpu.figure, "cpu_over_reno");
    close(cpu.paper, 3.75);
    close(cpu.ours, 1.0);
    // A tenth of a processor, with 2.5 flows on average.
    let reno = report.paper.iter().find(|v| v.claim == "cottrell.t1.reno.cpu").expect("Reno's alone");
    assert_eq!((reno.figure.as_str(), reno.paper), ("cpu_of_a_flow", 0.02));
    close(reno.ours, 0.04);

    let report = of_the_paper(1.0, 3, &PAPERS_ORDER);
    let finding = report.findings.iter().find(|f| f.claim.starts_with("UDTv2 takes")).unwrap();
    assert_eq!((finding.reproduces, finding.evidence.contains("UDT")), (None, true), "{finding:?}");
}

#[test]
fn a_simulated_study_says_that_it_counts_no_processor_time() {
    let mut study =
        Study { repeats: 2, engine: StudyEngine::Simulator, varied_share: 0.02, ..Study::paper() };
    study.contests = ["htcp", "udt"].map(alone).to_vec();
    let runs = study.contests.iter().flat_map(|contest| [0, 1].map(|repeat| (contest, repeat)));
    let runs = runs.map(|(contest, repeat)| StudyRun {
        sender_cpu_ns: None,
        ..run(&study, contest, repeat, |_, _| 1_000_000 + u64::from(repeat))
    });
    let report = compare(&record(&study, runs.collect()), "").unwrap();
    for claim in ["UDTv2 takes", "what a bit costs"] {
        let finding = report.findings.iter().find(|finding| finding.claim.starts_with(claim)).unwrap();
        assert_eq!(
            (finding.reproduces, finding.evidence.as_str()),
            (None, "the simulator counts no processor time")
        );
    }
}

#[test]
fn no_scaled_value_is_compared_with_the_papers() {
    let full = of_the_paper(1.0, 2, &["reno"]);
    let mean = full.paper.iter().find(|value| value.figure == "mean_bps").unwrap();
    assert_eq!(mean.paper, 248e6);
    assert_eq!(mean.ours, full.protocols[0].mean_bps.0);
    assert_eq!(mean.claim, "cottrell.t1.reno.avg");
    let third = full.paper.iter().find(|value| value.figure == "fairness_3").unwrap();
    assert_eq!((third.paper, third.claim.as_str()), (0.60, "cottrell.t2.reno.fairness"));
    let scaled = of_the_paper(0.1, 2, &["reno"]);
    assert!(scaled.paper.is_empty());
    assert!(scaled.notes.iter().any(|note| note.contains("not at full size")), "{:?}", scaled.notes);
    let value = scaled.findings.iter().find(|f| f.claim.contains("by up to 25 %")).unwrap();
    assert!(value.reproduces.is_none() && value.evidence.contains("not comparable"), "{value:?}");
    let mut other = Study::paper();
    other.path.rtt_ns = Nanos::millis(80);
    assert!(paper::why_not_beside(&other).is_some_and(|why| why.contains("80 ms")));
    other.path.rtt_ns = Nanos::millis(178);
    assert_eq!(paper::why_not_beside(&other), None);
    // A scene is the paper's path as far as the paper describes it, whatever its rate.
    other.path.rate_bps = BitRate(622e6);
    assert!(paper::why_not_beside(&other).is_some());
    other.scene = Some("2004".into());
    assert_eq!(paper::why_not_beside(&other), None);
}

#[test]
fn a_scene_gives_no_reason_about_a_part_that_it_has() {
    let reasons = |scene: Option<&str>| {
        let mut study = study(4, 2, vec![alone("reno"), alone("scalable"), alone("htcp")]);
        (study.scene, study.repeats) = (scene.map(str::to_owned), 2);
        // Reno carries most.
        let bytes = |contest: &Contest| if contest.name == "reno" { 2_000_000 } else { 1_000_000 };
        let runs = study.contests.iter().flat_map(|contest| [0, 1].map(|repeat| (contest, repeat)));
        let runs = runs
            .map(|(contest, repeat)| run(&study, contest, repeat, |_, _| bytes(contest) + u64::from(repeat)));
        let report = compare(&record(&study, runs.collect()), "").unwrap();
        let failed = report.findings.into_iter().filter(|finding| finding.reproduces == Some(false));
        failed.map(|finding| finding.reason).collect::<Vec<_>>()
    };
    let (without, with) = (reasons(None), reasons(Some("2004")));
    assert!(!without.is_empty() && without.iter().all(Option::is_some));
    assert!(with.len() >= without.len() && with.iter().all(Option::is_none));
}

#[test]
fn each_finding_names_its_claims_and_only_a_judged_one_has_a_kind() {
    let report = of_the_paper(1.0, 2, &["reno"]);
    assert!(report.findings.iter().all(|finding| !finding.claims.is_empty()));
    let kind = |id: &str| study_claims().into_iter().find(|one| one.claim == id).expect(id).kind;
    assert_eq!(kind("cottrell.rank.rtt"), Some(ExpectationKind::Direction));
    assert_eq!(kind("cottrell.t1.reno.std"), Some(ExpectationKind::Number));
    assert_eq!(kind("cottrell.t1.udtv2.std"), Some(ExpectationKind::InKind));
    assert_eq!(kind("cottrell.udt.aggregate"), Some(ExpectationKind::InKind));
    assert_eq!(kind("cottrell.avg.S"), None, "a study has one round trip");
    assert_eq!(kind("cottrell.t1.reno.cpu"), Some(ExpectationKind::Number));
    assert_eq!(kind("cottrell.t1.hstcp.cpu"), Some(ExpectationKind::Number));
    assert_eq!(kind("cottrell.t1.udtv2.cpu"), Some(ExpectationKind::InKind));
}

#[test]
fn a_record_of_something_else_is_named() {
    let mut record = record(&study(1, 1, vec![]), vec![]);
    assert!(compare(&record, "x").unwrap().void.is_some());
    record.lines.clear();
    record.header.kind = "tune".into();
    let why = compare(&record, "x.jsonl").unwrap_err().to_string();
    assert!(why.contains("x.jsonl") && why.contains("tune"), "{why}");
}

/// Covers everything that a forged record may contain, in every combination that matters.
#[test]
fn a_forged_record_gives_finite_figures() {
    let long = u64::MAX;
    for (flows, region, sample_ns, bytes) in
        [(0, 1, 1, 1), (1, 0, 0, 0), (4, 1, 1, long), (u16::MAX, 1, long, 1), (3, long / 2, 0, long)]
    {
        let mut study = study(4, 1, vec![alone("reno"), alone("htcp"), alone("fast")]);
        let mut runs: Vec<StudyRun> =
            study.contests.iter().map(|contest| run(&study, contest, 0, |_, _| bytes)).collect();
        runs[0].flows[0].samples[1].at_ns = Nanos(long);
        runs[0].flows[1].samples.clear();
        runs[1].sender_cpu_ns = Some(CpuNanos(long));
        runs[1].sender_clock_hz = Some(f64::MAX);
        runs[1].probes.truncate(1);
        runs[2].probes[0].rtt_ns = Nanos(long);
        runs[2].flows.truncate(1);
        runs.push(StudyRun { repeat: long as u32, ..StudyRun::default() });
        (study.flows, study.region_ns, study.sample_ns) = (flows, Nanos(region), Nanos(sample_ns));
        (study.path.mtu_bytes, study.path.rate_bps.0, study.scale) = (1, f64::MAX, -0.0);
        let report = compare(&record(&study, runs), "").unwrap();
        let text = serde_json::to_string(&report).unwrap();
        // NaN and infinity are written as null, from which a required figure cannot be read.
        assert_eq!(serde_json::from_str::<CompareReport>(&text).unwrap().runs, report.runs);
        assert!(
            !format!("{report:?}").contains("NaN") && !format!("{report:?}").contains("inf"),
            "{report:?}"
        );
    }
}

#[test]
fn the_papers_findings_are_left_out_of_other_questions() {
    let findings = |question| {
        let study = study(2, 4, vec![Contest { question, ..alone("reno") }]);
        let one = run(&study, &study.contests[0], 0, by_hand);
        compare(&record(&study, vec![one]), "").unwrap().findings.len()
    };
    assert_eq!(findings(ContestQuestion::Streams { streams: 1, window_bytes: Bytes(1_000) }), 0);
    assert_eq!(findings(ContestQuestion::Regions), 27);
}
