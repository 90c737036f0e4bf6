//! What a server answers to a request.

use opentelemetry_proto::tonic::collector::profiles::v1development::{
    ExportProfilesPartialSuccess, ExportProfilesServiceResponse,
};
use prost::Message;

/// What a server's answer to a request says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Taken,
    /// Profiles that it did not take, and why. A request holds one of each kind of sample.
    Rejected {
        profiles: i64,
        message: String,
    },
    /// Not an `ExportProfilesServiceResponse`.
    Foreign,
}

pub(super) fn answer(body: &[u8]) -> Answer {
    match ExportProfilesServiceResponse::decode(body) {
        Err(_) => Answer::Foreign,
        Ok(response) => match response.partial_success {
            Some(partial) if partial.rejected_profiles > 0 => Answer::Rejected {
                profiles: partial.rejected_profiles,
                message: partial.error_message,
            },
            _ => Answer::Taken,
        },
    }
}

/// What a `google.rpc.Status` says, the body of a refusal in protobuf. Its code and message have the numbers and types
/// of what is read here.
pub(super) fn refusal(body: &[u8]) -> Option<String> {
    let status = ExportProfilesPartialSuccess::decode(body).ok()?;
    (!status.error_message.is_empty()).then_some(status.error_message)
}
