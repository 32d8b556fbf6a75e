//! Checks the plan of a staggered run.

use landspeed_record::units::{Bytes, Nanos};
use landspeed_record::{Settings, TrialSpec};
use landspeed_transport::Delivery;

use super::{StaggeredFlow, StaggeredPlan};
use crate::Error;
use crate::check::{self, MOST_SAMPLES};

/// Most flows of a run, each with a thread and a buffer.
const MOST_FLOWS: usize = 64;
/// The shortest time between probes.
const CLOSEST_PROBES: Nanos = Nanos::millis(1);

pub(super) fn check(spec: &TrialSpec, plan: &StaggeredPlan) -> Result<(), Error> {
    plan.flows.iter().try_for_each(|flow| settings(&flow.over(&spec.flow)))?;
    if spec.warm_up_ns >= plan.duration {
        let why = format!("a warm-up of {} leaves nothing of a run of {}", spec.warm_up_ns, plan.duration);
        return Err(Error::spec("warm_up_ns", why));
    }
    flows(plan)?;
    probes(plan)
}

fn flows(plan: &StaggeredPlan) -> Result<(), Error> {
    let count = plan.flows.len();
    if count == 0 || count > MOST_FLOWS {
        return Err(Error::spec("flows", format!("{count} flows asked for; 1 to {MOST_FLOWS} are possible")));
    }
    if plan.flows.iter().all(|flow| flow.enters_ns > Nanos(0)) {
        return Err(Error::spec("enters_ns", "no flow enters at 0, where the run begins".to_owned()));
    }
    plan.flows.iter().try_for_each(|flow| one(flow, plan.duration))
}

fn one(flow: &StaggeredFlow, duration: Nanos) -> Result<(), Error> {
    let StaggeredFlow { enters_ns, leaves_ns, data_bytes, .. } = flow;
    if leaves_ns <= enters_ns {
        let why = format!("a flow leaves at {leaves_ns} and enters at {enters_ns}: it must leave later");
        return Err(Error::spec("leaves_ns", why));
    }
    if *enters_ns >= duration {
        let why = format!("a flow enters at {enters_ns}, when the run of {duration} is over");
        return Err(Error::spec("enters_ns", why));
    }
    if *data_bytes == Some(Bytes(0)) {
        return Err(Error::spec("data_bytes", "a flow of 0 B sends nothing; 1 B is the least".to_owned()));
    }
    Ok(())
}

/// Checks that this host can open a flow with these settings, and that its transport carries a stream.
fn settings(settings: &Settings) -> Result<(), Error> {
    check::delivers(settings, Delivery::Stream, |transport| {
        format!("{transport} acknowledges nothing: staggered flows need a stream")
    })?;
    check::flow(settings)?;
    check::can_run(settings)
}

fn probes(plan: &StaggeredPlan) -> Result<(), Error> {
    let probes = plan.duration.0.checked_div(plan.probe_every.0).unwrap_or(0);
    if plan.probes() && (plan.probe_every < CLOSEST_PROBES || probes > MOST_SAMPLES) {
        let why = format!(
            "{probes} probes, one each {}; {MOST_SAMPLES} are the most, and one each {CLOSEST_PROBES}",
            plan.probe_every
        );
        return Err(Error::spec("probe-every", why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use landspeed_transport::settings::with;

    use super::*;
    use crate::staggered;

    fn planned(flows: &[StaggeredFlow], probe_every: Nanos) -> TrialSpec {
        TrialSpec {
            workload: staggered::spec(flows, Nanos::secs(960), probe_every),
            flow: with(&[]),
            cores: vec![],
            warm_up_ns: Nanos(0),
            interval_ns: Nanos::secs(1),
            observers: vec![],
            progress_ns: Nanos(0),
            patience_ns: Nanos(0),
            program: None,
            link_threads: None,
        }
    }

    fn good() -> StaggeredFlow {
        StaggeredFlow { leaves_ns: Nanos::secs(960), ..StaggeredFlow::default() }
    }

    /// Returns the field of the error; `None` if the specification is accepted.
    fn refused(spec: &TrialSpec) -> Option<&'static str> {
        match StaggeredPlan::of(&spec.workload.parameters).and_then(|plan| check(spec, &plan)) {
            Ok(()) => None,
            Err(Error::Spec { field, why }) => {
                assert!(!why.is_empty());
                Some(field)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_invalid_value_is_refused_by_its_field() {
        let every = Nanos::secs(1);
        let at = |enters, leaves| StaggeredFlow {
            enters_ns: Nanos::secs(enters),
            leaves_ns: Nanos::secs(leaves),
            ..good()
        };
        let nothing = StaggeredFlow { data_bytes: Some(Bytes(0)), ..good() };
        let fine = planned(&[good()], every);
        let nonsense = TrialSpec { workload: fine.workload.clone().with("plan", "[{]"), ..fine.clone() };
        for (spec, field) in [
            (&planned(&[at(0, 0)], every), Some("leaves_ns")),
            (&planned(&[at(0, 5000)], every), None),
            (&planned(&[at(1, 2)], every), Some("enters_ns")),
            (&planned(&[good(), at(960, 961)], every), Some("enters_ns")),
            (&planned(&[], every), Some("flows")),
            (&planned(&vec![good(); 65], every), Some("flows")),
            (&planned(&[nothing], every), Some("data_bytes")),
            (&nonsense, Some("plan")),
            (&TrialSpec { warm_up_ns: Nanos::secs(960), ..fine.clone() }, Some("warm_up_ns")),
            (&TrialSpec { warm_up_ns: Nanos::secs(30), ..fine.clone() }, None),
            // Samples are limited so that an outcome fits one message.
            (&planned(&[good()], Nanos(0)), None),
            (&planned(&[good()], Nanos::millis(100)), None),
            (&planned(&[good()], Nanos(1000)), Some("probe-every")),
            (&fine, None),
        ] {
            assert_eq!(refused(spec), field, "{:?}", spec.workload);
        }
    }

    #[test]
    fn swapped_flows_enter_in_the_opposite_order() {
        let late = StaggeredFlow { enters_ns: Nanos::secs(1), ..good() };
        let spec = planned(&[good(), late], Nanos(0));
        let enters = |workload: &landspeed_record::Workload| {
            let plan = StaggeredPlan::of(&workload.parameters).unwrap();
            plan.flows.iter().map(|flow| flow.enters_ns).collect::<Vec<_>>()
        };
        assert_eq!(enters(&spec.workload), [Nanos(0), Nanos::secs(1)]);
        assert_eq!(enters(&spec.workload.clone().with("swap", "on")), [Nanos::secs(1), Nanos(0)]);
    }

    #[test]
    fn a_flow_over_another_transport_takes_the_trials_settings_that_it_has() {
        let tcp = landspeed_transport::find("tcp").expect("it is registered");
        let flow = landspeed_transport::settings::defaults(tcp);
        let plan = |settings| {
            let flows = [StaggeredFlow { settings, ..good() }, good()];
            let spec = TrialSpec { flow: flow.clone(), ..planned(&flows, Nanos::secs(1)) };
            let plan = StaggeredPlan::of(&spec.workload.parameters).expect("it can be read");
            check(&spec, &plan).map_err(|error| error.to_string())
        };
        let udt = ("transport".to_owned(), "udt".to_owned());
        assert_eq!(plan([udt.clone()].into()), Ok(()));
        let refused = plan([udt, ("nodelay".to_owned(), "on".to_owned())].into()).expect_err("UDT has none");
        assert!(refused.contains("nodelay"), "{refused}");
    }

    #[test]
    fn settings_of_a_flow_are_those_of_a_stream() {
        let set = |name: &str, value: &str| {
            let settings = [(name.to_owned(), value.to_owned())].into();
            let spec = planned(&[StaggeredFlow { settings, ..good() }], Nanos::secs(1));
            let plan = StaggeredPlan::of(&spec.workload.parameters).expect("it can be read");
            check(&spec, &plan).map_err(|error| error.to_string())
        };
        assert_eq!(set("socket-congestion", "ls_hstcp_lp"), Ok(()));
        for (name, value) in [
            ("socket-congestion", ""),
            ("socket-congestion", "../../evil"),
            ("transport", "udp"),
            ("mtu", "9000"),
        ] {
            let refused = set(name, value).expect_err("no stream has it");
            assert!(refused.contains(name), "{refused}");
        }
    }
}
