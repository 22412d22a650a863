//! Golden vectors: the lines of the client protocol, byte for byte. A change here is a
//! change of the protocol.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use brig_protocol::client::{
    CallFailure, CancelParams, EvaluateParams, EvaluateResult, EvaluationStatus, EvaluationsGetParams, EvaluationsWaitParams,
    HostCallParams, method,
};
use brig_protocol::rpc::{self, ErrorData, Message};
use serde_json::value::RawValue;

/// Reads a line into its types and writes it again from them.
fn written_again(line: &str) -> Vec<u8> {
    match rpc::read(line.as_bytes()).unwrap() {
        Message::Request { id, method, params } => {
            let params = params.unwrap().get();
            match method.as_ref() {
                method::EVALUATE => rpc::request(&id, &method, &serde_json::from_str::<EvaluateParams<'_>>(params).unwrap()),
                method::HOST_CALL => rpc::request(&id, &method, &serde_json::from_str::<HostCallParams<'_>>(params).unwrap()),
                method::EVALUATIONS_GET => rpc::request(&id, &method, &serde_json::from_str::<EvaluationsGetParams>(params).unwrap()),
                method::EVALUATIONS_WAIT => rpc::request(&id, &method, &serde_json::from_str::<EvaluationsWaitParams>(params).unwrap()),
                other => panic!("no golden vector for {other}"),
            }
        }
        Message::Notification { method, params } => {
            rpc::notification(&method, &serde_json::from_str::<CancelParams>(params.unwrap().get()).unwrap())
        }
        Message::Response { id, outcome: Ok(result) } => match serde_json::from_str::<EvaluateResult>(result.get()) {
            Ok(evaluated) => rpc::result(&id, &evaluated),
            Err(_) => match serde_json::from_str::<EvaluationStatus>(result.get()) {
                Ok(status) => rpc::result(&id, &status),
                Err(_) => rpc::result(&id, &result),
            },
        },
        Message::Response { id, outcome: Err(error) } => {
            let data: &RawValue = error.data.unwrap();
            match serde_json::from_str::<ErrorData>(data.get()) {
                Ok(data) => rpc::error(Some(&id), &data),
                Err(_) => rpc::failure(&id, &error.message, Some(&serde_json::from_str::<CallFailure<'_>>(data.get()).unwrap())),
            }
        }
    }
}

macro_rules! golden {
    ($($name:ident = $file:literal;)+) => {$(
        #[test]
        fn $name() {
            let line = include_str!(concat!("golden/", $file));
            assert_eq!(String::from_utf8(written_again(line.trim_end())).unwrap(), line);
        }
    )+};
}

golden! {
    an_evaluate_request_is_written_as_specified = "01-evaluate.json";
    a_host_call_is_written_as_specified = "02-host-call.json";
    a_host_result_is_written_as_specified = "03-host-result.json";
    a_host_failure_is_written_as_specified = "04-host-failure.json";
    a_result_is_written_as_specified = "05-result.json";
    a_cancel_is_written_as_specified = "06-cancel.json";
    a_refusal_is_written_as_specified = "07-overloaded.json";
    a_detached_evaluate_is_written_as_specified = "20-evaluate-detached.json";
    a_running_evaluation_is_written_as_specified = "21-running.json";
    a_get_is_written_as_specified = "22-evaluations-get.json";
    a_wait_is_written_as_specified = "23-evaluations-wait.json";
    an_ended_evaluation_is_written_as_specified = "24-ended.json";
    an_unknown_evaluation_is_written_as_specified = "25-unknown.json";
}
