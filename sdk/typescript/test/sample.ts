/** Values of a JSON Schema, and values that are wrong in one way that a type can tell. */

type Schema = { readonly [keyword: string]: any };

/** A value that should be valid; `full` has every property. Whether it is, brigd says. */
export function valid(schema: Schema | boolean | undefined, full: boolean, root: Schema, depth = 0): unknown {
  if (schema === undefined || typeof schema === "boolean" || depth > 6) return "x";
  if (typeof schema["$ref"] === "string") return valid(resolve(root, schema["$ref"]), full && depth < 3, root, depth + 1);
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const alternatives = (schema["anyOf"] ?? schema["oneOf"]) as Schema[] | undefined;
  if (alternatives !== undefined && schema["properties"] === undefined) return valid(alternatives[0], full, root, depth + 1);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : (schema["type"] ?? (schema["properties"] ? "object" : undefined));
  switch (type) {
    case "object":
      return object(schema, full, root, depth);
    case "array": {
      if (Array.isArray(schema["prefixItems"])) return schema["prefixItems"].map((item: Schema) => valid(item, full, root, depth + 1));
      const count = Math.max(schema["minItems"] ?? 0, full ? 1 : 0);
      return Array.from({ length: count }, () => valid(schema["items"], full, root, depth + 1));
    }
    case "integer":
    case "number":
      return Math.max(schema["minimum"] ?? 0, (schema["exclusiveMinimum"] ?? -1) + 1, schema["maximum"] !== undefined && schema["maximum"] < 0 ? schema["maximum"] : 0);
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return text(schema);
    default:
      return "x";
  }
}

function text(schema: Schema): string {
  const known: { [format: string]: string } = {
    "date-time": "2026-01-02T03:04:05Z",
    date: "2026-01-02",
    uri: "https://example.com/",
    email: "a@example.com",
    uuid: "7d9f3e64-6c6b-4b7e-9a7e-2f6f6c1f5a11",
    ipv4: "192.0.2.1",
  };
  const found = known[schema["format"]] ?? "x";
  return found.padEnd(schema["minLength"] ?? 0, "x");
}

function object(schema: Schema, full: boolean, root: Schema, depth: number): object {
  const required = new Set<string>(schema["required"] ?? []);
  const entries = Object.entries((schema["properties"] ?? {}) as { [name: string]: Schema });
  const some = entries.filter(([name]) => required.has(name) || (full && depth < 4));
  return Object.fromEntries(some.map(([name, member]) => [name, valid(member, full, root, depth + 1)]));
}

function resolve(root: Schema, reference: string): Schema {
  const path = reference.replace(/^#\/?/, "").split("/").filter((part) => part !== "");
  return path.reduce((at: any, part) => at?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")], root) ?? {};
}

/** Values made from a valid one that are each wrong in one way. */
export function wrong(schema: Schema, good: unknown): unknown[] {
  if (typeof good !== "object" || good === null || Array.isArray(good)) return [];
  const all: unknown[] = [];
  for (const name of schema["required"] ?? []) {
    const { [name]: _gone, ...rest } = good as { [name: string]: unknown };
    all.push(rest);
  }
  for (const [name, member] of Object.entries((schema["properties"] ?? {}) as { [name: string]: Schema })) {
    const value = (good as { [name: string]: unknown })[name];
    if (value === undefined) continue;
    all.push({ ...good, [name]: typeof value === "object" ? 5 : { odd: [] } });
    if (Array.isArray(member["enum"])) all.push({ ...good, [name]: "no such value" });
  }
  return all.slice(0, 8);
}
