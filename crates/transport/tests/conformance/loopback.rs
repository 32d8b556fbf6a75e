//! A harness with both ends of a flow in one process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use landspeed_record::Settings;
use landspeed_transport::{
    CancelFlag, ConnectRequest, Error, Flow, Listener, Patience, ProofKey, ReservedPort, Transport,
};

pub(crate) const KEY: ProofKey = [3; 32];
pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
/// A time limit that is much longer than anything here takes, also on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(10);
/// How long a check waits for what a broken transport never does.
pub(crate) const SHORT: Duration = Duration::from_millis(500);

/// The client's end of a flow, and the server's.
pub(crate) type FlowPair = (Box<dyn Flow>, Box<dyn Flow>);

/// Returns settings with messages of 1000 bytes, if messages have a size.
pub(crate) fn settings(transport: &dyn Transport) -> Settings {
    let values = [("transport", transport.name()), ("write-size", "1000")];
    values.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

pub(crate) fn patience(cancel: &CancelFlag, time: Duration) -> Patience<'_> {
    Patience { until: Instant::now() + time, cancel }
}

/// A transport with a reserved port, to open flows within this process.
pub(crate) struct Loopback<'t> {
    pub(crate) transport: &'t dyn Transport,
    pub(crate) settings: Settings,
    pub(crate) port: Box<dyn ReservedPort>,
    pub(crate) source_port: u16,
}

impl<'t> Loopback<'t> {
    pub(crate) fn at(transport: &'t dyn Transport, address: IpAddr) -> Result<Self, String> {
        let port = transport.reserve(SocketAddr::new(address, 0)).map_err(text)?;
        Ok(Loopback { transport, settings: settings(transport), port, source_port: 0 })
    }

    pub(crate) fn listen(&self) -> Result<Box<dyn Listener>, String> {
        self.port.listen(&self.settings, &KEY).map_err(text)
    }

    pub(crate) fn call(
        &self,
        number: u32,
        key: &ProofKey,
        patience: &Patience<'_>,
    ) -> Result<Box<dyn Flow>, Error> {
        let Loopback { settings, source_port, .. } = self;
        let server = self.port.address();
        self.transport
            .connect(&ConnectRequest { server, number, source_port: *source_port, settings, key }, patience)
    }

    /// Opens a flow with this number.
    pub(crate) fn pair(&self, number: u32) -> Result<FlowPair, String> {
        self.pair_through(self.listen()?.as_mut(), number)
    }

    pub(crate) fn pair_through(&self, listener: &mut dyn Listener, number: u32) -> Result<FlowPair, String> {
        let cancel = CancelFlag::new();
        let patience = patience(&cancel, LONG);
        std::thread::scope(|scope| {
            let calling = scope.spawn(|| self.call(number, &KEY, &patience));
            let here = listener.accept(&patience).map_err(text)?;
            while !calling.is_finished() {
                // Some transports answer the client's last messages only while their flow is used.
                here.progress().map_err(text)?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok((calling.join().expect("no panic").map_err(text)?, here))
        })
    }
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns an error unless `holds`.
pub(crate) fn hold(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// Waits until `holds` returns true, for a limited time. Returns false if it does not.
pub(crate) fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + LONG;
    while !holds() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}
