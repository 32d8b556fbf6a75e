//! An agent reports why observers cannot run there, before any runs.

use std::sync::Arc;

use landspeed_agent::Agent;
use landspeed_agent::session::{Reply, Request, RequestHandler};
use landspeed_observer::observer;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

fn ask(agent: &Arc<Agent>, names: &[&str]) -> Result<(), String> {
    match agent.handle(Request::Observers { names: names.iter().map(ToString::to_string).collect() }) {
        Reply::Done {} => Ok(()),
        Reply::Failed { why } => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_observer_that_is_unknown_or_cannot_run_here_is_refused_with_the_reason() {
    let agent = Agent::new(false);
    assert_eq!(ask(&agent, &["snmp", "cpu"]), Ok(()));
    assert_eq!(ask(&agent, &["snmp", "no-such"]), Err("no observer is called 'no-such'".into()));
    // Without capabilities not even root may load BPF programs.
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).expect("capabilities may always be dropped");
    let why = observer("path").and_then(|row| row.can_run().err()).expect("it lacks them");
    assert_eq!(ask(&agent, &["snmp", "path"]), Err(format!("path cannot run here: {why}")));
}
