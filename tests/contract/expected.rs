//! Whether what came is what a behaviour expects.

use crate::scripted::Told;
use brig::Error;
use serde_json::{Value, json};

/// Why a behaviour does not hold.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

fn unless(holds: bool, why: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(why().into()) }
}

/// Whether `actual` has these members, and what is below them.
pub(crate) fn has(actual: &Value, wanted: &Value, at: &str) -> Result<(), Fault> {
    match wanted {
        Value::Array(all) => {
            unless(actual.as_array().is_some_and(|found| found.len() == all.len()), || format!("{at} is {actual}, not {wanted}"))?;
            all.iter().enumerate().try_for_each(|(index, one)| has(&actual[index], one, &format!("{at}[{index}]")))
        }
        Value::Object(members) => {
            members.iter().try_for_each(|(name, one)| has(actual.get(name).unwrap_or(&Value::Null), one, &format!("{at}.{name}")))
        }
        _ => equal(actual, wanted, at),
    }
}

fn equal(actual: &Value, wanted: &Value, at: &str) -> Result<(), Fault> {
    // 2 and 2.0 are the same to JSON.
    let same = actual == wanted || (actual.is_number() && wanted.is_number() && actual.as_f64() == wanted.as_f64());
    unless(same, || format!("{at} is {actual:.1000}, not {wanted:.1000}"))
}

/// Whether each part is in the text.
pub(crate) fn contains(text: &str, parts: &Value) -> Result<(), Fault> {
    let missing = parts.as_array().into_iter().flatten().find(|part| part.as_str().is_none_or(|part| !text.contains(part)));
    missing.map_or(Ok(()), |part| Err(format!("{part} is not in {text}").into()))
}

/// Whether the evaluation went as expected; fails where nobody knows how to look.
pub(crate) async fn holds(result: &Value, told: &Told, ids: &[Option<String>], expect: &Value) -> Result<(), Fault> {
    for (member, wanted) in expect.as_object().ok_or("nothing is expected")? {
        match member.as_str() {
            "over" => {
                for name in wanted.as_array().into_iter().flatten() {
                    told.is_over(name.as_str().unwrap_or_default()).await?;
                }
            }
            "sameAs" => {
                let index = usize::try_from(wanted.as_u64().ok_or("sameAs is an index")?)?;
                equal(&result["evaluation"], &json!(ids.get(index).cloned().flatten()), "the evaluation")?;
            }
            _ => look(result, told, member, wanted).map_err(|fault| format!("{fault}\n  in {result:.2000}"))?,
        }
    }
    Ok(())
}

fn look(result: &Value, told: &Told, member: &str, wanted: &Value) -> Result<(), Fault> {
    match member {
        "value" => equal(result.get("value").ok_or("there is no value")?, wanted, "value"),
        "noValue" => unless(result.get("value").is_none(), || "there is a value".to_owned()),
        "length" => {
            let length = result["value"].as_str().map(|text| text.encode_utf16().count());
            equal(&json!(length), wanted, "length")
        }
        "outcome" | "stdout" | "stderr" | "stdoutTruncated" | "stderrTruncated" => equal(&result[member], wanted, member),
        "error" | "calls" | "usage" => has(&result[member], wanted, member),
        "errorText" => contains(&result["error"].to_string(), wanted),
        "layers" => contains(&result["sandbox"]["layers"].to_string(), wanted),
        "warnings" => {
            // How near a limit of time is depends on the machine.
            let codes = result["warnings"].as_array().into_iter().flatten().map(|warning| &warning["code"]);
            equal(&json!(codes.filter(|code| *code != "limit_near").collect::<Vec<_>>()), wanted, member)
        }
        "told" => has(&told.by_listeners(), wanted, member),
        "ran" => each(wanted, |name, count| equal(&json!(told.inputs(name).len()), count, &format!("runs of {name}"))),
        "saw" => each(wanted, |name, inputs| equal(&json!(told.inputs(name)), inputs, &format!("inputs of {name}"))),
        _ => Err(format!("the expectation {member} has no implementation here").into()),
    }
}

fn each(wanted: &Value, mut look: impl FnMut(&str, &Value) -> Result<(), Fault>) -> Result<(), Fault> {
    wanted.as_object().into_iter().flatten().try_for_each(|(name, one)| look(name, one))
}

/// Whether the request was refused as expected.
pub(crate) fn is_refusal(fault: &Error, expect: &Value) -> Result<(), Fault> {
    let Error::Refused(data) = fault else { return Err(format!("not refused by brigd: {fault}").into()) };
    let mut said = json!({"code": data.code, "limit": data.limit, "setting": data.setting});
    said["retryable"] = json!(fault.retryable());
    said["nothingRan"] = json!(fault.nothing_ran());
    for (member, wanted) in expect.as_object().ok_or("a refusal is expected")? {
        match said.get(member) {
            Some(found) => equal(found, wanted, member)?,
            None if member == "message" => contains(&format!("{fault} {}", data.hint.as_deref().unwrap_or_default()), wanted)?,
            None => return Err(format!("the expectation refused.{member} has no implementation here").into()),
        }
    }
    Ok(())
}
