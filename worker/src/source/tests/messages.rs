//! What models put around a program, and odd texts.

use super::*;

#[test]
fn what_models_put_around_a_program_is_taken_away() {
    table(&[
        ("```js\nreturn 1\n```", "1"),
        ("```javascript\r\nconst r = 1;\r\nreturn r;\r\n```\r\n", "1"),
        ("```\nreturn 1\n```  ", "1"),
        ("~~~ts\nconst n: number = 1;\nreturn n;\n~~~", "1"),
        ("````js\nreturn 1\n````", "1"),
        ("```JavaScript title=\"a.js\"\nreturn 1\n```", "1"),
        ("```{js}\nreturn 1\n```", "1"),
        ("  ```js\n  return 1\n  ```", "1"),
        ("Here is the program:\n\n```js\nreturn 1;\n```\n\nIt returns the name.", "1"),
        ("Program:\n```js\nitems.get({ id: 1 })\n```", "{\"id\":1,\"name\":\"one\"}"),
        ("Sure!\n```js\n1 + 1\n```", "2"),
        ("<think>I should call items.get</think>\n```typescript\nreturn 'x' as string;\n```", "\"x\""),
        ("<think>\n```js\nreturn 0\n```\n</think>\n```js\nreturn 1\n```", "1"),
        ("Hm.\n<think>\n```js\nreturn 0\n```\n</think>\n```js\nreturn 1\n```", "1"),
        ("<think>first</think>return 1", "1"),
        ("<thinking>first</thinking>\n1 + 1", "2"),
        ("I should add.\n</think>\n1 + 1", "2"),
        ("<code>return 1</code>", "1"),
        ("<answer>\n```js\nreturn 1\n```\n</answer>", "1"),
        ("\u{feff}```tsx\nreturn 1;\n```", "1"),
        ("\u{feff}return 1", "1"),
        ("```js\nreturn 1", "1"),
        ("```js\nreturn 1```", "1"),
        ("```js return 1```", "1"),
        ("const a = 1;\nreturn a;\n```", "1"),
        ("```js\nconst a = 1;\n```\nand then\n```js\nreturn a + 1\n```", "2"),
        ("```bash\nnpm install\n```\n```js\nreturn 1\n```\n```json\n{\"a\": 1}\n```", "1"),
        ("```js\nreturn 41 + 1\n```\nOutput:\n```\n42\n```", "42"),
        ("```\n1 + 1\n```\nOutput:\n```\n2\n```", "2"),
        ("```js\nasync () => 5\n```", "5"),
        ("```js\n{ a: 1 }\n```", "{\"a\":1}"),
        ("```js\nexport default 5\n```", "5"),
        // Not a fence of the message.
        ("const md = '```js\\nx\\n```'; md.length", "11"),
        ("const md = `\n\\`\\`\\`js\nx\n\\`\\`\\`\n`; md.length", "13"),
        ("const md = `\n~~~js\nx\n~~~\n`; md.length", "13"),
        ("/*\n```js\nreturn 0\n```\n*/\nreturn 1", "1"),
        ("const md = 'a\\\n```js\\\nb'; md", "\"a```jsb\""),
        ("```js\nconst md = `\n~~~\n\\`\\`\\`\n`; md.length\n```", "9"),
    ]);
}

#[test]
fn odd_texts_are_read_as_the_language_says() {
    table(&[
        ("", "undefined"),
        ("   \n\t ", "undefined"),
        ("// nothing", "undefined"),
        ("/* nothing */", "undefined"),
        (";", "undefined"),
        (";;;", "undefined"),
        ("```js\n```", "undefined"),
        ("#!/usr/bin/env node\n1 + 1", "2"),
        ("#!/usr/bin/env node\nreturn 1", "1"),
        ("1 <!-- two\n--> three\n+ 1", "2"),
        ("const a = 1;\n<!-- two\na", "1"),
        ("const a = 1;\r\na\r\n", "1"),
        ("const a = 1;\ra\r", "1"),
        ("const a = 1;\u{2028}a", "1"),
        ("with ({ a: 1 }) a", "1"),
        ("var a = 010; a", "8"),
        ("'use strict'", "\"use strict\""),
        ("debugger; 1", "1"),
        ("let await_ = 1; await_", "1"),
        ("return new.target", "undefined"),
    ]);
}
