//! The lab's entries in the table of topologies.

use landspeed_netlink::{LinkChange, Rtnl, VethEnd, in_throwaway};
use rustix::thread::{CapabilitySet, capabilities};

use super::kind::wan_parameters;
use super::{Lab, LabKind};
use crate::error::Error;
use crate::registry::{Hosts, Topology};

/// Two namespaces and a veth pair.
#[derive(Debug)]
pub(crate) struct BackToBack;

/// Namespaces on a bridge.
#[derive(Debug)]
pub(crate) struct Switch;

/// Namespaces and a wide-area link.
#[derive(Debug)]
pub(crate) struct Wan;

const PAIR: &str = "\
   netns ls-ID-a                                netns ls-ID-b
   +-----------------------+                    +-----------------------+
   | ls-a  198.18.0.1/24   |======= veth =======| ls-b  198.18.0.2/24   |
   |       fd00:18::1/64   |                    |       fd00:18::2/64   |
   +-----------------------+                    +-----------------------+
";

const STAR: &str = "\
   netns ls-ID-h0                     netns ls-ID-sw                     netns ls-ID-h1
   +----------------------+          +----------------+          +----------------------+
   | ls-h0  198.18.0.1/24 |== veth ==| ls-p0    ls-p1 |== veth ==| ls-h1  198.18.0.2/24 |
   |        fd00:18::1/64 |          |     ls-br      |          |        fd00:18::2/64 |
   +----------------------+          | ls-p2 ... p31  |          +----------------------+
                                     +----------------+
                                       || veth
                                     h2 198.18.0.3 ... h31 198.18.0.32
";

const LONG: &str = "\
   netns ls-ID-a                      netns ls-ID-wan                      netns ls-ID-b
   +----------------------+          +------------------+          +----------------------+
   | ls-a  198.18.0.1/24  |== veth ==| ls-p0      ls-p1 |== veth ==| ls-b  198.18.0.2/24  |
   |       fd00:18::1/64  |          |   queue > rate > |          |       fd00:18::2/64  |
   +----------------------+          |   loss > delay   |          +----------------------+
                                     +------------------+
   pairs=2: also a2 and b2; a bridge on each side of the link joins the hosts of that side
";

impl Topology for BackToBack {
    fn name(&self) -> &'static str {
        "lab:back-to-back"
    }

    fn syntax(&self) -> &'static str {
        "lab:back-to-back"
    }

    fn describe(&self) -> &'static str {
        "two network namespaces on this machine, joined by a veth pair with a queue for each core"
    }

    fn drawing(&self) -> &'static str {
        PAIR
    }

    fn accepts(&self, words: &[String]) -> bool {
        words.is_empty() || matches!(one_lab(words), Some(LabKind::BackToBack))
    }

    fn can_run(&self) -> Result<(), String> {
        can_run()
    }

    fn open(&self, _words: &[String]) -> Result<Box<dyn Hosts>, Error> {
        Ok(Box::new(Lab::create(LabKind::BackToBack)?))
    }
}

impl Topology for Switch {
    fn name(&self) -> &'static str {
        "lab:switch"
    }

    fn syntax(&self) -> &'static str {
        "lab:switch:N"
    }

    fn describe(&self) -> &'static str {
        "2 to 32 network namespaces on this machine, each by a veth pair on a bridge in a namespace of its own"
    }

    fn drawing(&self) -> &'static str {
        STAR
    }

    fn accepts(&self, words: &[String]) -> bool {
        matches!(one_lab(words), Some(LabKind::Switch(_)))
    }

    fn can_run(&self) -> Result<(), String> {
        can_run()
    }

    fn open(&self, words: &[String]) -> Result<Box<dyn Hosts>, Error> {
        Ok(Box::new(Lab::create(kind_of(words)?)?))
    }
}

impl Topology for Wan {
    fn name(&self) -> &'static str {
        "lab:wan"
    }

    fn syntax(&self) -> &'static str {
        "lab:wan:KEY=VALUE,..."
    }

    fn describe(&self) -> &'static str {
        "network namespaces on this machine, in pairs, joined by one link of set rate, round-trip time, queue and loss"
    }

    fn drawing(&self) -> &'static str {
        LONG
    }

    fn accepts(&self, words: &[String]) -> bool {
        matches!(words, [word] if wan_parameters(word).is_some())
    }

    fn check(&self, words: &[String]) -> Result<(), Error> {
        match kind_of(words)? {
            LabKind::Wan(spec) => Ok(spec.check().map_err(landspeed_emulator::Error::from)?),
            _ => Ok(()),
        }
    }

    fn can_run(&self) -> Result<(), String> {
        can_run()?;
        landspeed_emulator::can_carry()
    }

    fn open(&self, words: &[String]) -> Result<Box<dyn Hosts>, Error> {
        Ok(Box::new(Lab::create(kind_of(words)?)?))
    }
}

fn kind_of(words: &[String]) -> Result<LabKind, Error> {
    words.first().map(String::as_str).unwrap_or_default().parse()
}

fn one_lab(words: &[String]) -> Option<LabKind> {
    match words {
        [word] => word.parse().ok(),
        _ => None,
    }
}

/// Asks the kernel itself, in a namespace that is gone before this returns.
fn can_run() -> Result<(), String> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if !capabilities(None).is_ok_and(|sets| sets.effective.contains(needed)) {
        return Err("making network namespaces needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN): try sudo".into());
    }
    let tried = in_throwaway(|| {
        let rtnl = Rtnl::open()?;
        let end = |name| VethEnd { name, mac: None, netns: None, queues: 1 };
        rtnl.create_veth(&end("ls-try-a"), &end("ls-try-b"))?;
        rtnl.create_bridge("ls-try-br")?;
        rtnl.set_link("ls-try-a", LinkChange::Master(rtnl.index_of("ls-try-br")?))
    });
    match tried {
        Err(e) => Err(format!("this kernel refuses a network namespace: {e}")),
        Ok(Err(e)) => Err(format!("this kernel lacks what a lab is made of: {e}")),
        Ok(Ok(())) => Ok(()),
    }
}
