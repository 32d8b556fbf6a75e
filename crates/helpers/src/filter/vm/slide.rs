//! The slide: a picture of grey tissue with cells, made from a seed by integer arithmetic.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::filter::words::mixed;

/// Distance between the points from which the tissue's grey values are interpolated, in pixels.
const LATTICE: u32 = 64;

/// Edge of the square around one cell, in pixels.
const CELL: u32 = 48;

/// A rectangle of the slide's pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlideArea {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) wide: u32,
    pub(super) high: u32,
}

impl SlideArea {
    pub(super) fn pixels(&self) -> usize {
        self.wide as usize * self.high as usize
    }

    /// Returns the intersection of two areas, if there is one.
    pub(super) fn common(&self, other: &SlideArea) -> Option<SlideArea> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let right = (self.x + self.wide).min(other.x + other.wide);
        let bottom = (self.y + self.high).min(other.y + other.high);
        (right > x && bottom > y).then(|| SlideArea { x, y, wide: right - x, high: bottom - y })
    }

    /// Returns chunk `n` of a slide of `size` x `size` pixels; `None` after the last one.
    pub(super) fn chunk(size: u32, edge: u32, n: u32) -> Option<SlideArea> {
        let along = size.div_ceil(edge);
        // `n` may be any number, because a peer may have sent it.
        let (x, y) = (n % along * edge, (n / along).checked_mul(edge)?);
        (y < size).then(|| SlideArea { x, y, wide: edge.min(size - x), high: edge.min(size - y) })
    }

    /// Returns the place of each of the area's pixels on the slide, row by row.
    pub(super) fn places(self) -> impl Iterator<Item = (u32, u32)> {
        (self.y..self.y + self.high).flat_map(move |y| (self.x..self.x + self.wide).map(move |x| (x, y)))
    }
}

/// Returns the grey value of one pixel.
fn grey(seed: u64, x: u32, y: u32) -> u8 {
    let random =
        |kind: u64, x: u32, y: u32| mixed(seed ^ mixed(kind << 60 | u64::from(x) << 30 | u64::from(y)));
    // Tissue, interpolated between the four surrounding corners.
    let (column, row, dx, dy) = (x / LATTICE, y / LATTICE, x % LATTICE, y % LATTICE);
    let corner = |x: u32, y: u32| 120 + (random(1, x, y) % 100) as u32;
    let along = |y: u32| corner(column, y) * (LATTICE - dx) + corner(column + 1, y) * dx;
    let tissue = (along(row) * (LATTICE - dy) + along(row + 1) * dy) / (LATTICE * LATTICE);
    // A dark cell.
    let cell = random(2, x / CELL, y / CELL);
    let (cx, cy, radius) = (16 + cell % 16, 16 + (cell >> 8) % 16, 6 + (cell >> 16) % 10);
    let far = u64::from(x % CELL).abs_diff(cx).pow(2) + u64::from(y % CELL).abs_diff(cy).pow(2);
    let shadow = if far < radius * radius { 90 } else { 0 };
    // Noise like that of a camera, so that the slide compresses as photographs do.
    let noise = (random(3, x, y) % 8) as u32;
    (tissue - shadow + noise) as u8
}

/// Returns the pixels of an area, row by row.
pub(super) fn pixels(seed: u64, area: SlideArea) -> Vec<u8> {
    area.places().map(|(x, y)| grey(seed, x, y)).collect()
}

/// Returns the largest size of `pixels` bytes after [`compress`], in bytes (RFC 1950 and 1951: stored blocks add at
/// most 5 bytes per 16 KiB).
pub(super) fn most(pixels: usize) -> usize {
    pixels + pixels / 1024 + 64
}

pub(super) fn compress(pixels: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(pixels).and_then(|()| encoder.finish()).expect("a vector takes every write")
}

/// Decompresses exactly `pixels` bytes. Returns `None` for any other number, or for an invalid stream. Never
/// decompresses more than one byte beyond `pixels`.
pub(super) fn decompress(bytes: &[u8], pixels: usize) -> Option<Vec<u8>> {
    let mut found = Vec::with_capacity(pixels);
    ZlibDecoder::new(bytes).take(pixels as u64 + 1).read_to_end(&mut found).ok()?;
    (found.len() == pixels).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_the_slide_and_come_back_from_compression() {
        let whole = pixels(5, SlideArea { x: 0, y: 0, wide: 100, high: 100 });
        let mut covered = 0;
        for chunk in (0..).map_while(|n| SlideArea::chunk(100, 32, n)) {
            let own = pixels(5, chunk);
            let same = chunk.places().map(|(x, y)| whole[(y * 100 + x) as usize]);
            assert!(own.iter().copied().eq(same));
            let packed = compress(&own);
            assert!(packed.len() < most(own.len()));
            assert_eq!(decompress(&packed, own.len()).as_ref(), Some(&own));
            assert_eq!(decompress(&packed, own.len() - 1), None);
            assert_eq!(decompress(&packed, own.len() + 1), None);
            assert_eq!(decompress(&packed[..packed.len() / 2], own.len()), None);
            covered += own.len();
        }
        assert_eq!(covered, whole.len());
        assert_eq!((SlideArea::chunk(100, 32, 16), SlideArea::chunk(64, 64, u32::MAX)), (None, None));
        assert_ne!(whole, pixels(6, SlideArea { x: 0, y: 0, wide: 100, high: 100 }));
    }

    #[test]
    fn incompressible_data_fit_too() {
        let noise: Vec<u8> = (0..1_u64 << 18).map(|n| mixed(n) as u8).collect();
        assert!(compress(&noise).len() <= most(noise.len()));
    }
}
