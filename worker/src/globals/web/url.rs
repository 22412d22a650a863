//! URL parsing and setters (WHATWG URL), and form-encoded queries.
//!
//! Works on serialised URLs: a guest's `URL` holds one and every operation starts from it.

use rquickjs::function::Func;
use rquickjs::{Array, Ctx, Object};
use url::{Url, form_urlencoded, quirks};

use super::List;

pub(super) fn define(native: &Object<'_>) -> rquickjs::Result<()> {
    native.set("parseUrl", Func::from(parse))?;
    native.set("urlPart", Func::from(part))?;
    native.set("setUrlPart", Func::from(set_part))?;
    native.set("parseQuery", Func::from(parse_query))?;
    native.set("formatQuery", Func::from(format_query))
}

/// The serialised URL, or nothing when the input is not one.
fn parse(input: String, base: rquickjs::function::Opt<Option<String>>) -> Option<String> {
    let parsed = match base.0.flatten() {
        Some(base) => Url::parse(&base).ok()?.join(&input).ok()?,
        None => Url::parse(&input).ok()?,
    };
    Some(parsed.into())
}

fn part(href: String, name: String) -> String {
    let Ok(url) = Url::parse(&href) else {
        return String::new();
    };
    match name.as_str() {
        "origin" => quirks::origin(&url),
        "protocol" => quirks::protocol(&url).to_owned(),
        "username" => quirks::username(&url).to_owned(),
        "password" => quirks::password(&url).to_owned(),
        "host" => quirks::host(&url).to_owned(),
        "hostname" => quirks::hostname(&url).to_owned(),
        "port" => quirks::port(&url).to_owned(),
        "pathname" => quirks::pathname(&url).to_owned(),
        "search" => quirks::search(&url).to_owned(),
        "hash" => quirks::hash(&url).to_owned(),
        _ => String::new(),
    }
}

/// The URL after a setter ran; as in browsers, a value that does not fit changes nothing.
fn set_part(href: String, name: String, value: String) -> String {
    let Ok(mut url) = Url::parse(&href) else {
        return href;
    };
    let done = match name.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    if done.is_ok() { url.into() } else { href }
}

/// Names and values in turn.
fn parse_query(query: String) -> List<String> {
    let list = form_urlencoded::parse(query.as_bytes()).flat_map(|(name, value)| [name.into_owned(), value.into_owned()]).collect();
    List(list)
}

fn format_query(_ctx: Ctx<'_>, list: Array<'_>) -> rquickjs::Result<String> {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for index in (0..list.len()).step_by(2) {
        let name: String = list.get(index)?;
        let value: String = list.get(index + 1)?;
        out.append_pair(&name, &value);
    }
    Ok(out.finish())
}
