//! The scalar field, a sum of smooth blobs that is generated from a seed, and its blocks.

use crate::filter::words::mixed;

/// Number of blobs in a field.
const BLOBS: u64 = 24;

/// The value of the field at the surface.
pub(super) const LEVEL: f32 = 0.5;

/// A field of size x size x size samples.
#[derive(Debug, Clone)]
pub(super) struct ScalarField {
    pub(super) size: usize,
    blobs: Vec<Blob>,
}

#[derive(Debug, Clone)]
struct Blob {
    center: [f32; 3],
    radius: f32,
}

/// A box of cells in the field. The corners of a cell are eight samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellBlock {
    pub(super) origin: [usize; 3],
    pub(super) cells: [usize; 3],
}

impl CellBlock {
    /// Returns the number of the block's samples along each axis.
    pub(super) fn samples(&self) -> [usize; 3] {
        self.cells.map(|cells| cells + 1)
    }

    pub(super) fn len(&self) -> usize {
        self.samples().iter().product()
    }

    /// Returns the block of all cells of a field with `size` samples along each axis.
    pub(super) fn whole(size: usize) -> Self {
        CellBlock { origin: [0; 3], cells: [size - 1; 3] }
    }

    /// Returns block `n` of a field that is split into blocks of at most `edge` cells along each axis; `None` after
    /// the last one.
    pub(super) fn nth(size: usize, edge: usize, n: usize) -> Option<Self> {
        let along = (size - 1).div_ceil(edge);
        let origin = [n % along, n / along % along, n / along / along].map(|place| place * edge);
        let cells = origin.map(|first| edge.min((size - 1).saturating_sub(first)));
        (n < along.pow(3)).then_some(CellBlock { origin, cells })
    }
}

impl ScalarField {
    pub(super) fn new(size: usize, seed: u64) -> Self {
        // Multiples of 1/1024 are exact, so that no rounding depends on the computation.
        let part = |n: u64| (mixed(seed ^ mixed(n)) % 1024) as f32 / 1024.0;
        let edge = size as f32;
        let blob = |n: u64| Blob {
            center: [0, 1, 2].map(|axis| edge * (0.2 + 0.6 * part(4 * n + axis))),
            radius: edge * (0.1 + 0.15 * part(4 * n + 3)),
        };
        ScalarField { size, blobs: (0..BLOBS).map(blob).collect() }
    }

    /// Returns the samples of a block, x first. The blobs are added in the same order for each sample, so that a
    /// sample is the same in any block.
    pub(super) fn samples(&self, block: &CellBlock) -> Vec<f32> {
        let mut samples = vec![0.0; block.len()];
        self.blobs.iter().for_each(|blob| blob.add(block, &mut samples));
        samples
    }
}

impl Blob {
    /// Adds (1 - (d/r)^2)^2 to each sample within the radius r, where d is the sample's distance from the blob's
    /// center.
    fn add(&self, block: &CellBlock, samples: &mut [f32]) {
        let [nx, ny, nz] = block.samples();
        let reach = |axis: usize, count: usize| {
            let first = (self.center[axis] - self.radius).floor() as usize;
            let last = (self.center[axis] + self.radius).ceil() as usize + 1;
            let within = |at: usize| at.saturating_sub(block.origin[axis]).min(count);
            within(first)..within(last)
        };
        for z in reach(2, nz) {
            for y in reach(1, ny) {
                for x in reach(0, nx) {
                    let at = [x + block.origin[0], y + block.origin[1], z + block.origin[2]];
                    let value = self.value(at);
                    if value > 0.0 {
                        samples[(z * ny + y) * nx + x] += value;
                    }
                }
            }
        }
    }

    fn value(&self, at: [usize; 3]) -> f32 {
        let d = [0, 1, 2].map(|axis| (at[axis] as f32 - self.center[axis]) / self.radius);
        let rest = 1.0 - (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        if rest > 0.0 { rest * rest } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_in_every_block_and_blocks_cover_all_cells() {
        let field = ScalarField::new(20, 7);
        let whole = field.samples(&CellBlock::whole(20));
        let blocks: Vec<CellBlock> = (0..).map_while(|n| CellBlock::nth(20, 8, n)).collect();
        assert_eq!(blocks.len(), 27);
        assert_eq!(
            blocks.iter().map(|block| block.cells.iter().product::<usize>()).sum::<usize>(),
            19_usize.pow(3)
        );
        for block in blocks {
            let [nx, ny, nz] = block.samples();
            let samples = field.samples(&block);
            for (x, y, z) in (0..nx * ny * nz).map(|n| (n % nx, n / nx % ny, n / nx / ny)) {
                let [ox, oy, oz] = block.origin;
                let same = whole[((z + oz) * 20 + y + oy) * 20 + x + ox];
                assert_eq!(samples[(z * ny + y) * nx + x].to_bits(), same.to_bits());
            }
        }
        assert_ne!(whole, ScalarField::new(20, 8).samples(&CellBlock::whole(20)));
        assert!(whole.iter().any(|value| *value > LEVEL) && whole.iter().any(|value| *value < LEVEL));
    }
}
