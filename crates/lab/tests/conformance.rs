//! Checks that each topology of the table keeps the promises of all topologies, and that each check detects a topology
//! that breaks its promise. Labs need root. Real hosts are this machine and a namespace of the test.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use landspeed_kernel::netlink::netns_cookie;
use landspeed_lab::topology::lab;
use landspeed_lab::topology::vm::{FOLDER_VARIABLE, GuestLogin};
use landspeed_lab::topology::{
    Error, HostPair, HostSet, Namespace, ReachMethod, TOPOLOGIES, Topology, TopologyDescription,
    TopologyHost, TopologyPlan, exists, find, with_namespace,
};
use parking_lot::Mutex;

type PromiseResult = Result<(), String>;

fn ensure(holds: bool, what: impl Into<String>) -> PromiseResult {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Returns words that open the topology here, and the namespace that they need, if any.
fn ours(topology: &dyn Topology) -> (Vec<String>, Option<Namespace>) {
    if topology.about().name != "real" {
        return (words(topology.about().examples[0]), None);
    }
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (me, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let namespace = Namespace::create(&format!("ls-conform-{me}-{number}")).expect("a namespace");
    (vec!["local".into(), format!("netns:{}", namespace.name())], Some(namespace))
}

fn opened(topology: &dyn Topology) -> Result<(Box<dyn HostSet>, Option<Namespace>), String> {
    let (words, needed) = ours(topology);
    topology.open(&words).map(|hosts| (hosts, needed)).map_err(|e| e.to_string())
}

fn netns(host: &TopologyHost) -> Option<&str> {
    if let ReachMethod::Namespace(name) = &host.reach { Some(name) } else { None }
}

/// Returns the namespace that a host is in, or that its network is in.
fn place(host: &TopologyHost) -> Option<&str> {
    if let ReachMethod::Guest(login) = &host.reach { Some(&login.netns) } else { netns(host) }
}

/// Returns the reason if the topology cannot be opened here.
fn cannot_open(topology: &dyn Topology) -> Option<String> {
    // For each promise, two guests boot for a minute or two.
    if topology.about().name == "lab:vm" && std::env::var_os(FOLDER_VARIABLE).is_none() {
        return Some(format!("{FOLDER_VARIABLE} does not name the folder of images, so no guest boots"));
    }
    topology.can_run().err()
}

/// Returns the kernel's cookie of a host's namespace.
fn cookie(host: &TopologyHost) -> Result<u64, String> {
    let within = netns(host).map_or_else(|| Ok(netns_cookie()), |name| with_namespace(name, netns_cookie));
    within.map_err(|e| format!("{}: {e}", host.name))?.map_err(|e| e.to_string())
}

/// Makes a guest read the greeting of another guest's sshd.
fn greeted(guest: &GuestLogin, address: IpAddr) -> std::io::Result<()> {
    let mut ssh = Command::new("ssh");
    ssh.args(guest.options.iter().flat_map(|option| ["-o", option])).arg(&guest.destination);
    ssh.arg(format!("bash -c 'exec 3<>/dev/tcp/{address}/22 && head -c 3 <&3'"));
    let output = with_namespace(&guest.netns, || ssh.output()).map_err(std::io::Error::other)??;
    if output.stdout == b"SSH" { Ok(()) } else { Err(std::io::Error::other(format!("{output:?}"))) }
}

/// Sends one line over TCP from one host to an address of another.
fn talk(from: &TopologyHost, to: &TopologyHost, address: IpAddr) -> std::io::Result<()> {
    if let ReachMethod::Guest(guest) = &from.reach {
        return greeted(guest, address);
    }
    let inside = |host: &TopologyHost| netns(host).expect("hosts with addresses are namespaces").to_owned();
    let listen = || TcpListener::bind(SocketAddr::new(address, 0));
    let listener = with_namespace(&inside(to), listen).map_err(std::io::Error::other)??;
    let at = listener.local_addr()?;
    // The connection is complete once it is in the listener's queue, so one thread can handle both ends.
    let connect = || TcpStream::connect_timeout(&at, Duration::from_secs(2));
    let mut near = with_namespace(&inside(from), connect).map_err(std::io::Error::other)??;
    let mut heard = [0; 5];
    near.write_all(b"hello")?;
    listener.accept()?.0.read_exact(&mut heard)
}

/// The name of a promise, and the function that checks it.
type TopologyPromise = (&'static str, fn(&dyn Topology) -> PromiseResult);

/// The number of [`PROMISES`] that concern words alone. They come first.
const ABOUT_WORDS: usize = 3;

const PROMISES: [TopologyPromise; 9] = [
    ("it can be shown", |topology| {
        let narrow = topology.about().drawing.lines().all(|line| line.chars().count() <= 100);
        ensure(narrow && !topology.about().drawing.is_empty(), "its drawing")?;
        ensure(!topology.about().line.is_empty() && !topology.about().examples.is_empty(), "its description")
    }),
    ("its examples are its own, and make sense", |topology| {
        topology.about().examples.iter().map(|text| words(text)).try_for_each(|words| {
            let others = TOPOLOGIES.iter().filter(|other| other.about().name != topology.about().name);
            ensure(topology.accepts(&words), format!("{words:?} is not accepted"))?;
            ensure(
                !others.into_iter().any(|other| other.accepts(&words)),
                format!("{words:?} is another's too"),
            )?;
            topology.check(&words).map_err(|e| e.to_string())
        })
    }),
    ("nonsense is refused with the thing and the remedy", |topology| {
        let nonsense = match topology.about().name {
            "real" => words("local -oProxyCommand=x"),
            name => vec![format!("{name}:no-such")],
        };
        let error = topology.check(&nonsense).err().ok_or("nonsense is accepted")?.to_string();
        let thing = nonsense.iter().any(|word| error.contains(word)) || error.contains("no-such");
        ensure(thing && error.contains("expected"), error)
    }),
    ("its label asks for the same", |topology| {
        let (hosts, _needed) = opened(topology)?;
        let again = words(&hosts.label());
        let plan = topology.plan(&again).map_err(|e| e.to_string())?;
        ensure(topology.accepts(&again) && plan.label() == hosts.label(), format!("{again:?}, {plan:?}"))?;
        ensure(plan.is_lab() == hosts.is_lab(), "whether it is a lab")
    }),
    ("hosts have names of their own", |topology| {
        let (hosts, _needed) = opened(topology)?;
        let mut names: Vec<_> = hosts.hosts().iter().map(|host| &host.name).collect();
        names.sort_unstable();
        names.dedup();
        ensure(names.len() == hosts.hosts().len() && names.len() >= 2, format!("{names:?}"))
    }),
    ("pairs are two different hosts each", |topology| {
        let (hosts, _needed) = opened(topology)?;
        let is_known = |[a, b]: [usize; 2]| a != b && a.max(b) < hosts.hosts().len();
        ensure(
            !hosts.pairs().is_empty() && hosts.pairs().iter().all(|pair| is_known(pair.ends)),
            format!("{:?}", hosts.pairs()),
        )
    }),
    ("every address answers", |topology| {
        let (hosts, _needed) = opened(topology)?;
        let all = || hosts.hosts().iter();
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            ensure(
                !hosts.is_lab() || (b.v4.is_some() && b.v6.is_some()),
                format!("{} has no address", b.name),
            )?;
            let addresses = b.v4.map(IpAddr::from).into_iter().chain(b.v6.map(IpAddr::from));
            addresses
                .into_iter()
                .try_for_each(|at| talk(a, b, at))
                .map_err(|e| format!("{a:?} {b:?}: {e}"))?;
        }
        Ok(())
    }),
    ("two at once are apart", |topology| {
        let (one, _needed) = opened(topology)?;
        let (two, _other) = opened(topology)?;
        let hosts = one.hosts().iter().chain(two.hosts()).filter(|host| netns(host).is_some());
        let mut cookies: Vec<u64> = hosts.map(cookie).collect::<Result<_, _>>()?;
        cookies.push(netns_cookie().map_err(|e| e.to_string())?);
        let count = cookies.len();
        cookies.sort_unstable();
        cookies.dedup();
        ensure(cookies.len() == count, "hosts share a namespace")?;
        drop(two);
        one.hosts().iter().try_for_each(|host| cookie(host).map(drop))
    }),
    ("nothing is left", |topology| {
        let (hosts, needed) = opened(topology)?;
        let is_given = |name: &&str| needed.as_ref().is_some_and(|given| given.name() == *name);
        let names: Vec<_> = hosts.hosts().iter().filter_map(place).filter(|n| !is_given(n)).collect();
        let infos = lab::list().map_err(|e| e.to_string())?;
        let mine = infos.into_iter().find(|info| info.namespaces.iter().any(|name| names.contains(&&**name)));
        ensure(mine.is_some() == hosts.is_lab(), "a lab that is written down")?;
        let is_whole = |info: &lab::LabInfo| info.namespaces.iter().all(|name| exists(name));
        ensure(mine.as_ref().is_none_or(is_whole), "a namespace is missing")?;
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        drop(hosts);
        let listed = lab::list().map_err(|e| e.to_string())?;
        if let Some(info) = mine {
            ensure(info.alive && info.owner_pid == std::process::id(), "another's lab")?;
            ensure(!info.namespaces.iter().any(|name| exists(name)), "a namespace of the lab is left")?;
            ensure(!listed.iter().any(|other| other.id == info.id), "a state file is left")?;
        }
        ensure(!names.iter().any(|name| exists(name)), "a host is left")
    }),
];

/// Lets one test run at a time, because the labs that a broken topology leaves are taken down with all labs of this
/// process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_topology_keeps_every_promise() {
    if !common::can_run("lab:wan") {
        return;
    }
    let _alone = ALONE.lock();
    for topology in TOPOLOGIES {
        let name = topology.about().name;
        let unable = cannot_open(*topology);
        if let Some(why) = &unable {
            println!("SKIP {name}: {why}");
        }
        let checked = if unable.is_some() { ABOUT_WORDS } else { PROMISES.len() };
        for (promise, keeps) in &PROMISES[..checked] {
            keeps(*topology).unwrap_or_else(|why| panic!("{name}: {promise}: {why}"));
        }
    }
}

/// A lab that breaks the promise of this name.
struct BrokenTopology(&'static str);

impl BrokenTopology {
    fn is(&self, promise: usize) -> bool {
        PROMISES[promise].0 == self.0
    }
}

#[derive(Debug)]
struct BrokenHosts {
    hosts: Vec<TopologyHost>,
    label: String,
    pairs: [usize; 2],
    /// The lab; `None` if it is leaked on purpose.
    lab: Option<Box<dyn HostSet>>,
}

impl Topology for BrokenTopology {
    fn about(&self) -> &'static TopologyDescription {
        const SOUND: TopologyDescription = TopologyDescription {
            name: "lab:back-to-back",
            syntax: "lab:back-to-back",
            examples: &["lab:back-to-back"],
            line: "a lab with a promise broken",
            drawing: "a == b",
        };
        match self {
            _ if self.is(0) => &TopologyDescription { drawing: "", ..SOUND },
            _ if self.is(1) => &TopologyDescription { examples: &["lab:back-to-back", "lab:wan"], ..SOUND },
            _ => &SOUND,
        }
    }

    fn accepts(&self, words: &[String]) -> bool {
        words.len() == 1
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let nonsense = self.is(2);
        find(&[])?.plan(if nonsense { &[] } else { words })
    }

    fn can_run(&self) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, words: &[String]) -> Result<Box<dyn HostSet>, Error> {
        let lab = find(words)?.open(words)?;
        let mut hosts = lab.hosts().to_vec();
        if self.is(4) {
            hosts[1].name = hosts[0].name.clone();
        }
        if self.is(6) {
            hosts[1].v4 = Some([198, 18, 0, 9].into());
        }
        if self.is(7) {
            hosts[1].reach = hosts[0].reach.clone();
        }
        let label = if self.is(3) { "lab:switch:2".into() } else { lab.label() };
        let pairs = if self.is(5) { [0, 0] } else { [0, 1] };
        let leaves = self.is(8);
        let mut hosts = BrokenHosts { hosts, label, pairs, lab: Some(lab) };
        if leaves {
            std::mem::forget(hosts.lab.take());
        }
        Ok(Box::new(hosts))
    }
}

impl HostSet for BrokenHosts {
    fn hosts(&self) -> &[TopologyHost] {
        &self.hosts
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn is_lab(&self) -> bool {
        self.lab.as_ref().is_none_or(|lab| lab.is_lab())
    }

    fn pairs(&self) -> Vec<HostPair> {
        vec![HostPair::of(self.pairs)]
    }
}

#[test]
fn each_broken_promise_is_noticed() {
    if !common::can_run("lab") {
        return;
    }
    let _alone = ALONE.lock();
    for (broken, _) in PROMISES {
        let noticed = PROMISES.iter().filter(|(_, keeps)| keeps(&BrokenTopology(broken)).is_err());
        let noticed: Vec<_> = noticed.map(|(promise, _)| *promise).collect();
        assert!(noticed.contains(&broken), "\"{broken}\" is broken, and only {noticed:?} are noticed");
    }
    assert!(
        PROMISES.iter().all(|(_, keeps)| keeps(&BrokenTopology("")).is_ok()),
        "a lab that breaks none keeps all"
    );
    lab::down(&lab::LabSelection::Own).expect("what was left goes");
}
