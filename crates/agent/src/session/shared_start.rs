//! Several hosts that start together: landspeed is sent to none of them before all have passed the cheap checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// One host's part in a start of several hosts that are needed together. A host without landspeed receives it only once
/// every other host has logged in and is root where that is needed, so that a mistake on one host costs no transfer to
/// another.
#[derive(Debug, Clone)]
pub struct SharedStart {
    checks: watch::Sender<HostChecks>,
    is_checked: Arc<AtomicBool>,
}

/// The state of all hosts of a start.
#[derive(Debug, Default)]
struct HostChecks {
    /// The number of hosts that have neither passed nor failed.
    open: usize,
    /// The name of the first host that failed.
    failed: Option<String>,
}

impl SharedStart {
    /// Returns a part for each of `hosts` hosts.
    pub fn of(hosts: usize) -> Vec<SharedStart> {
        let (checks, _) = watch::channel(HostChecks { open: hosts, failed: None });
        (0..hosts).map(|_| SharedStart { checks: checks.clone(), is_checked: Arc::default() }).collect()
    }

    /// Tells the other hosts that this one passed its checks.
    pub fn pass(&self) {
        if !self.is_checked.swap(true, Ordering::Relaxed) {
            self.checks.send_modify(|checks| checks.open -= 1);
        }
    }

    /// Tells the other hosts that this one, called `name`, cannot be used.
    pub fn fail(&self, name: &str) {
        self.checks.send_modify(|checks| _ = checks.failed.get_or_insert_with(|| name.to_owned()));
    }

    /// Passes, and waits until every host has passed or one has failed. Returns the name of the first that failed. The
    /// wait has no limit of its own, because each host's checks have one.
    pub(crate) async fn first_failed(&self) -> Option<String> {
        self.pass();
        let mut checks = self.checks.subscribe();
        let settled = checks.wait_for(|checks| checks.open == 0 || checks.failed.is_some()).await;
        settled.ok().and_then(|checks| checks.failed.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_waits_for_the_others_and_learns_which_failed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let hosts = SharedStart::of(3);
        runtime.block_on(async {
            let mut first = std::pin::pin!(hosts[0].first_failed());
            let waits = is_pending(first.as_mut()).await;
            assert!(waits, "two hosts are not checked");
            hosts[1].pass();
            hosts[1].pass();
            assert!(is_pending(first.as_mut()).await, "one host is not checked");
            hosts[2].fail("dtn3");
            assert_eq!(first.await.as_deref(), Some("dtn3"));
            let both = SharedStart::of(2);
            both[1].pass();
            assert_eq!(both[0].first_failed().await, None);
        });
    }

    /// Polls a future once. Returns true if it is not ready.
    async fn is_pending(mut future: std::pin::Pin<&mut impl Future<Output = Option<String>>>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending()))
            .await
    }
}
