//! landspeed experiment.
