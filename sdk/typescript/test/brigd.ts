/** The real brigd, which the tests that need it must find. */
import { accessSync, constants } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Path of brigd, with brig-worker beside it. Tests fail, and are never skipped, without.
 */
export function brigd(): string {
  const path = process.env["BRIGD"];
  if (path === undefined || path === "") {
    throw new Error("BRIGD must name the brigd to test against: build it with cargo, or run tests/run");
  }
  accessSync(path, constants.X_OK);
  accessSync(process.env["BRIG_WORKER"] ?? join(dirname(path), "brig-worker"), constants.X_OK);
  return path;
}
