//! What UDP flows do when nobody meddles.

use std::time::Duration;

use landspeed_units::{Bytes, Nanos};

use crate::common::{pair, receive, send, transport, udp};

#[test]
fn datagrams_are_counted_both_ways() {
    let (there, here) = pair(&udp(&[]));
    assert_eq!(there.set_up(), Nanos(0));
    for (from, to) in [(&there, &here), (&here, &there)] {
        send(from.as_ref(), 10);
        assert_eq!(receive(to.as_ref(), 10_000), 10_000);
        let (sent, came) = (from.datagrams().expect("counts"), to.datagrams().expect("counts"));
        assert_eq!((sent.sent, came.received, came.highest), (10, 10, 10));
        assert_eq!((came.reordered, came.duplicated, came.malformed), (0, 0, 0), "{came:?}");
        assert!(came.first <= came.last && came.last.is_some());
    }
}

#[test]
fn many_in_a_call_come_whole_by_every_way() {
    for (send, receive_by) in [("batch", "batch"), ("gso", "gro"), ("gso", "batch")] {
        let settings = udp(&[("datagram-send", send), ("datagram-receive", receive_by)]);
        let can_run = transport(&settings).can_run(&settings);
        assert_eq!(can_run, Ok(()), "the kernels that this is tested on have both");
        let (there, here) = pair(&settings);
        let mut sender = there.sender().expect("sends");
        let taken = sender.send(&[1; 1000], 20).expect("sent");
        assert_eq!(taken, 20_000, "{send} hands over as many as are asked for");
        assert_eq!(receive(here.as_ref(), taken), taken, "{send} {receive_by}");
        let came = here.datagrams().expect("counts");
        assert_eq!((came.received, came.highest, came.malformed), (20, 20, 0), "{came:?}");
    }
}

#[test]
fn feedback_comes_back_on_the_flow_and_ends_with_the_receiver() {
    let (there, here) = pair(&udp(&[]));
    send(there.as_ref(), 10);
    assert!(there.progress().expect("a count").outstanding);
    assert_eq!(receive(here.as_ref(), 20_000), 10_000, "and silence, which is told too");
    let progress = there.progress().expect("a count");
    assert_eq!((progress.acked, progress.outstanding), (Bytes(10_000), false));
    send(there.as_ref(), 1);
    for _ in 0..20 {
        let progress = there.progress().expect("a count");
        assert!(progress.outstanding && progress.acked == Bytes(10_000), "nobody receives: {progress:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_sleeping_receiver_can_be_woken_by_every_way() {
    for way in ["plain", "batch", "gro"] {
        let (there, here) = pair(&udp(&[("datagram-receive", way)]));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut receiver = here.receiver().expect("receives");
                loop {
                    match receiver.receive(&mut [0; 65_536]) {
                        Ok(got) => break got,
                        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}"),
                    }
                }
            });
            here.wake_receiver();
            assert_eq!(waiting.join().expect("no panic"), 0, "{way}");
        });
        assert_eq!(here.datagrams().expect("counts").malformed, 0, "leaving is no datagram");
        drop(there);
    }
}

#[test]
fn what_is_no_datagram_is_not_sent() {
    let (there, _here) = pair(&udp(&[]));
    let mut sender = there.sender().expect("sends");
    for size in [0, 15, 65_508] {
        let refused = sender.send(&vec![0; size], 1).expect_err("no datagram");
        assert!(refused.to_string().contains("16 to 65507"), "{refused}");
    }
}
