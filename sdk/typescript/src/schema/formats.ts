/**
 * Formats of strings and numbers, by the names that Zod gives them.
 *
 * Owns which of them brigd judges in the same way. One that it would judge otherwise is
 * left to its pattern, or to Zod on the host.
 */

import type { Draft } from "./walk.js";

const FORMATS: Readonly<Record<string, string>> = {
  email: "email",
  url: "uri",
  uuid: "uuid",
  guid: "uuid",
  uuidv4: "uuid",
  uuidv6: "uuid",
  uuidv7: "uuid",
  date: "date",
  duration: "duration",
  ipv4: "ipv4",
  ipv6: "ipv6",
  hostname: "hostname",
};

/**
 * The format of JSON Schema with this meaning, if there is one. A date and time without
 * an offset or without seconds is not RFC 3339's, nor is a time without an offset.
 */
export function stringFormat(name: string, options: { local: boolean; precision: unknown }): string | undefined {
  if (name === "datetime") return options.local || options.precision === -1 ? undefined : "date-time";
  return FORMATS[name];
}

/** What a format of numbers adds. */
export function numberFormat(name: string): Draft {
  switch (name) {
    case "int32":
      return { type: "integer", minimum: -2_147_483_648, maximum: 2_147_483_647 };
    case "uint32":
      return { type: "integer", minimum: 0, maximum: 4_294_967_295 };
    case "float32":
    case "float64":
      return {};
    default:
      return { type: "integer" };
  }
}

/** Names of an object that are numbers. */
export const NUMBER_NAMES: Readonly<Record<string, Draft>> = {
  number: { type: "string", pattern: "^-?\\d+(\\.\\d+)?([eE][+-]?\\d+)?$" },
};
