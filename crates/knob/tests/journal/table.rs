//! A test that changes every knob of the real table that this host has, and then kills the agent or the guardian.

use std::collections::BTreeMap;

use landspeed_knob::{Knob, KnobTarget};

use super::another::another;
use super::host::{TestHost, assert_same};
use super::kills::{guardian_pid, signal, wait_until_no_journal};

fn values(host: &TestHost) -> BTreeMap<&'static str, (&'static Knob, String)> {
    let target = KnobTarget { device: "v0".into() };
    host.inside(|| {
        let read = |knob: &'static Knob| Some((knob.factor.name, (knob, knob.setting.read(&target).ok()?)));
        landspeed_knob::all().filter_map(read).collect()
    })
}

fn lines(host: &TestHost) -> String {
    let values = values(host);
    values.iter().map(|(name, (_, value))| format!("{name} = {value}\n")).collect::<String>()
        + &host.picture()
}

#[test]
fn every_knob_of_the_table_comes_back() {
    let Some(host) = TestHost::try_new() else { return };
    let before = lines(&host);
    for victim in ["agent", "guardian"] {
        let mut agent = host.agent_with_table(60_000);
        assert_eq!(agent.ask("start").unwrap(), "ok");
        let mut turned = 0;
        for (name, (knob, now)) in values(&host) {
            let Some(value) = another(&knob.factor.domain, &now) else { continue };
            let answer = agent.ask(&format!("turn {name} {value}")).unwrap();
            turned += usize::from(answer.contains(" -> "));
            println!("{name} {now} to {value}: {answer}");
        }
        assert!(turned >= 20, "only {turned} knobs could be turned");
        match victim {
            "agent" => agent.kill(),
            _ => signal(guardian_pid(&host).unwrap(), super::kills::KILL),
        }
        wait_until_no_journal(&host);
        assert_same(&lines(&host), &before, victim);
    }
}
