//! landspeed stats.
