//! Tests of logins that take long, on a clock that does not wait.

use std::time::Duration;

use tokio::io::{DuplexStream, duplex};

use super::*;

const FIRST_FRAME: &[u8] = b"\0\0\0\x18{\"hello\"";

/// Starts an agent on the far side that `far` plays, with its end of a connection that holds `holds` bytes, the sink of
/// its standard error, and the length of the script that it receives. `asks` is true if ssh may ask a person.
fn login(
    asks: bool,
    holds: usize,
    far: impl AsyncFnOnce(DuplexStream, LineSink, usize),
) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let host = SshHost::new("far").unwrap().with_questions(asks);
        let launch = AgentLaunch { words: &["agent"], root: false, own: Path::new("/dev/null"), keep: false };
        let (deployment, stderr) = Deployment::new(&host, &launch, &Options::default(), &HostPace::default());
        let (near, theirs) = duplex(holds);
        let (reader, mut writer) = tokio::io::split(near);
        let length = deployment.find.len();
        let (started, ()) = tokio::join!(deployment.run(reader, &mut writer), far(theirs, stderr, length));
        started.map(drop).map_err(|error| error.to_string())
    })
}

async fn pause(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[test]
fn a_login_that_prints_nothing_is_given_up_and_the_option_is_named() {
    let silent = login(false, 1 << 20, async |far, _, _| {
        pause(31).await;
        drop(far);
    });
    assert_eq!(silent.unwrap_err(), "far: waited 30 s for a login; --patience waits longer");
}

#[test]
fn a_slow_login_lengthens_the_next_wait_unless_a_person_may_have_typed() {
    for (asks, waited) in [(false, "116 s"), (true, "30 s")] {
        let greets = login(asks, 1 << 20, async |mut far, _, _| {
            pause(29).await;
            far.write_all(b"Welcome\n").await.unwrap();
            pause(120).await;
        });
        let why = format!("far: waited {waited} for its agent to start; --patience waits longer");
        assert_eq!(greets, Err(why));
    }
}

#[test]
fn a_login_that_prints_is_waited_for() {
    let prints = login(false, 1 << 20, async |mut far, stderr, _| {
        for _ in 0..5 {
            pause(29).await;
            stderr.say("far: your place in the queue is 5");
        }
        pause(29).await;
        far.write_all(FIRST_FRAME).await.unwrap();
        pause(1).await;
    });
    assert_eq!(prints, Ok(()));
}

#[test]
fn a_far_side_that_takes_a_little_at_a_time_is_waited_for() {
    let takes = login(false, 64, async |mut far, _, length| {
        let mut taken = 0;
        while taken < length {
            pause(29).await;
            taken += far.read(&mut [0; 64]).await.unwrap();
        }
        far.write_all(FIRST_FRAME).await.unwrap();
        pause(1).await;
    });
    assert_eq!(takes, Ok(()));
    let stuck = login(false, 64, async |far, _, _| {
        pause(31).await;
        drop(far);
    });
    assert_eq!(stuck.unwrap_err(), "far: waited 30 s for it to take what is sent; --patience waits longer");
}
