//! Owns the names that programs reach for and that are not there on purpose, each with
//! why, and with what does the same here where something does.

const NETWORK: &str = "there is no network";
const NO_PACKAGES: &str = "there are no packages";
const PACKAGES_OR_NETWORK: &str = "there is no network and there are no packages";
const FILES: &str = "there are no files";
const PROCESSES: &str = "no process can be started";
const STREAMS: &str = "there are no streams; use arrays, generators or async generators";
const BYTES: &str = "there are no files or forms; use strings and Uint8Array";
const BROWSER: &str = "this is no browser";
const ASK: &str = "nobody can be asked; take what is needed from inputs, and tell by console.log";
const KEPT: &str = "this is no browser; nothing is kept";
const MESSAGES: &str = "there is one thread and nobody to send messages to; call functions, and use Promise.all";
const TESTS: &str = "there is no test runner; compare yourself and throw an Error";
const COMMON_JS: &str = "a program is no CommonJS module; its value is its last expression, or what it returns or exports as default";
const SCRIPT_INPUT: &str = "a program has no arguments; what it is given is the global inputs";
const GLOBAL: &str = "use globalThis, or the name itself";
const DATES: &str = "there are no packages; use Date and Intl.DateTimeFormat";
const SHARED: &str = "there is no shared memory";
const WAIT: &str = "write await new Promise((resolve) => setTimeout(resolve, ms))";
const PRINT: &str = "use console.log";

/// Name, and why it is not there.
const ABSENT: &[(&str, &str)] = &[
    ("fetch", NETWORK),
    ("XMLHttpRequest", NETWORK),
    ("WebSocket", NETWORK),
    ("EventSource", NETWORK),
    ("Request", NETWORK),
    ("Response", NETWORK),
    ("Headers", NETWORK),
    ("http", NETWORK),
    ("https", NETWORK),
    ("net", NETWORK),
    ("dns", NETWORK),
    ("axios", PACKAGES_OR_NETWORK),
    ("got", PACKAGES_OR_NETWORK),
    ("superagent", PACKAGES_OR_NETWORK),
    ("require", "there are no packages to require"),
    ("import", "there are no modules to import"),
    ("module", COMMON_JS),
    ("exports", COMMON_JS),
    ("process", "there is no process, environment or argument list; use inputs for values and console.log for text"),
    ("Deno", "this is not Deno"),
    ("Bun", "this is not Bun"),
    ("Buffer", "this is not Node.js; use Uint8Array, TextEncoder, atob and btoa"),
    ("global", GLOBAL),
    ("window", "this is no browser; use globalThis"),
    ("self", GLOBAL),
    ("fs", FILES),
    ("__dirname", FILES),
    ("__filename", FILES),
    ("path", "there are no files and no packages"),
    ("os", "there is no operating system to ask"),
    ("std", "there is no std module"),
    ("util", "there are no packages; console.log shows nested values, JSON.stringify gives text"),
    ("exec", PROCESSES),
    ("execSync", PROCESSES),
    ("spawn", PROCESSES),
    ("child_process", PROCESSES),
    ("EventEmitter", "there are no packages; use EventTarget"),
    ("readline", ASK),
    ("prompt", ASK),
    ("confirm", ASK),
    ("alert", PRINT),
    ("print", PRINT),
    ("echo", PRINT),
    ("ReadableStream", STREAMS),
    ("WritableStream", STREAMS),
    ("TransformStream", STREAMS),
    ("CompressionStream", STREAMS),
    ("DecompressionStream", STREAMS),
    ("TextDecoderStream", STREAMS),
    ("TextEncoderStream", STREAMS),
    ("Blob", BYTES),
    ("File", BYTES),
    ("FileReader", BYTES),
    ("FormData", BYTES),
    ("document", BROWSER),
    ("navigator", BROWSER),
    ("location", BROWSER),
    ("history", BROWSER),
    ("screen", BROWSER),
    ("Image", BROWSER),
    ("HTMLElement", BROWSER),
    ("DOMParser", "this is no browser; take markup apart with regular expressions"),
    ("requestAnimationFrame", "this is no browser; use setTimeout"),
    ("requestIdleCallback", "this is no browser; use setTimeout"),
    ("localStorage", KEPT),
    ("sessionStorage", KEPT),
    ("indexedDB", KEPT),
    ("caches", KEPT),
    ("URLPattern", "there are no URL patterns; use new URL(text).pathname and a regular expression"),
    ("reportError", "use console.error"),
    ("Worker", MESSAGES),
    ("SharedWorker", MESSAGES),
    ("MessageChannel", MESSAGES),
    ("BroadcastChannel", MESSAGES),
    ("postMessage", MESSAGES),
    ("WebAssembly", "there is no WebAssembly"),
    ("SharedArrayBuffer", SHARED),
    ("Atomics", SHARED),
    ("Temporal", "this engine has no Temporal; use Date and Intl.DateTimeFormat"),
    ("_", "there are no packages; use the methods of arrays and objects, such as Object.groupBy"),
    ("lodash", "there are no packages; use the methods of arrays and objects, such as Object.groupBy"),
    ("$", BROWSER),
    ("jQuery", BROWSER),
    ("React", NO_PACKAGES),
    ("cheerio", NO_PACKAGES),
    ("moment", DATES),
    ("dayjs", DATES),
    ("luxon", DATES),
    ("z", "there are no packages; check values yourself and throw an Error"),
    ("uuid", "there are no packages; use crypto.randomUUID()"),
    ("uuidv4", "there are no packages; use crypto.randomUUID()"),
    ("nanoid", "there are no packages; use crypto.randomUUID()"),
    ("chalk", NO_PACKAGES),
    ("describe", TESTS),
    ("it", TESTS),
    ("test", TESTS),
    ("expect", TESTS),
    ("assert", TESTS),
    ("jest", TESTS),
    ("sleep", WAIT),
    ("delay", WAIT),
    ("wait", WAIT),
    ("scheduler", WAIT),
    ("arguments", SCRIPT_INPUT),
    ("argv", SCRIPT_INPUT),
    ("args", SCRIPT_INPUT),
    ("env", SCRIPT_INPUT),
    ("event", SCRIPT_INPUT),
    ("None", "this is not Python; write null"),
    ("True", "this is not Python; write true"),
    ("False", "this is not Python; write false"),
    ("len", "this is not Python; use .length"),
    ("str", "this is not Python; use String"),
];

/// Global objects of which a part is there, with that part.
const PARTLY: &[(&str, &str)] = &[
    ("crypto", "crypto has randomUUID, getRandomValues and subtle.digest"),
    ("crypto.subtle", "crypto.subtle has digest (SHA-1, SHA-256, SHA-384, SHA-512) and nothing else"),
    (
        "Intl",
        "Intl has NumberFormat, DateTimeFormat, PluralRules, RelativeTimeFormat, ListFormat, DisplayNames, Collator, getCanonicalLocales and supportedValuesOf",
    ),
    ("performance", "performance has now, mark, measure and their entries"),
];

/// Why a global of this name is not there.
pub(super) fn why(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(absent, _)| *absent == name).map(|(_, why)| *why)
}

/// What there is of an object that has less than elsewhere.
pub(super) fn part(owner: &str) -> Option<&'static str> {
    PARTLY.iter().find(|(partly, _)| *partly == owner).map(|(_, part)| *part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_listed_once() {
        for (index, (name, _)) in ABSENT.iter().enumerate() {
            assert!(ABSENT.iter().skip(index + 1).all(|(other, _)| other != name), "{name}");
        }
    }
}
