//! landspeed analysis.
