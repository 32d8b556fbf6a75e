//! Compares our controls with Linux's own sources, acknowledgement by acknowledgement: `make cc-linux`.
//!
//! Linux's sources are GPL-2.0 and no part of this project: .ci/linux-source fetches Debian's package of them. `make
//! test` runs the checks that need no source of Linux: that the comparison detects errors, and that each planted
//! error still has its place.

mod compile;
mod pair;
mod pairs;
mod planted;

use std::path::{Path, PathBuf};

use landspeed_congestion::{CONTROLS, NativeControl, native};

use pair::{DifferenceBound, PairedConnections};
use pairs::{ComparisonCase, ControlPairing, PAIRS};
use planted::PLANTED;

/// Returns the folder into which .ci/linux-source has put Linux's sources.
fn linux() -> PathBuf {
    PathBuf::from(std::env::var_os("LANDSPEED_LINUX").expect("LANDSPEED_LINUX: make cc-linux sets it"))
}

/// Returns true for FAST and LTCP, which Linux lacks. They are compared with their papers' formulas.
fn is_papers(pairing: &ControlPairing) -> bool {
    pairing.file.starts_with("paper_")
}

fn ours(pairing: &ControlPairing) -> NativeControl {
    native(pairing.name).unwrap_or_else(|| panic!("no {}", pairing.name))
}

fn theirs(linux: &Path, folder: &Path, pairing: &ControlPairing) -> NativeControl {
    if is_papers(pairing) {
        return compile::paper(folder, pairing.name, pairing.file);
    }
    compile::linux(linux, folder, pairing.name, pairing.file, pairing.settings)
}

/// Returns the cases of `pairing` in which `other` differs from `reference` by more than the case allows.
fn apart(
    pairing: &ControlPairing,
    reference: NativeControl,
    other: NativeControl,
) -> impl Iterator<Item = &ComparisonCase> {
    pairing.cases.iter().filter(move |case| {
        !PairedConnections::play(reference, other, case.play, case.bound).is_within(case.bound)
    })
}

#[test]
#[ignore = "it needs Linux's sources: make cc-linux"]
fn every_window_is_linuxs_but_for_known_deviations() {
    let (linux, folder) = (linux(), tempfile::tempdir().expect("a folder"));
    let mut wrong = 0;
    for pairing in PAIRS {
        let reference = theirs(&linux, folder.path(), pairing);
        println!("\n{} beside {} {}", pairing.name, pairing.file, pairing.settings);
        for ComparisonCase { play, bound, reason } in pairing.cases {
            let worst = PairedConnections::play(reference, ours(pairing), *play, *bound);
            let verdict = if worst.is_within(*bound) { "ok   " } else { "WRONG" };
            wrong += u32::from(!worst.is_within(*bound));
            println!(
                "{verdict} {play:?}: at most {worst}; {bound}{}{reason}",
                if reason.is_empty() { "" } else { ": " }
            );
        }
    }
    assert_eq!(wrong, 0, "further from Linux than the table allows");
}

fn pairing(name: &str) -> &'static ControlPairing {
    PAIRS.iter().find(|pairing| pairing.name == name).unwrap_or_else(|| panic!("{name} has no pair"))
}

#[test]
#[ignore = "it needs Linux's sources: make cc-linux"]
fn an_error_of_a_twentieth_in_any_control_is_found() {
    let (linux, folder) = (linux(), tempfile::tempdir().expect("a folder"));
    let mut missed = 0;
    for planted in PLANTED {
        for pairing in planted.controls.iter().copied().map(pairing) {
            let reference = theirs(&linux, folder.path(), pairing);
            // A case that finds an error must find none without it.
            assert_eq!(apart(pairing, reference, ours(pairing)).count(), 0, "{}", pairing.name);
            for (number, [is, becomes]) in planted.errors.iter().enumerate() {
                let other = planted.control(folder.path(), pairing.name, number);
                let by = apart(pairing, reference, other).next();
                missed += u32::from(by.is_none());
                let found = by.map_or("NOT FOUND".to_owned(), |case| format!("found by {:?}", case.play));
                println!("{:9} {is} -> {becomes}: {found}", pairing.name);
            }
        }
    }
    assert_eq!(missed, 0, "planted errors that nothing found");
}

#[test]
fn every_control_is_compared_has_planted_errors_and_reasons_for_deviations() {
    for planted in PLANTED {
        (0..planted.errors.len()).for_each(|number| assert_ne!(planted.source(number), ""));
    }
    for pairing in PAIRS {
        ours(pairing);
        for case in pairing.cases {
            let is_exact = matches!(case.bound, DifferenceBound::Each { packets: 0.0, share: 0.0 });
            assert!(
                is_exact || !case.reason.is_empty(),
                "{}: {:?} deviates without a reason",
                pairing.name,
                case.play
            );
        }
    }
    for row in CONTROLS {
        pairing(row.name);
        let is_tried = PLANTED.iter().any(|planted| planted.controls.contains(&row.name));
        assert!(is_tried, "{}: nothing shows that an error would be found", row.name);
    }
}

#[test]
fn fast_and_ltcp_follow_the_formulas_of_their_papers() {
    let folder = tempfile::tempdir().expect("a folder");
    for pairing in PAIRS.iter().filter(|pairing| is_papers(pairing)) {
        let reference = theirs(Path::new(""), folder.path(), pairing);
        assert_eq!(apart(pairing, reference, ours(pairing)).count(), 0, "{}", pairing.name);
    }
}

#[test]
fn the_comparison_finds_an_error_and_finds_none_where_none_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let pairing = pairing("scalable");
    assert_eq!(apart(pairing, ours(pairing), ours(pairing)).count(), 0);
    let planted = PLANTED.iter().find(|planted| planted.controls == ["scalable"]).expect("errors");
    let other = planted.control(folder.path(), pairing.name, 0);
    assert_ne!(apart(pairing, ours(pairing), other).count(), 0);
}
