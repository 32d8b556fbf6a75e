//! A harness with both ends of a flow in one process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{
    CancelFlag, ConnectRequest, Error, Flow, Listener, Patience, ProofKey, ReservedPort, Transport, find,
};

pub(crate) const KEY: ProofKey = [3; 32];
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
/// A time limit that is much longer than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(10);

/// Returns settings of UDP with datagrams of 1000 bytes, and the given values.
pub(crate) fn udp(values: &[(&str, &str)]) -> Settings {
    let all = [("transport", "udp"), ("write-size", "1000")].iter().chain(values);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn transport(settings: &Settings) -> &'static dyn Transport {
    find(TRANSPORT.of(settings)).expect("it is registered")
}

/// Returns a port and its listener.
pub(crate) fn listen(at: IpAddr, settings: &Settings) -> (Box<dyn ReservedPort>, Box<dyn Listener>) {
    let port = transport(settings).reserve(SocketAddr::new(at, 0)).expect("a port on loopback");
    let listener = port.listen(settings, &KEY).expect("it listens");
    (port, listener)
}

pub(crate) fn patience(cancel: &CancelFlag, time: Duration) -> Patience<'_> {
    Patience { until: Instant::now() + time, cancel }
}

pub(crate) fn call(
    server: SocketAddr,
    settings: &Settings,
    key: &ProofKey,
    time: Duration,
) -> Result<Box<dyn Flow>, Error> {
    let call = ConnectRequest { server, number: 5, source_port: 0, settings, key };
    transport(settings).connect(&call, &patience(&CancelFlag::new(), time))
}

/// Opens a flow, the client through `through`. Returns the client's end and the server's.
pub(crate) fn pair_through(
    listener: &mut dyn Listener,
    through: SocketAddr,
    settings: &Settings,
) -> (Box<dyn Flow>, Box<dyn Flow>) {
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(through, settings, &KEY, LONG));
        let here = listener.accept(&patience(&CancelFlag::new(), LONG)).expect("a flow comes");
        while !calling.is_finished() {
            // If a welcome got lost, the client asks again, and a poll of the flow's progress answers.
            here.progress().expect("UDP's own count");
            std::thread::sleep(Duration::from_millis(1));
        }
        (calling.join().expect("no panic").expect("it is proven"), here)
    })
}

/// Opens a flow over IPv4. Returns the client's end and the server's.
pub(crate) fn pair(settings: &Settings) -> (Box<dyn Flow>, Box<dyn Flow>) {
    pair_at(V4, settings)
}

/// Opens a flow over the address family of `at`. Returns the client's end and the server's.
pub(crate) fn pair_at(at: IpAddr, settings: &Settings) -> (Box<dyn Flow>, Box<dyn Flow>) {
    let (port, mut listener) = listen(at, settings);
    pair_through(listener.as_mut(), port.address(), settings)
}

/// Sends `count` datagrams of 1000 bytes, one by one.
pub(crate) fn send(from: &dyn Flow, count: usize) {
    let mut sender = from.sender().expect("sends");
    for _ in 0..count {
        assert_eq!(sender.send(&[7; 1000], 1).expect("sent"), 1000);
    }
}

/// Receives until `bytes` bytes have arrived, or nothing more does for a second. Returns how many arrived.
pub(crate) fn receive(to: &dyn Flow, bytes: usize) -> usize {
    let mut receiver = to.receiver().expect("receives");
    let (mut got, mut silent) = (0, 0);
    while got < bytes && silent < 20 {
        match receiver.receive(&mut [0; 65_536]) {
            Ok(n) => got += n,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => silent += 1,
            Err(error) => panic!("{error}"),
        }
    }
    got
}
