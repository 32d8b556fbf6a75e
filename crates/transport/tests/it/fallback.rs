//! Flows report where they differ from what was requested.

use std::net::SocketAddr;

use landspeed_record::{SettingMismatch, Settings};
use landspeed_transport::{CancelFlag, Flow, find};

use crate::common::{KEY, LONG, V4, call, listen, pair, patience, receive, send, udp};

fn over(transport: &str) -> Settings {
    Settings::from([("transport".to_owned(), transport.to_owned())])
}

/// Returns the reports of both ends of a flow whose client and server use these transports.
fn reports(client: &str, server: &str) -> [Vec<SettingMismatch>; 2] {
    let (port, mut listener) = listen(V4, &over(server));
    let at: SocketAddr = port.address();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| call(at, &over(client), &KEY, LONG).expect("it is proven"));
        let here = listener.accept(&patience(&CancelFlag::new(), LONG)).expect("a flow comes");
        let there = calling.join().expect("no panic");
        [there.not_as_asked(), here.not_as_asked()]
    })
}

#[test]
fn multipath_tcp_that_fell_back_says_so_at_the_end_that_asked_for_it() {
    if let Err(why) = find("mptcp").expect("registered").can_run(&over("mptcp")) {
        return println!("SKIP: {why}");
    }
    assert_eq!(reports("mptcp", "mptcp"), [[], []]);
    for (client, server, end) in [("mptcp", "tcp", 0), ("tcp", "mptcp", 1)] {
        let reports = reports(client, server);
        let [found] = &reports[end][..] else { panic!("{client} to {server}: {reports:?}") };
        let what = (found.setting.as_str(), found.asked.as_str(), found.got.as_str());
        assert_eq!(what, ("transport", "mptcp", "tcp"), "{client} to {server}");
        assert_eq!(reports[1 - end], [], "{client} to {server}");
    }
}

/// Returns the report of the receiving end after `count` datagrams.
fn received(settings: &Settings, count: usize) -> Vec<SettingMismatch> {
    let (there, here): (Box<dyn Flow>, Box<dyn Flow>) = pair(settings);
    for _ in 0..count / 100 {
        send(there.as_ref(), 100);
        receive(here.as_ref(), 100 * 1000);
    }
    here.not_as_asked()
}

#[test]
fn datagrams_that_the_stack_did_not_join_are_called_so() {
    // Nothing joins datagrams that were sent one by one over loopback.
    let found = received(&udp(&[("datagram-receive", "gro")]), 1500);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.setting.as_str(), found.got.as_str()), ("datagram-receive", "plain"), "{found:?}");
    assert_eq!(received(&udp(&[("datagram-receive", "gro")]), 100), [], "too few to say");
    assert_eq!(received(&udp(&[]), 1500), [], "not asked for");
}
