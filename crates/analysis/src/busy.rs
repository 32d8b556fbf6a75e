//! Detects at the start of a run that a machine is busy with something else.

use landspeed_record::HostFacts;

/// The least load per core of a busy machine. At this load two threads compete for a core on average, so the scheduler
/// decides when each of them runs.
const BUSY: f64 = 2.0;

/// Returns a warning, one sentence, if the load of the host `name` is at least 2 per core. A measurement then shows the
/// effect of the scheduler. `None` if the load is lower or unknown.
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
    fn only_a_busy_machine_gets_a_warning() {
        let said = |cpus, load| busy("A", &HostFacts { cpus, load, ..HostFacts::default() });
        let sentence = "host A: 2 cores, load 55: the result will be about the scheduler";
        assert_eq!(said(2, Some(55.04)).as_deref(), Some(sentence));
        // An earlier measurement leaves a load of about one per core, which needs no warning.
        assert_eq!((said(2, Some(2.1)), said(2, None), said(0, Some(9.0))), (None, None, None));
    }
}
