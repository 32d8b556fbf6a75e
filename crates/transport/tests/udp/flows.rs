//! What flows do when nobody meddles.

use std::time::Duration;

use landspeed_transport::{Call, Cancel};
use landspeed_units::{Bytes, Nanos};

use crate::common::{KEY, LONG, V4, V6, pair, patience, receive, reserve, send, set, udp};

#[test]
fn flows_carry_datagrams_both_ways() {
    for at in [V4, V6] {
        let (there, here) = pair(at);
        assert_eq!((there.number(), here.number(), there.set_up()), (5, 5, Nanos(0)));
        assert_eq!(there.not_as_asked(), here.not_as_asked());
        for (from, to) in [(&there, &here), (&here, &there)] {
            send(from.as_ref(), 10);
            assert_eq!(receive(to.as_ref(), 10_000), 10_000);
            let (sent, came) = (from.datagrams().expect("counts"), to.datagrams().expect("counts"));
            assert_eq!((sent.sent, came.received, came.highest), (10, 10, 10));
            assert_eq!((came.reordered, came.duplicated, came.malformed), (0, 0, 0), "{came:?}");
            assert!(came.first <= came.last && came.last.is_some());
        }
    }
}

#[test]
fn many_in_a_call_come_whole_by_every_way() {
    let ways = [("batch", "batch"), ("gso", "gro"), ("gso", "batch")];
    for (send, receive_by) in ways {
        let settings = set(&[("datagram-send", send), ("datagram-receive", receive_by)]);
        assert_eq!(udp().can_run(&settings), Ok(()), "the kernels that this is tested on have both");
        let port = reserve(V4);
        let mut listener = port.listen(&settings, &KEY).expect("it listens");
        let (there, here) = std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let call = Call {
                    server: port.address(),
                    number: 0,
                    source_port: 0,
                    settings: &settings,
                    key: &KEY,
                };
                udp().connect(&call, &patience(&Cancel::new(), LONG))
            });
            let here = listener.accept(&patience(&Cancel::new(), LONG)).expect("a flow comes");
            (calling.join().expect("no panic").expect("proven"), here)
        });
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
    let (there, here) = pair(V4);
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
    let ways = ["plain", "batch", "gro"];
    for way in ways {
        let port = reserve(V4);
        let settings = set(&[("datagram-receive", way)]);
        let mut listener = port.listen(&settings, &KEY).expect("it listens");
        let (there, here) = crate::common::pair_through(listener.as_mut(), port.address());
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
    let (there, _here) = pair(V4);
    let mut sender = there.sender().expect("sends");
    for size in [0, 15, 65_508] {
        let refused = sender.send(&vec![0; size], 1).expect_err("no datagram");
        assert!(refused.to_string().contains("16 to 65507"), "{refused}");
    }
}
