//! Tests of parsing and printing links.

use landspeed_record::units::{BitRate, Bytes, Nanos};
use proptest::prelude::*;

use super::super::parameters::parameters;
use super::super::spec::{DropList, LineSpeed, QueueSpec};
use super::super::value::LONGEST_TEXT;
use super::*;

fn refused(text: &str) -> String {
    text.parse::<WanSpec>().expect_err(text).to_string()
}

fn again(text: &str) -> String {
    text.parse::<WanSpec>().expect(text).to_string()
}

#[test]
fn the_empty_text_is_a_clean_gigabit() {
    let spec: WanSpec = "".parse().unwrap();
    assert_eq!(spec.to_string(), "rate=1G,rtt=20ms,queue=1bdp");
    assert_eq!(spec.queue(), Some(Bytes(2_500_000)));
    assert_eq!(spec.plan().unwrap()[0].delay, Nanos::millis(10));
}

#[test]
fn every_parameter_is_read_and_printed_again() {
    let all = [
        "rate=2500M,rtt=180ms,queue=0.5bdp,mark-above=65p,jitter=2ms,loss=0.01%,loss-burst=12.5,loss-nth=1000,\
         drop-list=5+17+300,reorder=0.1%,reorder-delay=2500us,duplicate=0.2%,drop-above=1400,cross=30%,cross-on=500ms,cross-off=2s,cross-short=25%,pairs=2,seed=7",
        "trace=/tmp/a b.trace,rtt=0ns,queue=1000p,loss-states=0.1%+12.5%+0%+100%,second-rtt=160ms",
    ];
    assert!(all.iter().all(|text| again(text) == **text));
    let mut names = parameters().into_iter().flatten().map(|parameter| parameter.name);
    assert!(names.all(|name| all.concat().contains(&format!("{name}="))), "every parameter is tested");
}

#[test]
fn defaults_are_those_of_the_table() {
    let of = |given: &str, parameters: &[Parameter]| {
        let rest = parameters.iter().filter(|item| !item.default.is_empty() && item.name != "reorder-delay");
        rest.for_each(|item| assert_eq!(again(&format!("{given}{}={}", item.name, item.default)), again("")));
    };
    let [direction, link] = parameters();
    of("", &direction);
    of("back.", &direction);
    of("", &link);
    assert_eq!(again("reorder=1%,reorder-delay=1ms"), again("reorder=1%"));
}

#[test]
fn the_return_path_lists_only_differences() {
    for text in [
        "rate=1G,rtt=20ms,queue=1bdp,back.rate=100M",
        "rate=1G,rtt=20ms,queue=1bdp,loss=1%,loss-burst=8,back.loss=0%",
        "rate=1G,rtt=20ms,queue=1bdp,mark-above=64K,jitter=1ms,back.mark-above=none,back.jitter=0ns",
        "rate=1G,rtt=20ms,queue=1bdp,back.rate=2G,back.drop-list=4",
        "trace=x,rtt=20ms,queue=1bdp,drop-list=y,back.rate=1G",
        "rate=1G,rtt=20ms,queue=1bdp,back.trace=x,back.drop-list=y",
        "rate=1G,rtt=20ms,queue=1bdp,reorder=1%,reorder-delay=5ms,back.reorder=0%",
    ] {
        assert_eq!(again(text), text);
    }
    assert_eq!(again("back.rate=1G,loss=1%"), again("loss=1%"), "whichever comes first");
}

#[test]
fn a_second_round_trip_changes_no_queue() {
    let spec: WanSpec = "rtt=40ms,second-rtt=160ms".parse().unwrap();
    assert_eq!((spec.rtt(), spec.second_rtt()), (Nanos::millis(40), Some(Nanos::millis(160))));
    assert_eq!(spec.queue(), "rtt=40ms".parse::<WanSpec>().unwrap().queue());
    assert_eq!(again("second-rtt=none"), again(""));
    assert!("second-rtt=40ms,back.reorder=1%".parse::<WanSpec>().is_ok(), "that way has one delay");
}

#[test]
fn losses_by_number_are_those_of_the_way_there() {
    let spec: WanSpec = "loss-nth=9,drop-list=1+2,loss=1%".parse().unwrap();
    assert_eq!(
        (spec.directions[1].loss_nth, &spec.directions[1].drop_list),
        (None, &DirectionSpec::default().drop_list)
    );
    assert_eq!(spec.directions[1].loss, spec.directions[0].loss);
    let spec: WanSpec = "back.loss-nth=9".parse().unwrap();
    assert_eq!((spec.directions[0].loss_nth, spec.directions[1].loss_nth), (None, Some(9)));
}

#[test]
fn rates_are_read_as_people_and_tc_write_them() {
    for text in ["1G", "1gbit", "1Gbit/s", "1Gb/s", "1000mbit", "1e0G", "1000000000"] {
        let rate = format!("rate={text}").parse::<WanSpec>().ok().and_then(|spec| spec.rate());
        assert_eq!(rate, (text != "1e0G").then_some(BitRate(1e9)), "{text}");
    }
}

#[test]
fn a_queue_takes_at_least_what_a_host_sends_at_once() {
    let queue = |text: &str| text.parse::<WanSpec>().unwrap().queue();
    assert_eq!(queue("rtt=0ms"), Some(Bytes::kib(64)));
    assert_eq!(queue("queue=3000"), Some(Bytes(3000)), "but what is said in bytes is meant");
    assert_eq!(queue("queue=3p"), None);
}

#[test]
fn errors_name_the_fault_and_the_remedy() {
    assert!(refused("rate").contains("expected KEY=VALUE"));
    let error = refused("delay=20ms");
    assert!(error.contains("'delay'") && error.contains("rtt") && error.contains("back.KEY"), "{error}");
    let error = refused("rate=7bits");
    assert!(error.contains("rate=7bits") && error.contains("2.5Gb/s"), "{error}");
    assert_eq!(refused("seed=1,seed=2"), "lab:wan: seed is given twice");
    assert_eq!(refused("back.loss=1%,back.loss=2%"), "lab:wan: back.loss is given twice");
    assert!(refused("back.rtt=1ms").contains("'back.rtt'"));
    assert!(refused("loss-burst=8").contains("add loss=0.1%"));
    assert!(refused("reorder-delay=8ms").contains("add reorder=0.1%"));
    assert!(refused("loss=90%,loss-burst=4").contains("at most loss=80%"));
    assert!(refused("loss=1%,loss-states=1%+1%+0%+1%").contains("give one"));
    assert!(refused("rate=1G,trace=x").contains("give one"));
    assert!(refused("second-rtt=20ms").contains("is no longer than rtt=20ms"));
    assert!(refused("second-rtt=40ms,reorder=1%").contains("give one"));
    assert!(refused("back.second-rtt=40ms").contains("'back.second-rtt'"));
}

#[test]
fn files_are_looked_at_when_they_are_needed() {
    for text in ["trace=/nowhere/at/all", "back.drop-list=/nowhere/at/all"] {
        let error = text.parse::<WanSpec>().unwrap().check().unwrap_err().to_string();
        assert!(
            error.contains(text.trim_start_matches("back.")) && error.contains("cannot be opened"),
            "{error}"
        );
    }
    let spec: WanSpec = "trace=x,queue=64K".parse().unwrap();
    assert_eq!((spec.rate(), spec.queue()), (None, Some(Bytes::kib(64))));
    assert_eq!("trace=x".parse::<WanSpec>().unwrap().queue(), None);
}

#[test]
fn lists_are_no_longer_than_a_labs_state_can_hold() {
    let longest = format!("1+{}", "9".repeat(16))
        + &(0..110).map(|n| format!("+{}", 10_u64.pow(16) + n)).collect::<String>();
    let file = "x".repeat(LONGEST_TEXT);
    let both =
        format!("trace={file},drop-list={longest},back.trace=y{},back.drop-list={longest}", &file[1..]);
    assert!(longest.len() < LONGEST_TEXT && again(&both).len() < 10_000);
    assert!(refused(&format!("trace={file}x")).contains("expected a file"));
    assert!(refused(&format!("drop-list={longest}{longest}")).contains("expected numbers"));
}

#[test]
fn an_invalid_link_is_refused() {
    for bad in [
        "rate=0",
        "rate=200G",
        "rtt=11s",
        "rtt=-1ms",
        "queue=0",
        "queue=0bdp",
        "queue=101bdp",
        "queue=bdp",
        "queue=p",
        "queue=0p",
        "queue=+5p",
        "queue=1000001p",
        "mark-above=0",
        "jitter=11s",
        "loss=101%",
        "loss=",
        "loss-burst=0,loss=1%",
        "loss-burst=100001,loss=1%",
        "loss-burst=1e3,loss=1%",
        "loss-states=1%+1%+0%",
        "loss-states=1%+1%+0%+1%+1%",
        "loss-states=1%+1%+0%+101%",
        "loss-nth=0",
        "drop-list=5+4",
        "drop-list=0",
        "drop-list=",
        "drop-list=5+",
        "drop-list=5+5",
        "drop-list=a\u{7}",
        "trace=",
        "trace=a\u{7}",
        "drop-list=99999999999999999999999",
        "reorder=2",
        "reorder=1%,reorder-delay=0s",
        "duplicate=2",
        "drop-above=67",
        "drop-above=64K",
        "second-rtt=11s",
        "second-rtt=",
        "pairs=0",
        "pairs=9",
        "seed=-1",
        ",",
        "rate=1G,",
        "=1",
        "back.=1",
        "back.back.rate=1G",
        "\u{1b}[2J=1",
    ] {
        let error = refused(bad);
        assert!(!error.contains('\u{1b}') && !error.contains('\u{7}'), "{error}");
    }
}

fn a_share() -> impl Strategy<Value = Share> {
    prop_oneof![Just(0.0), 0.0..0.5_f64].prop_map(|share| Share::new(share).unwrap())
}

fn a_queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        (1..=1_u64 << 34).prop_map(QueueSpec::Bytes),
        (1..=1_000_000_u32).prop_map(QueueSpec::Packets),
        (1..=10_000_000_000_u64).prop_map(|ns| QueueSpec::Time(landspeed_record::units::Nanos(ns))),
        (1..=100_000_u32).prop_map(QueueSpec::Bdp)
    ]
}

prop_compose! {
    fn a_way()(
        speed in prop_oneof![
            (8_000..=100_000_000_000_u64).prop_map(LineSpeed::Rate),
            Just(LineSpeed::Trace("a.trace".to_owned())),
        ],
        queue in a_queue(),
        mark_above in prop::option::of(a_queue()),
        jitter in prop_oneof![Just(0), 0..=10_000_000_000_u64],
        (loss, reorder, duplicate) in (a_share(), a_share(), a_share()),
        loss_nth in prop::option::of(1..u64::MAX),
        drop_list in prop_oneof![
            Just(DropList::Numbers(vec![])),
            Just(DropList::Numbers(vec![4, 5])),
            Just(DropList::File("drops.txt".to_owned())),
        ],
        drop_above in prop::option::of(68..=65_535_u64),
    ) -> DirectionSpec {
        DirectionSpec {
            speed, queue, mark_above, jitter: Nanos(jitter), loss, reorder, duplicate, loss_nth, drop_list,
            drop_above: drop_above.map(Bytes),
            ..DirectionSpec::default()
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        if let Ok(spec) = text.parse::<WanSpec>() {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }

    #[test]
    fn any_link_reads_as_it_prints(
        there in a_way(),
        back in a_way(),
        rtt in 0..=10_000_000_000_u64,
        seed in any::<u64>(),
        pairs in 1..=8_u8,
    ) {
        let spec = WanSpec { directions: [there, back], rtt: Nanos(rtt), second_rtt: None, seed, pairs };
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
    }
}
