//! Both ends of a flow in one process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::settings::TRANSPORT;
use landspeed_transport::{Call, Cancel, Error, Flow, Key, Listener, Patience, Port, Transport, find};

pub(crate) const KEY: Key = [3; 32];
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
/// Far more than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(10);

/// UDP with datagrams of 1000 bytes, and these values.
pub(crate) fn udp(values: &[(&str, &str)]) -> Settings {
    let all = [("transport", "udp"), ("write-size", "1000")].iter().chain(values);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn transport(settings: &Settings) -> &'static dyn Transport {
    find(TRANSPORT.of(settings)).expect("it is registered")
}

/// A port, and who listens on it.
pub(crate) fn listen(at: IpAddr, settings: &Settings) -> (Box<dyn Port>, Box<dyn Listener>) {
    let port = transport(settings).reserve(SocketAddr::new(at, 0)).expect("a port on loopback");
    let listener = port.listen(settings, &KEY).expect("it listens");
    (port, listener)
}

pub(crate) fn patience(cancel: &Cancel, time: Duration) -> Patience<'_> {
    Patience { until: Instant::now() + time, cancel }
}

pub(crate) fn call(
    server: SocketAddr,
    settings: &Settings,
    key: &Key,
    time: Duration,
) -> Result<Box<dyn Flow>, Error> {
    let call = Call { server, number: 5, source_port: 0, settings, key };
    transport(settings).connect(&call, &patience(&Cancel::new(), time))
}

/// A flow and its other end, the client's through `through`: (client's, server's).
pub(crate) fn pair_through(
    listener: &mut dyn Listener,
    through: SocketAddr,
    settings: &Settings,
) -> (Box<dyn Flow>, Box<dyn Flow>) {
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(through, settings, &KEY, LONG));
        let here = listener.accept(&patience(&Cancel::new(), LONG)).expect("a flow comes");
        while !calling.is_finished() {
            // A welcome that got lost is asked for again, and whoever looks at the flow gives it.
            here.progress().expect("UDP's own count");
            std::thread::sleep(Duration::from_millis(1));
        }
        (calling.join().expect("no panic").expect("it is proven"), here)
    })
}

/// A flow over IPv4 and its other end: (client's, server's).
pub(crate) fn pair(settings: &Settings) -> (Box<dyn Flow>, Box<dyn Flow>) {
    pair_at(V4, settings)
}

/// The same over the family of `at`.
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

/// Receives until `bytes` came in all, or nothing more for a second; how many came.
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
