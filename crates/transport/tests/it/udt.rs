//! UDT with all ways of sending and receiving datagrams, over paths that lose, duplicate and reorder, and with
//! strangers.

use std::net::UdpSocket;
use std::time::Duration;

use landspeed_record::Settings;
use landspeed_transport::{Error, Flow};

use crate::common::{KEY, LONG, V4, call, listen, pair_through};
use crate::relay::{Relay, RelayDirection, relayed};
use crate::strangers::look;

/// The bytes to transfer: a few windows of small packets. The relay forwards only hundreds of datagrams a second.
const BYTES: usize = 300_000;

fn settings(values: &[(&str, &str)]) -> Settings {
    let all = [("transport", "udt"), ("udt-packet", "1500"), ("udt-buffer", "65536")];
    all.iter().chain(values).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns bytes in which nearby places differ.
fn content() -> Vec<u8> {
    (0..BYTES as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Sends the content in writes of odd sizes while the other end receives it. Returns what arrived.
fn carried(from: &dyn Flow, to: &dyn Flow) -> Vec<u8> {
    let content = content();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut receiver = to.receiver().expect("receives");
            let (mut all, mut buffer) = (Vec::new(), vec![0; 100_000]);
            while all.len() < BYTES {
                match receiver.receive(&mut buffer).expect("received") {
                    0 => break,
                    came => all.extend_from_slice(&buffer[..came]),
                }
            }
            all
        });
        let mut sender = from.sender().expect("sends");
        sender.give_up_after(LONG).expect("patience");
        let mut sent = 0;
        while sent < BYTES {
            sent += sender.send(&content[sent..BYTES.min(sent + 70_001)], 1).expect("sent");
        }
        // A poll of the flow's progress sends lost data again.
        while !receiving.is_finished() {
            from.progress().expect("a count");
            std::thread::sleep(Duration::from_millis(1));
        }
        receiving.join().expect("no panic")
    })
}

#[test]
fn every_way_of_sending_meets_every_way_of_receiving() {
    for send in ["plain", "batch", "gso"] {
        for receive in ["plain", "batch", "gro"] {
            let settings = settings(&[("udt-send", send), ("udt-receive", receive)]);
            let (port, mut listener) = listen(V4, &settings);
            let (there, here) = pair_through(listener.as_mut(), port.address(), &settings);
            assert!(carried(there.as_ref(), here.as_ref()) == content(), "{send} to {receive}");
            assert!(carried(here.as_ref(), there.as_ref()) == content(), "{send} to {receive}, back");
        }
    }
}

#[test]
fn data_arrive_once_and_in_order_despite_loss_duplication_and_reordering() {
    for receive in ["plain", "batch", "gro"] {
        let settings = settings(&[("udt-receive", receive)]);
        let (port, mut listener) = listen(V4, &settings);
        let relay = Relay::to(port.address());
        let (mut numbers, mut kept) = ([0_u32; 2], None);
        let mut meddle = |_: RelayDirection, datagram: &[u8]| {
            // Control packets are counted apart: otherwise each loss could be of a control packet, and nothing would be sent
            // again.
            let number = &mut numbers[usize::from(datagram[0] >> 7)];
            *number += 1;
            let datagram = datagram.to_vec();
            match *number % 100 {
                33 => vec![],
                55 => vec![datagram.clone(), datagram],
                77 => kept.replace(datagram).into_iter().collect(),
                79 => kept.take().into_iter().chain([datagram]).collect(),
                _ => vec![datagram],
            }
        };
        relayed(&relay, &mut meddle, || {
            let (there, here) = pair_through(listener.as_mut(), relay.address(), &settings);
            assert!(carried(there.as_ref(), here.as_ref()) == content(), "taken by {receive}");
            let progress = there.progress().expect("a count");
            assert!(progress.resent > 0, "{progress:?}");
        });
    }
}

#[test]
fn a_path_that_drops_large_packets_gets_smaller_ones() {
    let settings = settings(&[("udt-packet", "0")]);
    let (port, mut listener) = listen(V4, &settings);
    let relay = Relay::to(port.address());
    let mut drops = |_: RelayDirection, datagram: &[u8]| match datagram.len() {
        0..1400 => vec![datagram.to_vec()],
        _ => vec![],
    };
    relayed(&relay, &mut drops, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &settings);
        assert!(carried(there.as_ref(), here.as_ref()) == content());
        assert!(carried(here.as_ref(), there.as_ref()) == content(), "back");
    });
}

#[test]
fn strangers_are_counted_and_get_no_more_than_they_sent() {
    let (port, mut listener) = listen(V4, &settings(&[]));
    let stranger = UdpSocket::bind((V4, 0)).expect("a socket");
    stranger.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let kinds: [&[u8]; 6] = [b"", b"x", &[0; 16], &[0x80; 64], &[0; 1400], &[255; 9000]];
    for datagram in kinds {
        stranger.send_to(datagram, port.address()).expect("sent");
    }
    let came = look(listener.as_mut(), 6);
    assert!(matches!(came, Err(Error::NobodyCame { .. })));
    assert_eq!(listener.strangers(), 6);
    assert!(stranger.recv(&mut [0; 64]).is_err(), "they get no answer");
    pair_through(listener.as_mut(), port.address(), &settings(&[]));
}

/// The packets come from a stranger who knows the addresses, but neither the connection's identifier nor its window.
#[test]
fn forged_packets_neither_end_a_flow_nor_change_its_data() {
    let settings = settings(&[]);
    let (port, mut listener) = listen(V4, &settings);
    let relay = Relay::to(port.address());
    let mut number = 0_u32;
    let mut meddle = |_: RelayDirection, datagram: &[u8]| {
        number += 1;
        let mut made_up = datagram.to_vec();
        // Each has another connection's identifier, a sequence number far outside the window, or another type.
        let at = [12, 13, 14, 15, 0, 1][number as usize % 6];
        if let Some(byte) = made_up.get_mut(at) {
            *byte ^= 0x40;
        }
        vec![made_up, datagram.to_vec()]
    };
    relayed(&relay, &mut meddle, || {
        let (there, here) = pair_through(listener.as_mut(), relay.address(), &settings);
        assert!(carried(there.as_ref(), here.as_ref()) == content());
    });
}

#[test]
fn a_peer_that_is_gone_is_an_error_and_no_hang() {
    let settings = settings(&[]);
    let (port, mut listener) = listen(V4, &settings);
    let (there, here) = pair_through(listener.as_mut(), port.address(), &settings);
    drop(here);
    let mut sender = there.sender().expect("sends");
    let message = vec![7; 100_000];
    let ended = (0..100).find_map(|_| sender.send(&message, 1).err());
    assert!(ended.is_some(), "it goes on sending");
    // The port is free immediately, and refuses while nothing listens.
    drop(listener);
    let refused = call(port.address(), &settings, &KEY, Duration::from_millis(200));
    assert!(matches!(refused, Err(Error::NoAnswer { .. })), "something answers");
}
