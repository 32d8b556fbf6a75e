//! Reads the processor's clock frequency.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use crate::capacity::cores::on_core;
use crate::capacity::{Error, MeasurementBudget, SystemFiles};

const CPU: &str = "sys/devices/system/cpu";

/// The time for which a core is kept busy before its clock is read. Within this time, which is a few sampling periods
/// of a cpufreq governor, the governor raises the clock of a busy core.
const BUSY: Duration = Duration::from_millis(30);

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProcessorClock {
    /// The current frequency, in cycles per second.
    pub hz: Option<f64>,
    pub most_hz: Option<f64>,
    /// The cpufreq governor; empty if there is none.
    pub governor: String,
}

/// Reads the clock of a core that has been busy for 30 ms, because the clock of an idle core does not show its speed
/// under load.
pub(crate) fn busy(
    files: &SystemFiles,
    core: u32,
    budget: &MeasurementBudget<'_>,
) -> Result<ProcessorClock, Error> {
    on_core(core, || {
        let until = Instant::now() + BUSY;
        while Instant::now() < until && !budget.over() {
            spin_loop();
        }
        Ok(read(files, core))
    })
}

/// Reads the current clock of processor `core` from cpufreq (Documentation/admin-guide/pm/cpufreq.rst), or from
/// /proc/cpuinfo where the kernel does not govern the clock, as in most virtual machines.
pub(crate) fn read(files: &SystemFiles, core: u32) -> ProcessorClock {
    let of = |name: &str| format!("{CPU}/cpu{core}/cpufreq/{name}");
    let khz = |name: &str| files.number::<f64>(of(name)).map(|khz| khz * 1e3);
    ProcessorClock {
        hz: khz("scaling_cur_freq").or_else(|| of_cpuinfo(&files.word("proc/cpuinfo")?, core)),
        most_hz: khz("cpuinfo_max_freq"),
        governor: files.word(of("scaling_governor")).unwrap_or_default(),
    }
}

/// Returns the "cpu MHz" of processor `core` in the text of /proc/cpuinfo, converted to Hz.
fn of_cpuinfo(text: &str, core: u32) -> Option<f64> {
    let mut mine = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "processor" => mine = value.trim().parse() == Ok(core),
            "cpu MHz" if mine => return value.trim().parse::<f64>().ok().map(|mhz| mhz * 1e6),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cpufreq_comes_first_and_cpuinfo_is_the_fallback() {
        let tree = tempfile::tempdir().unwrap();
        let files = SystemFiles::below(tree.path());
        assert_eq!(read(&files, 1), ProcessorClock::default());

        fs::create_dir_all(tree.path().join("proc")).unwrap();
        let cpuinfo = "processor\t: 0\ncpu MHz\t\t: 800.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2596.152\n";
        fs::write(tree.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        assert_eq!(
            read(&files, 1),
            ProcessorClock { hz: Some(2_596_152_000.0), ..ProcessorClock::default() }
        );

        let folder = tree.path().join("sys/devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("scaling_cur_freq"), "1200000\n").unwrap();
        fs::write(folder.join("cpuinfo_max_freq"), "3700000\n").unwrap();
        fs::write(folder.join("scaling_governor"), "powersave\n").unwrap();
        let clock = ProcessorClock { hz: Some(1.2e9), most_hz: Some(3.7e9), governor: "powersave".into() };
        assert_eq!(read(&files, 1), clock);
    }

    #[test]
    fn this_hosts_clock_is_read_on_a_busy_core() {
        let files = SystemFiles::default();
        let core = crate::capacity::AllowedCores::allowed(&files, None).unwrap().one;
        let clock = busy(&files, core, &MeasurementBudget::new(Duration::from_secs(5), &|| false)).unwrap();
        assert!(clock.hz.is_none_or(|hz| hz > 1e8), "{clock:?}");
    }
}
