//! Runs the studies of `landspeed compare` in the simulator.

use landspeed_record::{Contest, Study, StudyRun};

use crate::scenario::SimulationError;
use crate::scene::{SceneSetting, SceneWithout};
use crate::study::{run_of, study_scenario};

/// Simulates one run of a contest, packet by packet, in the study's scene if it has one.
///
/// # Errors
/// Returns an error if the simulator cannot run a contestant, or knows no such scene.
pub fn study_run(study: &Study, contest: &Contest, repeat: u32) -> Result<StudyRun, SimulationError> {
    match study.scene.as_deref() {
        None => run_of(study, contest, repeat, &study_scenario(study, contest, repeat)),
        Some(name) => SceneSetting::of(name)?.run(study, contest, repeat, SceneWithout::Nothing),
    }
}
