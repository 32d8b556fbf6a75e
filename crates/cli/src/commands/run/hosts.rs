//! The hosts of an experiment: those that its file names, or those of the command line.

use anyhow::Result;
use landspeed_engine::Experiment;
use landspeed_lab::topology;
use landspeed_record::{GridSetting, GridSettingTarget};

use crate::labs;
use crate::output::usage;

/// The factor that is the lab itself.
const TOPOLOGY: &str = "topology";

/// Returns the words that name the hosts. `given` has the words of the command line.
///
/// # Errors
/// Returns a usage error if the file creates its own hosts, or needs hosts other than the given virtual machines.
pub(super) fn words(experiment: &Experiment, given: &[String]) -> Result<Vec<String>> {
    if given.is_empty() {
        return Ok(experiment.words.clone());
    }
    let of_lab = |one: &&GridSetting| one.place == GridSettingTarget::Topology;
    let of_lab: Vec<&GridSetting> = experiment.grid.all_settings().filter(of_lab).collect();
    if of_lab.iter().any(|one| one.name == TOPOLOGY) {
        return Err(usage("the file varies the topology, and so makes its hosts itself: leave HOST out"));
    }
    if labs::are_guests(given) {
        fits_guests(experiment, of_lab.first().copied()).map_err(usage)?;
    }
    Ok(given.to_vec())
}

/// Checks that two virtual machines can replace the hosts of a file. Otherwise returns the reason as an error. `of_lab`
/// is a setting of the file's lab that the file varies.
fn fits_guests(experiment: &Experiment, of_lab: Option<&GridSetting>) -> Result<(), String> {
    let cannot = "two virtual machines cannot take the place of the file's hosts";
    if let Some(GridSetting { name, .. }) = of_lab {
        return Err(format!("{cannot}: it varies {name}, which is of its lab"));
    }
    let plan = |words: &[String]| {
        let plan = topology::find(words).and_then(|topology| topology.plan(words));
        plan.map(|plan| plan.label()).map_err(|error| error.to_string())
    };
    // Without words, a command creates two hosts with one link.
    let (own, two) = (plan(&experiment.words)?, plan(&[])?);
    if own != two && !labs::are_guests(&experiment.words) {
        return Err(format!("{cannot}: they are {own}"));
    }
    let of_program = landspeed_workload::find(&experiment.grid.workload).and_then(|runner| runner.hosts());
    match of_program {
        Some([least, _]) if least > 2 => Err(format!("{cannot}: its program needs {least}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::commands::experiments::found;

    const GUESTS: &str = "lab:vm:6.12,driver=e1000e";

    fn chosen_of(text: &str, given: &str) -> Result<Vec<String>, String> {
        let experiment = landspeed_engine::read_experiment(Path::new("a.toml"), text, true).unwrap();
        let given: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
        words(&experiment, &given).map_err(|error| error.to_string())
    }

    fn chosen(file: &str, given: &str) -> Result<Vec<String>, String> {
        chosen_of(&found(file).unwrap().1, given)
    }

    #[test]
    fn hosts_of_the_command_line_take_the_place_of_the_files() {
        assert_eq!(chosen("balaji/latency", "").unwrap(), ["lab:back-to-back"]);
        for given in [GUESTS, "lab:wan:rtt=9ms", "dtn1 dtn2"] {
            assert_eq!(chosen("balaji/latency", given).unwrap().join(" "), given);
        }
    }

    #[test]
    fn guests_are_refused_where_a_file_needs_other_hosts() {
        for (file, why) in [
            ("feng/latency", "varies the topology"),
            ("balaji/mpi", "file's hosts: they are lab:switch:4"),
            ("bench/shares", "file's hosts: they are lab:wan:rate=1G"),
        ] {
            let refused = chosen(file, GUESTS).unwrap_err();
            assert!(refused.contains(why) && refused.lines().count() == 1, "{file}: {refused}");
        }
    }

    #[test]
    fn a_program_of_more_hosts_is_refused_on_guests() {
        let text = r#"
            title = "Writes and reads of one file"
            workload = "app:pvfs-1s3c"
            as-found = ["congestion-control", "windows", "mtu", "offloads", "qdisc", "timestamps", "placement"]
            [[vary]]
            factor = "metric"
            values = "read,write"
        "#;
        assert!(chosen_of(text, GUESTS).unwrap_err().contains("its program needs 4"));
        assert!(chosen_of(text, "").unwrap().is_empty());
    }

    #[test]
    fn a_file_that_makes_its_hosts_takes_no_others() {
        assert!(chosen("feng/latency", "dtn1 dtn2").unwrap_err().contains("leave HOST out"));
    }
}
