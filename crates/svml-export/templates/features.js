
/** Texts that stand for a missing value, in upper or lower case. */
const MISSING = ["", "?", "na", "n/a", "nan", "+nan", "-nan", "null", "none"];
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;

function isMissing(cell) {
  return cell === null || cell === undefined || Number.isNaN(cell) ||
    (typeof cell === "string" && MISSING.includes(cell.trim().toLowerCase()));
}

function numberOf(cell, name) {
  if (typeof cell === "number") return cell;
  if (typeof cell === "string" && NUMBER.test(cell.trim())) return Number(cell.trim());
  throw new Error(`column ${JSON.stringify(name)}: ${JSON.stringify(cell)} is not a number`);
}

/** The place of a text among the levels of a category; truth values are the same in upper and lower case. */
function levelOf(cell, levels) {
  const text = String(cell).trim();
  const exact = levels.indexOf(text);
  if (exact >= 0 || !["true", "false"].includes(text.toLowerCase())) return exact;
  return levels.findIndex((level) => level.toLowerCase() === text.toLowerCase());
}

/**
 * A row by the names of its columns as an array of encoded features: a number column is one feature, a category one for
 * each level or its code. Null and the like are missing. Columns that the model does not know are ignored.
 */
export function encode(row) {
  const encoded = [];
  for (const { name, kind, levels } of columns) {
    if (kind === "ignored") continue;
    if (!Object.prototype.hasOwnProperty.call(row, name)) {
      throw new Error(`the row has no column ${JSON.stringify(name)}`);
    }
    const cell = row[name];
    const missing = isMissing(cell);
    if (kind === "number") {
      encoded.push(missing ? NaN : numberOf(cell, name));
      continue;
    }
    const level = missing ? -1 : levelOf(cell, levels);
    if (kind === "onehot") {
      // A level that training did not have is 0 everywhere.
      for (let k = 0; k < levels.length; k++) encoded.push(missing ? NaN : Number(k === level));
    } else if (level < 0 && !missing && fill === null) {
      throw new Error(`column ${JSON.stringify(name)}: ${JSON.stringify(String(cell))} did not occur in training`);
    } else {
      encoded.push(level < 0 ? NaN : level);
    }
  }
  return encoded;
}

/** Fills missing values and standardises. */
function standardised(row) {
  const x = Array.isArray(row) || ArrayBuffer.isView(row) ? row : encode(row);
  if (x.length !== features.length) {
    throw new Error(`the row has ${x.length} values where ${features.length} are needed`);
  }
  const u = new Float64Array(features.length);
  for (let k = 0; k < u.length; k++) {
    let value = x[k];
    if (value === null || value === undefined || Number.isNaN(value)) {
      if (fill === null) throw new Error(`feature ${JSON.stringify(features[k])}: the value is missing`);
      value = fill[k];
    }
    if (typeof value !== "number" || !(Math.abs(value) <= 1e300)) {
      throw new Error(`feature ${JSON.stringify(features[k])}: ${value} is not a number within +-1e300`);
    }
    // A feature that was constant in training is left out.
    u[k] = scale[k] > 0 ? Math.min(Math.max((value - mean[k]) / scale[k], -1e70), 1e70) : 0;
  }
  return u;
}

/** L u, for L as its diagonal or row after row. */
function mapped(map, rank, u) {
  if (rank === 0) return u.map((value, k) => map[k] * value);
  const z = new Float64Array(rank);
  for (let i = 0; i < rank; i++) {
    for (let k = 0; k < u.length; k++) z[i] += map[i * u.length + k] * u[k];
  }
  return z;
}
