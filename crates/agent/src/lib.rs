//! landspeed agent.
