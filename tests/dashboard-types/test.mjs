import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { judge } from './judge.mjs';

const packaged = readFileSync(new URL('../../packaging/grafana/dashboard.json', import.meta.url), 'utf8');

/** Faults that somebody who edits the file makes: what stands there, and what is put in its place. */
const FAULTS = [
  ['"graphTooltip"', '"grphTooltip"'],
  ['"colorMode": "value"', '"colorMode": "valu"'],
  ['"mode": "multi"', '"mode": "many"'],
  ['"gridPos"', '"gridpos"'],
  ['"refresh": "30s"', '"refresh": 30'],
  ['"type": "stat"', '"type": "sat"'],
  ['"showLegend": true', '"showlegend": true'],
  ['"expr"', '"exp"'],
  ['"unit": "ops"', '"units": "ops"'],
  ['"min": 0', '"min": "0"'],
  ['"sort": 1,', '"sort": 99,'],
  ['"type": "timeseries"', '"type": "stat"'],
];

test('the dashboard is as the types that Grafana publishes have it, and what is not is found', () => {
  const broken = FAULTS.map(([there, instead]) => {
    assert.ok(packaged.includes(there), `the dashboard has no ${there} any more`);
    return packaged.replace(there, instead);
  });
  const [right, ...wrong] = judge([packaged, ...broken]);
  assert.deepEqual(right, []);
  wrong.forEach((said, index) => assert.notDeepEqual(said, [], `${FAULTS[index][1]} is not found`));
});
