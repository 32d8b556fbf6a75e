//! The ciphers that flows agreed on, in the record of a trial.

use std::collections::BTreeSet;

use landspeed_record::{DetailError, Details, EndpointOutcome, FigureValue, Headline, detail};
use serde::{Deserialize, Serialize};

/// The ciphers of an end's flows: one, unless flows chose differently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct TlsCiphers(BTreeSet<String>);

detail!("tls_ciphers" => TlsCiphers);

pub(super) const CIPHER: Headline<EndpointOutcome> = Headline {
    name: "cipher",
    about: "of TLS's records, as both ends agreed",
    of: |end| Ok(all(end)?.map(FigureValue::Text)),
};

fn all(end: &EndpointOutcome) -> Result<Option<String>, DetailError> {
    let ciphers: Option<&TlsCiphers> = end.details.find()?;
    Ok(ciphers.map(|ciphers| ciphers.0.iter().cloned().collect::<Vec<_>>().join(", ")))
}

/// Adds the cipher of a flow.
pub(super) fn add(cipher: &str, details: &mut Details) {
    details.get_mut::<TlsCiphers>().0.insert(cipher.to_owned());
}
