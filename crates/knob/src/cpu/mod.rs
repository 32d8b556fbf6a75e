//! Knobs for the frequency and the idle states of processors. They apply to the whole machine.

use landspeed_record::units::Nanos;

use crate::file::{FileEncoding, FileSetting, MemberFiles};
use crate::{Domain, Error, Factor, FactorScope, Knob, KnobTarget, Proposal, SystemSetting};

const CPUS: &str = "/sys/devices/system/cpu";

const PROCESSORS: Factor = Factor {
    scope: FactorScope::Host,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(200),
    ..Factor::KNOB
};

pub(crate) const KNOBS: &[&[Knob]] = &[&[
    knob!(PROCESSORS, "governor", FileSetting(FileEncoding::Plain, governors).offering(offered), {
        system: SystemSetting::Processors("scaling_governor", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
        about: "who chooses the processors' frequency",
        domain: Domain::Each(&Domain::Name),
        interacts: &["c-states", "busy-poll"],
        source: "Documentation/admin-guide/pm/cpufreq.rst; ESnet fasterdata (performance)",
        propose: |_| vec![Proposal::new("performance", 92)],
    }),
    knob!(PROCESSORS, "c-states", FileSetting(FileEncoding::Disabled, idle_states), {
        system: SystemSetting::Processors("cpuidle", "/sys/devices/system/cpu/cpu*/cpuidle/state[1-9]*/disable"),
        about: "idle states deeper than polling, of each processor",
        interacts: &["governor", "busy-poll", "rx-usecs"],
        source: "Documentation/admin-guide/pm/cpuidle.rst; ESnet fasterdata (latency of waking up)",
        propose: |view| landspeed_record::factor::flip(view, 94),
    }),
]];

/// Returns the paths `folder`/`stem`N of the existing entries, in ascending order of the number N. Returns none if
/// `folder` cannot be read.
fn numbered(folder: &str, stem: &str) -> Vec<String> {
    let number = |name: &str| name.strip_prefix(stem).and_then(|n| n.parse::<u32>().ok());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|e| number(&e.file_name().to_string_lossy())).collect();
    numbers.sort_unstable();
    numbers.iter().map(|n| format!("{folder}/{stem}{n}")).collect()
}

fn present(paths: impl Iterator<Item = String>, lacking: &str) -> Result<MemberFiles, Error> {
    let paths: Vec<String> = paths.filter(|path| std::path::Path::new(path).exists()).collect();
    if paths.is_empty() { Err(Error::Unavailable(lacking.into())) } else { Ok(MemberFiles(None, paths)) }
}

fn governors(_: &KnobTarget) -> Result<MemberFiles, Error> {
    let files = numbered(CPUS, "cpu").into_iter().map(|cpu| format!("{cpu}/cpufreq/scaling_governor"));
    present(files, "no cpufreq driver: this machine's frequency is not the kernel's to set (a guest?)")
}

fn offered() -> Vec<String> {
    let path = format!("{CPUS}/cpu0/cpufreq/scaling_available_governors");
    let offered = std::fs::read_to_string(path).unwrap_or_default();
    offered.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Returns the `disable` files of the idle states of all processors, except the first state (state0). A processor needs
/// state0, which is polling or the shallowest state, to be able to idle.
fn idle_states(_: &KnobTarget) -> Result<MemberFiles, Error> {
    let states = |cpu: String| numbered(&format!("{cpu}/cpuidle"), "state").into_iter().skip(1);
    let files = numbered(CPUS, "cpu").into_iter().flat_map(states).map(|state| format!("{state}/disable"));
    present(files, "no cpuidle states beyond the first: nothing to disable")
}
