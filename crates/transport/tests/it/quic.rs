//! QUIC: strangers, lossy paths, and each of its settings.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use landspeed_record::factor::Domain;
use landspeed_record::{Details, Settings};
use landspeed_transport::{CancelFlag, Error, Flow};

use crate::common::{KEY, V4, call, listen, pair_through, patience};
use crate::relay::{Relay, RelayDirection, relayed};
use crate::strangers::{answer_all, look, stranger};

/// Returns settings of QUIC with the given values.
fn quic(values: &[(&str, &str)]) -> Settings {
    let all = [("transport", "quic")].iter().chain(values);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The bytes of a first packet that follow the packet's first byte: version 1, and a connection ID of 20 bytes (RFC
/// 9000 section 17.2.2).
const FIRST: &[u8] = &[0, 0, 0, 1, 20];

fn is_first(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|byte| byte & 0xf0 == 0xc0) && datagram[1..].starts_with(FIRST)
}

/// Sends `bytes` bytes of a pattern and checks what arrives. Meanwhile polls the sender's progress, because that
/// sends lost data again.
fn carries(from: &dyn Flow, to: &dyn Flow, bytes: usize) {
    let all: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    let came = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(to, bytes));
        let mut sender = from.sender().expect("sends");
        let mut left = &all[..];
        while !left.is_empty() {
            match sender.send(left, 1) {
                Ok(taken) => left = &left[taken..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        while !receiving.is_finished() {
            from.progress().expect("a count");
            std::thread::sleep(Duration::from_millis(1));
        }
        receiving.join().expect("no panic")
    });
    assert!(came == all, "{} of {bytes} bytes came, or others", came.len());
}

/// Receives until `bytes` bytes have arrived, or nothing does for seconds.
fn receive(to: &dyn Flow, bytes: usize) -> Vec<u8> {
    let mut receiver = to.receiver().expect("receives");
    let (mut all, mut buffer, mut silent) = (Vec::new(), vec![0; 65_536], 0);
    while all.len() < bytes && silent < 100 {
        match receiver.receive(&mut buffer) {
            Ok(got) => all.extend_from_slice(&buffer[..got]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => silent += 1,
            Err(error) => panic!("{error}"),
        }
    }
    all
}

#[test]
fn strangers_are_counted_and_not_answered() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let strange = stranger();
    // The third is a valid first packet except for the key; the fourth has a version that does not exist.
    let first = [&[0xc3][..], FIRST, &[7; 1194]].concat();
    let unknown = [&[0xc3, 0x1a, 0x2a, 0x3a, 0x4a, 20][..], &[7; 1194]].concat();
    let kinds: [&[u8]; 6] = [b"", b"x", &first, &unknown, &[0x40; 1200], &[255; 9000]];
    for datagram in kinds {
        strange.send_to(datagram, port.address()).expect("sent");
    }
    assert!(look(listener.as_mut(), 6).is_err());
    assert_eq!(listener.strangers(), 6);
    assert!(strange.recv(&mut [0; 64]).is_err(), "they get no answer");
    pair_through(listener.as_mut(), port.address(), &quic(&[]));
}

#[test]
fn a_first_packet_that_was_listened_to_opens_nothing() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let relay = Relay::to(port.address());
    let _flows = relayed(&relay, &mut |_, datagram: &[u8]| vec![datagram.to_vec()], || {
        pair_through(listener.as_mut(), relay.address(), &quic(&[]))
    });
    let first = relay.seen(RelayDirection::ToServer, 1200);
    assert!(is_first(&first));
    let strange = stranger();
    strange.send_to(&first, port.address()).expect("sent");
    assert!(look(listener.as_mut(), 1).is_err());
    assert_eq!(listener.strangers(), 1);
    assert!(strange.recv(&mut [0; 2000]).is_err(), "the same listener answers none twice");

    // Another listener of the session does not know the packet, and answers. The proof does not follow.
    drop(listener);
    let mut later = port.listen(&quic(&[]), &KEY).expect("it listens");
    strange.send_to(&first, port.address()).expect("sent");
    let came = later.accept(&patience(&CancelFlag::new(), Duration::from_millis(500)));
    assert!(matches!(came, Err(Error::NobodyCame { .. })), "it is no flow");
    let mut answered = 0;
    while let Ok(length) = strange.recv(&mut [0; 2000]) {
        answered += length;
    }
    assert!(answered <= 3 * 1200, "{answered} bytes: RFC 9000 section 8.1");
}

#[test]
fn a_server_without_the_key_gets_first_packets_and_nothing_else() {
    let server = stranger();
    let at = server.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || call(at, &quic(&[]), &KEY, Duration::from_millis(500)));
        answer_all(&server, &|| calling.is_finished(), &mut |bytes, client| {
            assert!(bytes.len() == 1200 && is_first(bytes), "{:?}", &bytes[..bytes.len().min(16)]);
            server.send_to(&[0xc0; 1200], client).expect("sent");
        });
        assert!(matches!(calling.join().expect("no panic"), Err(Error::NoAnswer { .. })));
    });
}

#[test]
fn any_packet_of_the_proof_may_be_lost() {
    let cases: Vec<_> = [RelayDirection::ToServer, RelayDirection::ToClient]
        .into_iter()
        .flat_map(|direction| (0..4).map(move |n| (direction, n)))
        .collect();
    // In parallel, because the cases mostly wait for timers.
    std::thread::scope(|scope| {
        for (direction, number) in cases {
            scope.spawn(move || {
                let (port, mut listener) = listen(V4, &quic(&[]));
                let relay = Relay::to(port.address());
                let mut seen = 0;
                let mut lose = |went: RelayDirection, datagram: &[u8]| {
                    seen += usize::from(went == direction);
                    let loses = went == direction && seen == number + 1;
                    if loses { vec![] } else { vec![datagram.to_vec()] }
                };
                relayed(&relay, &mut lose, || {
                    let (there, here) = pair_through(listener.as_mut(), relay.address(), &quic(&[]));
                    carries(there.as_ref(), here.as_ref(), 1000);
                    carries(here.as_ref(), there.as_ref(), 1000);
                });
            });
        }
    });
}

#[test]
fn lost_packets_are_sent_again_and_counted() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let relay = Relay::to(port.address());
    let number = AtomicUsize::new(0);
    let mut lose = |_: RelayDirection, datagram: &[u8]| {
        let loses = number.fetch_add(1, Ordering::Relaxed) % 20 == 19;
        if loses { vec![] } else { vec![datagram.to_vec()] }
    };
    relayed(&relay, &mut lose, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &quic(&[]));
        carries(there.as_ref(), here.as_ref(), 300_000);
        carries(here.as_ref(), there.as_ref(), 300_000);
        let progress = there.progress().expect("a count");
        assert!(progress.resent > 0 && progress.delivered > 0, "{progress:?}");
        let mut details = Details::default();
        there.add_details(&mut details);
        let json = serde_json::to_value(&details).expect("JSON");
        assert!(json["quic"][0]["lost_packets"].as_u64().is_some_and(|lost| lost > 0), "{json}");
    });
}

#[test]
fn both_ways_at_once_neither_waits_for_the_other() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let (there, here) = pair_through(listener.as_mut(), port.address(), &quic(&[]));
    std::thread::scope(|scope| {
        scope.spawn(|| carries(there.as_ref(), here.as_ref(), 8 << 20));
        scope.spawn(|| carries(here.as_ref(), there.as_ref(), 8 << 20));
    });
    let all = |flow: &dyn Flow| flow.progress().is_ok_and(|progress| progress.acked.0 == 8 << 20);
    assert!(all(there.as_ref()) && all(here.as_ref()), "{:?} {:?}", there.progress(), here.progress());
}

#[test]
fn every_setting_of_its_own_carries_the_same() {
    let transport = landspeed_transport::find("quic").expect("it is registered");
    for factor in transport.factors().into_iter().filter(|factor| factor.name.starts_with("quic-")) {
        let values: &[&str] = match factor.domain {
            Domain::Switch => &["on", "off"],
            Domain::OneOf(words) => words,
            Domain::Bytes(..) => &["65536", "4294967296"],
            _ => &["0", "1", "10"],
        };
        for value in values {
            let settings = quic(&[(factor.name, value)]);
            let (port, mut listener) = listen(V4, &settings);
            let (there, here) = pair_through(listener.as_mut(), port.address(), &settings);
            assert_eq!(there.not_as_asked(), here.not_as_asked(), "{}={value}", factor.name);
            assert!(there.not_as_asked().is_empty(), "{}={value}: {:?}", factor.name, there.not_as_asked());
            carries(there.as_ref(), here.as_ref(), 1 << 20);
        }
    }
}

#[test]
fn a_flow_that_adopts_what_its_connection_cannot_says_so() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let (there, mut here) = pair_through(listener.as_mut(), port.address(), &quic(&[]));
    here.adopt(&quic(&[("quic-gso", "off"), ("quic-congestion", "bbr")]));
    assert_eq!(here.not_as_asked().len(), 1, "{:?}", here.not_as_asked());
    assert!(
        here.not_as_asked()[0].line.starts_with("quic-congestion: asked for bbr"),
        "{:?}",
        here.not_as_asked()
    );
    carries(here.as_ref(), there.as_ref(), 100_000);
}

#[test]
fn a_flood_does_not_keep_a_flow_out() {
    let (port, mut listener) = listen(V4, &quic(&[]));
    let flooding = CancelFlag::new();
    let begun = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let strange = stranger();
            strange.send_to(&[0xc1; 1200], port.address()).expect("loopback carries it");
            begun.wait();
            while !flooding.is_cancelled() {
                for _ in 0..20 {
                    let _ = strange.send_to(&[0xc1; 1200], port.address());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        begun.wait();
        pair_through(listener.as_mut(), port.address(), &quic(&[]));
        flooding.cancel();
    });
    assert!(listener.strangers() > 0);
}
