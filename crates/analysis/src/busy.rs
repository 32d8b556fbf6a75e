//! Detects at the start of a run that a machine is busy with something else.

use landspeed_record::HostFacts;

/// The load per core from which the scheduler decides when a thread runs: on average two threads compete for a core.
const BUSY: f64 = 2.0;

/// Returns a warning, one sentence, if the load of the host `name` is at least 2 per core, so that a measurement shows
/// its scheduler. `None` if the load is lower or unknown.
pub fn busy(name: &str, facts: &HostFacts) -> Option<String> {
    let load = facts.load.filter(|load| facts.cpus > 0 && *load >= BUSY * f64::from(facts.cpus))?;
    let cores = if facts.cpus == 1 { "1 core".to_owned() } else { format!("{} cores", facts.cpus) };
    Some(format!(
        "{}: {cores}, load {load:.0}: the result will be about the scheduler",
        crate::verdict::called(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_machine_is_told_of() {
        let said = |cpus, load| busy("A", &HostFacts { cpus, load, ..HostFacts::default() });
        let sentence = "host A: 2 cores, load 55: the result will be about the scheduler";
        assert_eq!(said(2, Some(55.04)).as_deref(), Some(sentence));
        // A measurement before this one leaves a load of one for each core.
        assert_eq!((said(2, Some(2.1)), said(2, None), said(0, Some(9.0))), (None, None, None));
    }
}
