//! UDP flows without interference.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use landspeed_record::units::{Bytes, Nanos};
use landspeed_transport::{Receiver, Sender, ZeroCopyCompletions};

use crate::common::{LONG, V4, V6, pair, pair_at, receive, send, transport, udp};

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
    for (send, receive_by) in [("batch", "batch"), ("uring", "batch"), ("gso", "gro"), ("gso", "batch")] {
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
    assert_eq!(receive(here.as_ref(), 20_000), 10_000, "and silence, which is reported too");
    let progress = there.progress().expect("a count");
    assert_eq!((progress.acked, progress.outstanding), (Bytes(10_000), false));
    send(there.as_ref(), 1);
    for _ in 0..20 {
        let progress = there.progress().expect("a count");
        assert!(progress.outstanding && progress.acked == Bytes(10_000), "no receiver: {progress:?}");
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
fn an_invalid_datagram_is_not_sent() {
    let (there, _here) = pair(&udp(&[]));
    let mut sender = there.sender().expect("sends");
    for size in [0, 15, 65_508] {
        let refused = sender.send(&vec![0; size], 1).expect_err("no datagram");
        assert!(refused.to_string().contains("16 to 65507"), "{refused}");
    }
}

/// Sends a message of 1000 bytes `times` times, in as many calls as necessary.
fn send_all(sender: &mut dyn Sender, message: &[u8], times: u64) {
    let mut left = times;
    while left > 0 {
        match sender.send(message, left) {
            Ok(taken) => left -= taken as u64 / 1000,
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}"),
        }
    }
}

/// Receives `times` datagrams, each of which must have this message's payload.
fn receive_all(receiver: &mut dyn Receiver, message: &[u8], times: u64) {
    let (mut left, mut silent) = (times, 0);
    while left > 0 {
        let mut into = [0; 65_536];
        match receiver.receive(&mut into) {
            Ok(got) => {
                assert!(into[..got].chunks(1000).all(|came| came[16..] == message[16..]), "other bytes came");
                left -= got as u64 / 1000;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && silent < 20 => silent += 1,
            Err(error) => panic!("{left} of {times} did not come: {error}"),
        }
    }
}

/// Waits until no send is pending: the kernel's own threads complete them, and may get their turn late. Returns the counts of
/// all sends.
fn completed(sender: &mut dyn Sender) -> ZeroCopyCompletions {
    let (mut seen, until) = (sender.completions(), Instant::now() + LONG);
    while seen.pending > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
        seen = sender.completions();
    }
    seen
}

#[test]
fn datagrams_from_lent_memory_come_once_in_order_and_whole_by_every_way() {
    // The 17 fragments that a packet has room for are eight headers and at least eight pages.
    let ways = [
        ("plain", "plain", 1),
        ("batch", "plain", 1),
        ("uring", "plain", 1),
        ("gso", "plain", 8),
        ("gso", "gro", 8),
    ];
    for (at, (way, receive_by, a_send)) in [V4, V6].into_iter().flat_map(|at| ways.map(|way| (at, way))) {
        let settings =
            udp(&[("datagram-send", way), ("datagram-receive", receive_by), ("zerocopy-send", "on")]);
        assert_eq!(
            transport(&settings).can_run(&settings),
            Ok(()),
            "the kernels that this is tested on have it"
        );
        let (there, here) = pair_at(at, &settings);
        assert_eq!(there.not_as_asked(), []);
        let mut receiver = here.receiver().expect("receives");
        // Each sender continues where the previous one ended, and the slots of headers are reused several times. Lent
        // memory takes whole pages of a socket's buffer: 20 datagrams fit.
        for times in [1, 7, 20] {
            let messages: Vec<Vec<u8>> =
                (0..50).map(|number| (0..4096).map(|at| (number * 31 + at) as u8).collect()).collect();
            let mut sender = there.sender().expect("sends");
            for message in &messages {
                // Within one page.
                let start = message.as_ptr().align_offset(1024);
                let message = &message[start..][..1000];
                send_all(sender.as_mut(), message, times);
                receive_all(receiver.as_mut(), message, times);
            }
            let sends = 50 * times.div_ceil(a_send);
            // Loopback hands packets to a receiver on the same host, for which the kernel copies the lent memory.
            let all = ZeroCopyCompletions { done: sends, copied: sends, pending: 0 };
            assert_eq!(completed(sender.as_mut()), all, "{way}, {times} at a time");
        }
        let (sent, came) = (there.datagrams().expect("counts"), here.datagrams().expect("counts"));
        assert_eq!((sent.sent, came.received, came.highest), (1400, 1400, 1400), "{way}: {came:?}");
        assert_eq!((came.reordered, came.duplicated, came.malformed), (0, 0, 0), "{way}: {came:?}");
    }
}

#[test]
fn a_sender_from_lent_memory_whose_peer_is_gone_leaves_with_all_of_it() {
    for way in ["plain", "batch", "uring", "gso"] {
        let (there, here) = pair(&udp(&[("datagram-send", way), ("zerocopy-send", "on")]));
        drop(here);
        let message = [1; 1000];
        let mut sender = there.sender().expect("sends");
        // More calls than there are slots: a failed send must not keep its slot. A call for many succeeds if its
        // first datagram does.
        let answers: Vec<_> = (0..200).map(|_| sender.send(&message, 40)).collect();
        let mut refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        assert!(refused.all(|error| error.kind() == ErrorKind::ConnectionRefused), "{way}: {answers:?}");
        assert!(
            ["batch", "uring"].contains(&way) || answers.iter().any(Result::is_err),
            "{way}: {answers:?}"
        );
        assert!(answers.iter().any(Result::is_ok), "{way}: {answers:?}");
        assert_eq!(completed(sender.as_mut()).pending, 0, "{way}: the kernel still holds memory");
    }
}

#[test]
fn a_message_in_more_pages_than_a_packet_takes_is_refused_where_memory_is_lent() {
    let (there, _here) = pair(&udp(&[("zerocopy-send", "on")]));
    let mut sender = there.sender().expect("sends");
    let memory = vec![0; 80_000];
    let start = memory.as_ptr().align_offset(4096);
    let refused = sender.send(&memory[start + 2048..][..65_507], 1).expect_err("17 pages and a header");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    assert_eq!(sender.send(&memory[start..][..65_507], 1).expect("16 pages and a header"), 65_507);
}
