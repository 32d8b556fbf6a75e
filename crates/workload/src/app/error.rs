//! The errors of an application.

use landspeed_record::units::Nanos;

/// The reason why a role, or the reading of its figures, failed.
#[allow(missing_docs, reason = "each text says what its variant is")]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("role {role}: {why}")]
    Role { role: String, why: String },
    #[error("role {role} took more than {within} {doing}; it was ended{said}")]
    Slow { role: String, within: Nanos, doing: &'static str, said: String },
    #[error("{program} is not on this host: install {package}")]
    Missing { program: String, package: String },
    #[error("figure {figure}: {why}")]
    Figure { figure: String, why: String },
    #[error("cannot start the process of role {role}: {source}")]
    Start { role: String, source: std::io::Error },
    #[error("cancelled")]
    Cancelled,
}
