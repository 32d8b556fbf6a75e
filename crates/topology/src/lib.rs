//! landspeed topology.
