//! landspeed report.
