//! Transfers with every control over a path that loses packets, so that each control's reaction to a loss runs in the
//! kernel too.
//!
//! ```text
//!   a  ==== veth ====  lab:wan, one packet in 500 lost  ==== veth ====  b
//! ```

use std::net::{SocketAddr, TcpListener, TcpStream};

use landspeed_congestion::{Control, load};
use landspeed_lab::topology::{Lab, find, with_namespace};

use crate::transfer::{LoopbackFlow, TransferReport};
use crate::{KERNEL, can, ours};

const PATH: &str = "lab:wan:rate=200M,rtt=4ms,loss=0.2%";

fn transfer(lab: &Lab, row: &Control) -> std::io::Result<TransferReport> {
    let [a, b] = lab.hosts() else { panic!("two hosts") };
    let bind = || TcpListener::bind(SocketAddr::new(b.v4.into(), 0));
    let listener = with_namespace(&b.netns, bind).expect("namespace b")?;
    let address = listener.local_addr()?;
    let near = with_namespace(&a.netns, || TcpStream::connect(address)).expect("namespace a")?;
    LoopbackFlow::between(row.kernel_name, near, &listener)?.send(4 << 20)
}

#[test]
fn every_control_gets_over_losses_in_another_namespace() {
    let _one = KERNEL.lock();
    if !can("every_control_gets_over_losses_in_another_namespace") {
        return;
    }
    let topology = find(&[PATH.to_owned()]).expect("a lab of this kind");
    if let Err(reason) = topology.can_run() {
        println!("SKIP every_control_gets_over_losses_in_another_namespace: {reason}");
        return;
    }
    let lab = Lab::open(PATH).expect("a lab");
    for row in ours() {
        let _loaded = load(row.name).unwrap_or_else(|error| panic!("{error}"));
        let report = transfer(&lab, row).expect("a transfer");
        assert_eq!(report.control, row.kernel_name);
        assert!(report.sent_again > 0, "{}: nothing was lost: {report:?}", row.name);
    }
}
