//! landspeed workload.
