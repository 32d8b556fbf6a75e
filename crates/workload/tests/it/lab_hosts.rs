//! Two hosts of a lab, each in its own network namespace, and trials between them.

use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc;

use landspeed_lab::topology::{Lab, LabHost, find, with_namespace};
use landspeed_record::TrialSpec;
use landspeed_transport::settings::TRANSPORT;
use landspeed_workload::{CancelFlag, ClientPlan, DataPort, NullWatch, WindowWatch, run_client, run_server};

use crate::common::{EndResult, KEY};

/// Returns a lab of this kind; prints why if there can be none.
pub(crate) fn lab(test: &str, word: &str) -> Option<Lab> {
    let topology = find(&[word.to_owned()]).expect("a lab of this kind");
    if let Err(reason) = topology.can_run() {
        println!("SKIP {test}: {reason}");
        return None;
    }
    Some(Lab::open(word).expect("a lab"))
}

/// Runs a command with these words.
pub(crate) fn run(words: &str) {
    let (program, words) = words.split_once(' ').expect("words");
    let status = Command::new(program).args(words.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "{program} {words}");
}

/// Runs both ends, with a watch at the client, and returns (client, server). The server gives up when the client has failed.
pub(crate) fn between(
    [a, b]: [&LabHost; 2],
    at: IpAddr,
    spec: &TrialSpec,
    watch: &mut (dyn WindowWatch + Send),
) -> (EndResult, EndResult) {
    let (tell, port) = mpsc::channel();
    let cancel = &CancelFlag::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(move || {
            with_namespace(&b.netns, move || {
                let data = DataPort::open(at, &[TRANSPORT.of(&spec.flow)], KEY).expect("a data port");
                tell.send(data.port()).expect("the client listens");
                run_server(spec, &data, &mut NullWatch, cancel)
            })
        });
        let client = with_namespace(&a.netns, move || {
            let server = (at, port.recv().expect("a port")).into();
            run_client(spec, &ClientPlan { server, source_port: 0, key: KEY }, watch, &CancelFlag::new())
        });
        let client = client.expect("namespace a");
        if client.is_err() {
            cancel.cancel();
        }
        (client, serving.join().expect("no panic").expect("namespace b"))
    })
}
