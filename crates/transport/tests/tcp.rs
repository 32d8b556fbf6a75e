//! TCP flows over loopback: made, proven, refused.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::{Call, Cancel, Error, Flow, Key, Listener, Patience, Port, Transport, find};

const KEY: Key = [3; 32];
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn tcp() -> &'static dyn Transport {
    find("tcp").expect("tcp is registered")
}

fn reserve(at: IpAddr) -> Box<dyn Port> {
    tcp().reserve(SocketAddr::new(at, 0)).expect("a port on loopback")
}

fn listen(port: &dyn Port) -> Box<dyn Listener> {
    port.listen(&Settings::new(), &KEY).expect("it listens")
}

fn patience(cancel: &Cancel, time: Duration) -> Patience<'_> {
    Patience { until: Instant::now() + time, cancel }
}

fn call(server: SocketAddr, key: &Key, time: Duration) -> Result<Box<dyn Flow>, Error> {
    let settings = Settings::new();
    let call = Call { server, number: 5, source_port: 0, settings: &settings, key };
    tcp().connect(&call, &patience(&Cancel::new(), time))
}

/// A flow and its other end: (client's, server's).
fn pair(at: IpAddr) -> (Box<dyn Flow>, Box<dyn Flow>) {
    pair_on(reserve(at).as_ref(), 0)
}

/// The same on a port that is there, from a source port.
fn pair_on(port: &dyn Port, source_port: u16) -> (Box<dyn Flow>, Box<dyn Flow>) {
    let (settings, server, cancel) = (Settings::new(), port.address(), Cancel::new());
    let patience = patience(&cancel, Duration::from_secs(5));
    let call = Call { server, number: 5, source_port, settings: &settings, key: &KEY };
    let mut listener = listen(port);
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| tcp().connect(&call, &patience));
        let here = listener.accept(&patience).expect("a flow comes");
        (calling.join().expect("no panic").expect("it is proven"), here)
    })
}

#[test]
fn flows_carry_bytes_both_ways() {
    for at in [V4, V6] {
        let (there, here) = pair(at);
        assert_eq!((there.number(), here.number()), (5, 5));
        assert!(there.set_up().0 > 0);
        let mut bytes = [0; 16];
        for (from, to) in [(&there, &here), (&here, &there)] {
            assert_eq!(from.sender().expect("sends").send(b"hello", 1).expect("sent"), 5);
            assert_eq!(to.receiver().expect("receives").receive(&mut bytes).expect("received"), 5);
            assert_eq!(&bytes[..5], b"hello");
        }
        let acked = there.progress().expect("TCP_INFO").acked.0;
        assert!(acked >= 84, "hello and confirm are acknowledged: {acked}");
    }
}

#[test]
fn ports_are_free_at_once_whoever_still_holds_the_sockets() {
    // Any port that is nobody's; the kernel gives it out and takes it back.
    let source_port = reserve(V4).address().port();
    let port = reserve(V4);
    let mut held = Vec::new();
    for _ in 0..3 {
        let (there, here) = pair_on(port.as_ref(), source_port);
        // So does a child, from its fork until it becomes another program.
        held.extend([&there, &here].map(|flow| flow.socket().try_clone_to_owned().expect("a duplicate")));
    }
}

#[test]
fn a_sleeping_receiver_can_be_woken() {
    let (there, here) = pair(V4);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| here.receiver().expect("receives").receive(&mut [0; 8]));
        here.wake_receiver();
        assert_eq!(waiting.join().expect("no panic").expect("woken, not failed"), 0);
    });
    drop(there);
}

#[test]
fn a_port_that_is_not_listened_on_refuses_and_is_tried_again() {
    let port = reserve(V4);
    let waited = call(port.address(), &KEY, Duration::from_millis(50));
    assert!(matches!(waited, Err(Error::NoAnswer { .. })), "nobody listens");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(port.address(), &KEY, Duration::from_secs(5)));
        std::thread::sleep(Duration::from_millis(50));
        let mut listener = listen(port.as_ref());
        listener.accept(&patience(&Cancel::new(), Duration::from_secs(5))).expect("the client tried again");
        calling.join().expect("no panic").expect("and was proven");
    });
}

#[test]
fn another_key_opens_nothing() {
    let port = reserve(V6);
    let mut listener = listen(port.as_ref());
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(port.address(), &[4; 32], Duration::from_secs(5)));
        let came = listener.accept(&patience(&Cancel::new(), Duration::from_millis(300)));
        assert!(matches!(came, Err(Error::NobodyCame { strangers: 1, .. })), "one stranger is turned away");
        let told = calling.join().expect("no panic");
        assert!(matches!(told, Err(Error::Unproven { .. })), "and knows why");
    });
}

#[test]
fn a_server_without_the_key_gets_nothing_but_the_hello() {
    let server = std::net::TcpListener::bind((V4, 0)).expect("a port");
    let at = server.local_addr().expect("its address");
    std::thread::scope(|scope| {
        let calling = scope.spawn(move || call(at, &KEY, Duration::from_secs(5)));
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
fn strangers_do_not_keep_flows_out() {
    let port = reserve(V4);
    let mut listener = listen(port.as_ref());
    let mut silent: Vec<_> = (0..80).map(|_| TcpStream::connect(port.address()).expect("connects")).collect();
    let mut loud = TcpStream::connect(port.address()).expect("connects");
    loud.write_all(&[b'x'; 200]).expect("it babbles");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(port.address(), &KEY, Duration::from_secs(5)));
        let cancel = Cancel::new();
        listener.accept(&patience(&cancel, Duration::from_secs(5))).expect("the flow with the key gets in");
        calling.join().expect("no panic").expect("and is proven");
        let nobody = listener.accept(&patience(&cancel, Duration::from_millis(1500)));
        assert!(nobody.is_err());
    });
    assert_eq!(listener.strangers(), 81, "all are turned away within a second");
    assert!(!matches!(silent[0].read(&mut [0; 1]), Ok(1..)), "nothing was ever said to them");
}

#[test]
fn waiting_can_be_cancelled() {
    let port = reserve(V4);
    let mut listener = listen(port.as_ref());
    let cancel = Cancel::new();
    cancel.cancel();
    let patience = patience(&cancel, Duration::from_secs(60));
    assert!(matches!(listener.accept(&patience), Err(Error::Cancelled)));
    drop(listener);
    let settings = Settings::new();
    let call = Call { server: port.address(), number: 0, source_port: 0, settings: &settings, key: &KEY };
    assert!(matches!(tcp().connect(&call, &patience), Err(Error::Cancelled)));
}
