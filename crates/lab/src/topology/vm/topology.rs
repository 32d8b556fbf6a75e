//! The row of `lab:vm` in the table of topologies.

use super::spec::{GuestSpec, NAME};
use super::{images, spec};
use crate::emulator::Parameter;
use crate::topology::error::Error;
use crate::topology::lab::{self, LabPlan, parameters};
use crate::topology::registry::{Topology, TopologyDescription, TopologyPlan};

/// The caveat about the figures of such a lab. A running lab reports whether it has KVM.
const CAVEAT: &str = "virtual machines: settings hold, speeds do not";

const DRAWING: &str = "   guest a                          netns ls-ID-vm                          guest b
   +---------------------+          +--------------+          +---------------------+
   | d0  198.18.0.1/24   |== tap ===|   ls-data    |=== tap ==| d0  198.18.0.2/24   |
   |     fd00:18::1/64   |          |              |          |     fd00:18::2/64   |
   | m0  10.78.0.1/24    |-- tap ---|    ls-ssh    |--- tap --| m0  10.78.0.2/24    |
   +---------------------+          | 10.78.0.254  |          +---------------------+
                                    +--------------+
   d0 by the driver, m0 for ssh
";

#[derive(Debug)]
pub(crate) struct VmTopology;

impl Topology for VmTopology {
    fn about(&self) -> &'static TopologyDescription {
        &TopologyDescription {
            name: NAME,
            syntax: "lab:vm:KERNEL,KERNEL,driver=NAME,memory=SIZE",
            examples: &["lab:vm:6.12", "lab:vm:6.1,6.12", "lab:vm:6.12,driver=e1000e,memory=2G"],
            line: "two virtual machines on this machine, by QEMU, each with a kernel that `make vm-images` prepared",
            drawing: DRAWING,
        }
    }

    fn caveat(&self) -> Option<&'static str> {
        Some(CAVEAT)
    }

    fn parameters(&self) -> Vec<(&'static str, Vec<Parameter>)> {
        vec![("Of both guests, behind one kernel for both or one for each", spec::parameters())]
    }

    fn accepts(&self, words: &[String]) -> bool {
        parameters(words, NAME).is_some()
    }

    fn plan(&self, words: &[String]) -> Result<TopologyPlan, Error> {
        let spec: GuestSpec = parameters(words, NAME).unwrap_or_default().parse()?;
        Ok(TopologyPlan::Lab(LabPlan::guests(format!("{NAME}:{spec}"), "vm", spec)))
    }

    fn can_run(&self) -> Result<(), String> {
        images::can_run()?;
        lab::can_run()
    }
}
