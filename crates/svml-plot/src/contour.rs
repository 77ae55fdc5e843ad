//! Lines of equal value on a grid, by marching squares, joined into chains so that they can be dashed.

use std::collections::HashMap;

/// The chains along which the values of a grid are `level`, in units of the grid: (column, row).
/// `values` holds row after row of `columns` values.
pub(crate) fn contour(values: &[f64], columns: usize, level: f64) -> Vec<Vec<(f64, f64)>> {
    let rows = values.len() / columns.max(1);
    let value = |c: usize, r: usize| values[r * columns + c] - level;
    let above = |c: usize, r: usize| value(c, r) > 0.0;
    // A crossing lies on an edge of the grid: from (c, r) to the right (false) or upwards (true).
    type Edge = (usize, usize, bool);
    let place = |(c, r, up): Edge| {
        let (a, b) = (value(c, r), if up { value(c, r + 1) } else { value(c + 1, r) });
        let share = a / (a - b);
        if up { (c as f64, r as f64 + share) } else { (c as f64 + share, r as f64) }
    };
    let mut segments: Vec<(Edge, Edge)> = Vec::new();
    for r in 0..rows.saturating_sub(1) {
        for c in 0..columns.saturating_sub(1) {
            let (bottom, top) = ((c, r, false), (c, r + 1, false));
            let (left, right) = ((c, r, true), (c + 1, r, true));
            let corners = [above(c, r), above(c + 1, r), above(c + 1, r + 1), above(c, r + 1)];
            match corners {
                [a, b, d, e] if a == b && b == d && d == e => {}
                [a, b, d, e] if a == d && b == e => {
                    // A saddle: its middle decides which corners belong together.
                    let middle =
                        value(c, r) + value(c + 1, r) + value(c, r + 1) + value(c + 1, r + 1);
                    if a == (middle > 0.0) {
                        segments.extend([(bottom, right), (left, top)]);
                    } else {
                        segments.extend([(bottom, left), (right, top)]);
                    }
                }
                [a, b, d, e] => {
                    let mut crossed = Vec::with_capacity(2);
                    for (differs, edge) in
                        [(a != b, bottom), (b != d, right), (d != e, top), (e != a, left)]
                    {
                        if differs {
                            crossed.push(edge);
                        }
                    }
                    if let [from, to] = crossed[..] {
                        segments.push((from, to));
                    }
                }
            }
        }
    }
    join(&segments).into_iter().map(|chain| chain.into_iter().map(place).collect()).collect()
}

/// Joins segments at their common ends.
fn join<E: Copy + Eq + std::hash::Hash>(segments: &[(E, E)]) -> Vec<Vec<E>> {
    let mut at: HashMap<E, Vec<usize>> = HashMap::new();
    for (k, (a, b)) in segments.iter().enumerate() {
        at.entry(*a).or_default().push(k);
        at.entry(*b).or_default().push(k);
    }
    let mut used = vec![false; segments.len()];
    let mut follow = |start: E, first: usize| {
        let (mut chain, mut end, mut next) = (vec![start], start, Some(first));
        while let Some(k) = next {
            used[k] = true;
            end = if segments[k].0 == end { segments[k].1 } else { segments[k].0 };
            chain.push(end);
            next = at[&end].iter().copied().find(|&k| !used[k]);
        }
        chain
    };
    let mut chains = Vec::new();
    // Open chains first, from their ends; what is left is closed.
    let ends: Vec<(E, usize)> = segments
        .iter()
        .enumerate()
        .flat_map(|(k, (a, b))| [(*a, k), (*b, k)])
        .filter(|(end, _)| at[end].len() == 1)
        .collect();
    let mut begun: std::collections::HashSet<E> = std::collections::HashSet::new();
    for (end, k) in ends {
        if begun.contains(&end) {
            continue;
        }
        let chain = follow(end, k);
        begun.extend([chain[0], chain[chain.len() - 1]]);
        chains.push(chain);
    }
    let covered: std::collections::HashSet<E> = chains.iter().flatten().copied().collect();
    let mut seen = covered;
    for (k, (a, _)) in segments.iter().enumerate() {
        if !seen.contains(a) {
            let chain = follow(*a, k);
            seen.extend(chain.iter().copied());
            chains.push(chain);
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_one_closed_chain() {
        let n = 41;
        let values: Vec<f64> = (0..n * n)
            .map(|k| ((k % n) as f64 - 20.0).powi(2) + ((k / n) as f64 - 20.0).powi(2))
            .collect();
        let chains = contour(&values, n, 100.0);
        assert_eq!(chains.len(), 1);
        assert_eq!(chains[0].first(), chains[0].last());
        for (x, y) in &chains[0] {
            assert!(((x - 20.0).hypot(y - 20.0) - 10.0).abs() < 0.1);
        }
    }

    #[test]
    fn a_straight_line_is_one_open_chain() {
        let values: Vec<f64> = (0..30).map(|k| (k % 6) as f64).collect();
        let chains = contour(&values, 6, 2.25);
        assert_eq!(chains.len(), 1);
        assert_eq!(chains[0].len(), 5);
        assert!(chains[0].iter().all(|(x, _)| (x - 2.25).abs() < 1e-12));
    }

    #[test]
    fn a_flat_grid_and_a_tiny_one_have_none() {
        assert!(contour(&[1.0; 12], 4, 1.0).is_empty());
        assert!(contour(&[1.0], 1, 0.0).is_empty());
        assert!(contour(&[], 0, 0.0).is_empty());
    }
}
