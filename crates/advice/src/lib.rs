//! landspeed advice.
