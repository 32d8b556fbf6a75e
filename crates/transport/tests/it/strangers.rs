//! Strangers, forged packets and lossy paths.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_record::units::Bytes;
use landspeed_transport::{CancelFlag, Error, Listener};

use crate::common::{KEY, LONG, V4, call, listen, pair_through, patience, receive, send, udp};
use crate::relay::{Relay, RelayDirection, relayed};

/// Lets the listener process what has arrived, until it has counted this many strangers: it may get no turn in one wait. No
/// flow is expected.
pub(crate) fn look(listener: &mut dyn Listener, strangers: u64) -> Result<(), Error> {
    let until = Instant::now() + LONG;
    loop {
        let came = listener.accept(&patience(&CancelFlag::new(), Duration::from_millis(200))).map(drop);
        if came.is_ok() || listener.strangers() >= strangers || Instant::now() > until {
            return came;
        }
    }
}

/// Lets a server without the key answer each datagram that comes, while `is_over` is false and there are any.
pub(crate) fn answer_all(
    server: &UdpSocket,
    is_over: &dyn Fn() -> bool,
    answer: &mut dyn FnMut(&[u8], SocketAddr),
) {
    let mut bytes = [0; 2000];
    loop {
        let is_last = is_over();
        match server.recv_from(&mut bytes) {
            Ok((length, client)) => answer(&bytes[..length], client),
            // What was sent before the end has arrived.
            Err(_) if is_last => return,
            Err(_) => {}
        }
    }
}

pub(crate) fn stranger() -> UdpSocket {
    let socket = UdpSocket::bind((V4, 0)).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    socket
}

#[test]
fn strangers_are_dropped_counted_and_not_answered() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let strange = stranger();
    let kinds: [&[u8]; 7] =
        [b"", b"x", b"LSh1", &[0; 56], &[b'L'; 1400], b"LSc1 and then something", &[255; 9000]];
    for datagram in kinds {
        strange.send_to(datagram, port.address()).expect("sent");
    }
    assert!(look(listener.as_mut(), 7).is_err());
    assert_eq!(listener.strangers(), 7);
    assert!(strange.recv(&mut [0; 64]).is_err(), "they get no answer");
    pair_through(listener.as_mut(), port.address(), &udp(&[]));
}

#[test]
fn a_flood_does_not_keep_a_flow_out() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let (flooding, begun) = (CancelFlag::new(), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let strange = stranger();
            strange.send_to(&[1; 64], port.address()).expect("sent");
            begun.wait();
            while !flooding.is_cancelled() {
                for _ in 0..20 {
                    let _ = strange.send_to(&[1; 64], port.address());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        begun.wait();
        pair_through(listener.as_mut(), port.address(), &udp(&[]));
        flooding.cancel();
    });
    assert!(listener.strangers() > 0);
}

#[test]
fn a_server_of_datagrams_without_the_key_gets_hellos_and_nothing_else() {
    let server = stranger();
    let at = server.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || call(at, &udp(&[]), &KEY, Duration::from_secs(2)));
        answer_all(&server, &|| calling.is_finished(), &mut |bytes, client| {
            assert!(bytes.len() == 56 && bytes.starts_with(b"LSh1"), "{bytes:?}");
            let made_up = [&b"LSa1"[..], &[9; 48]].concat();
            server.send_to(&made_up, client).expect("sent");
        });
        assert!(matches!(calling.join().expect("no panic"), Err(Error::Unproven { .. })));
    });
}

#[test]
fn every_pass_may_be_lost() {
    for lost in [b"LSh1", b"LSa1", b"LSc1", b"LSw1"] {
        let (port, mut listener) = listen(V4, &udp(&[]));
        let relay = Relay::to(port.address());
        let mut left = 2;
        let mut lose = |_: RelayDirection, datagram: &[u8]| {
            let loses = datagram.starts_with(lost) && left > 0;
            left -= usize::from(loses);
            if loses { vec![] } else { vec![datagram.to_vec()] }
        };
        relayed(&relay, &mut lose, || {
            let (there, here) = pair_through(listener.as_mut(), relay.address(), &udp(&[]));
            send(there.as_ref(), 3);
            assert_eq!(receive(here.as_ref(), 3000), 3000);
            let came = here.datagrams().expect("counts");
            assert_eq!((came.received, came.malformed), (3, 0), "{came:?}");
        });
        assert_eq!(left, 0, "{lost:?} was lost twice");
    }
}

#[test]
fn replies_are_no_larger_than_requests_and_replays_open_nothing() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let relay = Relay::to(port.address());
    let _flows = relayed(&relay, &mut |_, datagram: &[u8]| vec![datagram.to_vec()], || {
        pair_through(listener.as_mut(), relay.address(), &udp(&[]))
    });
    let [hellos, answers] = [(RelayDirection::ToServer, b"LSh1"), (RelayDirection::ToClient, b"LSa1")]
        .map(|(w, m)| relay.passes(w, m));
    let [confirms, welcomes] = [(RelayDirection::ToServer, b"LSc1"), (RelayDirection::ToClient, b"LSw1")]
        .map(|(w, m)| relay.passes(w, m));
    assert!(answers[0].len() <= hellos[0].len() && welcomes[0].len() <= confirms[0].len());
    assert!(answers.len() <= hellos.len() && welcomes.len() <= confirms.len());

    // An eavesdropper sends the same passes from another address.
    let strange = stranger();
    strange.send_to(&hellos[0], port.address()).expect("sent");
    strange.send_to(&confirms[0], port.address()).expect("sent");
    assert!(look(listener.as_mut(), 1).is_err(), "the cookie is of another address");
    assert_eq!(listener.strangers(), 1);
    let mut bytes = [0; 200];
    let length = strange.recv(&mut bytes).expect("a hello of the key's holder is answered");
    assert!(length <= hellos[0].len() && bytes.starts_with(b"LSa1"));
    assert!(strange.recv(&mut bytes).is_err(), "and nothing else");

    // The same confirm from the same address is sent to a listener of another trial, which has another secret.
    drop(listener);
    drop(_flows);
    let mut later = port.listen(&udp(&[]), &KEY).expect("it listens");
    relay.inject(RelayDirection::ToServer, &confirms[0]);
    assert!(look(later.as_mut(), 1).is_err());
    assert_eq!(later.strangers(), 1);
}

#[test]
fn a_replayed_stream_handshake_opens_no_flow() {
    let tcp: Settings = [("transport".to_owned(), "tcp".to_owned())].into_iter().collect();
    let (port, mut listener) = listen(V4, &tcp);
    let (ear, at) = (TcpListener::bind((V4, 0)).expect("a port"), port.address());
    let through = ear.local_addr().expect("an address");
    let relay = std::thread::spawn(move || {
        let mut client = ear.accept().expect("a client").0;
        let mut server = TcpStream::connect(at).expect("a server");
        let (mut said, mut answer) = ([0; 52 + 32], [0; 48]);
        let (hello, confirm) = said.split_at_mut(52);
        client.read_exact(hello).expect("a hello");
        server.write_all(hello).expect("passed on");
        server.read_exact(&mut answer).expect("an answer");
        client.write_all(&answer).expect("passed on");
        client.read_exact(confirm).expect("a confirm");
        server.write_all(confirm).expect("passed on");
        (said, client, server)
    });
    let _flows = std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(through, &tcp, &KEY, LONG));
        let here = listener.accept(&patience(&CancelFlag::new(), LONG)).expect("a flow comes");
        (calling.join().expect("no panic").expect("it is proven"), here)
    });
    let (said, _client, _server) = relay.join().expect("no panic");
    let mut again = TcpStream::connect(at).expect("a connection");
    again.write_all(&said).expect("sent");
    assert!(look(listener.as_mut(), 1).is_err());
    assert_eq!(listener.strangers(), 1);
    let mut heard = Vec::new();
    again.read_to_end(&mut heard).expect("the server ends it in order");
    assert_eq!(heard.len(), 48, "the answer to a hello of the key's holder, and no more");
}

#[test]
fn forged_datagrams_are_dropped_and_counted() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let relay = Relay::to(port.address());
    let mut pass = |_: RelayDirection, datagram: &[u8]| vec![datagram.to_vec()];
    relayed(&relay, &mut pass, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &udp(&[]));
        send(there.as_ref(), 1);
        assert_eq!(receive(here.as_ref(), 1000), 1000);
        let data = relay.seen(RelayDirection::ToServer, 1000);
        let feedback = relay.seen(RelayDirection::ToClient, 64);

        let mut other_tag = data.clone();
        other_tag[0] ^= 1;
        let mut leap = data.clone();
        leap[9] = 0xff;
        let made_up: [&[u8]; 7] = [b"", b"x", &data[..15], &other_tag, &leap, &feedback, &[0xff; 3000]];
        made_up.iter().for_each(|datagram| relay.inject(RelayDirection::ToServer, datagram));
        assert_eq!(receive(here.as_ref(), 1), 0);
        let came = here.datagrams().expect("counts");
        assert_eq!((came.received, came.highest, came.malformed), (1, 1, 7), "{came:?}");

        // Forged feedback does not count as the peer's.
        let acked = there.progress().expect("a count").acked;
        let mut forged = feedback.clone();
        forged[30] ^= 1;
        [&forged[..], &feedback[..63], &data].iter().for_each(|d| relay.inject(RelayDirection::ToClient, d));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(there.progress().expect("a count").acked, acked);
        assert_eq!(there.datagrams().expect("counts").malformed, 3);
    });
}

#[test]
fn lost_doubled_and_swapped_datagrams_are_counted_separately() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let relay = Relay::to(port.address());
    let mut number = 0;
    let mut kept = None;
    // Of ten datagrams the third is lost, the fifth is duplicated, and the seventh arrives after the eighth.
    let mut meddle = |direction: RelayDirection, datagram: &[u8]| {
        let datagram = datagram.to_vec();
        if direction == RelayDirection::ToClient || datagram.len() != 1000 {
            return vec![datagram];
        }
        number += 1;
        match number {
            3 => vec![],
            5 => vec![datagram.clone(), datagram],
            7 => {
                kept = Some(datagram);
                vec![]
            }
            8 => vec![datagram, kept.take().expect("the seventh")],
            _ => vec![datagram],
        }
    };
    relayed(&relay, &mut meddle, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &udp(&[]));
        send(there.as_ref(), 10);
        assert_eq!(receive(here.as_ref(), 10_000), 9000);
        let came = here.datagrams().expect("counts");
        assert_eq!((came.received, came.highest, came.reordered, came.duplicated), (9, 10, 1, 1), "{came:?}");
        assert_eq!(came.since(&landspeed_transport::DatagramTotals::default()).lost, 1);
    });
}

#[test]
fn a_lost_tail_is_settled_by_feedback_that_comes_later() {
    let (port, mut listener) = listen(V4, &udp(&[]));
    let relay = Relay::to(port.address());
    let mut number = 0;
    let mut meddle = |_: RelayDirection, datagram: &[u8]| {
        number += usize::from(datagram.len() == 1000);
        if datagram.len() == 1000 && number > 3 { vec![] } else { vec![datagram.to_vec()] }
    };
    relayed(&relay, &mut meddle, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &udp(&[]));
        send(there.as_ref(), 5);
        assert!(there.progress().expect("a count").outstanding);
        let mut receiver = here.receiver().expect("receives");
        let until = Instant::now() + LONG;
        while there.progress().expect("a count").outstanding {
            let _ = receiver.receive(&mut [0; 2000]);
            assert!(Instant::now() < until, "the receiver keeps sending feedback");
        }
        assert_eq!(there.progress().expect("a count").acked, Bytes(3000));
    });
}

#[test]
fn a_server_without_the_key_gets_nothing_but_the_hello() {
    let server = TcpListener::bind((V4, 0)).expect("a port");
    let at = server.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || call(at, &Settings::new(), &KEY, LONG));
        let (mut stranger, _) = server.accept().expect("it calls");
        stranger.write_all(&[0; 48]).expect("a made-up answer");
        let mut heard = Vec::new();
        // The abrupt close may reset what was sent before it.
        let _ = stranger.read_to_end(&mut heard);
        assert!(heard.len() <= 52, "{} bytes", heard.len());
        assert!(matches!(calling.join().expect("no panic"), Err(Error::Unproven { .. })));
    });
}

#[test]
fn silent_and_loud_connections_do_not_keep_flows_out() {
    let (port, mut listener) = listen(V4, &Settings::new());
    let mut silent: Vec<_> = (0..80).map(|_| TcpStream::connect(port.address()).expect("connects")).collect();
    let mut loud = TcpStream::connect(port.address()).expect("connects");
    loud.write_all(&[b'x'; 200]).expect("it babbles");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(port.address(), &Settings::new(), &KEY, LONG));
        let cancel = CancelFlag::new();
        listener.accept(&patience(&cancel, LONG)).expect("the flow with the key gets in");
        calling.join().expect("no panic").expect("and is proven");
        let no_flow = listener.accept(&patience(&cancel, Duration::from_millis(100)));
        assert!(no_flow.is_err());
    });
    let turned_away = listener.strangers();
    assert!((16..81).contains(&turned_away), "{turned_away} of 80 silent ones and a loud one: 64 may wait");
    assert!(!matches!(silent[0].read(&mut [0; 1]), Ok(1..)), "they never get an answer");
}
