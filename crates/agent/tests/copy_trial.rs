//! Permission for trials that write files.

mod common;

use landspeed_agent::session::{Reply, RequestHandler, SessionKey};
use landspeed_agent::{Agent, CopyPermission, Permissions};
use landspeed_record::units::Nanos;
use landspeed_record::{Role, Workload};

use common::{listen, run};

/// An agent that was started by hand serves any holder of its token, and such a trial could fill the disk.
#[test]
fn only_the_users_own_session_runs_a_trial_that_writes_files() {
    let key = SessionKey::random();
    let answer = |agent: &Agent, workload| {
        let port = listen(agent, &key);
        agent.handle(run(Role::Server, port, &key, workload))
    };
    let copy = || Workload::new("copy");
    let by_hand = answer(&Agent::new(false), copy());
    assert!(
        matches!(&by_hand, Reply::Failed { why } if why.contains("no trial that writes files")),
        "{by_hand:?}"
    );
    // In the user's own session, the request passes and fails only because of the warm-up, which a copy does not have.
    let may_copy = Permissions { copy: CopyPermission::Anything, ..Permissions::default() };
    let own = answer(&Agent::permitting(may_copy), copy());
    assert!(matches!(&own, Reply::Failed { why } if why.contains("leave the warm-up out")), "{own:?}");
    // Other trials need no permission. A window without a duration is refused before anything is opened.
    let other = answer(&Agent::new(false), landspeed_workload::stream::spec(Nanos(0)));
    assert!(matches!(&other, Reply::Failed { why } if why.starts_with("time does not take")), "{other:?}");
}
