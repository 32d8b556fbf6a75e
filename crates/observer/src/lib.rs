//! landspeed observer.
