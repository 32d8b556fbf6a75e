//! Adds to remedies the commands that a person can paste into a shell to make the advised change.

use landspeed_knob::{FactorPlacement, Knob, NOT_ROOT};
use landspeed_record::{KnobState, Remedy, RemedyCommand, Verdict};

use super::HostObservations;

/// Returns the verdict with the commands of the remedies that set a knob of a host.
pub(super) fn with_commands(mut verdict: Verdict, hosts: &[HostObservations]) -> Verdict {
    for remedy in verdict.findings.iter_mut().flat_map(|finding| &mut finding.remedies) {
        if let Ok(knob) = landspeed_knob::find(&remedy.knob) {
            let concerned = hosts.iter().filter(|host| concerns(knob, &verdict.sender, host));
            add(remedy, knob, concerned);
        }
    }
    verdict
}

/// Returns true if the knob applies to this host, which is the sender or the receiver of the data.
fn concerns(knob: &Knob, sender: &str, host: &HostObservations) -> bool {
    match knob.factor.on {
        FactorPlacement::Sender => host.name == sender,
        FactorPlacement::Receiver => host.name != sender,
        FactorPlacement::Both => true,
        FactorPlacement::Flow => false,
    }
}

/// Adds a command for each host that lacks the remedy's value. If a host cannot have the value, adds the reason
/// instead.
fn add<'a>(remedy: &mut Remedy, knob: &Knob, hosts: impl Iterator<Item = &'a HostObservations>) {
    for host in hosts.filter(|host| host.set.get(&remedy.knob) != Some(&remedy.value)) {
        let state = host.states.iter().find(|state| state.knob == remedy.knob);
        match state.and_then(|state| obstacle(state, &remedy.value)) {
            Some(why) => remedy.what += &format!("; not possible on {}: {why}", host.name),
            None => remedy.commands.extend(command(remedy, knob, host)),
        }
    }
}

fn command(remedy: &Remedy, knob: &Knob, host: &HostObservations) -> Option<RemedyCommand> {
    let line = knob.command(&host.device, &remedy.value)?;
    let line = if remedy.computed.is_empty() { line } else { format!("{line}   # {}", remedy.computed) };
    Some(RemedyCommand { host: host.name.clone(), line })
}

/// Returns the reason why a host cannot have the value, even if a person sets it as root; `None` if it can.
fn obstacle(state: &KnobState, value: &str) -> Option<String> {
    let too_much = state.most.zip(value.parse().ok()).filter(|(most, value): &(u64, u64)| value > most);
    let refused = state.skip.clone().filter(|why| why != NOT_ROOT);
    let lacking = !state.choices.is_empty() && !state.choices.iter().any(|choice| choice == value);
    refused
        .or_else(|| too_much.map(|(most, _)| format!("it takes at most {most}")))
        .or_else(|| lacking.then(|| format!("its kernel offers {}", state.choices.join(", "))))
}

#[cfg(test)]
mod tests {
    use landspeed_record::{Cause, Finding, HostFacts, Observations, Settings};

    use super::*;

    fn host(name: &str, set: &[(&str, &str)], states: Vec<KnobState>) -> HostObservations {
        let set: Settings = set.iter().map(|(knob, value)| ((*knob).into(), (*value).into())).collect();
        let (facts, observed) = (HostFacts::default(), Observations::default());
        HostObservations {
            name: name.into(),
            facts,
            observed,
            limits: None,
            set,
            states,
            device: "eth0".into(),
        }
    }

    /// Returns the remedy of this value, with its commands on two hosts, of which A sends.
    fn remedied(knob: &str, value: &str, computed: &str, hosts: [HostObservations; 2]) -> Remedy {
        let remedy =
            Remedy { knob: knob.into(), value: value.into(), computed: computed.into(), ..Remedy::default() };
        let finding = Finding {
            cause: Cause::SendBuffer,
            at: String::new(),
            summary: String::new(),
            confidence: 1.0,
            weight: 1.0,
            allows_bps: None,
            evidence: Vec::new(),
            remedies: vec![remedy],
        };
        let verdict = Verdict { findings: vec![finding], sender: "A".into(), ..Verdict::default() };
        with_commands(verdict, &hosts).findings.remove(0).remedies.remove(0)
    }

    fn lines(remedy: &Remedy) -> Vec<(&str, &str)> {
        remedy.commands.iter().map(|command| (&*command.host, &*command.line)).collect()
    }

    #[test]
    fn a_command_is_for_the_hosts_that_it_concerns() {
        let hosts = || [host("A", &[], Vec::new()), host("B", &[("mtu", "9000")], Vec::new())];
        let sent = remedied("tcp-wmem", "4096 16384 10000000", "500 Mb/s x 80.0 ms x 2", hosts());
        let line = "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 10000000\"   # 500 Mb/s x 80.0 ms x 2";
        assert_eq!(lines(&sent), [("A", line)]);
        let received = remedied("tcp-moderate-rcvbuf", "on", "", hosts());
        assert_eq!(lines(&received), [("B", "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1")]);
        // B has this MTU.
        assert_eq!(lines(&remedied("mtu", "9000", "", hosts())), [("A", "ip link set eth0 mtu 9000")]);
        assert_eq!(lines(&remedied("write-size", "65536", "", hosts())), []);
    }

    #[test]
    fn what_a_host_cannot_have_has_a_reason_and_no_command() {
        let state = |knob: &str| KnobState { knob: knob.into(), ..KnobState::default() };
        let fixed = KnobState { skip: Some("eth0 has it fixed off".into()), ..state("tso") };
        let offered =
            KnobState { choices: vec!["cubic".into(), "reno".into()], ..state("congestion-control") };
        let small = KnobState { most: Some(1600), ..state("mtu") };
        let unprivileged = KnobState { skip: Some(NOT_ROOT.into()), ..state("sack") };
        let states = vec![fixed, offered, small, unprivileged];
        let said = |knob: &str, value: &str| {
            let remedy =
                remedied(knob, value, "", [host("A", &[], states.clone()), host("B", &[], states.clone())]);
            (remedy.commands.len(), remedy.what)
        };
        for (knob, value, why) in [
            ("tso", "on", "fixed off"),
            ("congestion-control", "bbr", "cubic, reno"),
            ("mtu", "9000", "most 1600"),
        ] {
            let (commands, what) = said(knob, value);
            assert!(commands == 0 && what.contains(why), "{knob}: {what}");
        }
        // A person may be root where landspeed is not.
        assert_eq!(said("sack", "on").0, 2);
    }
}
