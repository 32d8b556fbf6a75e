//! How fast processors run and how deep they sleep: the whole machine's.

use landspeed_units::Nanos;

use crate::file::KernelFile;
use crate::{Domain, Error, Factor, HostKnob, Knob, Limits, Persist, Place, Proposal, Scope};
use landspeed_factor::{join, split};

const CPUS: &str = "/sys/devices/system/cpu";

/// What rows of processors have in common.
const PROCESSORS: Factor = Factor {
    scope: Scope::Host,
    domain: Domain::Each(&Domain::Switch),
    toggle: Nanos::millis(200),
    ..Factor::KNOB
};

pub(crate) const KNOBS: &[&[Knob]] = &[&[
    Knob {
        factor: Factor {
            name: "governor",
            persist: &[Persist::Processors("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")],
            about: "who chooses the processors' frequency",
            domain: Domain::Each(&Domain::Name),
            interacts: &["c-states", "busy-poll"],
            source: "Documentation/admin-guide/pm/cpufreq.rst; ESnet fasterdata (performance)",
            propose: |_| vec![Proposal::new("performance", 92)],
            ..PROCESSORS
        },
        setting: &Governor,
    },
    Knob {
        factor: Factor {
            name: "c-states",
            persist: &[Persist::Processors("/sys/devices/system/cpu/cpu*/cpuidle/state[1-9]*/disable")],
            about: "idle states deeper than polling, of each processor",
            interacts: &["governor", "busy-poll", "rx-usecs"],
            source: "Documentation/admin-guide/pm/cpuidle.rst; ESnet fasterdata (latency of waking up)",
            propose: |view| landspeed_factor::flip(view, 94),
            ..PROCESSORS
        },
        setting: &IdleStates,
    },
]];

/// The folders below `folder` whose name is `stem` and a number, in order; none where there is no folder.
fn numbered(folder: &str, stem: &str) -> Vec<String> {
    let number = |name: &str| name.strip_prefix(stem).and_then(|n| n.parse::<u32>().ok());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|e| number(&e.file_name().to_string_lossy())).collect();
    numbers.sort_unstable();
    numbers.iter().map(|n| format!("{folder}/{stem}{n}")).collect()
}

fn present(paths: impl Iterator<Item = String>, lacking: &str) -> Result<Vec<String>, Error> {
    let paths: Vec<String> = paths.filter(|path| std::path::Path::new(path).exists()).collect();
    if paths.is_empty() { Err(Error::Unavailable(lacking.into())) } else { Ok(paths) }
}

fn miscounted(knob: &str, value: &str, members: usize) -> Error {
    Error::value(knob, value, format!("one value, or {members} joined by ';'"))
}

fn members(paths: &[String]) -> u32 {
    u32::try_from(paths.len()).unwrap_or(u32::MAX)
}

struct Governor;

impl Governor {
    fn paths() -> Result<Vec<String>, Error> {
        let files = numbered(CPUS, "cpu").into_iter().map(|cpu| format!("{cpu}/cpufreq/scaling_governor"));
        present(files, "no cpufreq driver: this machine's frequency is not the kernel's to set (a guest?)")
    }
}

impl HostKnob for Governor {
    fn read(&self, _: &Place) -> Result<String, Error> {
        let read = |path: &String| KernelFile::absolute("governor", path).read();
        let values = Self::paths()?.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(join(&values).unwrap_or_default())
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        let paths = Self::paths()?;
        let values = split(value, paths.len()).ok_or_else(|| miscounted("governor", value, paths.len()))?;
        paths
            .iter()
            .zip(values)
            .try_for_each(|(path, value)| KernelFile::absolute("governor", path).write(value))
    }

    fn can_write(&self, _: &Place) -> Result<(), Error> {
        Self::paths()?.iter().try_for_each(|path| KernelFile::absolute("governor", path).writable())
    }

    fn limits(&self, _: &Place) -> Result<Limits, Error> {
        let path = format!("{CPUS}/cpu0/cpufreq/scaling_available_governors");
        let offered = KernelFile::absolute("governor", &path).read().unwrap_or_default();
        let choices = offered.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(Limits { choices, members: members(&Self::paths()?), ..Limits::default() })
    }
}

struct IdleStates;

impl IdleStates {
    /// state0 is polling, or the shallowest there is: without it a processor could not idle at all.
    fn paths() -> Result<Vec<String>, Error> {
        let states = |cpu: String| numbered(&format!("{cpu}/cpuidle"), "state").into_iter().skip(1);
        let files =
            numbered(CPUS, "cpu").into_iter().flat_map(states).map(|state| format!("{state}/disable"));
        present(files, "no cpuidle states beyond the first: nothing to disable")
    }
}

impl HostKnob for IdleStates {
    fn read(&self, _: &Place) -> Result<String, Error> {
        let read = |path: &String| match KernelFile::absolute("c-states", path).read()?.as_str() {
            "0" => Ok("on".to_owned()),
            "1" => Ok("off".to_owned()),
            other => {
                Err(Error::Unavailable(format!("{path} holds {other}, which could not be put back exactly")))
            }
        };
        let values = Self::paths()?.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
        Ok(join(&values).unwrap_or_default())
    }

    fn write(&self, _: &Place, value: &str) -> Result<(), Error> {
        let paths = Self::paths()?;
        let values = split(value, paths.len()).ok_or_else(|| miscounted("c-states", value, paths.len()))?;
        paths.iter().zip(values).try_for_each(|(path, value)| {
            KernelFile::absolute("c-states", path).write(if value == "on" { "0" } else { "1" })
        })
    }

    fn can_write(&self, _: &Place) -> Result<(), Error> {
        Self::paths()?.iter().try_for_each(|path| KernelFile::absolute("c-states", path).writable())
    }

    fn limits(&self, _: &Place) -> Result<Limits, Error> {
        Ok(Limits { members: members(&Self::paths()?), ..Limits::default() })
    }
}
