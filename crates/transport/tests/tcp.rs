//! TCP and strangers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::{Call, Cancel, Error, Flow, Key, Listener, Patience, Port, Transport, find};

const KEY: Key = [3; 32];
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

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
