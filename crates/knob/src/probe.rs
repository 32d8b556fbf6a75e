//! What a host's knobs are set to, and which can be turned. Nothing is changed.

use landspeed_record::KnobState;

use crate::table::all;
use crate::{HostKnob, Knob, Limits, Place, Scope};

/// CAP_NET_ADMIN's bit in /proc/self/status (linux/capability.h).
const CAP_NET_ADMIN: u32 = 12;

/// Every system knob of the table on the path over the place's device, with the reason where it cannot be
/// turned here.
pub fn probe(place: &Place) -> Vec<KnobState> {
    let powers = Powers::here();
    all().map(|knob| state(knob, place, powers)).collect()
}

impl Knob {
    /// What it is set to, or the reason why it cannot be turned here.
    pub fn probe(&self, place: &Place) -> KnobState {
        state(self, place, Powers::here())
    }
}

/// What this process may do to this machine.
#[derive(Debug, Clone, Copy)]
struct Powers {
    initial: bool,
    admin: bool,
}

impl Powers {
    fn here() -> Self {
        Powers { initial: initial_namespace(), admin: net_admin() }
    }
}

fn state(knob: &Knob, place: &Place, powers: Powers) -> KnobState {
    let turn = knob.setting;
    let mut state = KnobState { knob: knob.factor.name.into(), ..KnobState::default() };
    match turn.read(place) {
        Ok(value) => match knob.factor.domain.check(&value) {
            Ok(()) => state.value = Some(value),
            Err(expected) => state.skip = Some(outside(&value, &expected)),
        },
        Err(error) => state.skip = Some(error.to_string()),
    }
    if let Ok(limits) = turn.limits(place) {
        let Limits { most, choices, members } = limits;
        (state.most, state.choices, state.members) = (most, choices, members);
    }
    if knob.factor.scope == Scope::Host && !powers.initial {
        state.skip = Some("it belongs to the whole machine, and this is a namespace of it".into());
    }
    if state.skip.is_none() {
        state.skip = obstacle(turn, place, powers);
    }
    state
}

/// Why a knob that can be read cannot be turned.
fn obstacle(turn: &dyn HostKnob, place: &Place, powers: Powers) -> Option<String> {
    if !powers.admin {
        return Some("not root (no CAP_NET_ADMIN): run the agent with sudo".into());
    }
    turn.can_write(place).err().map(|error| error.to_string())
}

fn outside(value: &str, expected: &str) -> String {
    let shown: String = value.chars().take(64).collect();
    format!(
        "it reads '{}', which could not be put back exactly (expected {expected})",
        shown.escape_default()
    )
}

/// Whether this is the machine's first network namespace: only there does the kernel register these files
/// (net_core_init, net/core/sysctl_net_core.c).
fn initial_namespace() -> bool {
    std::path::Path::new("/proc/sys/net/core/dev_weight").exists()
}

fn net_admin() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << CAP_NET_ADMIN) != 0)
}
