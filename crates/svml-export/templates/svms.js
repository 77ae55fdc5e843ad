
/** The kernel of a member between a row and a support vector: exp(-|z - z_j|^2), exp(-|z - z_j|) or exp(-sum |z - z_j|). */
function kernelOf(member, z, j) {
  const { kernel, points, rank, map } = member;
  const width = z.length;
  let sum = 0;
  for (let k = 0; k < width; k++) {
    const point = points[j * width + k];
    const difference = z[k] - (rank === 0 ? map[k] * point : point);
    sum += kernel === "laplacian" ? Math.abs(difference) : difference * difference;
  }
  return Math.exp(kernel === "exponential" ? -Math.sqrt(sum) : -sum);
}

/** The outputs of the SVMs of all pairs of classes, (0, 1), (0, 2), .., (1, 2), ..: the mean of the members. */
function outputs(u) {
  const count = classes.length;
  const total = counts.reduce((sum, size) => sum + size, 0);
  const h = new Float64Array(count * (count - 1) / 2);
  for (const member of members) {
    const z = mapped(member.map, member.rank, u);
    member.bias.forEach((bias, p) => { h[p] += member.weight * bias; });
    let j = 0;
    for (let c = 0; c < count; c++) {
      for (let i = 0; i < counts[c]; i++, j++) {
        const value = member.weight * kernelOf(member, z, j);
        for (let slot = 0; slot < count - 1; slot++) {
          const other = slot < c ? slot : slot + 1;
          const [first, second] = c < other ? [c, other] : [other, c];
          const p = first * (2 * count - first - 1) / 2 + second - first - 1;
          h[p] += value * member.beta[slot * total + j];
        }
      }
    }
  }
  return h;
}

/** One value for each class, of which the largest decides. */
function valuesOf(row) {
  const h = outputs(standardised(row));
  if (classes.length === 2) return [0, h[0]];
  const votes = new Array(classes.length).fill(0);
  const sums = new Array(classes.length).fill(0);
  let p = 0;
  for (let i = 0; i < classes.length; i++) {
    for (let j = i + 1; j < classes.length; j++, p++) {
      votes[h[p] > 0 ? j : i] += 1;
      sums[i] -= h[p];
      sums[j] += h[p];
    }
  }
  return votes.map((vote, i) => vote + sums[i] / (3 * (Math.abs(sums[i]) + 1)));
}

function placeOf(values) {
  return values.reduce((best, value, k) => (value > values[best] ? k : best), 0);
}

/** The decision value of a row of two classes, positive for the second; of more classes an array with one for each. */
export function decision(row) {
  const values = valuesOf(row);
  return classes.length === 2 ? values[1] : values;
}

/** The label of the class of a row: a text of `classes`. */
export function predict(row) {
  return classes[placeOf(valuesOf(row))];
}

/** The probabilities of the classes, in the order of `classes`. */
export function probabilities(row) {
  if (temperature === null) throw new Error("the model was made before there were probabilities; train it again");
  const values = valuesOf(row);
  const best = placeOf(values);
  const logits = values.map((value, k) => value / temperature - (logWeights === null ? 0 : logWeights[k]));
  const top = Math.max(...logits);
  const p = logits.map((value) => Math.exp(value - top));
  const total = p.reduce((sum, value) => sum + value, 0);
  const shares = p.map((value) => value / total);
  // Different values may round to the same probability; the predicted class is the most probable one even so.
  const most = Math.max(...shares);
  if (logWeights === null && shares.indexOf(most) !== best) shares[best] = most * (1 + Number.EPSILON);
  return shares;
}
