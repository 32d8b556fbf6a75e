//! TLS 1.3 between a controller and an agent that know each other only by a pin and a token.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible, ServerConfig,
    SignatureScheme,
};

use crate::session::{CertificatePin, Error};

/// Label of the tls-exporter channel binding: 32 bytes, with no context (RFC 9266).
const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";

/// Returns the agent's TLS configuration with a new self-signed certificate, and the pin of this certificate.
pub(crate) fn server() -> Result<(Arc<ServerConfig>, CertificatePin), Error> {
    let failed = |why: String| Error::Tls { name: "this agent".to_owned(), why };
    let made = rcgen::generate_simple_self_signed(vec!["landspeed".to_owned()])
        .map_err(|e| failed(e.to_string()))?;
    let certificate = made.cert.der().clone();
    let pin = CertificatePin::of(&certificate);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| failed(e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(|e| failed(e.to_string()))?;
    // There is only one session, so there is nothing to resume.
    config.send_tls13_tickets = 0;
    Ok((Arc::new(config), pin))
}

/// Returns the controller's TLS configuration, which accepts only the certificate with this pin.
pub(crate) fn client(pin: CertificatePin) -> Result<Arc<ClientConfig>, Error> {
    let provider = provider();
    let verifier = Arc::new(PinVerifier { pin, provider: Arc::clone(&provider) });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| Error::Tls { name: "this controller".to_owned(), why: e.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Returns the channel binding: bytes that are equal at both ends of one connection, and different for any other. `name`
/// is the peer's name.
pub(crate) fn binding<Data>(
    name: &str,
    connection: &rustls::ConnectionCommon<Data>,
) -> Result<[u8; 32], Error> {
    connection
        .export_keying_material([0; 32], BINDING_LABEL, None)
        .map_err(|error| Error::Tls { name: name.to_owned(), why: error.to_string() })
}

/// Converts the failure of a TLS handshake into an error. `name` is the peer's name.
pub(crate) fn explain(name: &str, error: &std::io::Error) -> Error {
    use rustls::Error as Tls;
    let name = name.to_owned();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()) {
        Some(Tls::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => {
            Error::Pin { name }
        }
        Some(Tls::AlertReceived(AlertDescription::AccessDenied)) => {
            let why =
                "it did not take this agent's certificate: its line is of another agent; paste this one's";
            Error::Tls { name, why: why.to_owned() }
        }
        Some(other) => Error::Tls { name, why: crate::session::one_line(&other.to_string()) },
        None => Error::Handshake { name, source: std::io::Error::from(error.kind()).into() },
    }
}

/// A verifier that accepts one certificate, identified by its pin. Names and dates are ignored.
#[derive(Debug)]
struct PinVerifier {
    pin: CertificatePin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pin.fits(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
