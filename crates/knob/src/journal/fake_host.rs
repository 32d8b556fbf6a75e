//! A fake host for tests. It has every knob of the table that disturbs other settings, and settings of every kind. It
//! imitates how the kernel changes settings along with the one that is written.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use landspeed_kernel::netlink::{InterfaceAddress, Qdisc, Route};
use parking_lot::{Mutex, MutexGuard};

use super::host::JournalHost;
use super::identity::DeviceIdentity;
use super::location::{DeviceLocation, DeviceWhereabouts};
use super::snapshot::{
    AddressKey, AddressSnapshot, RelatedKey, RouteSlot, SettingKey, SettingValue, SettingsSnapshot,
};
use super::whereabouts::Departure;
use crate::{Domain, Error, Knob, SideEffect};

pub(super) const DEVICE: &str = "eth0";
pub(super) const INDEX: u32 = 2;

pub(super) fn knobs() -> Vec<&'static Knob> {
    let disturbs = |knob: &&Knob| !knob.factor.disturbs.is_empty();
    crate::table::all().filter(disturbs).collect()
}

pub(super) fn values(knob: &Knob) -> [String; 3] {
    let [a, b, c] = match knob.factor.domain {
        Domain::Switch | Domain::Each(Domain::Switch) => ["on", "off", "on"].map(str::to_owned),
        Domain::CpuList | Domain::Each(Domain::CpuList) => ["0", "none", "1"].map(str::to_owned),
        Domain::Name => ["default", "fq", "fq_codel"].map(str::to_owned),
        Domain::Int(low, high) | Domain::Each(&Domain::Int(low, high)) => {
            [low + 200, low + 20, high - 1].map(|n| n.to_string())
        }
        other => panic!("{} has a domain that the fake host lacks: {other:?}", knob.factor.name),
    };
    knob.factor.domain.check(&a).and_then(|()| knob.factor.domain.check(&b)).unwrap();
    [a, b, c]
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FakeHostState {
    pub(super) knobs: BTreeMap<&'static str, String>,
    pub(super) items: BTreeMap<SettingKey, SettingValue>,
}

/// The state of the fake host, the records of what happened on it, and the controls of a test.
#[derive(Debug)]
pub(super) struct FakeWorld {
    pub(super) state: FakeHostState,
    pub(super) now_s: u64,
    /// Seed that determines which settings a write changes along with its knob.
    pub(super) seed: u64,
    /// Number of writes until the process dies; `None` if it does not die. The test undoes the writes after the death.
    pub(super) dies_after: Option<u32>,
    /// Settings and journal at the time of death.
    pub(super) at_death: Option<(FakeHostState, Vec<u8>)>,
    /// Writes to knobs.
    pub(super) wrote: Vec<(&'static str, String)>,
    /// Other settings that were restored.
    pub(super) put: Vec<(SettingKey, Option<SettingValue>)>,
    /// All states that the host has had.
    pub(super) ever: Vec<FakeHostState>,
    pub(super) journal: PathBuf,
}

#[derive(Debug, Clone)]
pub(super) struct FakeJournalHost(pub(super) Arc<Mutex<FakeWorld>>);

/// Returns `mtu` as the setting "MTU of eth0.7", a VLAN on the device. A caller passes no more than the MTU of the
/// device.
fn vlan_mtu(mtu: u64) -> SettingValue {
    SettingValue::Of { device: "eth0.7".into(), value: mtu.to_string() }
}

fn vlan() -> SettingKey {
    SettingKey::Related(RelatedKey::mtu_of(7))
}

/// Returns true if the setting is a file, which exists exactly as long as its object, so that no program can remove
/// it.
pub(super) fn is_file(key: &SettingKey) -> bool {
    matches!(key, SettingKey::DeviceSysctl(_) | SettingKey::Queue(_) | SettingKey::Related(_))
}

fn text(value: &str) -> SettingValue {
    SettingValue::Text(value.to_owned())
}

/// Returns a route (RTM_NEWROUTE) over the device to 10.`to`.0.0/16 whose RTAX_MTU is `metric`. Its origin is the
/// kernel or an administrator.
fn route(to: u8, metric: u32, is_automatic: bool) -> Route {
    let protocol = if is_automatic { libc::RTPROT_KERNEL } else { 4 };
    let mut raw = vec![libc::AF_INET as u8, 16, 0, 0, 254, protocol, 0, 1, 0, 0, 0, 0];
    raw.extend([8, 0, 1, 0, 10, to, 0, 0]);
    raw.extend([8, 0, 4, 0]);
    raw.extend(INDEX.to_ne_bytes());
    // RTA_METRICS with RTAX_MTU, which differs between two variants of one route.
    raw.extend([12, 0, 8, 0, 8, 0, 2, 0]);
    raw.extend(metric.to_ne_bytes());
    let hex: String = raw.iter().map(|b| format!("{b:02x}")).collect();
    serde_json::from_str(&format!("\"{hex}\"")).unwrap()
}

fn routes(to: u8, variant: u32, is_automatic: bool) -> (SettingKey, SettingValue) {
    let route = route(to, 1000 + variant, is_automatic);
    (SettingKey::Route(RouteSlot::of(&route)), SettingValue::Routes(vec![route]))
}

fn address(nth: u8) -> (SettingKey, SettingValue) {
    let text = if nth < 2 { format!("10.{nth}.0.1") } else { format!("fd00::{nth}") };
    let address = InterfaceAddress::new(INDEX, text.parse().unwrap(), 24);
    (
        SettingKey::Address(AddressKey::of(&address)),
        SettingValue::Address(AddressSnapshot { address, at_s: 0, nth: nth.into() }),
    )
}

fn qdisc(kind: &str) -> SettingValue {
    let qdisc = Qdisc { index: INDEX, kind: kind.into(), handle: 1 << 16, parent: u32::MAX, options: None };
    SettingValue::Qdisc(qdisc)
}

/// Returns one of a few possible values of the setting, chosen by `n`.
pub(super) fn another(key: &SettingKey, n: u64) -> Option<SettingValue> {
    match key {
        SettingKey::Feature(_) => Some(SettingValue::On).filter(|_| n.is_multiple_of(2)),
        SettingKey::DeviceSysctl(_) | SettingKey::Queue(_) | SettingKey::Sysctl(_) => {
            Some(text(&format!("{}", n % 5)))
        }
        SettingKey::Qdisc => Some(qdisc(["pfifo_fast", "htb", "mq"][(n % 3) as usize])),
        SettingKey::Related(_) => Some(vlan_mtu(1281 + n % 5)),
        SettingKey::Address(_) => (0..4).map(address).find(|(k, _)| k == key).map(|(_, value)| value),
        SettingKey::Route(_) => {
            (10..13).map(|to| routes(to, (n % 3) as u32, false)).find(|(k, _)| k == key).map(|(_, v)| v)
        }
    }
    .filter(|_| !(matches!(key, SettingKey::Address(_) | SettingKey::Route(_)) && n.is_multiple_of(4)))
}

/// Returns the settings that another program, or a write to another knob, can change. Settings that the kernel creates
/// itself are not among them.
pub(super) fn settable() -> Vec<SettingKey> {
    let later = LATER.map(|name| SettingKey::Feature(name.into()));
    initial_items().into_keys().filter(|key| !is_automatic(key)).chain(later).collect()
}

/// Features that are off at first, so that the first snapshot does not contain them.
const LATER: [&str; 2] = ["lro", "rx-gro-list"];

/// Returns the feature that an offload knob switches; `None` for other knobs. As in the kernel, the feature is active
/// only if the features that it needs are.
pub(super) fn wish(knob: &Knob) -> Option<SettingKey> {
    let is_switch = matches!(knob.factor.domain, Domain::Each(Domain::Switch));
    let is_offload = is_switch && knob.factor.disturbs.contains(&SideEffect::Features);
    is_offload.then(|| SettingKey::Feature(format!("of-{}", knob.factor.name)))
}

/// Offloads that are not wanted at first.
const NOT_ASKED_FOR: [&str; 3] = ["gro", "lro", "hw-gro"];

fn is_automatic(key: &SettingKey) -> bool {
    (0..4).any(|nth| routes(nth, 0, true).0 == *key)
}

fn initial_items() -> BTreeMap<SettingKey, SettingValue> {
    let mut items: BTreeMap<SettingKey, SettingValue> =
        ["sg", "tso", "gro"].map(|n| (SettingKey::Feature(n.into()), SettingValue::On)).into();
    for name in ["ipv4/conf/rp_filter", "ipv6/conf/mtu", "ipv6/conf/accept_ra"] {
        items.insert(SettingKey::DeviceSysctl(name.into()), text("2"));
    }
    for name in ["rx-0/rps_cpus", "rx-1/rps_cpus"] {
        items.insert(SettingKey::Queue(name.into()), text("3"));
    }
    items.insert(SettingKey::Qdisc, qdisc("pfifo_fast"));
    items.insert(vlan(), vlan_mtu(1480));
    items.extend((0..4).map(address));
    items.extend((10..13).map(|to| routes(to, 0, false)));
    items
}

impl FakeHostState {
    pub(super) fn new() -> FakeHostState {
        let (offloads, others): (Vec<&Knob>, _) = knobs().into_iter().partition(|knob| wish(knob).is_some());
        let knobs = others.into_iter().map(|knob| (knob.factor.name, values(knob)[0].clone())).collect();
        let mut state = FakeHostState { knobs, items: initial_items() };
        let asked_for = offloads.into_iter().filter(|knob| !NOT_ASKED_FOR.contains(&knob.factor.name));
        state.items.extend(asked_for.filter_map(wish).map(|wish| (wish, SettingValue::On)));
        state.follow();
        state
    }

    /// Imitates the kernel's own changes: adds the automatic route of each existing address, and removes that of each
    /// missing one.
    fn follow(&mut self) {
        for nth in 0..4 {
            let (key, value) = routes(nth, 0, true);
            if self.items.contains_key(&address(nth).0) {
                self.items.entry(key).or_insert(value);
            } else {
                self.items.remove(&key);
            }
        }
    }

    /// Returns true if a setting can exist. Settings and addresses of IPv6 need an MTU above 1300, and settings of the
    /// queue rx-1 need that queue.
    fn has(&self, key: &SettingKey) -> bool {
        let number = |knob: &str| self.knobs.get(knob).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
        match key {
            SettingKey::DeviceSysctl(name) if name.starts_with("ipv6/") => number("mtu") > 1300,
            SettingKey::Queue(name) if name.starts_with("rx-1/") => number("channels") > 21,
            SettingKey::Address(_) if !is_ipv4(key) => number("mtu") > 1300,
            _ => true,
        }
    }

    /// Returns the value of a knob.
    pub(super) fn read(&self, knob: &Knob) -> String {
        let Some(wish) = wish(knob) else { return self.knobs[knob.factor.name].clone() };
        let is_met = |(need, value): &(&str, &str)| {
            let need = crate::table::find(need).unwrap();
            self.read(need) == *value
        };
        let is_on = self.items.contains_key(&wish) && knob.factor.needs.iter().all(is_met);
        if is_on { "on" } else { "off" }.to_owned()
    }

    pub(super) fn set(&mut self, key: &SettingKey, value: Option<&SettingValue>) {
        match value {
            Some(value) if self.has(key) => drop(self.items.insert(key.clone(), value.clone())),
            Some(_) => {}
            None => drop(self.items.remove(key)),
        }
        self.pass_mtu_on();
        self.follow();
    }

    /// Writes a knob, and makes all changes that the kernel makes along with it.
    fn turn(&mut self, knob: &Knob, value: &str, seed: u64) {
        match wish(knob) {
            Some(wish) => self.set(&wish, Some(&SettingValue::On).filter(|_| value == "on")),
            None => drop(self.knobs.insert(knob.factor.name, value.to_owned())),
        }
        for key in settable().iter().filter(|key| key.is_among(knob.factor.disturbs)) {
            let mut hasher = DefaultHasher::new();
            (seed, knob.factor.name, value, format!("{key:?}")).hash(&mut hasher);
            let n = hasher.finish();
            if n.is_multiple_of(3) && (!is_file(key) || self.items.contains_key(key)) {
                self.set(key, another(key, n >> 8).as_ref());
            }
        }
        self.pass_mtu_on();
        self.come_and_go();
    }

    /// Lowers the VLAN's MTU to that of the device if it is greater. A greater MTU of the device does not raise the
    /// VLAN's.
    fn pass_mtu_on(&mut self) {
        let mtu: u64 = self.knobs["mtu"].parse().unwrap();
        if matches!(self.items.get(&vlan()), Some(SettingValue::Of { value, .. }) if value.parse::<u64>().unwrap() > mtu)
        {
            self.items.insert(vlan(), vlan_mtu(mtu));
        }
    }

    /// Removes files and IPv6 addresses whose requirements are not met. Creates files whose requirements are met again,
    /// with the kernel's initial value.
    fn come_and_go(&mut self) {
        for key in settable() {
            if !self.has(&key) {
                self.items.remove(&key);
            } else if is_file(&key) {
                self.items.entry(key).or_insert_with(|| text("0"));
            }
        }
        self.follow();
    }

    /// Sets a knob as another program does, without other changes.
    pub(super) fn set_knob(&mut self, knob: &Knob, value: &str) {
        self.knobs.insert(knob.factor.name, value.to_owned());
    }
}

fn is_ipv4(key: &SettingKey) -> bool {
    (0..2).any(|nth| address(nth).0 == *key)
}

impl FakeWorld {
    /// Clears the recorded writes, and records the initial and the current state as states that the host has had.
    pub(super) fn begin_again(&mut self) {
        self.wrote.clear();
        self.put.clear();
        self.ever.extend([FakeHostState::new(), self.state.clone()]);
    }
}

impl FakeJournalHost {
    pub(super) fn lock(&self) -> MutexGuard<'_, FakeWorld> {
        self.0.lock()
    }

    /// Counts a write. At the first write after the death, saves the settings and the journal.
    fn before_write(&self) {
        let mut world = self.lock();
        match world.dies_after {
            Some(0) if world.at_death.is_none() => {
                let journal = std::fs::read(&world.journal).unwrap();
                world.at_death = Some((world.state.clone(), journal));
            }
            left => world.dies_after = left.map(|left| left.saturating_sub(1)),
        }
    }
}

impl JournalHost for FakeJournalHost {
    fn now_s(&self) -> u64 {
        self.lock().now_s
    }

    fn is_initial_netns(&self) -> bool {
        true
    }

    fn device(&self, name: &str) -> Result<Option<DeviceIdentity>, String> {
        Ok(Some(DeviceIdentity {
            name: name.to_owned(),
            ifindex: INDEX,
            permanent_mac: None,
            parent: None,
            kind: None,
            mac: None,
        }))
    }

    fn find(&self, device: &DeviceIdentity, _: Option<&Departure>) -> Result<DeviceWhereabouts, String> {
        Ok(DeviceWhereabouts::At(DeviceLocation::here(&device.name)))
    }

    fn read(&self, knob: &Knob, _: &DeviceLocation) -> Result<String, Error> {
        Ok(self.lock().state.read(knob))
    }

    fn write(&self, knob: &Knob, _: &DeviceLocation, value: &str) -> Result<(), Error> {
        self.before_write();
        let mut world = self.lock();
        let seed = world.seed;
        let was = world.state.clone();
        world.state.turn(knob, value, seed);
        world.ever.push(was);
        world.wrote.push((knob.factor.name, value.to_owned()));
        Ok(())
    }

    fn snapshot(
        &self,
        kinds: &[SideEffect],
        _: &DeviceLocation,
        _: &BTreeSet<RouteSlot>,
    ) -> Result<SettingsSnapshot, Error> {
        let items = self.lock().state.items.clone();
        Ok(SettingsSnapshot::of(kinds, items.into_iter().filter(|(key, _)| key.is_among(kinds)).collect()))
    }

    fn snapshot_after_write(
        &self,
        kinds: &[SideEffect],
        location: &DeviceLocation,
        _: &SettingsSnapshot,
    ) -> Result<SettingsSnapshot, Error> {
        self.snapshot(kinds, location, &BTreeSet::new())
    }

    fn put(
        &self,
        _: &DeviceLocation,
        todo: &[(&SettingKey, Option<&SettingValue>)],
        last_resort: bool,
    ) -> Vec<(SettingKey, String)> {
        for (key, value) in todo {
            self.before_write();
            if !is_automatic(key) || value.is_none() || last_resort {
                self.lock().state.set(key, *value);
            }
            self.lock().put.push(((*key).clone(), value.cloned()));
        }
        Vec::new()
    }
}
