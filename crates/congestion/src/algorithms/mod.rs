//! The registration table: one folder an algorithm.

mod africa;
mod bbr;
mod bic;
mod cubic;
mod fast;
mod highspeed;
mod hstcp_lp;
mod htcp;
mod ltcp;
mod reno;
mod scalable;
mod westwood;

use crate::Row;

/// Every congestion control there is: those of the study, the two that it names as future work, the kernel's own.
pub static CONTROLS: &[&Row] = &[
    &highspeed::ROW,
    &scalable::ROW,
    &htcp::ROW,
    &bic::ROW,
    &fast::ROW,
    &ltcp::ROW,
    &hstcp_lp::ROW,
    &westwood::ROW,
    &africa::ROW,
    &reno::ROW,
    &cubic::ROW,
    &bbr::ROW,
];
