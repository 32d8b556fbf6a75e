//! Marching cubes (Lorensen and Cline, SIGGRAPH 1987): computes the triangles of the surface in each cell of a block.

use std::sync::LazyLock;

use super::field::{CellBlock, LEVEL};
use crate::filter::Error;

/// The three corners of a triangle, in samples from the field's origin.
pub(super) type Triangle = [[f32; 3]; 3];

/// The two corners of each edge of a cell. Bits 0, 1 and 2 of a corner's number are its x, y and z. The lower corner
/// is first, so that all cells that share an edge compute the same point on it.
const EDGES: [[u8; 2]; 12] =
    [[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [1, 3], [4, 6], [5, 7], [0, 4], [1, 5], [2, 6], [3, 7]];

/// The corners of each face, counterclockwise as seen from outside the cell.
const FACES: [[u8; 4]; 6] =
    [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]];

/// The triangles for each set of corners inside the surface. A triangle is three indices into `EDGES`.
static CASES: LazyLock<Vec<Vec<[u8; 3]>>> = LazyLock::new(|| (0..=255).map(triangles).collect());

/// Returns the triangles for one of the 256 sets of corners inside the surface. They follow from one rule: on each
/// face, every run of inside corners is cut off from the other runs. Two cells have the same corners on the face
/// between them, so the surface has no cracks there.
fn triangles(inside: u8) -> Vec<[u8; 3]> {
    let is_in = |corner: u8| inside >> corner & 1 == 1;
    // On a face, the surface leads from the beginning of a run of inside corners to its end.
    let mut next = [None; 12];
    for face in FACES {
        for begins in (0..4).filter(|n| !is_in(face[*n]) && is_in(face[(n + 1) % 4])) {
            let ends = (begins + 1..begins + 4).find(|n| !is_in(face[(n + 1) % 4])).unwrap_or(begins);
            let edge = |n: usize| edge(face[n % 4], face[(n + 1) % 4]);
            next[edge(begins)] = Some(edge(ends));
        }
    }
    let mut found = Vec::new();
    for first in 0..12 {
        let Some(mut second) = next[first].take() else { continue };
        while let Some(third) = next[second].take().filter(|third| *third != first) {
            found.push([first as u8, second as u8, third as u8]);
            second = third;
        }
    }
    found
}

fn edge(a: u8, b: u8) -> usize {
    EDGES
        .iter()
        .position(|edge| *edge == [a.min(b), a.max(b)])
        .expect("two corners of a face in turn have an edge")
}

/// Calls `each` with every triangle of the block's surface, in an order that depends only on the block.
pub(super) fn surface(
    block: &CellBlock,
    samples: &[f32],
    mut each: impl FnMut(Triangle) -> Result<(), Error>,
) -> Result<(), Error> {
    let [nx, ny, _] = block.samples();
    let [cx, cy, cz] = block.cells;
    let steps: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7]
        .map(|corner: usize| (corner & 1) + (corner >> 1 & 1) * nx + (corner >> 2) * nx * ny);
    for (z, y) in (0..cz).flat_map(|z| (0..cy).map(move |y| (z, y))) {
        let row = (z * ny + y) * nx;
        for x in 0..cx {
            let values = steps.map(|step| samples[row + x + step]);
            let inside = (0..8).fold(0, |set, corner| set | usize::from(values[corner] > LEVEL) << corner);
            let at = [x + block.origin[0], y + block.origin[1], z + block.origin[2]];
            for edges in &CASES[inside] {
                each(edges.map(|edge| crossing(at, &values, EDGES[usize::from(edge)])))?;
            }
        }
    }
    Ok(())
}

/// Returns the point where the surface crosses an edge (from corner `low` to corner `high`) of the cell at `at`.
fn crossing(at: [usize; 3], values: &[f32; 8], [low, high]: [u8; 2]) -> [f32; 3] {
    let (a, b) = (values[usize::from(low)], values[usize::from(high)]);
    let part = (LEVEL - a) / (b - a);
    [0, 1, 2].map(|axis| {
        let first = at[axis] as f32 + f32::from(low >> axis & 1);
        if (low ^ high) >> axis & 1 == 1 { first + part } else { first }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::field::ScalarField;
    use super::*;

    #[test]
    fn every_case_uses_exactly_the_edges_that_the_surface_crosses() {
        for inside in 0..=255_u8 {
            let crossed = |[a, b]: [u8; 2]| (inside >> a & 1 == 1) != (inside >> b & 1 == 1);
            let used = |n: u8| CASES[usize::from(inside)].iter().flatten().any(|edge| *edge == n);
            for (n, edge) in (0..).zip(EDGES) {
                assert_eq!(crossed(edge), used(n), "case {inside}, edge {n}");
            }
        }
        let most = CASES.iter().map(Vec::len).max();
        assert_eq!((CASES[1].len(), CASES[3].len(), CASES[15].len(), CASES[0x69].len()), (1, 2, 2, 4));
        assert!(most <= Some(5), "{most:?}");
    }

    /// Checks that the surface is closed: its triangles pass each edge once in each direction.
    #[test]
    fn the_surface_has_no_cracks() {
        let block = CellBlock::whole(24);
        let samples = ScalarField::new(24, 3).samples(&block);
        let mut passes: HashMap<[[u32; 3]; 2], i32> = HashMap::new();
        let mut count = 0;
        surface(&block, &samples, |triangle| {
            count += 1;
            let corners = triangle.map(|corner| corner.map(f32::to_bits));
            for n in 0..3 {
                let (a, b) = (corners[n], corners[(n + 1) % 3]);
                *passes.entry([a.min(b), a.max(b)]).or_default() += if a < b { 1 } else { -1 };
            }
            Ok(())
        })
        .unwrap();
        assert!(count > 500, "{count}");
        assert!(passes.values().all(|sum| *sum == 0));
    }
}
