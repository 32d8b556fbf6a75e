//! The known figures of the path that a host is used for.

use landspeed_record::units::{BitRate, Nanos};

/// The known properties of the path that a host is used for. They take precedence over the speed that the link reports
/// and over assumed values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DoctorPath {
    /// Rate that the path carries; `None` if it is unknown.
    pub rate: Option<BitRate>,
    /// RTT without load; `None` if it is unknown.
    pub rtt: Option<Nanos>,
}

impl DoctorPath {
    /// Returns true if any figure of the path is known.
    pub fn is_known(&self) -> bool {
        self.rate.is_some() || self.rtt.is_some()
    }
}
