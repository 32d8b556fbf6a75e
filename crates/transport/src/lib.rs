//! landspeed transport.
