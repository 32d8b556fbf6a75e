//! Flows over real sockets on loopback.

mod limit;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use landspeed_record::units::Nanos;
use landspeed_record::{EndpointOutcome, FigureValue, Headline, Settings};
use rustix::net::{SendFlags, Shutdown};

use super::connect;
use super::connection::TlsConnection;
use super::flow::TlsFlow;
use super::handshake::{Handshake, socket_of};
use super::listen::TlsListener;
use super::options::CipherChoice;
use super::{TLS, identity};
use crate::tcp::TcpTransport;
use crate::transport::{ConnectRequest, Flow, Listener, ProofKey, Transport};
use crate::{CancelFlag, Error, Patience};

const KEY: ProofKey = [3; 32];
const OTHER: ProofKey = [4; 32];
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn with_cipher(cipher: &str) -> Settings {
    [("transport", "tls"), ("tls-cipher", cipher)].map(|(name, value)| (name.into(), value.into())).into()
}

fn patience(cancel: &CancelFlag, millis: u64) -> Patience<'_> {
    Patience { until: Instant::now() + Duration::from_millis(millis), cancel }
}

/// Opens a flow whose ends have these settings. Returns the client's end and the server's.
fn pair(client: &Settings, server: &Settings) -> (Box<dyn Flow>, Box<dyn Flow>) {
    let port = TLS.reserve(SocketAddr::new(HERE, 0)).expect("a port on loopback");
    let mut listener = port.listen(server, &KEY).expect("it listens");
    let call =
        ConnectRequest { server: port.address(), number: 5, source_port: 0, settings: client, key: &KEY };
    let cancel = CancelFlag::new();
    let patience = &patience(&cancel, 10_000);
    std::thread::scope(|scope| {
        let calling =
            scope.spawn(move || connect::connect(&TcpTransport, &call, patience).expect("it is proven"));
        let here = listener.accept(patience).expect("a flow comes");
        (calling.join().expect("no panic"), here)
    })
}

fn flows() -> (Box<dyn Flow>, Box<dyn Flow>) {
    pair(&Settings::new(), &Settings::new())
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 % 251) as u8).collect()
}

/// Sends `bytes` in messages of `size`.
fn send(from: &dyn Flow, bytes: &[u8], size: usize) {
    let mut sender = from.sender().expect("sends");
    for mut left in bytes.chunks(size) {
        while !left.is_empty() {
            left = &left[sender.send(left, 1).expect("sent")..];
        }
    }
}

/// Receives `bytes` bytes with room for `size` at a time.
fn receive(to: &dyn Flow, bytes: usize, size: usize) -> Vec<u8> {
    let (mut receiver, mut all, mut room) = (to.receiver().expect("receives"), Vec::new(), vec![0; size]);
    while all.len() < bytes {
        let got = receiver.receive(&mut room).expect("received");
        assert!(got > 0, "the end after {} bytes", all.len());
        all.extend_from_slice(&room[..got]);
    }
    all
}

/// Lets both ends send and receive at once, and compares what came.
fn exchange(there: &dyn Flow, here: &dyn Flow, bytes: usize) {
    let all = &pattern(bytes);
    std::thread::scope(|scope| {
        for (from, size) in [(there, 131_072), (here, 40_000)] {
            scope.spawn(move || send(from, all, size));
        }
        for (to, size) in [(there, 5000), (here, 1 << 20)] {
            scope.spawn(move || assert!(receive(to, bytes, size) == *all, "other bytes came"));
        }
    });
}

#[test]
fn both_directions_at_once_carry_what_was_sent() {
    let (there, here) = flows();
    exchange(there.as_ref(), here.as_ref(), 16 << 20);
    for flow in [there, here] {
        let until = Instant::now() + Duration::from_secs(5);
        while flow.progress().expect("a count").outstanding {
            assert!(Instant::now() < until, "{:?}", flow.progress());
        }
        assert_eq!(flow.progress().expect("a count").acked.0, 16 << 20, "payload alone counts");
    }
}

#[test]
fn the_cipher_that_was_asked_for_is_the_one_that_runs() {
    for name in ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"] {
        let asked = with_cipher(name);
        let (there, here) = pair(&asked, &asked);
        assert_eq!((there.not_as_asked(), here.not_as_asked()), (vec![], vec![]), "{name}");
        exchange(there.as_ref(), here.as_ref(), 100_000);
    }
    let auto = with_cipher("auto");
    let (there, here) = pair(&auto, &auto);
    assert_eq!((there.not_as_asked(), here.not_as_asked()), (vec![], vec![]));
    assert!(there.cipher() == here.cipher() && there.cipher() != Some("aes-256-gcm"), "{:?}", there.cipher());
    let mut end = EndpointOutcome::default();
    there.add_details(&mut end.details);
    let figures = Headline::figures(TLS.about().headlines, &end).expect("a figure");
    assert_eq!(figures[0].amount, FigureValue::Text(there.cipher().expect("a cipher").to_owned()));
    let (there, mut here) = pair(&with_cipher("aes-128-gcm"), &with_cipher("chacha20-poly1305"));
    let [found] = &here.not_as_asked()[..] else { panic!("{:?}", here.not_as_asked()) };
    assert_eq!((found.setting.as_str(), found.got.as_str()), ("tls-cipher", "aes-128-gcm"));
    assert_eq!(there.not_as_asked(), []);
    here.adopt(&with_cipher("aes-128-gcm"));
    assert_eq!(here.not_as_asked(), []);
}

/// A server without instructions for AES takes the other cipher, although the client would rather have AES, and takes AES from
/// a client that offers nothing else.
#[test]
fn a_server_may_insist_on_a_cipher_that_is_offered() {
    let [aes, chacha] =
        ["aes-128-gcm", "chacha20-poly1305"].map(|name| CipherChoice::of(&with_cipher(name)).offered);
    let insisting = CipherChoice { offered: chacha.clone(), insisted: chacha.first().copied() };
    let both = [aes.clone(), chacha].concat();
    for (offered, expected) in [(both, "chacha20-poly1305"), (aes, "aes-128-gcm")] {
        let (there, here) = bare_flows_with(&CipherChoice { offered, insisted: None }, &insisting);
        assert_eq!((there.cipher(), here.cipher()), (Some(expected), Some(expected)));
        exchange(&there, &here, 100_000);
    }
}

#[test]
fn a_stream_that_ends_without_close_notify_is_an_error() {
    let (there, here) = flows();
    send(there.as_ref(), &[7; 1000], 1000);
    rustix::net::shutdown(socket_of(there.as_ref()).expect("a socket"), Shutdown::Write).expect("shut");
    assert_eq!(receive(here.as_ref(), 1000, 4096), [7; 1000]);
    for _ in 0..2 {
        let ended = here.receiver().expect("receives").receive(&mut [0; 10]);
        assert_eq!(ended.expect_err("no clean end").kind(), ErrorKind::ConnectionReset);
    }
    let cancel = CancelFlag::new();
    let finished = here.finish(&patience(&cancel, 1000)).expect_err("no clean end").to_string();
    assert!(finished.contains("close_notify"), "{finished}");
}

#[test]
fn an_end_in_order_differs_from_an_abrupt_one() {
    let (there, here) = flows();
    let cancel = CancelFlag::new();
    let patience = &patience(&cancel, 5000);
    std::thread::scope(|scope| {
        let finishing = scope.spawn(|| there.finish(patience));
        assert_eq!(here.receiver().expect("receives").receive(&mut [0; 10]).expect("the end"), 0);
        here.finish(patience).expect("it finishes");
        finishing.join().expect("no panic").expect("it finishes");
    });
    let (there, here) = flows();
    drop(there);
    assert!(here.receiver().expect("receives").receive(&mut [0; 10]).is_err());
}

#[test]
fn bytes_that_tls_did_not_write_end_the_flow() {
    for junk in [&[23, 3, 3, 0, 20][..], b"HTTP/1.1 200 OK\r\n\r\n", &[22, 3, 3, 0, 4, 24, 0, 0, 1]] {
        let (there, here) = flows();
        let forged = [junk, &[0; 64]].concat();
        let socket = socket_of(there.as_ref()).expect("a socket");
        rustix::net::send(socket, &forged, SendFlags::NOSIGNAL).expect("sent");
        for _ in 0..2 {
            let got = here.receiver().expect("receives").receive(&mut [0; 100]);
            assert_eq!(got.expect_err("not a record").kind(), ErrorKind::InvalidData, "{junk:?}");
        }
        assert!(here.sender().expect("sends").send(b"on", 1).is_err(), "a broken connection sends nothing");
    }
}

/// Returns the ciphers of flows without settings.
fn any() -> CipherChoice {
    CipherChoice::of(&Settings::new())
}

/// Returns both ends of a flow, with their own types.
fn bare_flows() -> (TlsFlow, TlsFlow) {
    bare_flows_of(&any())
}

/// Returns both ends of a flow whose client has these ciphers.
fn bare_flows_of(ciphers: &CipherChoice) -> (TlsFlow, TlsFlow) {
    bare_flows_with(ciphers, &any())
}

/// Returns both ends of a flow, whose client and server have these ciphers.
fn bare_flows_with(ciphers: &CipherChoice, of_server: &CipherChoice) -> (TlsFlow, TlsFlow) {
    let port = TcpTransport.reserve(SocketAddr::new(HERE, 0)).expect("a port on loopback");
    let mut listener = port.listen(&Settings::new(), &KEY).expect("it listens");
    let (server, settings) = (port.address(), Settings::new());
    let call = ConnectRequest { server, number: 0, source_port: 0, settings: &settings, key: &KEY };
    let cancel = CancelFlag::new();
    let patience = &patience(&cancel, 5000);
    let client = identity::client(&KEY, ciphers).expect("a key");
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || {
            let flow = TcpTransport.connect(&call, patience).expect("it is proven");
            slowly_shaken(flow, || TlsConnection::client(client))
        });
        let flow = listener.accept(patience).expect("a flow comes");
        let here =
            slowly_shaken(flow, || TlsConnection::server(identity::server(&KEY, of_server).expect("a key")));
        (calling.join().expect("no panic"), here)
    })
}

#[test]
fn payload_and_end_may_follow_the_handshake_at_once() {
    let port = TcpTransport.reserve(SocketAddr::new(HERE, 0)).expect("a port on loopback");
    let proof_key = identity::proof_key(&KEY);
    let mut listener = port.listen(&Settings::new(), &proof_key).expect("it listens");
    let (server, settings, cancel) = (port.address(), Settings::new(), CancelFlag::new());
    let call = ConnectRequest { server, number: 0, source_port: 0, settings: &settings, key: &KEY };
    let patience = &patience(&cancel, 5000);
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let there = connect::connect(&TcpTransport, &call, patience).expect("it is proven");
            send(there.as_ref(), &pattern(5000), 1000);
            there.finish(patience)
        });
        let flow = listener.accept(patience).expect("a flow comes");
        let here =
            slowly_shaken(flow, || TlsConnection::server(identity::server(&KEY, &any()).expect("a key")));
        assert!(receive(&here, 5000, 300) == pattern(5000), "other bytes came");
        assert_eq!(here.receiver().expect("receives").receive(&mut [0; 10]).expect("the end"), 0);
        here.finish(patience).expect("it finishes");
        calling.join().expect("no panic").expect("it finishes");
    });
}

/// Performs a handshake with long pauses, in which the peer can continue.
fn slowly_shaken(flow: Box<dyn Flow>, open: impl FnOnce() -> io::Result<TlsConnection>) -> TlsFlow {
    let mut handshake = Handshake::begin(flow, open, 0).expect("it begins");
    while !handshake.step().expect("the peer has the key") {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (flow, records) = handshake.finish();
    TlsFlow::new(flow, records, Nanos(0), &Settings::new())
}

#[test]
fn keys_may_change_while_both_directions_carry() {
    let (there, here) = bare_flows();
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&there, &here, 4 << 20));
        for flow in [&there, &here, &there] {
            std::thread::sleep(Duration::from_millis(2));
            // The lock of the direction keeps the order of records.
            let mut outgoing = flow.records.outgoing().lock();
            flow.records.connection().lock().update_keys();
            flow.records.encrypt(&[], &mut outgoing).expect("encrypted");
        }
    });
    exchange(&there, &here, 100_000);
}

#[test]
fn a_send_that_gave_up_loses_nothing() {
    let settings = Settings::from([("sndbuf".to_owned(), "4096".to_owned())]);
    let (there, here) = pair(&settings, &settings);
    let all = pattern(1 << 20);
    let mut sender = there.sender().expect("sends");
    sender.give_up_after(Duration::from_millis(5)).expect("a limit");
    let (mut sent, mut gave_up) = (0, 0);
    let mut push = |most: u32| {
        while sent < all.len() && gave_up < most {
            match sender.send(&all[sent..], 1) {
                Ok(taken) => sent += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => gave_up += 1,
                Err(error) => panic!("{error}"),
            }
        }
    };
    push(3);
    assert!(there.progress().expect("a count").outstanding);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(here.as_ref(), all.len(), 100_000));
        push(u32::MAX);
        // The last records leave with the calls for the flow's progress.
        while !receiving.is_finished() {
            there.progress().expect("a count");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(receiving.join().expect("no panic") == all, "other bytes came");
    });
}

#[test]
fn the_handshake_proves_the_key_too() {
    let port = TcpTransport.reserve(SocketAddr::new(HERE, 0)).expect("a port on loopback");
    let mut listener = TlsListener::start(port.as_ref(), &Settings::new(), &KEY).expect("it listens");
    let (settings, proof_key) = (Settings::new(), identity::proof_key(&KEY));
    let (server, cancel) = (port.address(), CancelFlag::new());
    let call = ConnectRequest { server, number: 0, source_port: 0, settings: &settings, key: &proof_key };
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let flow = TcpTransport.connect(&call, &patience(&cancel, 5000)).expect("its proof is right");
            let config = identity::client(&OTHER, &CipherChoice::of(&settings)).expect("a key");
            let mut handshake =
                Handshake::begin(flow, || TlsConnection::client(Arc::clone(&config)), 0).expect("it begins");
            loop {
                match handshake.step() {
                    Ok(true) => panic!("a server with another key was accepted"),
                    Ok(false) => std::thread::sleep(Duration::from_millis(1)),
                    Err(error) => return error.kind(),
                }
            }
        });
        // Long enough for the client to come, also on a busy machine.
        let came = listener.accept(&patience(&cancel, 2_500)).map(drop);
        assert!(matches!(came, Err(Error::NobodyCame { strangers: 1, .. })), "{came:?}");
        assert_eq!(calling.join().expect("no panic"), ErrorKind::InvalidData);
    });
}

#[test]
fn a_slow_handshake_does_not_delay_another() {
    let port = TcpTransport.reserve(SocketAddr::new(HERE, 0)).expect("a port on loopback");
    let mut listener = TlsListener::start(port.as_ref(), &Settings::new(), &KEY).expect("it listens");
    let (settings, proof_key) = (Settings::new(), identity::proof_key(&KEY));
    let (server, cancel) = (port.address(), CancelFlag::new());
    let patience = &patience(&cancel, 5000);
    let call = |number| ConnectRequest { server, number, source_port: 0, settings: &settings, key: &KEY };
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let silent = ConnectRequest { key: &proof_key, ..call(1) };
            let silent = TcpTransport.connect(&silent, patience).expect("its proof is right");
            (silent, connect::connect(&TcpTransport, &call(2), patience).expect("it is proven"))
        });
        let here = listener.accept(patience).expect("the second flow comes");
        assert_eq!(here.number(), 2);
        drop(calling.join().expect("no panic"));
    });
}
