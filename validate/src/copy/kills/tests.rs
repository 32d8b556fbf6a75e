//! What a study of kills makes and reports, and one real kill at a call.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::points::CallSide;
use super::study::is_whole;
use super::*;
use crate::copy::site::shell;

#[test]
fn every_kind_has_its_rounds_and_each_round_its_number() {
    let (folder, state) = (PathBuf::new(), PathBuf::new());
    let options = Options { kills: 200, tuned: 20, cuts: 50, long_cuts: 10, mib: 1, seed: 1, folder, state };
    let rounds = options.rounds();
    let count = |what| rounds.iter().filter(|(other, _)| *other == what).count();
    assert_eq!(Interruption::ALL.map(count), [50, 50, 50, 50, 20, 50, 10]);
    let mut numbers = rounds.iter().map(|(what, number)| (format!("{what:?}"), *number)).collect::<Vec<_>>();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), rounds.len());
}

#[test]
fn one_part_under_a_final_name_breaks_the_promise() {
    let whole = |what| Round {
        what,
        which: (0, 1, 1),
        point: None,
        is_late: false,
        has_partial: false,
        is_complete: true,
        has_survived: false,
        has_changed_hosts: false,
        again: 1 << 20,
    };
    let mut rounds = Interruption::ALL.map(whole);
    assert!(report(&rounds).is_ok());
    assert_eq!(rounds[0].words(), "Controller: completed, 1 MiB sent again");
    rounds[2].point = Some(point(CallSide::Exit));
    assert_eq!(rounds[2].words(), "Target (Target, Exit of linkat 2): completed, 1 MiB sent again");
    rounds[4].has_partial = true;
    assert!(report(&rounds).is_err() && rounds[4].words().contains("a part under a final name"));
    rounds[4] = Round { has_partial: false, has_changed_hosts: true, ..rounds[4].clone() };
    assert!(report(&rounds).is_err() && rounds[4].words().contains("settings of hosts not restored"));
}

#[test]
fn kills_that_miss_break_the_promise_and_those_at_moments_are_made_again() {
    let round = |is_late| Round {
        what: Interruption::Target,
        which: (0, 1, 1),
        point: Some(point(CallSide::Entry)),
        is_late,
        has_partial: false,
        is_complete: true,
        has_survived: false,
        has_changed_hosts: false,
        again: 0,
    };
    assert!(report(&[round(false), round(false), round(false), round(true)]).is_ok());
    assert!(report(&[round(false), round(true)]).is_err());
    let at_moment = Round { point: None, ..round(false) };
    assert!(
        round(false).is(Interruption::Target, (0, 1, 1)) && !at_moment.is(Interruption::Target, (0, 1, 1))
    );
}

#[test]
fn what_is_killed_at_a_call_leaves_no_part_and_is_completed() {
    let own = std::env::current_exe().unwrap();
    let landspeed = own.parent().and_then(Path::parent).expect("a folder of programs").join("landspeed");
    if let Some(why) = missing(&landspeed) {
        return eprintln!("SKIP: {why}");
    }
    // Its name has no capital letters, which are words of commands, nor landspeed's name: sshd has it in its command
    // line, and would be taken for an agent.
    let name = format!("copy-kills.{}", std::process::id());
    let above = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir().unwrap();
    let site = Site::new(above.path(), &landspeed).unwrap();
    site.fill(2, 0).and_then(|_| site.fill(0, 40)).and_then(|_| add_tree(&site.source())).unwrap();
    let _sshd = site.start_sshd().unwrap();
    let stop = AtomicBool::new(false);
    let mut study = KillStudy::new(&site, &landspeed, true, &stop).unwrap();
    let mut random = Random::new(7);
    for process in CopyProcess::ALL {
        assert_eq!(study.calls.draw(process, &mut random).unwrap().process, process);
    }
    let which = (0, 7, 2);
    for side in [CallSide::Entry, CallSide::Exit] {
        let struck = study.killed(Interruption::Target, point(side)).unwrap();
        assert!(!struck.is_late && !struck.ended.success(), "{:?}: {}", struck.point, struck.ended);
        assert_eq!(struck.point, Some(point(side)));
        assert!(!is_whole(&site).unwrap(), "the copy was over");
        is_fine(&study.judged(Interruption::Target, which, struck).unwrap());
    }
    is_fine(&study.round(Interruption::All, which, &mut random).unwrap());
    fails_with_a_copy_that_fails_by_itself(&site, &study);
    study.set_hosts().unwrap();
    // The copy of these few files may end before the kill.
    let tuned = study.round(Interruption::Tuned, which, &mut random).unwrap();
    is_fine(&Round { is_late: false, ..tuned });
    let journals = std::fs::read_dir(site.source().with_file_name("state/journal")).expect("it was used");
    assert_eq!(journals.count(), 0, "nothing is left to restore");
}

/// No kill was too late for such a copy.
fn fails_with_a_copy_that_fails_by_itself(site: &Site, study: &KillStudy<'_>) {
    let away = site.source().with_file_name("away");
    std::fs::rename(site.source(), &away).unwrap();
    let never = Point { number: 60_000, ..point(CallSide::Entry) };
    let error = study.killed(Interruption::Target, never).map(drop).unwrap_err();
    std::fs::rename(&away, site.source()).unwrap();
    assert!(format!("{error:#}").contains("there is no such file or folder"), "{error:#}");
}

fn is_fine(round: &Round) {
    let is_whole = !round.has_partial && round.is_complete && !round.has_changed_hosts;
    assert!(is_whole && !round.is_late && round.again <= AGAIN, "{round:?}");
}

/// The second link of a thread: each further name of a file is made by one.
fn point(side: CallSide) -> Point {
    Point { process: CopyProcess::Target, call: "linkat".to_owned(), number: 2, side }
}

/// Returns why no process of a copy can be killed at a call here; `None` if one can.
fn missing(landspeed: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("only root makes network namespaces".to_owned());
    }
    let landspeed = landspeed.display().to_string();
    let needs = ["strace", "ip", "ss", "ssh", "ssh-keygen", "/usr/sbin/sshd", landspeed.as_str()];
    let is_missing = |program: &&str| shell(&format!("command -v {program} > /dev/null")).is_err();
    if let Some(program) = needs.into_iter().find(is_missing) {
        return Some(format!("{program} is missing"));
    }
    let traces = shell("strace -o /dev/null -e inject=getpid:delay_exit=1 true 2> /dev/null");
    traces.is_err().then(|| "strace may trace no process here, or holds none".to_owned())
}
