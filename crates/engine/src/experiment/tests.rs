use landspeed_record::ExpectationTest;
use landspeed_record::units::Nanos;

use super::*;

const WHOLE: &str = r#"title = "What a size is worth"
source = "a paper of 2026, section 1"
about = "Why."
workload = "stream"
topology = "lab:wan:rate=100M"
baseline = "sc03"
as-found = ["qdisc", "timestamps"]
by = "step"
figure = "cores-per-gbps"
set = { placement = "same-core", time = "200ms" }

[[vary]]
factor = "step"
cumulative = true
level = [
  { name = "stock", set = { mtu = 1500, "gro@b" = false } },
  { name = "jumbo", set = { mtu = 9000 } },
]

[[vary]]
factor = "write-size"
values = "1K..64K*4"

[[vary]]
factor = "rtt"
values = "1ms,20ms"

[stop]
blocks = 12

[short]
values = { write-size = "1K,64K", rtt = "1ms" }
stop = { budget = "2m", precision = "5%" }

[[expect]]
claim = "jumbo is worth half"
source = "section 2"
ratio = 1.5
from = { step = "stock", write-size = "64K" }
to = { step = "jumbo", write-size = "64K" }
within = "10%"

[[expect]]
claim = "it rises"
source = "section 3"
shape = "rises"
along = "write-size"
at = { rtt = "20ms" }
"#;

fn read(text: &str, short: bool) -> Result<Experiment, String> {
    read_experiment(Path::new("mine.toml"), text, short).map_err(|error| error.to_string())
}

#[test]
fn a_whole_file_becomes_a_grid() {
    let found = read(WHOLE, false).unwrap();
    let grid = found.grid;
    assert_eq!((grid.cells(), grid.blocks, grid.by, grid.baseline.as_str()), (16, Some(12), Some(0), "sc03"));
    assert_eq!(grid.workload.parameters.get("time").map(String::as_str), Some("200ms"));
    assert_eq!(grid.base.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["placement"]);
    let jumbo: Vec<_> =
        grid.factors[0].sets[1].iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    assert_eq!(jumbo, [("gro", "off"), ("mtu", "9000")], "levels keep what those before them set");
    assert_eq!(grid.factors[0].sets[1][0].place, GridSettingTarget::B);
    assert!(grid.factors[2].is_slow && grid.factors[2].sets[0][0].place == GridSettingTarget::Topology);
    let ExpectationTest::Ratio { to, within, .. } = &grid.expectations[0].test else { panic!("a ratio") };
    assert_eq!((to.get("write-size").map(String::as_str), *within), (Some("65536"), 0.1));
    assert_eq!(found.words, ["lab:wan:rate=100M"]);
    assert_eq!(grid.warm_up_ns, Nanos(0), "the workload's own");
    let settled = WHOLE.replacen("baseline", "warm-up = \"3s\"\nbaseline", 1);
    assert_eq!(read(&settled, false).unwrap().grid.warm_up_ns, Nanos::secs(3));
}

#[test]
fn the_short_version_has_fewer_values_and_its_own_end() {
    let grid = read(WHOLE, true).unwrap().grid;
    assert_eq!(grid.factors.iter().map(|factor| factor.levels.len()).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!((grid.blocks, grid.precision, grid.budget_ns), (None, Some(0.05), Nanos::secs(120)));
    assert_eq!(grid.expectations.len(), 2, "what it leaves out is reported as not measured");
}

#[test]
fn an_expectation_names_a_rate_of_the_lab_as_the_factor_does() {
    let text = r#"title = "Rates"
workload = "stream"
topology = "lab:wan"
as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
vary = [{ factor = "rate", values = "100M,150M" }]
[[expect]]
claim = "The faster link carries more"
source = "the rates"
from = { rate = "100M" }
to = { rate = "150M" }
ratio = 1.5
"#;
    let grid = read(text, false).unwrap().grid;
    let ExpectationTest::Ratio { to, .. } = &grid.expectations[0].test else { panic!("a ratio") };
    assert_eq!(to.get("rate"), Some(&grid.factors[0].levels[1]));
}

#[test]
fn some_values_of_a_factor_can_be_kept() {
    let mut found = read(WHOLE, false).unwrap();
    found.keep("write-size=1K,64K").unwrap();
    found.keep("step=jumbo").unwrap();
    assert_eq!((found.grid.cells(), found.grid.factors[1].amounts.as_slice()), (4, &[1024.0, 65536.0][..]));
    for (text, why) in [
        ("write-size", "expected FACTOR=VALUE,VALUE"),
        ("size=1K", "size is not varied"),
        ("write-size=2K", "has no value '2K'"),
        ("write-size=1K,1K", "has the value 1024 once"),
    ] {
        let error = found.keep(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--values {text}: ")) && error.contains(why), "{error}");
    }
}

#[test]
fn a_control_names_existing_cells_and_a_mean() {
    let with = |control: &str| read(&format!("{WHOLE}\n[control]\n{control}"), true);
    let control =
        with("cells = { write-size = \"64K\" }\nmean = 0.5\nwithin = 0.03").unwrap().grid.control.unwrap();
    assert_eq!((control.cells.get("write-size").map(String::as_str), control.mean), (Some("65536"), 0.5));
    assert_eq!(read(WHOLE, true).unwrap().grid.control, None);
    for (wrong, why) in [
        ("cells = { size = 1 }\nmean = 0.5\nwithin = 0.03", "size is not varied"),
        ("cells = {}\nmean = 0.5\nwithin = 0.03", "[control] has cells"),
        ("cells = { step = \"stock\" }\nmean = 0.5\nwithin = 0.0", "both above zero"),
        ("cells = { step = \"stock\" }\nmean = inf\nwithin = 0.03", "both above zero"),
        ("cells = { write-size = \"4K\" }\nmean = 0.5\nwithin = 0.03", "leaves out all cells of the control"),
    ] {
        let error = with(wrong).map(|_| ()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let mut found = with("cells = { write-size = \"64K\" }\nmean = 0.5\nwithin = 0.03").unwrap();
    let error = found.keep("write-size=1K").unwrap_err().to_string();
    assert!(error.contains("leaves out all cells of the control"), "{error}");
}

/// Each error names the line of the mistake, the cause and the remedy.
#[test]
fn each_kind_of_mistake_is_reported_with_its_line() {
    for (wrong, right, line, words) in [
        ("title =", "tilte =", 1, "unknown field `tilte`"),
        ("workload = \"stream\"", "workload = \"streem\"", 4, "did you mean stream?"),
        ("workload = \"stream\"", "workload = \"app:redsi\"", 4, "did you mean app:redis?"),
        ("lab:wan:rate=100M", "lab:wan:rat=100M", 5, "rat"),
        ("baseline = \"sc03\"", "baseline = \"sc04\"", 6, "name sc03"),
        ("by = \"step\"", "by = \"mtu\"", 8, "mtu is not varied"),
        ("\"cores-per-gbps\"", "\"cores\"", 9, "there are goodput"),
        ("placement = \"same-core\"", "placement = \"here\"", 10, "expected free, same-core"),
        ("factor = \"step\"\n", "", 12, "missing field `factor`"),
        ("mtu = 1500", "mtu = 15", 16, "a whole number from 1280"),
        ("\"gro@b\"", "\"gro@c\"", 16, "no setting is called 'gro@c'"),
        ("name = \"jumbo\"", "name = \"stock\"", 13, "two levels are called 'stock'"),
        ("factor = \"write-size\"", "factor = \"rite-size\"", 22, "did you mean write-size?"),
        ("1K..64K*4", "1K..64K", 22, "a range such as"),
        ("values = \"1ms,20ms\"", "values = \"1ms,long\"", 26, "rtt"),
        ("values = \"1ms,20ms\"", "vals = \"1ms,20ms\"", 26, "unknown field `vals`"),
        ("blocks = 12", "blocks = \"many\"", 29, "invalid type"),
        ("write-size = \"1K,64K\"", "write-size = \"1K,32K\"", 32, "has no value '32K'"),
        ("budget = \"2m\"", "budget = \"soon\"", 33, "soon"),
        ("precision = \"5%\"", "precision = \"5\"", 33, "such as \"3%\""),
        ("ratio = 1.5\n", "", 36, "an expectation is one of"),
        ("to = { step = \"jumbo\"", "to = { step = \"jumbos\"", 40, "did you mean jumbo?"),
        ("shape = \"rises\"", "shape = \"climbs\"", 46, "unknown variant `climbs`"),
        ("along = \"write-size\"", "along = \"size\"", 47, "size is not varied"),
    ] {
        let text = WHOLE.replacen(wrong, right, 1);
        assert_ne!(text, WHOLE, "{wrong}");
        let error = read(&text, false).map(|_| ()).expect_err(right);
        assert!(
            error.starts_with(&format!("mine.toml:{line}:")) && error.contains(words),
            "{right}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

const FAN: &str = r#"title = "Many to one, and one to many"
as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
workload = "stream"
topology = "lab:switch:3"

[[vary]]
factor = "fan"
values = "in,out"

[[vary]]
factor = "port"
values = "100M,1G"
"#;

#[test]
fn a_fan_and_the_rates_of_a_switch_are_factors_of_the_lab() {
    let grid = read(FAN, false).unwrap().grid;
    let path = crate::path_of(&grid, 3);
    let path: Vec<_> = path.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!((grid.cells(), path), (4, vec![("fan", "out"), ("port", "1G")]));
}

#[test]
fn a_copy_has_its_tree_and_its_flows_as_factors() {
    let text = FAN.replacen("\"stream\"", "\"copy\"", 1).replacen("lab:switch:3", "lab:back-to-back", 1);
    let text = text.replacen("\"fan\"", "\"files\"", 1).replacen("\"in,out\"", "\"1,20000\"", 1);
    let text = text.replacen("\"port\"", "\"flows\"", 1).replacen("\"100M,1G\"", "\"1,4,8\"", 1);
    let grid = read(&text, false).unwrap().grid;
    assert_eq!((grid.cells(), grid.workload.name.as_str()), (6, "copy"));
    let places: Vec<_> = grid.factors.iter().map(|factor| factor.sets[0][0].place).collect();
    assert_eq!(places, [GridSettingTarget::Workload, GridSettingTarget::Flow]);
    let base: Vec<_> = grid.base.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    assert_eq!(base, [("transport", "tls")]);
}

#[test]
fn a_workload_that_cannot_fan_is_refused_with_the_remedy() {
    for (wrong, right, words) in [
        ("\"in,out\"", "\"in,up\"", "expected in, out"),
        ("\"stream\"", "\"staggered\"", "staggered takes 1: leave --fan out"),
    ] {
        let text = FAN.replacen(wrong, right, 1);
        assert_ne!(text, FAN, "{wrong}");
        let error = read(&text, false).map(|_| ()).expect_err(right);
        assert!(error.contains(words) && error.lines().count() == 1, "{right}: {error}");
    }
}

const BESIDE: &str = r#"title = "A stream beside a tool"
as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
workload = "stream"
set = { time = "1s" }

[[vary]]
factor = "tool"
level = [
  { name = "landspeed", set = { write-size = "128K" } },
  { name = "iperf3", workload = "app:iperf3", set = { streams = 2 } },
]
"#;

#[test]
fn a_level_may_have_a_program_in_the_place_of_the_workload() {
    let grid = read(BESIDE, false).unwrap().grid;
    let set =
        |cell| grid.settings_of(cell).map(|one| format!("{}={}", one.name, one.value)).collect::<Vec<_>>();
    assert_eq!(set(0), ["write-size=131072"]);
    assert_eq!(set(1), ["streams=2", "workload=app:iperf3"]);
}

#[test]
fn a_program_that_cannot_be_compared_with_the_workload_is_refused() {
    for (wrong, right, words) in [
        ("app:iperf3", "app:iperf33", "no workload is called 'app:iperf33'"),
        ("streams = 2", "strms = 2", "no setting is called 'strms'"),
        ("app:iperf3\", set = { streams = 2 }", "app:redis\"", "compared by a rate in b/s or by a time"),
        (
            "workload = \"stream\"\nset = { time = \"1s\" }",
            "workload = \"app:qperf\"",
            "name a workload of landspeed",
        ),
    ] {
        let text = BESIDE.replacen(wrong, right, 1);
        assert_ne!(text, BESIDE, "{wrong}");
        let error = read(&text, false).map(|_| ()).expect_err(right);
        assert!(error.contains(words), "{right}: {error}");
    }
}

#[test]
fn a_condition_that_decides_figures_is_set_or_said_to_be_as_found() {
    let open = WHOLE.replacen("\"qdisc\", ", "", 1);
    let error = read(&open, false).unwrap_err();
    assert!(error.contains("add as-found = [\"qdisc\"]"), "{error}");
    let varied = WHOLE.replacen("\"qdisc\"", "\"qdisc\", \"mtu\"", 1);
    let error = read(&varied, false).unwrap_err();
    assert!(error.contains("as-found: mtu is set or varied here"), "{error}");
    let misspelt = WHOLE.replacen("\"qdisc\"", "\"qdics\"", 1);
    let error = read(&misspelt, false).unwrap_err();
    assert!(error.contains("did you mean qdisc?"), "{error}");
}

#[test]
fn a_factor_that_is_not_varied_can_be_set() {
    let mut found = read(WHOLE, false).unwrap();
    found.set("socket-congestion=cubic").unwrap();
    found.set("placement=free").unwrap();
    found.set("time=1s").unwrap();
    let base: Vec<_> = found.grid.base.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    assert_eq!(base, [("socket-congestion", "cubic"), ("placement", "free")]);
    assert_eq!(found.grid.workload.parameters.get("time").map(String::as_str), Some("1s"));
    let varied = found.set("mtu=9000").unwrap_err().to_string();
    assert!(varied.contains("the file varies mtu"), "{varied}");
    assert!(found.set("mtuu=9000").unwrap_err().to_string().contains("mtu"));
}

/// A reason of the second expectation, which is tested.
const BECAUSE: &str = r#"
[expect.because]
claim = "a bit takes less processor time"
figure = "cores-per-gbps"
order = [{ write-size = "64K" }, { write-size = "1K" }]
"#;

#[test]
fn a_reason_is_tested_by_cells_of_the_same_file() {
    let found = read(&[WHOLE, BECAUSE].concat(), false).unwrap();
    let because = found.grid.expectations[1].because.as_deref().expect("a reason");
    assert_eq!(because.claim, "a bit takes less processor time");
    assert!(matches!(&because.test, ExpectationTest::Order { cells, .. } if cells.len() == 2));
}

#[test]
fn an_invalid_reason_is_refused() {
    for (wrong, right, words) in [
        ("at = {", "otherwise = \"so\"\nat = {", "a reason is tested (because) or a guess (otherwise)"),
        ("claim = \"a bit", "source = \"here\"\nclaim = \"a bit", "it has no source"),
        ("order = [", "otherwise = \"so\"\norder = [", "a reason has no reason of its own"),
        ("order = [", "# order = [", "an expectation is one of"),
        ("source = \"section 3\"\n", "", "an expectation needs a source"),
    ] {
        let text = [WHOLE, BECAUSE].concat();
        let changed = text.replacen(wrong, right, 1);
        assert_ne!(text, changed, "{wrong}");
        let error = read(&changed, false).map(|_| ()).expect_err(right);
        assert!(error.contains(words), "{right}: {error}");
    }
}
