//! Golden vectors: the lines of the client protocol, byte for byte. A change here is a
//! change of the protocol.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use brig_protocol::client::{
    CallFailure, CancelParams, EvaluateParams, EvaluateResult, EvaluationStatus, EvaluationsGetParams, EvaluationsWaitParams,
    FunctionsCallParams, FunctionsCallResult, FunctionsDescribeParams, FunctionsDescribeResult, FunctionsListParams, FunctionsListResult,
    FunctionsTypesParams, FunctionsTypesResult, FunctionsWaitParams, FunctionsWaitResult, HostCallParams, PolicyExplainParams,
    PolicyExplainResult, method,
};
use brig_protocol::rpc::{self, ErrorData, Message};
use serde::Serialize;
use serde::de::DeserializeOwned;
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
                method::FUNCTIONS_LIST => rpc::request(&id, &method, &serde_json::from_str::<FunctionsListParams>(params).unwrap()),
                method::FUNCTIONS_DESCRIBE => rpc::request(&id, &method, &serde_json::from_str::<FunctionsDescribeParams>(params).unwrap()),
                method::FUNCTIONS_TYPES => rpc::request(&id, &method, &serde_json::from_str::<FunctionsTypesParams<'_>>(params).unwrap()),
                method::FUNCTIONS_CALL => rpc::request(&id, &method, &serde_json::from_str::<FunctionsCallParams<'_>>(params).unwrap()),
                method::FUNCTIONS_WAIT => rpc::request(&id, &method, &serde_json::from_str::<FunctionsWaitParams>(params).unwrap()),
                method::POLICY_EXPLAIN => rpc::request(&id, &method, &serde_json::from_str::<PolicyExplainParams<'_>>(params).unwrap()),
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

/// The same for a result of which the method is known.
fn result_again<T: Serialize + DeserializeOwned>(line: &str) -> Vec<u8> {
    let Message::Response { id, outcome: Ok(result) } = rpc::read(line.as_bytes()).unwrap() else { panic!("no result: {line}") };
    rpc::result(&id, &serde_json::from_str::<T>(result.get()).unwrap())
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
    a_host_call_of_a_vm_is_written_as_specified = "26-host-call-of-a-vm.json";
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
    a_functions_list_is_written_as_specified = "08-functions-list.json";
    a_functions_describe_is_written_as_specified = "10-functions-describe.json";
    a_functions_types_is_written_as_specified = "12-functions-types.json";
    a_functions_call_is_written_as_specified = "14-functions-call.json";
    a_functions_wait_is_written_as_specified = "27-functions-wait.json";
    a_policy_explain_is_written_as_specified = "17-policy-explain.json";
}

#[test]
fn the_results_about_configured_functions_are_written_as_specified() {
    let list = include_str!("golden/09-functions-listed.json");
    assert_eq!(String::from_utf8(result_again::<FunctionsListResult>(list.trim_end())).unwrap(), list);
    let described = include_str!("golden/11-functions-described.json");
    assert_eq!(String::from_utf8(result_again::<FunctionsDescribeResult>(described.trim_end())).unwrap(), described);
    let typed = include_str!("golden/13-functions-typed.json");
    assert_eq!(String::from_utf8(result_again::<FunctionsTypesResult>(typed.trim_end())).unwrap(), typed);
    let changed = include_str!("golden/28-functions-changed.json");
    assert_eq!(String::from_utf8(result_again::<FunctionsWaitResult>(changed.trim_end())).unwrap(), changed);
    for called in [include_str!("golden/15-functions-called.json"), include_str!("golden/16-functions-call-failed.json")] {
        assert_eq!(String::from_utf8(result_again::<FunctionsCallResult>(called.trim_end())).unwrap(), called);
    }
}

#[test]
fn what_policy_says_is_written_as_specified() {
    let explained = include_str!("golden/18-policy-explained.json");
    assert_eq!(String::from_utf8(result_again::<PolicyExplainResult>(explained.trim_end())).unwrap(), explained);
}
