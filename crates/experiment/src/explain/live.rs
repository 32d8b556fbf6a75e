//! Flows that are there already: nothing is sent.

use std::time::Duration;

use landspeed_record::ExplainReport;
use landspeed_session::{Reply, Request};

use super::{ExplainOptions, INTERVAL, Material, Progress, Seen, limits, observers};
use crate::{Error, Host};

/// Watches flows on `hosts`, one or two, all at once, and says what holds them back.
pub fn explain_live(
    hosts: &mut [Host],
    options: &ExplainOptions,
    progress: Progress<'_>,
) -> Result<ExplainReport, Error> {
    progress(&format!("watching for {}", options.time));
    let request = Request::Watch {
        target: options.target,
        observers: observers(options.trace),
        duration_ns: options.time,
        interval_ns: INTERVAL,
    };
    let pending = hosts.iter().map(|host| host.start(&request)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = Vec::new();
    for (host, pending) in hosts.iter_mut().zip(pending) {
        let Reply::Watched { device, observed } =
            host.wait(pending, Duration::from(options.time) + host.patience())?
        else {
            return Err(host.unexpected("watch"));
        };
        host.device = device;
        let (name, facts, observed) = (host.name.clone(), host.facts.clone(), *observed);
        seen.push(Seen { name, facts, observed, limits: None });
    }
    if options.limits {
        progress("measuring what memory, copies and raw packets can do at most");
        let called = hosts.first().map_or("", |host| &host.name);
        for (seen, limits) in seen.iter_mut().zip(limits::of(&hosts.iter().collect::<Vec<_>>(), called)?) {
            seen.limits = Some(limits);
        }
    }
    Ok(Material { seen, rtt: None, goodput: None, tracer_effect: None }.report(options))
}
