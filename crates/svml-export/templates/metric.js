
/** The row as the metric maps it. */
export function transform(row) {
  return mapped(map, rank, standardised(row));
}
