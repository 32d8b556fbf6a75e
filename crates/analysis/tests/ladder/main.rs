//! Whole runs of the ladder in worlds whose effects are known.

mod advised;
mod drive;
mod proof;
mod rules;
mod saved;
